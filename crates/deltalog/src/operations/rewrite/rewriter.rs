//! Rewrites files with the same rows. (Protocol: "Add File and Remove File", "Row Tracking".)
//!
//! ```text
//!   files of the base ── chosen ──► their live rows, with their ids ──► new files
//!                                          one commit removes the old files and adds the new ones, `dataChange` false
//!   another writer has added files that the commit depends on ──► the chosen ones are rewritten too; next attempt
//! ```
//!
//! - Rows that deletion vectors delete are left out. All other rows do not change, so constraints are not evaluated,
//!   and the change data feed does not show a rewrite.
//! - With row tracking, the rows keep their ids and commit versions (`row_copy`).
//! - A rewrite depends only on its files: rows that are added concurrently do not matter, and a commit that removes
//!   one of the files or deletes rows in it is a conflict. A caller that also changes the metadata must state what
//!   else it has read.
//! - The new files stay valid if another writer adds rows, and are not written again. They become invalid if the old
//!   files are removed, or if the protocol, the metadata or the clustering columns change.
//! - The rows pass through one writer, in batches.

use arrow::array::{BooleanArray, RecordBatch};

use crate::commit::own_files::OwnFiles;
use crate::commit::{Committed, ConflictReason, Operation, Transaction};
use crate::error::Result;
use crate::log::replay::{FileColumns, FileSet, filtered, without};
use crate::protocol::Add;
use crate::runtime::environment::Environment;
use crate::scan::{DataFile, PartitionColumns, data_files};
use crate::snapshot::Snapshot;
use crate::write::row_copy::RowCopy;
use crate::write::{DataWriter, TableWriteSpec, WriteOptions};

/// The maximum number of times that concurrently added files are rewritten as well before the rewrite is given up.
/// Each time, only the files that were added since the last time have to be rewritten.
const MOST_CATCH_UPS: u32 = 100;

/// Which files are rewritten, and how.
pub(crate) struct Rewriter<'a> {
    copy: RowCopy,
    partitions: PartitionColumns,
    choose: &'a dyn Fn(&RecordBatch, &[DataFile]) -> Result<BooleanArray>,
    environment: &'a Environment,
}

/// Rewritten files that are to be committed.
pub(crate) struct Rewritten {
    base: Snapshot,
    /// The current `add` actions of the old files, with the columns of the log.
    old: Vec<RecordBatch>,
    /// The same files, as a set in which files can be looked up.
    old_files: FileSet,
    new: Vec<Add>,
}

impl<'a> Rewriter<'a> {
    /// Returns a rewriter of the files of `base` that `choose` selects from each batch of `add` actions. The new
    /// files follow `spec`, but rows are not checked against its rules.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a table with row tracking that has a column with the name of a scan's row id
    /// column, and `CorruptLog`.
    pub(crate) fn new(
        base: &Snapshot,
        spec: TableWriteSpec,
        choose: &'a dyn Fn(&RecordBatch, &[DataFile]) -> Result<BooleanArray>,
        environment: &'a Environment,
    ) -> Result<Self> {
        let located = |error| base.located(error);
        let copy = RowCopy::of(base, spec)?;
        let partitions = PartitionColumns::of(base).map_err(located)?;
        Ok(Self { copy, partitions, choose, environment })
    }

    /// Rewrites the selected files of `base`.
    ///
    /// # Errors
    /// Returns the errors of `choose`, `CorruptLog`, `CorruptData`, and errors from the store. All new files have then
    /// been deleted.
    pub(crate) fn rewrite(&self, base: &Snapshot) -> Result<Rewritten> {
        let mut rewritten = Rewritten {
            base: base.clone(),
            old: Vec::new(),
            old_files: FileSet::of_logical_files(base.resolver()),
            new: Vec::new(),
        };
        let added = self.add_to(&mut rewritten, base);
        rewritten.files().settle(added)?;
        Ok(rewritten)
    }

    /// Commits the rewritten files, together with everything that `begin` adds to a transaction on a version of the
    /// table. If other writers have concurrently added files on which the transaction depends, the selected files
    /// among these are rewritten as well. If the commit is known to have failed, the new files are deleted.
    ///
    /// # Errors
    /// Returns `CommitConflict`, `CommitStateUnknown`, `CorruptLog` or `CorruptData`, errors from the store, and any
    /// error that `begin` returns.
    pub(crate) fn commit(
        &self,
        mut rewritten: Rewritten,
        base: &Snapshot,
        begin: impl Fn(&Snapshot, &Rewritten) -> Result<Transaction>,
    ) -> Result<Committed> {
        let committed = self.try_commit(&mut rewritten, base, begin);
        rewritten.files().settle(committed)
    }

