//! Writes the rows of bins to new files.
//!
//! - How many rows each old file has is counted while it is read, because the positions in the new file depend on it.
//! - Small files are read several at a time, each as a whole; large ones batch by batch.

use arrow::array::RecordBatch;

use super::moved::Moved;
use super::plan::{Bin, size};
use crate::dml::ListedFile;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::parallel;
use crate::protocol::Add;
use crate::row_copy::RowCopy;
use crate::snapshot::Snapshot;
use crate::unused_files::delete_unused;
use crate::write::{DataWriter, TableWriteSpec, WriteOptions};

/// The memory of all writers together, in bytes.
const MEMORY: usize = 256 << 20;

/// The size up to which files are read as a whole, and of all that are read at once.
const SMALL_FILE: u64 = 4 << 20;
const READ_AT_ONCE: u64 = 16 << 20;

/// Files that were written again.
pub(super) struct Rewritten {
    pub(super) sources: Vec<Source>,
    /// The new file; `None` if all rows of the old files are deleted.
    pub(super) new: Option<Add>,
}

/// An old file.
pub(super) struct Source {
    /// The file as it was read.
    pub(super) add: Add,
    pub(super) moved: Moved,
}

/// What writes bins.
pub(super) struct BinRewriter<'a> {
    base: &'a Snapshot,
    copy: RowCopy,
    environment: &'a Environment,
}

impl<'a> BinRewriter<'a> {
    /// # Errors
    /// `InvalidArgument` for a table with row tracking that has a column named like those of a scan's row ids.
    pub(super) fn new(
        base: &'a Snapshot,
        spec: TableWriteSpec,
        environment: &'a Environment,
    ) -> Result<Self> {
        // A bin is one file, however large its rows become.
        let copy = RowCopy::of(base, spec.with_target_file_size(u64::MAX))?;
        Ok(Self { base, copy, environment })
    }

    /// Writes the bins of a batch.
    ///
    /// # Errors
    /// `CorruptData`, and errors of the store. No new file is left then.
    pub(super) fn rewrite(&self, bins: &[Bin]) -> Result<Vec<Rewritten>> {
        // A writer encodes on all cores; the threads are for the pauses between files.
        let threads = parallel::cores().min(bins.len()).max(1);
        let done = std::sync::Mutex::new(Vec::new());
        let outcome = parallel::each(bins, threads, |bin| {
            let written = self.rewrite_bin(bin, MEMORY / threads)?;
            if let Some(new) = &written.new {
                done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(new.path.clone());
            }
            Ok(written)
        });
        if outcome.is_err() {
            let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            delete_unused(self.base.storage(), done);
        }
        outcome
    }

    fn rewrite_bin(&self, Bin(files): &Bin, memory_budget: usize) -> Result<Rewritten> {
        let options = WriteOptions { memory_budget, ..WriteOptions::new(self.environment.clone()) };
        let mut writer = DataWriter::new(self.base.storage().clone(), self.copy.spec.clone(), options)?;
        let mut sources = Vec::with_capacity(files.len());
        let mut start = 0;
        let mut note = |file: &ListedFile, rows: u64| {
            sources.push(Source { add: file.add.clone(), moved: Moved { start, rows } });
            start += rows;
        };
        for group in groups(files) {
            match group {
                [file] => {
                    let mut rows = 0;
                    for batch in self.copy.scan.clone().read(std::iter::once(Ok(file.file.clone()))) {
                        let batch = batch?;
                        rows += batch.num_rows() as u64;
                        writer.write(&batch)?;
                    }
                    note(file, rows);
                }
                files => {
                    let threads = self.base.storage().readers(files.len());
                    for (file, batches) in
                        files.iter().zip(parallel::each(files, threads, |file| self.all_rows(file))?)
                    {
                        batches.iter().try_for_each(|batch| writer.write(batch))?;
                        note(file, batches.iter().map(|batch| batch.num_rows() as u64).sum());
                    }
                }
            }
        }
        let mut new = writer.finish()?;
        let added = new.pop();
        if !new.is_empty() || added.is_some() != (start > 0) {
            let paths = new.into_iter().chain(added).map(|add| add.path).collect();
            delete_unused(self.base.storage(), paths);
            // The positions of rows would be unknown.
            return Err(self
                .base
                .located(Error::corrupt_data("the rows of a partition did not become one file")));
        }
        Ok(Rewritten { sources, new: added.map(|add| Add { data_change: false, ..add }) })
    }

    fn all_rows(&self, file: &ListedFile) -> Result<Vec<RecordBatch>> {
        let scan = self.copy.scan.clone().with_threads(1);
        scan.read(std::iter::once(Ok(file.file.clone()))).collect()
    }
}

/// Divides files into those that are read as a whole at the same time, and large ones, which are alone.
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
