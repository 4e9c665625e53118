//! Manages the data files of a write, from choosing their names to creating the actions that add them.
//!
//! - Unless the write is finished, the files that it created are deleted. A file that existed before is never
//!   overwritten and never deleted.
//! - A file that was closed too early can be read back and replaced by a new file.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};

use super::data_file::{ClosedFile, DataFile};
use super::data_writer::WriteOptions;
use super::dictionaries::Dictionaries;
use super::fit::fit;
use super::format::Format;
use super::hive;
use super::spec::TableWriteSpec;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{Add, PartitionValues, path};
use crate::runtime::environment::Environment;
use crate::storage::Storage;
use crate::values::footer;
use crate::values::stats::{CollectOptions, collect_stats};

/// The data files of one write.
pub(super) struct Output {
    storage: Storage,
    spec: TableWriteSpec,
    file_schema: SchemaRef,
    data_schema: SchemaRef,
    directory: Option<String>,
    dictionaries: Option<Dictionaries>,
    format: Format,
    environment: Environment,
    /// The paths of the files that have been created.
    created: HashSet<String>,
    adds: Vec<Option<Add>>,
}

/// A completed file of the write.
#[derive(Debug)]
pub(super) struct WrittenFile {
    path: String,
    add: usize,
}

/// The maximum number of rows that are read back from a file at once, and their maximum uncompressed size in bytes.
const ROWS_AT_ONCE: i64 = 1024;
const BYTES_AT_ONCE: i64 = 16 << 20;

impl Output {
    /// Prepares a write without creating files.
    ///
    /// # Errors
    /// Returns the errors of [`Format::new`].
    pub(super) fn new(storage: Storage, spec: TableWriteSpec, options: WriteOptions) -> Result<Self> {
        let format = Format::new(&spec, options.environment.file_format());
        Ok(Self {
            format: format.map_err(|error| error.in_table(storage.url()))?,
            storage,
            file_schema: spec.file_schema(),
            data_schema: spec.data_schema(),
            spec,
            directory: options.directory,
            dictionaries: options.dictionaries,
            environment: options.environment,
            created: HashSet::new(),
            adds: Vec::new(),
        })
    }

    pub(super) fn storage(&self) -> &Storage {
        &self.storage
    }

    pub(super) fn spec(&self) -> &TableWriteSpec {
        &self.spec
    }

    /// Returns the schema of the data files.
    pub(super) fn file_schema(&self) -> &SchemaRef {
        &self.file_schema
    }

    /// Begins a file of the partition with these values. The file is created when its first rows are encoded.
    pub(super) fn begin(&self, values: &[Option<String>]) -> DataFile {
        DataFile::new(
            self.new_path(values),
            values.to_vec(),
            SchemaRef::clone(&self.file_schema),
            self.format.clone(),
            self.dictionaries.clone(),
        )
    }

    fn new_path(&self, values: &[Option<String>]) -> String {
        let columns = self.spec.physical_partition_columns().iter();
        let values = columns.zip(values).map(|(column, value)| (column.as_str(), value.as_deref()));
        let root = self.directory.as_ref().map_or(String::new(), |directory| format!("{directory}/"));
        format!(
            "{root}{}part-00000-{}.c000{}.parquet",
            hive::directory(values),
            self.environment.uuid(),
            self.format.extension()
        )
    }

    /// Applies `change` to `file`. If this creates the file on disk, records its path.
    pub(super) fn change(
        &mut self,
        file: &mut DataFile,
        change: impl FnOnce(&mut DataFile, &Storage) -> Result<()>,
    ) -> Result<()> {
        let was_created = file.is_created();
        let changed = change(file, &self.storage);
        // The file may exist even if the change failed afterwards.
        if !was_created && file.is_created() {
            self.note_created(file.path().to_owned());
        }
        changed
    }

    /// Records that the file at `path` has been created.
    pub(super) fn note_created(&mut self, path: String) {
        self.created.insert(path);
    }

