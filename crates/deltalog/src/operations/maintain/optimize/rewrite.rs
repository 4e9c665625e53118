//! Writes the rows of bins to new files.
//!
//! - The rows of each old file are counted while they are read, because the positions in the new file depend on the
//!   counts.
//! - Several small files are read at a time, each as a whole; large files are read batch by batch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;

use super::cubes::keep;
use super::moved::{Moved, NumberFile, RowOrder};
use super::ordered::Ordering;
use super::plan::{Bin, BinOrder, size};
use crate::commit::own_files::OwnFiles;
use crate::commit::row_moves::RowMove;
use crate::error::{Error, Result};
use crate::operations::rewrite::ListedFile;
use crate::protocol::Add;
use crate::runtime::environment::Environment;
use crate::runtime::parallel;
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;
use crate::write::row_copy::RowCopy;
use crate::write::{DataWriter, Overflow, TableWriteSpec, WriteOptions};

/// The memory of all writers together, in bytes.
const MEMORY: usize = 256 << 20;

/// The number of bins that are ordered at the same time. The more memory each of them has, the fewer sorted runs it
/// needs.
const MOST_ORDERED: usize = 2;

/// The maximum size of files that are read as a whole, and the maximum total size of files read at once.
const SMALL_FILE: u64 = 4 << 20;
const READ_AT_ONCE: u64 = 16 << 20;

/// Files that were written again.
pub(super) struct Rewritten {
    pub(super) sources: Vec<Source>,
    /// The new files; none if all rows of the old files are deleted.
    pub(super) new: Vec<NewFile>,
    /// The order of the rows in the new files, taken one after another.
    pub(super) order: RowOrder,
}

impl Rewritten {
    /// Returns the new places of an old file's rows, for writers that delete rows of it concurrently; `None` if the
    /// order has changed.
    pub(super) fn moved(&self, source: &Source) -> Option<RowMove> {
        let RowOrder::Kept = self.order else { return None };
        let Source { add, moved } = source;
        let files = self.new.iter().map(|new| (new.add.path.as_str(), new.rows));
        Some(RowMove::new(add.deletion_vector.clone(), moved.start, moved.rows, files))
    }
}

/// A new file.
pub(super) struct NewFile {
    pub(super) add: Add,
    /// The number of its rows.
    pub(super) rows: u64,
}

/// An old file.
pub(super) struct Source {
    /// The state of the file when it was read.
    pub(super) add: Add,
    /// The place of its rows in the bin.
    pub(super) moved: Moved,
}

/// Writes bins.
pub(super) struct BinRewriter<'a> {
    pub(super) base: &'a Snapshot,
    pub(super) copy: RowCopy,
    /// How rows are ordered. Without it, each bin becomes one file with the rows in their present order.
    ordering: Option<Ordering>,
    /// How many bytes of old files were read and, where rows are ordered, also written.
    pub(super) progress: Progress,
    /// Whether the rows of new files are compared with the rows of the old ones.
    pub(super) checks_rows: bool,
    /// The temporary file for the new order of rows.
    pub(super) numbers: NumberFile,
    /// The new files of the bins that are being written.
    own: Mutex<OwnFiles>,
    pub(super) environment: &'a Environment,
}

impl<'a> BinRewriter<'a> {
    /// # Errors
    /// `InvalidArgument` for a table with row tracking that has a column with the name of a scan's row id
    /// column.
    pub(super) fn new(
        base: &'a Snapshot,
        spec: TableWriteSpec,
        ordering: Option<Ordering>,
        checks_rows: bool,
        progress: Progress,
        environment: &'a Environment,
    ) -> Result<Self> {
        // This code decides how many rows a file gets, so the writer must never start a new file because of its size.
        let copy = RowCopy::of(base, spec.with_target_file_size(u64::MAX))?;
        let numbers = Arc::new(Mutex::new(Overflow::new(std::env::temp_dir())));
        let own = Mutex::new(OwnFiles::new(base.storage(), Some(base)));
        Ok(Self { base, copy, ordering, progress, checks_rows, numbers, own, environment })
    }

    /// Writes the bins of a batch.
    ///
    /// # Errors
    /// `CorruptData`, and errors of the store. No new file is left then.
    pub(super) fn rewrite(&self, bins: &[Bin]) -> Result<Vec<Rewritten>> {
        // A single writer already encodes on all cores; more threads only fill the pauses between files.
        let most = if self.ordering.is_some() { MOST_ORDERED } else { usize::MAX };
        let threads = parallel::cores().min(bins.len()).min(most).max(1);
        let outcome = parallel::each(bins, threads, |bin| match &self.ordering {
            Some(ordering) if bin.order == BinOrder::Curve => self.order(bin, ordering, MEMORY / threads),
            _ => self.join(&bin.files, MEMORY / threads),
        });
        self.settle(outcome)
    }

