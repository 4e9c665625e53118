//! The data files of one write.
//!
//! - Memory is bounded by [`WriteOptions::memory_budget`]. When it is used up, the file that holds most of it
//!   spills a row group.
//! - File handles are bounded by [`WriteOptions::max_open_files`]. When another one is needed, the least
//!   recently used file is closed. A partition without enough rows to encode needs no handle.
//! - A file is closed when it reaches [`WriteOptions::target_file_size`]. Within the limits of memory and handles, the
//!   files do not depend on how the rows are divided into batches ([`super::chunk`]).
//! - The writer owns the files until [`DataWriter::finish`] returns their actions. If it fails, or is dropped
//!   or aborted, it deletes them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;

use super::data_file::{ClosedFile, DataFile};
use super::fit::fit;
use super::hive;
use super::rename::renamed;
use super::spec::TableWriteSpec;
use super::split::{PartitionKey, Splitter};
use crate::constraints::{Constraints, Identities};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::protocol::{Add, PartitionValues, path};
use crate::stats::{CollectOptions, collect_stats};
use crate::storage::Storage;

/// The options of a [`DataWriter`].
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The size in bytes at which a file is closed and the next one is begun, if it is not to be that of the table.
    /// Files become slightly larger, because encoded rows are not split.
    pub target_file_size: Option<u64>,
    /// The directory of the files, relative to the table's root, if it is not the root itself.
    pub directory: Option<String>,
    /// The memory for the rows and encoders of all files together, in bytes.
    pub memory_budget: usize,
    /// The maximum number of open files; at least one.
    pub max_open_files: usize,
    /// The source of modification times and of the ids in file names.
    pub environment: Environment,
}

impl WriteOptions {
    /// Creates options with the defaults: 256 MiB of memory, 100 open files.
    pub fn new(environment: Environment) -> Self {
        Self {
            target_file_size: None,
            directory: None,
            memory_budget: 256 << 20,
            max_open_files: 100,
            environment,
        }
    }
}

/// A writer of record batches to data files, which returns the actions that add the files to the log.
pub struct DataWriter {
    storage: Storage,
    spec: TableWriteSpec,
    constraints: Constraints,
    file_schema: SchemaRef,
    data_schema: SchemaRef,
    file_columns: Vec<usize>,
    splitter: Splitter,
    options: WriteOptions,
    files: HashMap<PartitionKey, Slot>,
    memory: usize,
    open: usize,
    uses: u64,
    created: Vec<String>,
    adds: Vec<Add>,
    has_failed: bool,
}

/// A file that is being written, with the writer's accounting.
struct Slot {
    file: DataFile,
    memory: usize,
    last_use: u64,
}

impl DataWriter {
    /// Creates a writer for the table at `storage`, whose files are as `spec` says.
    ///
    /// # Errors
    /// `InvalidArgument` if the table cannot be partitioned by its columns, or if a constraint or a generated column
    /// cannot be evaluated; `SchemaMismatch` if Parquet cannot hold a column.
    pub fn new(storage: Storage, spec: TableWriteSpec, options: WriteOptions) -> Result<Self> {
        let schema = spec.arrow();
        let splitter = Splitter::new(schema, spec.partition_columns())?;
        if let Some(field) = schema.fields().iter().find(|field| has_empty_struct(field.data_type())) {
            return Err(Error::schema_mismatch(format!(
                "column '{}' has a struct without fields, which a Parquet file cannot hold",
                field.name()
            ))
            .in_table(storage.url())
            .with_hint("leave the struct out, or add a field to it"));
        }
        if spec.data_columns().is_empty() {
            return Err(Error::invalid_argument(
                "a table needs at least one column that is not a partition column",
            ));
        }
        Ok(Self {
            file_schema: spec.file_schema(),
            data_schema: spec.data_schema(),
            file_columns: spec.file_columns(),
            splitter,
            options,
            constraints: spec
                .rules()
                .bind(spec.schema(), "UTC")
                .map_err(|error| error.in_table(storage.url()))?,
            spec,
            files: HashMap::new(),
            memory: 0,
            open: 0,
            uses: 0,
            created: Vec::new(),
            adds: Vec::new(),
            has_failed: false,
            storage,
        })
    }

