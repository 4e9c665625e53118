//! Writes the data files of a single write.
//!
//! - Memory is limited by [`WriteOptions::memory_budget`], regardless of the order of the rows and the number of
//!   partitions ([`super::partitions`]).
//! - A file is closed when it reaches [`WriteOptions::target_file_size`]. The contents of files do not depend on how
//!   the rows are divided into batches ([`super::chunk`]). The number of files does not depend on the order of the
//!   partitions.
//! - The writer owns the files until [`DataWriter::finish`] returns their actions. It deletes them if it fails, is
//!   aborted or is dropped.

use std::path::PathBuf;

use arrow::record_batch::RecordBatch;

use super::completion::complete;
use super::dictionaries::Dictionaries;
use super::group::group;
use super::inbox::Inbox;
use super::output::Output;
use super::overflow::Overflow;
use super::partitions::Partitions;
use super::rename::renamed;
use super::spec::TableWriteSpec;
use super::split::{PartitionId, Splitter};
use crate::error::{Error, Result};
use crate::expression::constraints::{Constraints, Identities};
use crate::protocol::Add;
use crate::runtime::environment::Environment;
use crate::runtime::interrupt;
use crate::runtime::progress::Progress;
use crate::runtime::row_bytes::{is_too_large, weight_of};
use crate::storage::Storage;

/// The maximum number of rows that are grouped by partition at once. It limits the memory for copying them.
const ROWS_AT_ONCE: usize = 1 << 16;

/// The maximum size in bytes of rows that are grouped by partition at once.
const BYTES_AT_ONCE: usize = 16 << 20;

/// The options of a [`DataWriter`].
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The size in bytes at which a file is closed and the next one begins, if it should differ from the table's
    /// setting. Files become slightly larger, because encoded rows are not divided.
    pub target_file_size: Option<u64>,
    /// The directory of the files, relative to the table's root; `None` for the root itself.
    pub directory: Option<String>,
    /// The memory in bytes for the rows and encoders of all files together. One file can be open for each 8 MiB of
    /// it.
    pub memory_budget: usize,
    /// The directory of the temporary file for rows that do not fit in memory; `None` for the system's directory.
    pub temporary_directory: Option<PathBuf>,
    /// What similar files have shown about which columns should have dictionaries. If `None`, all columns of all files
    /// have dictionaries.
    pub dictionaries: Option<Dictionaries>,
    /// The source of the modification times and ids that files get.
    pub environment: Environment,
}

impl WriteOptions {
    /// Creates default options, with 256 MiB of memory.
    pub fn new(environment: Environment) -> Self {
        Self {
            target_file_size: None,
            directory: None,
            memory_budget: 256 << 20,
            temporary_directory: None,
            dictionaries: None,
            environment,
        }
    }
}

/// A writer of record batches to data files, which returns the actions that add the files to the log.
pub struct DataWriter {
    constraints: Constraints,
    file_columns: Vec<usize>,
    splitter: Splitter,
    inbox: Inbox,
    partitions: Partitions,
    /// The number of the splitter's partitions that have been added to `partitions`.
    known: usize,
    has_failed: bool,
    progress: Option<Progress>,
}

impl DataWriter {
    /// Creates a writer for the table at `storage`, whose files follow `spec`.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the table cannot be partitioned by its partition columns, or if a constraint or a
    /// generated column cannot be evaluated. Returns `SchemaMismatch` for columns that
    /// [`TableWriteSpec::ensure_storable`] refuses.
    pub fn new(storage: Storage, spec: TableWriteSpec, options: WriteOptions) -> Result<Self> {
        let schema = spec.arrow();
        let splitter = Splitter::new(schema, spec.partition_columns())?;
        spec.ensure_storable().map_err(|error| error.in_table(storage.url()))?;
        let constraints = spec.bound_rules().map_err(|error| error.in_table(storage.url()))?;
        let target_file_size = options.target_file_size.unwrap_or(spec.target_file_size());
        let memory_budget = options.memory_budget;
        let temporary = options.temporary_directory.clone().unwrap_or_else(std::env::temp_dir);
        let overflow = Overflow::new(temporary);
        let file_columns = spec.file_columns();
        let output = Output::new(storage, spec, options)?;
        Ok(Self {
            constraints,
            file_columns,
            partitions: Partitions::new(
                output,
                overflow,
                splitter.is_trivial(),
                target_file_size,
                memory_budget,
            ),
            splitter,
            inbox: Inbox::default(),
            known: 0,
            has_failed: false,
            progress: None,
        })
    }

