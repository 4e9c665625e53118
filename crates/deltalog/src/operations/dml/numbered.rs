//! Numbers the files of a version, and reads rows with their positions in these files. Engines need this if their
//! tasks find the rows of a statement in several processes.
//!
//! - The number of a file is its index in the sorted list of all paths of a version. Every process therefore computes
//!   the same numbers, whatever files it reads and however the log is stored.

use std::collections::{BTreeMap, HashSet};
use std::iter::once;
use std::sync::Arc;
use std::vec;

use arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use super::marked_rows::{FILE, ROW};
use crate::error::{Error, Result};
use crate::log::deletion_vector::DeletionVectors;
use crate::log::replay::{FileColumn, FileColumns};
use crate::operations::rewrite::{ListedFile, Positions, list};
use crate::protocol::DeletionVectorDescriptor;
use crate::scan::{DataFile, RowScan, RowStream};
use crate::snapshot::Snapshot;

/// The files of a version, with their numbers.
#[derive(Debug)]
pub struct FileNumbers {
    /// The paths of the files as the log spells them, sorted.
    paths: Vec<String>,
}

impl FileNumbers {
    /// Numbers the files of `base`.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store. Returns `Unsupported` for a table with too many files to
    /// number.
    pub fn of(base: &Snapshot) -> Result<Self> {
        let mut paths = Vec::new();
        for batch in base.replay_files(FileColumns::of(&[FileColumn::Path]))? {
            let batch = batch?;
            let column = batch.column_by_name(FileColumn::Path.name());
            let column = column.and_then(|column| column.as_string_opt::<i32>());
            paths.extend(column.into_iter().flatten().flatten().map(str::to_owned));
        }
        paths.sort_unstable();
        if i32::try_from(paths.len()).is_err() {
            return Err(Error::unsupported("a statement that changes rows cannot read so many files")
                .in_table(base.storage().url()));
        }
        Ok(Self { paths })
    }

    /// Returns the number of the file with this path, spelled as in the log.
    pub fn number(&self, path: &str) -> Option<u32> {
        let place = self.paths.binary_search_by(|other| other.as_str().cmp(path)).ok()?;
        u32::try_from(place).ok()
    }

    /// Returns the files with these numbers. `base` must be the version whose files were numbered.
    ///
    /// # Errors
    /// Returns `CorruptData` for a number that no file has, `CorruptLog`, and errors from the store.
    pub(super) fn files(
        &self,
        base: &Snapshot,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<BTreeMap<u32, ListedFile>> {
        let path = |number| {
            let found = usize::try_from(number).ok().and_then(|number| self.paths.get(number));
            found.map(String::as_str).ok_or_else(|| {
                Error::corrupt_data(format!(
                    "a task has removed rows of file number {number}, which does not exist"
                ))
            })
        };
        let wanted = numbers.map(path).collect::<Result<HashSet<&str>>>()?;
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let listed = list(base, None, |path| wanted.contains(path))?;
        let numbered = |file: ListedFile| self.number(&file.add.path).map(|number| (number, file));
        Ok(listed.into_iter().filter_map(numbered).collect())
    }
}

/// A file to read, and its number.
#[derive(Debug)]
pub struct NumberedFile {
    /// The number of the file.
    pub number: u32,
    /// The file to read.
    pub file: DataFile,
    /// The file's deletion vector.
    pub vector: Option<DeletionVectorDescriptor>,
}

/// An iterator over the rows of files, without the deleted rows. The last two columns of each batch are the number of
/// the file, and the positions of the rows in the file.
pub struct NumberedRows {
    scan: RowScan,
    vectors: DeletionVectors,
    files: vec::IntoIter<NumberedFile>,
    current: Option<(u32, Positions, RowStream)>,
    schema: SchemaRef,
}

impl NumberedRows {
    /// Returns the rows of `files`, with the columns of `scan`. `vectors` reads the table's deletion vectors.
    ///
    /// # Errors
    /// Returns `Unsupported` if a column of the table has the same name as one of the last two columns.
    pub fn new(scan: RowScan, vectors: DeletionVectors, files: Vec<NumberedFile>) -> Result<Self> {
        let schema = scan.schema();
        let is_taken =
            |name: &&str| schema.fields().iter().any(|field| field.name().eq_ignore_ascii_case(name));
        if let Some(name) = [FILE, ROW].iter().find(|name| is_taken(name)) {
            return Err(Error::unsupported(format!(
                "the column '{name}' of the table has a name that is reserved for statements that change rows"
            ))
            .with_hint("rename the column"));
        }
        let fields: Fields = schema.fields().iter().cloned().chain(number_fields()).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(Self { scan, vectors, files: files.into_iter(), current: None, schema })
    }

    /// Returns the schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((number, positions, rows)) = &mut self.current
                && let Some(batch) = rows.next().transpose()?
            {
                let (number, taken) = (*number, positions.take(batch.num_rows()));
                return self.numbered(&batch, number, &taken).map(Some);
            }
            let Some(NumberedFile { number, file, vector }) = self.files.next() else { return Ok(None) };
            let positions = Positions::read(&self.vectors, vector.as_ref())?;
            let rows = self.scan.clone().read(once(Ok(file)));
            self.current = Some((number, positions, rows));
        }
    }

    fn numbered(&self, batch: &RecordBatch, number: u32, positions: &[u64]) -> Result<RecordBatch> {
        let unfit = || Error::corrupt_data("a data file has too many rows");
        let number = i32::try_from(number).map_err(|_| unfit())?;
        let positions: Option<Vec<i64>> = positions.iter().map(|row| i64::try_from(*row).ok()).collect();
        let added: [ArrayRef; 2] = [
            Arc::new(Int32Array::from_value(number, batch.num_rows())),
            Arc::new(Int64Array::from(positions.ok_or_else(unfit)?)),
        ];
        let columns = batch.columns().iter().cloned().chain(added).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema(), columns, &options)
            .map_err(|error| Error::corrupt_data("rows cannot be numbered").with_source(error))
    }
}

impl Iterator for NumberedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

fn number_fields() -> [FieldRef; 2] {
    let field = |name: &str, kind| Arc::new(Field::new(name, kind, false));
    [field(FILE, DataType::Int32), field(ROW, DataType::Int64)]
}
