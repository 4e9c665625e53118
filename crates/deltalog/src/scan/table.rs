//! The rows of a snapshot: its file list handed to the reader of rows.

use std::sync::Arc;

use arrow::array::{Array, AsArray, StructArray};
use arrow::datatypes::{Int64Type, SchemaRef};

use super::files::{FileList, FileListing, ListColumn, partition_map, required};
use super::partitions::PartitionColumns;
use super::rows::{DataFile, PartitionRow, RowScan, RowStream};
use crate::error::{Error, Result};
use crate::predicate::Predicate;
use crate::protocol::PathResolver;
use crate::replay::FileColumn;
use crate::snapshot::Snapshot;

/// What to read of a snapshot.
#[derive(Debug, Clone)]
pub struct TableScan {
    snapshot: Snapshot,
    columns: Option<Vec<String>>,
    predicate: Option<Predicate>,
}

impl TableScan {
    /// Every row, every column.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self { snapshot: snapshot.clone(), columns: None, predicate: None }
    }

    /// Only these top-level columns, in this order.
    #[must_use]
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Only rows for which `predicate` is true.
    #[must_use]
    pub fn predicate(mut self, predicate: Predicate) -> Self {
        self.predicate = Some(predicate);
        self
    }

    /// Starts reading: files in the order of the list, rows in the order of the file.
    ///
    /// # Errors
    /// `InvalidArgument` for a column that is not there or a predicate that does not fit the schema; what goes wrong while reading comes with the batches.
    pub fn read(self) -> Result<RowStream> {
        let snapshot = &self.snapshot;
        let mut scan = RowScan::new(snapshot.storage().clone(), snapshot.arrow_schema(), &snapshot.metadata().partition_columns)?;
        scan = scan.at_version(snapshot.version());
        if let Some(columns) = &self.columns {
            scan = scan.with_projection(columns)?;
        }
        let mut listing = FileListing::new(snapshot);
        if let Some(predicate) = &self.predicate {
            let bound = predicate.bind(snapshot.arrow_schema()).map_err(|error| error.in_table(snapshot.storage().url()))?;
            scan = scan.with_predicate(&bound)?;
            listing = listing.predicate(predicate)?;
        }
        Ok(scan.read(DataFiles::new(snapshot, listing)?))
    }

    /// The schema of the rows.
    ///
    /// # Errors
    /// As [`TableScan::read`].
    pub fn schema(&self) -> Result<SchemaRef> {
        let snapshot = &self.snapshot;
        let scan = RowScan::new(snapshot.storage().clone(), snapshot.arrow_schema(), &snapshot.metadata().partition_columns)?;
        match &self.columns {
            Some(columns) => Ok(scan.with_projection(columns)?.schema()),
            None => Ok(scan.schema()),
        }
    }
}

/// The data files of a listing, one by one.
pub struct DataFiles {
    list: FileList,
    resolver: PathResolver,
    partitions: PartitionColumns,
    current: std::vec::IntoIter<DataFile>,
}

impl DataFiles {
    /// The files that `listing` of `snapshot` keeps.
    ///
    /// # Errors
    /// As [`FileListing::read`].
    pub fn new(snapshot: &Snapshot, listing: FileListing) -> Result<Self> {
        let list = listing.columns([ListColumn::Path, ListColumn::Size, ListColumn::PartitionValues]).read()?;
        Ok(Self {
            list,
            resolver: snapshot.resolver().clone(),
            partitions: PartitionColumns::of(snapshot)?,
            current: Vec::new().into_iter(),
        })
    }

    fn next_batch(&mut self) -> Option<Result<Vec<DataFile>>> {
        let batch = self.list.next_kept()?;
        Some(batch.and_then(|batch| {
            let paths =
                required(&batch, FileColumn::Path)?.as_string_opt::<i32>().ok_or_else(|| Error::corrupt_log("paths are no strings"))?;
            let sizes = required(&batch, FileColumn::Size)?;
            let sizes = sizes.as_primitive_opt::<Int64Type>().ok_or_else(|| Error::corrupt_log("sizes are no numbers"))?;
            let values: Arc<StructArray> = Arc::new(self.partitions.parse(partition_map(&batch)?)?);
            let file = |row: usize| {
                if paths.is_null(row) || sizes.is_null(row) {
                    return Err(Error::corrupt_log("an add action lacks its path or its size"));
                }
                let size = u64::try_from(sizes.value(row))
                    .map_err(|_| Error::corrupt_log("a file has a negative size").at_path(paths.value(row)))?;
                Ok(DataFile {
                    path: self.resolver.resolve(paths.value(row)).map_err(|error| error.at_path(paths.value(row)))?,
                    size,
                    partition_values: PartitionRow::new(Arc::clone(&values), row)?,
                })
            };
            (0..batch.num_rows()).map(file).collect::<Result<Vec<_>>>().map_err(|error| self.list.located(error))
        }))
    }
}

impl Iterator for DataFiles {
    type Item = Result<DataFile>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(file) = self.current.next() {
                return Some(Ok(file));
            }
            match self.next_batch()? {
                Ok(files) => self.current = files.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