    /// Writes the rows of `batch`, after `fit` has converted them to the table's schema. A batch that does not fit
    /// changes nothing, unless it is so large that some of its rows are written before others are converted.
    ///
    /// # Errors
    /// Returns `SchemaMismatch` if the batch does not fit, and `InvalidArgument` if a row violates a constraint.
    /// After any other error, or if some rows of the batch have been written, the only thing the writer can do is
    /// abort.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check_usable()?;
        let mut ranges = self.partitions.output().storage().batch_bytes().ranges(batch);
        if ranges.is_empty() {
            // A batch without rows is converted as well, so that its schema is checked.
            ranges.push(0..0);
        }
        ranges.reverse();
        while let Some(range) = ranges.pop() {
            interrupt::check().map_err(|stopped| self.located(stopped.into()))?;
            match self.prepare(&batch.slice(range.start, range.len())) {
                Ok(prepared) => {
                    let written = self.distribute(prepared);
                    self.has_failed = written.is_err();
                    written.map_err(|error| self.located(error))?;
                }
                // Default and generated values may be far larger than the rest of the row, so the batch is divided.
                Err(error) if is_too_large(&error) && range.len() > 1 => {
                    let middle = range.start.midpoint(range.end);
                    ranges.extend([middle..range.end, range.start..middle]);
                }
                Err(error) => {
                    self.has_failed = range.start > 0;
                    return Err(self.located(error));
                }
            }
        }
        if let Some(progress) = &self.progress {
            progress.add(batch.num_rows() as u64);
        }
        Ok(())
    }

    /// Reports the rows that are written from now on as progress.
    #[must_use]
    pub(crate) fn with_progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Completes all files. Returns the actions that add them, in the order in which the files were completed. From
    /// then on, the caller owns the files.
    ///
    /// # Errors
    /// Returns `Unavailable` or `PermissionDenied`, after deleting the files.
    pub fn finish(mut self) -> Result<Vec<Add>> {
        self.check_usable()?;
        self.empty_inbox().and_then(|()| self.partitions.finish()).map_err(|error| self.located(error))?;
        Ok(self.partitions.output_mut().finish())
    }

    /// Deletes all files that were written.
    ///
    /// # Errors
    /// Returns `Unavailable` or `PermissionDenied` for the first file that could not be deleted. It still deletes the
    /// other files.
    pub fn abort(mut self) -> Result<()> {
        self.partitions.abort()
    }

    /// Returns the identity columns with the values that this writer has assigned.
    pub(crate) fn identities(&self) -> &Identities {
        &self.spec().rules().identities
    }

    /// Returns the memory that rows and encoders currently hold, in bytes, according to their own estimates.
    pub fn memory(&self) -> usize {
        self.inbox.memory() + self.partitions.memory()
    }

    /// Returns the number of files that are currently open.
    pub fn open_files(&self) -> usize {
        self.partitions.open_files()
    }

    /// Returns the size in bytes of the temporary file, which contains rows that did not fit in memory.
    pub fn overflowed(&self) -> u64 {
        self.partitions.overflowed()
    }

    fn spec(&self) -> &TableWriteSpec {
        self.partitions.output().spec()
    }

    fn located(&self, error: Error) -> Error {
        error.in_table(self.partitions.output().storage().url())
    }

    /// Converts `batch` to the columns that data files store. Returns the rows, and the partition of each row unless
    /// there is only one.
    fn prepare(&mut self, batch: &RecordBatch) -> Result<(RecordBatch, Vec<PartitionId>)> {
        let fitted = complete(batch, self.spec(), &self.constraints, &self.splitter)?;
        let partitions = match self.splitter.is_trivial() {
            true => Vec::new(),
            false => self.splitter.partitions(&fitted)?,
        };
        let data = fitted
            .project(&self.file_columns)
            .map_err(|error| Error::schema_mismatch("the batch does not fit the table").with_source(error))?;
        Ok((renamed(&data, self.partitions.output().file_schema())?, partitions))
    }

    /// Passes each row to its partition.
    fn distribute(&mut self, (rows, partitions): (RecordBatch, Vec<PartitionId>)) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        self.add_partitions();
        if self.splitter.is_trivial() {
            let count = rows.num_rows();
            let mut source = self.partitions.source(rows);
            return self.partitions.push(0, &mut source, 0..count);
        }
        if Inbox::is_small(&rows) {
            return if self.inbox.add(rows, partitions)? { self.empty_inbox() } else { Ok(()) };
        }
        self.empty_inbox()?;
        self.push(&rows, &partitions)
    }

    fn empty_inbox(&mut self) -> Result<()> {
        if self.inbox.memory() == 0 {
            return Ok(());
        }
        let (rows, partitions) = self.inbox.take(self.partitions.output().file_schema())?;
        self.push(&rows, &partitions)
    }

    /// Adds the partitions that the splitter has found since the last call.
    fn add_partitions(&mut self) {
        let found = if self.splitter.is_trivial() { 1 } else { self.splitter.len() };
        for id in self.known..found {
            self.partitions.add(self.splitter.values(id).to_vec());
        }
        self.known = self.known.max(found);
    }

    fn push(&mut self, rows: &RecordBatch, partitions: &[PartitionId]) -> Result<()> {
        let bytes_per_row = weight_of(rows, 0, rows.num_rows()) / rows.num_rows().max(1);
        let at_once = (BYTES_AT_ONCE / bytes_per_row.max(1)).clamp(1, ROWS_AT_ONCE);
        for (number, partitions) in partitions.chunks(at_once).enumerate() {
            let rows = rows.slice(number * at_once, partitions.len());
            let (direct, waiting) = group(partitions, |id| self.partitions.is_direct(id));
            for mut groups in [direct, waiting].into_iter().filter(|groups| !groups.ranges.is_empty()) {
                let mut source = self.partitions.source(groups.rows(&rows)?);
                for (id, range) in groups.ranges {
                    self.partitions.push(id, &mut source, range)?;
                }
                drop(source);
                self.partitions.keep_within_budget()?;
            }
        }
        Ok(())
    }

    fn check_usable(&self) -> Result<()> {
        if self.has_failed {
            Err(Error::invalid_argument("an earlier write failed, so this writer can only be aborted"))
        } else {
            Ok(())
        }
    }
}

impl Drop for DataWriter {
    fn drop(&mut self) {
        if let Err(error) = self.partitions.abort() {
            tracing::warn!(%error, "an uncommitted data file could not be deleted");
        }
    }
}

impl std::fmt::Debug for DataWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataWriter")
            .field("storage", self.partitions.output().storage())
            .field("files", &self.open_files())
            .field("memory", &self.memory())
            .finish()
    }
}
