//! Writes the rows of bins to new files.
//!
//! - The rows of each old file are counted while they are read, because the positions of rows in the new file depend
//!   on these numbers.
//! - Several small files are read concurrently, each of them completely. Large files are read batch by batch.

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

/// The total memory of all writers, in bytes.
const MEMORY: usize = 256 << 20;

/// The maximum number of bins that are ordered at the same time. It is low because a bin with more memory needs fewer
/// sorted runs.
const MOST_ORDERED: usize = 2;

/// The maximum size of a file that is read completely, and the maximum total size of files that are read at once.
const SMALL_FILE: u64 = 4 << 20;
const READ_AT_ONCE: u64 = 16 << 20;

/// The result of rewriting the files of a bin.
pub(super) struct Rewritten {
    pub(super) sources: Vec<Source>,
    /// The new files; empty if all rows of the old files are deleted.
    pub(super) new: Vec<NewFile>,
    /// The order of the rows in the new files, if these are read one after another.
    pub(super) order: RowOrder,
}

impl Rewritten {
    /// Returns the new positions of an old file's rows, for writers that concurrently delete rows of this file.
    /// Returns `None` if the order has changed.
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
    /// The number of rows in the file.
    pub(super) rows: u64,
}

/// An old file.
pub(super) struct Source {
    /// The action of the file when it was read.
    pub(super) add: Add,
    /// The position of the file's rows in the bin.
    pub(super) moved: Moved,
}

/// Writes the rows of bins to new files.
pub(super) struct BinRewriter<'a> {
    pub(super) base: &'a Snapshot,
    pub(super) copy: RowCopy,
    /// How rows are ordered. If `None`, each bin becomes one file whose rows keep their order.
    ordering: Option<Ordering>,
    /// The number of bytes of old files that were read. If rows are ordered, the bytes that were written are added.
    pub(super) progress: Progress,
    /// Whether to compare the rows of new files with the rows of the old files.
    pub(super) checks_rows: bool,
    /// The temporary file for the new order of rows.
    pub(super) numbers: NumberFile,
    /// The new files of the bins that are being written.
    own: Mutex<OwnFiles>,
    pub(super) environment: &'a Environment,
}

impl<'a> BinRewriter<'a> {
    /// # Errors
    /// Returns `InvalidArgument` for a table with row tracking that has a column with the name of a scan's row id
    /// column.
    pub(super) fn new(
        base: &'a Snapshot,
        spec: TableWriteSpec,
        ordering: Option<Ordering>,
        checks_rows: bool,
        progress: Progress,
        environment: &'a Environment,
    ) -> Result<Self> {
        // The number of rows in a file is decided here, so the writer must never start another file because of the
        // size.
        let copy = RowCopy::of(base, spec.with_target_file_size(u64::MAX))?;
        let numbers = Arc::new(Mutex::new(Overflow::new(std::env::temp_dir())));
        let own = Mutex::new(OwnFiles::new(base.storage(), Some(base)));
        Ok(Self { base, copy, ordering, progress, checks_rows, numbers, own, environment })
    }

    /// Writes the bins of a batch.
    ///
    /// # Errors
    /// Returns `CorruptData`, and errors from the store. All new files have then been deleted.
    pub(super) fn rewrite(&self, bins: &[Bin]) -> Result<Vec<Rewritten>> {
        // A single writer already encodes on all cores. Additional threads only fill the pauses between files.
        let most = if self.ordering.is_some() { MOST_ORDERED } else { usize::MAX };
        let threads = parallel::cores().min(bins.len()).min(most).max(1);
        let outcome = parallel::each(bins, threads, |bin| match &self.ordering {
            Some(ordering) if bin.order == BinOrder::Curve => self.order(bin, ordering, MEMORY / threads),
            _ => self.join(&bin.files, MEMORY / threads),
        });
        self.settle(outcome)
    }

    /// Returns `outcome`, the result of writing bins. If it is an error, deletes all new files; otherwise the caller
    /// now owns them.
    pub(super) fn settle<T>(&self, outcome: Result<T>) -> Result<T> {
        let none = OwnFiles::new(self.base.storage(), Some(self.base));
        let own = std::mem::replace(&mut *self.own(), none);
        own.settle(outcome)
    }

    fn own(&self) -> MutexGuard<'_, OwnFiles> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the rows of a bin to one file, without changing their order.
    pub(super) fn join(&self, files: &[ListedFile], memory_budget: usize) -> Result<Rewritten> {
        let (mut writer, mut read) = (self.writer(self.options(memory_budget))?, self.read_rows());
        let sources = self.read(files, |batch| {
            read.add(&batch)?;
            writer.write(&batch)
        })?;
        let rows = sources.iter().map(|source| source.moved.rows).sum();
        let mut new: Vec<NewFile> = self.finished(writer, rows)?.into_iter().collect();
        // A single file remains clustered as well as before.
        if let ([file], [new]) = (files, new.as_mut_slice()) {
            keep(&file.add, &mut new.add);
        }
        self.checked(files, &read, Rewritten { sources, new, order: RowOrder::Kept })
    }

    /// Returns options for writers that together use the given amount of memory, in bytes.
    pub(super) fn options(&self, memory_budget: usize) -> WriteOptions {
        WriteOptions { memory_budget, ..WriteOptions::new(self.environment.clone()) }
    }

    /// Returns a writer for one new file.
    pub(super) fn writer(&self, options: WriteOptions) -> Result<DataWriter> {
        DataWriter::new(self.base.storage().clone(), self.copy.spec.clone(), options)
    }

    /// Completes a file that has `rows` rows; returns `None` if there are no rows.
    pub(super) fn finished(&self, writer: DataWriter, rows: u64) -> Result<Option<NewFile>> {
        let mut new = writer.finish()?;
        self.own().add(new.iter().map(|add| &add.path));
        let added = new.pop();
        if !new.is_empty() || added.is_some() != (rows > 0) {
            // If the writer has created more than one file, the positions of rows are unknown.
            return Err(self.base.located(Error::corrupt_data(
                "the rows of a new file were not written to exactly one file",
            )));
        }
        Ok(added.map(|add| NewFile { add: Add { data_change: false, ..add }, rows }))
    }

    /// Calls `visit` with the rows of the files, file after file. Returns the position of each file's rows among all
    /// rows.
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

/// Divides files into groups: small files that are read completely at the same time, or a single large file.
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