    /// Completes a file. Returns `None` if the file has no rows.
    pub(super) fn close(&mut self, mut file: DataFile) -> Result<Option<WrittenFile>> {
        self.change(&mut file, DataFile::encode)?;
        file.close()?.map(|closed| self.add(closed)).transpose()
    }

    /// Creates the `add` action of a completed file.
    pub(super) fn add(&mut self, closed: ClosedFile) -> Result<WrittenFile> {
        let options = CollectOptions { columns: self.spec.indexed().clone(), is_own: true };
        let stats = collect_stats(&closed.metadata, &self.data_schema, &options)
            .map_err(|error| error.at_path(&closed.path))?;
        let size = i64::try_from(closed.size)
            .map_err(|_| Error::corrupt_data("the file is too large").at_path(&closed.path))?;
        let partition_values: PartitionValues =
            self.spec.physical_partition_columns().iter().cloned().zip(closed.key).collect();
        self.adds.push(Some(Add {
            path: path::encode(&closed.path),
            partition_values,
            size,
            modification_time: self.environment.now_ms(),
            data_change: true,
            stats: Some(stats),
            tags: self.spec.tags(),
            ..Add::default()
        }));
        Ok(WrittenFile { path: closed.path, add: self.adds.len() - 1 })
    }

    /// Reads the rows of a file, batch by batch.
    ///
    /// # Errors
    /// Returns `Unavailable` if the file cannot be read. Errors in later batches are of the same kind.
    pub(super) fn read(&self, file: &WrittenFile) -> Result<WrittenRows> {
        let opened = self.storage.open_file(&file.path)?.planned_whole();
        let reader = footer::decode(&opened)
            .and_then(|footer| ArrowReaderMetadata::try_new(Arc::new(footer), ArrowReaderOptions::new()))
            .and_then(|footer| {
                let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(opened, footer);
                let row_groups = builder.metadata().row_groups().iter();
                let (bytes, rows) = row_groups.fold((0, 0), |(bytes, rows), group| {
                    (bytes + group.total_byte_size(), rows + group.num_rows())
                });
                let at_once = BYTES_AT_ONCE.saturating_mul(rows) / bytes.max(1);
                builder.with_batch_size(at_once.clamp(1, ROWS_AT_ONCE) as usize).build()
            })
            .map_err(|error| unreadable(&file.path, error))?;
        Ok(WrittenRows { path: file.path.clone(), schema: SchemaRef::clone(&self.file_schema), reader })
    }

    /// Deletes a file that another file has replaced. If it cannot be deleted, it remains until VACUUM removes it,
    /// because nothing will refer to it.
    pub(super) fn discard(&mut self, file: WrittenFile) {
        if let Some(add) = self.adds.get_mut(file.add) {
            *add = None;
        }
        match self.storage.delete(&file.path) {
            Ok(()) => {
                self.created.remove(&file.path);
            }
            Err(error) => tracing::warn!(%error, "a data file that was written again could not be deleted"),
        }
    }

    /// Returns the actions that add the files, in the order in which they were completed. From then on, the caller
    /// owns the files.
    pub(super) fn finish(&mut self) -> Vec<Add> {
        self.created.clear();
        std::mem::take(&mut self.adds).into_iter().flatten().collect()
    }

    /// Deletes all files that have been created.
    ///
    /// # Errors
    /// Returns the error of the first file that could not be deleted. It still deletes the other files.
    pub(super) fn delete(&mut self) -> Result<()> {
        self.adds.clear();
        let results: Vec<Result<()>> = self.created.drain().map(|path| self.storage.delete(&path)).collect();
        results.into_iter().collect()
    }
}

/// The rows of a file of this write, which are read back.
pub(super) struct WrittenRows {
    path: String,
    schema: SchemaRef,
    reader: ParquetRecordBatchReader,
}

impl Iterator for WrittenRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?;
        // Parquet uses different names for the parts of lists and maps, so the batch is converted.
        Some(batch.map_err(|error| unreadable(&self.path, error)).and_then(|batch| fit(&batch, &self.schema)))
    }
}

fn unreadable(path: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Unavailable, "the data file of this write could not be read back")
        .at_path(path)
        .with_source(error)
}