    /// Writes the rows of `batch`, converted to the table's schema by [`fit`]. A batch that does not fit
    /// changes nothing.
    ///
    /// # Errors
    /// `SchemaMismatch` if the batch does not fit, `InvalidArgument` if a row violates a constraint. After any
    /// other error the writer can only be aborted.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check_usable()?;
        let located = |error: Error, storage: &Storage| error.in_table(storage.url());
        let fitted = self.complete(batch).map_err(|error| located(error, &self.storage))?;
        let parts = self.splitter.split(&fitted).map_err(|error| located(error, &self.storage))?;
        let data = fitted
            .project(&self.file_columns)
            .map_err(|error| Error::schema_mismatch("the batch does not fit the table").with_source(error))?;
        let data = renamed(&data, &self.file_schema)?;
        let written = parts.iter().try_for_each(|part| self.write_part(&part.key, &part.of(&data)?));
        self.has_failed = written.is_err();
        written.map_err(|error| located(error, &self.storage))
    }

    /// Completes all files and returns the actions that add them, in the order in which the files were
    /// completed. From then on the caller owns the files.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`. The files are deleted then.
    pub fn finish(mut self) -> Result<Vec<Add>> {
        self.check_usable()?;
        let mut keys: Vec<PartitionKey> = self.files.keys().cloned().collect();
        keys.sort_unstable();
        for key in keys {
            self.close(&key).map_err(|error| error.in_table(self.storage.url()))?;
        }
        self.created.clear();
        Ok(std::mem::take(&mut self.adds))
    }

    /// Deletes the files that were written.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied` for the first file that could not be deleted. The other files are
    /// deleted nevertheless.
    pub fn abort(mut self) -> Result<()> {
        self.delete_created()
    }

    /// Returns the identity columns with the values that this writer has given.
    pub(crate) fn identities(&self) -> &Identities {
        &self.spec.rules().identities
    }

    /// Returns the memory that rows and encoders currently hold, in bytes, by their own accounts.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Returns the number of files that are currently open.
    pub fn open_files(&self) -> usize {
        self.open
    }

    /// Fits `batch` to the table, fills the columns that it does not have, and checks every row.
    fn complete(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if self.spec.rules().is_empty() {
            let fitted = fit(batch, self.spec.arrow())?;
            // Files have what the log says of partition columns.
            return if self.spec.keeps_partition_columns() {
                self.splitter.as_stored(fitted)
            } else {
                Ok(fitted)
            };
        }
        let given = batch.schema_ref();
        let fitted = fit(batch, &self.constraints.schema_before_filling(self.spec.arrow(), given))?;
        let filled = self.constraints.fill(fitted, self.spec.arrow(), given)?;
        // Generated columns and constraints see values as they are stored.
        let filled = self.splitter.as_stored(filled)?;
        let filled =
            self.splitter.as_stored(self.constraints.generate(filled, self.spec.arrow(), given)?)?;
        match self.constraints.violation(&filled)? {
            Some(violation) => Err(violation.into()),
            None => Ok(filled),
        }
    }

    fn check_usable(&self) -> Result<()> {
        if self.has_failed {
            Err(Error::invalid_argument("an earlier write failed, so this writer can only be aborted"))
        } else {
            Ok(())
        }
    }

    fn write_part(&mut self, key: &PartitionKey, rows: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < rows.num_rows() {
            start += self.push(key, &rows.slice(start, rows.num_rows() - start))?;
        }
        Ok(())
    }

    /// Writes the first rows, up to the end of a chunk, and returns their number.
    fn push(&mut self, key: &PartitionKey, rows: &RecordBatch) -> Result<usize> {
        self.uses += 1;
        if !self.files.contains_key(key) {
            let file = DataFile::new(self.new_path(key), key.clone(), Arc::clone(&self.file_schema));
            self.files.insert(key.clone(), Slot { file, memory: 0, last_use: 0 });
        }
        let mut pushed = rows.num_rows();
        if let Some(slot) = self.files.get_mut(key) {
            slot.last_use = self.uses;
            pushed = slot.file.room(rows);
            slot.file.push(rows.slice(0, pushed))?;
        }
        if self.files.get(key).is_some_and(|slot| slot.file.should_encode()) {
            self.change(key, DataFile::encode)?;
        } else {
            self.account(key);
        }
        let target = self.options.target_file_size.unwrap_or(self.spec.target_file_size());
        if self.files.get(key).is_some_and(|slot| slot.file.expected_size() >= target) {
            self.close(key)?;
        }
        self.keep_within_budget()?;
        Ok(pushed)
    }

    fn keep_within_budget(&mut self) -> Result<()> {
        while self.memory > self.options.memory_budget {
            let largest = self.files.iter().max_by_key(|(_, slot)| slot.memory);
            let Some((key, spillable)) = largest.map(|(key, slot)| (key.clone(), slot.file.spillable()))
            else {
                break;
            };
            // A file with nothing left to spill still holds its write buffer.
            if spillable == 0 { self.close(&key)? } else { self.change(&key, DataFile::spill)? }
        }
        Ok(())
    }

    /// Applies `change`, which may create the file, to the file of `key`.
    fn change(
        &mut self,
        key: &PartitionKey,
        change: impl FnOnce(&mut DataFile, &Storage) -> Result<()>,
    ) -> Result<()> {
        self.make_room(key)?;
        let Some(slot) = self.files.get_mut(key) else { return Ok(()) };
        let was_open = slot.file.is_open();
        let changed = change(&mut slot.file, &self.storage);
        // The writer deletes only files that it has created, including those whose change failed afterwards.
        if !was_open && slot.file.is_created() {
            self.open += 1;
            self.created.push(slot.file.path().to_owned());
        }
        changed?;
        self.account(key);
        Ok(())
    }

    /// Closes files until another one may be opened for `key`, unless its file is already open.
    fn make_room(&mut self, key: &PartitionKey) -> Result<()> {
        if self.files.get(key).is_none_or(|slot| slot.file.is_open()) {
            return Ok(());
        }
        while self.open >= self.options.max_open_files.max(1) {
            let oldest = self
                .files
                .iter()
                .filter(|(_, slot)| slot.file.is_open())
                .min_by_key(|(_, slot)| slot.last_use);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            self.close(&oldest)?;
        }
        Ok(())
    }

    fn account(&mut self, key: &PartitionKey) {
        if let Some(slot) = self.files.get_mut(key) {
            let memory = slot.file.memory();
            self.memory = self.memory - slot.memory + memory;
            slot.memory = memory;
        }
    }

    fn close(&mut self, key: &PartitionKey) -> Result<()> {
        self.change(key, DataFile::encode)?;
        let Some(Slot { file, memory, .. }) = self.files.remove(key) else { return Ok(()) };
        self.memory -= memory;
        self.open -= usize::from(file.is_open());
        if let Some(closed) = file.close()? {
            let add = self.add(closed)?;
            self.adds.push(add);
        }
        Ok(())
    }

    fn add(&self, closed: ClosedFile) -> Result<Add> {
        let options = CollectOptions { columns: self.spec.indexed().clone(), without_nan: !closed.has_nan };
        let stats = collect_stats(&closed.metadata, &self.data_schema, &options)
            .map_err(|error| error.at_path(&closed.path))?;
        let size = i64::try_from(closed.size)
            .map_err(|_| Error::corrupt_data("the file is too large").at_path(&closed.path))?;
        let partition_values: PartitionValues =
            self.spec.physical_partition_columns().iter().cloned().zip(closed.key).collect();
        Ok(Add {
            path: path::encode(&closed.path),
            partition_values,
            size,
            modification_time: self.options.environment.now_ms(),
            data_change: true,
            stats: Some(stats),
            tags: self.spec.tags(),
            ..Add::default()
        })
    }

    fn new_path(&self, key: &PartitionKey) -> String {
        let columns = self.spec.physical_partition_columns().iter();
        let values = columns.zip(key).map(|(column, value)| (column.as_str(), value.as_deref()));
        let root = self.options.directory.as_ref().map_or(String::new(), |directory| format!("{directory}/"));
        format!(
            "{root}{}part-00000-{}.c000.snappy.parquet",
            hive::directory(values),
            self.options.environment.uuid()
        )
    }

    fn delete_created(&mut self) -> Result<()> {
        // Some systems do not delete open files, so the encoders that hold them are dropped first.
        self.files.clear();
        self.adds.clear();
        let results: Vec<Result<()>> =
            self.created.drain(..).map(|path| self.storage.delete(&path)).collect();
        results.into_iter().collect()
    }
}

fn has_empty_struct(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => {
            fields.is_empty() || fields.iter().any(|field| has_empty_struct(field.data_type()))
        }
        DataType::List(field) | DataType::Map(field, _) => has_empty_struct(field.data_type()),
        _ => false,
    }
}

impl Drop for DataWriter {
    fn drop(&mut self) {
        if let Err(error) = self.delete_created() {
            tracing::warn!(%error, "an uncommitted data file could not be deleted");
        }
    }
}

impl std::fmt::Debug for DataWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataWriter")
            .field("storage", &self.storage)
            .field("files", &self.files.len())
            .field("memory", &self.memory)
            .finish()
    }
}