    fn try_commit(
        &self,
        rewritten: &mut Rewritten,
        base: &Snapshot,
        begin: impl Fn(&Snapshot, &Rewritten) -> Result<Transaction>,
    ) -> Result<Committed> {
        let (mut base, mut catch_ups) = (base.clone(), 0);
        loop {
            let mut transaction = begin(&base, rewritten)?;
            rewritten.old.iter().try_for_each(|batch| transaction.remove_moved(batch))?;
            transaction.add_files(&rewritten.new)?;
            let lost = match transaction.attempt()? {
                Ok(committed) => return Ok(committed),
                Err(lost) => lost,
            };
            let are_rows = matches!(lost.conflict.reason, ConflictReason::ConcurrentAppend { .. });
            if !are_rows || catch_ups == MOST_CATCH_UPS || !self.catch_up(rewritten, &mut base)? {
                return Err(lost.into_error());
            }
            catch_ups += 1;
        }
    }

    /// Sets `base` to the newest version, and rewrites the selected files that other writers have added since. Returns
    /// false if the files rewritten so far can no longer be used in that version.
    fn catch_up(&self, rewritten: &mut Rewritten, base: &mut Snapshot) -> Result<bool> {
        let newest = base.refresh()?;
        let is_same_table = newest.protocol() == base.protocol()
            && newest.metadata() == base.metadata()
            && newest.clustering_columns()? == base.clustering_columns()?;
        *base = newest;
        Ok(is_same_table && self.add_to(rewritten, base)?)
    }

    /// Rewrites the selected files of `base` that are not among the old files yet. If an old file is no longer live
    /// or has another deletion vector, returns false and writes nothing.
    fn add_to(&self, rewritten: &mut Rewritten, base: &Snapshot) -> Result<bool> {
        let located = |error| base.located(error);
        let (mut chosen, mut still_there) = (Vec::new(), 0);
        for batch in base.replay_files(FileColumns::of_removes())? {
            let batch = batch?;
            let is_old = rewritten.old_files.contains(&batch)?;
            still_there += is_old.true_count();
            let batch = match is_old.has_true() {
                true => without(&batch, &is_old)?,
                false => batch,
            };
            let files = data_files(&batch, base.resolver(), &self.partitions).map_err(located)?;
            let is_chosen = (self.choose)(&batch, &files)?;
            if is_chosen.has_true() {
                chosen.push(filtered(&batch, &is_chosen)?);
            }
        }
        if still_there < rewritten.old.iter().map(RecordBatch::num_rows).sum() {
            return Ok(false);
        }
        let mut writer = None;
        for batch in &chosen {
            if writer.is_none() {
                let options = WriteOptions::new(self.environment.clone());
                writer = Some(DataWriter::new(base.storage().clone(), self.copy.spec.clone(), options)?);
            }
            let files = data_files(batch, base.resolver(), &self.partitions).map_err(located)?;
            if let Some(writer) = &mut writer {
                for rows in self.copy.scan.clone().read(files.into_iter().map(Ok)) {
                    writer.write(&rows?)?;
                }
            }
        }
        let new = writer.map_or(Ok(Vec::new()), DataWriter::finish)?;
        rewritten.new.extend(new.into_iter().map(|add| Add { data_change: false, ..add }));
        for batch in chosen {
            rewritten.old_files.insert(&batch)?;
            rewritten.old.push(batch);
        }
        Ok(true)
    }
}

impl Rewritten {
    /// Returns whether no files were selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.old.is_empty()
    }

    fn files(&self) -> OwnFiles {
        OwnFiles::of(&self.base, self.new.iter().map(|add| &add.path))
    }

    /// Adds the numbers of old and new files to the description of a commit.
    pub(crate) fn described(&self, operation: Operation) -> Operation {
        operation
            .metric("numRemovedFiles", self.old.iter().map(|batch| batch.num_rows() as u64).sum())
            .metric("numAddedFiles", self.new.len() as u64)
            .metric("numAddedBytes", self.new.iter().filter_map(|add| u64::try_from(add.size).ok()).sum())
    }
}