    /// Returns the `outcome` of bins. If it is an error, all of their new files are deleted; otherwise the caller owns
    /// them.
    pub(super) fn settle<T>(&self, outcome: Result<T>) -> Result<T> {
        let none = OwnFiles::new(self.base.storage(), Some(self.base));
        let own = std::mem::replace(&mut *self.own(), none);
        own.settle(outcome)
    }

    fn own(&self) -> MutexGuard<'_, OwnFiles> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the rows of a bin to one file, in their present order.
    pub(super) fn join(&self, files: &[ListedFile], memory_budget: usize) -> Result<Rewritten> {
        let (mut writer, mut read) = (self.writer(self.options(memory_budget))?, self.read_rows());
        let sources = self.read(files, |batch| {
            read.add(&batch)?;
            writer.write(&batch)
        })?;
        let rows = sources.iter().map(|source| source.moved.rows).sum();
        let mut new: Vec<NewFile> = self.finished(writer, rows)?.into_iter().collect();
        // A single file is clustered as well as before.
        if let ([file], [new]) = (files, new.as_mut_slice()) {
            keep(&file.add, &mut new.add);
        }
        self.checked(files, &read, Rewritten { sources, new, order: RowOrder::Kept })
    }

    /// Returns options for writers that together use this many bytes of memory.
    pub(super) fn options(&self, memory_budget: usize) -> WriteOptions {
        WriteOptions { memory_budget, ..WriteOptions::new(self.environment.clone()) }
    }

    /// Returns a writer of one new file.
    pub(super) fn writer(&self, options: WriteOptions) -> Result<DataWriter> {
        DataWriter::new(self.base.storage().clone(), self.copy.spec.clone(), options)
    }

    /// Completes a file with this number of rows; `None` if it has no rows.
    pub(super) fn finished(&self, writer: DataWriter, rows: u64) -> Result<Option<NewFile>> {
        let mut new = writer.finish()?;
        self.own().add(new.iter().map(|add| &add.path));
        let added = new.pop();
        if !new.is_empty() || added.is_some() != (rows > 0) {
            // The writer has made more than one file, so the positions of rows would be unknown.
            return Err(self
                .base
                .located(Error::corrupt_data("the rows of a partition did not become one file")));
        }
        Ok(added.map(|add| NewFile { add: Add { data_change: false, ..add }, rows }))
    }

    /// Calls `visit` with the rows of files, file after file, and returns where each file's rows are among them.
    pub(super) fn read(
        &self,
        files: &[ListedFile],
        mut visit: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<Vec<Source>> {
        let mut sources = Vec::with_capacity(files.len());
        let mut start = 0;
        let mut note = |file: &ListedFile, rows: u64| {
            sources.push(Source { add: file.add.clone(), moved: Moved { start, rows } });
            start += rows;
            self.progress.add(size(&file.add));
        };
        for group in groups(files) {
            match group {
                [file] => {
                    let mut rows = 0;
                    for batch in self.copy.scan.clone().read(std::iter::once(Ok(file.file.clone()))) {
                        let batch = batch?;
                        rows += batch.num_rows() as u64;
                        visit(batch)?;
                    }
                    note(file, rows);
                }
                files => {
                    let threads = self.base.storage().readers(files.len());
                    for (file, batches) in
                        files.iter().zip(parallel::each(files, threads, |file| self.all_rows(file))?)
                    {
                        note(file, batches.iter().map(|batch| batch.num_rows() as u64).sum());
                        batches.into_iter().try_for_each(&mut visit)?;
                    }
                }
            }
        }
        Ok(sources)
    }

    fn all_rows(&self, file: &ListedFile) -> Result<Vec<RecordBatch>> {
        let scan = self.copy.scan.clone().with_threads(1);
        scan.read(std::iter::once(Ok(file.file.clone()))).collect()
    }
}

/// Divides files into groups: small files that are read as a whole at the same time, and large files on their own.
fn groups(files: &[ListedFile]) -> Vec<&[ListedFile]> {
    let mut groups = Vec::new();
    let mut rest = files;
    while !rest.is_empty() {
        let mut bytes = 0;
        let small = rest.iter().take_while(|file| {
            bytes += size(&file.add);
            size(&file.add) <= SMALL_FILE && bytes <= READ_AT_ONCE
        });
        let (group, others) = rest.split_at(small.count().max(1));
        groups.push(group);
        rest = others;
    }
    groups
}
