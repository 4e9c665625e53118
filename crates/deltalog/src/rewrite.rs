//! Files that are written again with the same rows. Protocol: "Add File and Remove File", "Row Tracking".
//!
//! ```text
//!   files of the base ── chosen ──► their live rows, with their ids ──► new files
//!                                          one commit removes the old files and adds the new ones, `dataChange` false
//! ```
//!
//! - Rows that deletion vectors delete are left out. All other rows stay as they are, so that constraints are not
//!   evaluated and a change data feed has nothing of it.
//! - With row tracking, the rows keep their ids and commit versions (`row_copy`).
//! - Nothing but the files is read: rows that others add meanwhile do not matter, and a commit that removes one of the
//!   files or deletes rows of it is a conflict. A caller that changes the metadata as well says what else it has read.
//! - The rows pass through one writer, in batches.

use arrow::array::{BooleanArray, RecordBatch};

use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::Add;
use crate::replay::{FileColumns, filtered};
use crate::row_copy::RowCopy;
use crate::scan::{DataFile, PartitionColumns, data_files};
use crate::snapshot::Snapshot;
use crate::transaction::{Committed, Operation, Transaction};
use crate::unused_files::delete_unused;
use crate::write::{DataWriter, TableWriteSpec, WriteOptions};

/// Files that were written again, to be committed.
pub(crate) struct Rewritten {
    base: Snapshot,
    /// The `add` actions of the old files, in the form of the log.
    old: Vec<RecordBatch>,
    new: Vec<Add>,
}

/// Writes those files of `base` again that `choose` selects of each batch of `add` actions. The new files are as `spec`
/// says; its rules for rows are left out.
///
/// # Errors
/// `InvalidArgument` for a table with row tracking that has a column named like those of a scan's row ids; those of
/// `choose`; `CorruptLog`, `CorruptData`, and errors of the store. No new file is left then.
pub(crate) fn rewrite(
    base: &Snapshot,
    spec: TableWriteSpec,
    choose: impl Fn(&RecordBatch, &[DataFile]) -> Result<BooleanArray>,
    environment: &Environment,
) -> Result<Rewritten> {
    let located = |error: Error| error.in_table(base.storage().url()).at_version(base.version());
    let RowCopy { scan, spec } = RowCopy::of(base, spec)?;
    let partitions = PartitionColumns::of(base).map_err(located)?;
    let (mut old, mut writer) = (Vec::new(), None);
    for batch in base.replay_files(FileColumns::of_removes())? {
        let batch = batch?;
        let files = data_files(&batch, base.resolver(), &partitions).map_err(located)?;
        let chosen = choose(&batch, &files)?;
        if !chosen.has_true() {
            continue;
        }
        old.push(filtered(&batch, &chosen)?);
        let files: Vec<Result<DataFile>> = files
            .into_iter()
            .zip(chosen.values())
            .filter(|(_, chosen)| *chosen)
            .map(|(file, _)| Ok(file))
            .collect();
        if writer.is_none() {
            let options = WriteOptions::new(environment.clone());
            writer = Some(DataWriter::new(base.storage().clone(), spec.clone(), options)?);
        }
        if let Some(writer) = &mut writer {
            for rows in scan.clone().read(files.into_iter()) {
                writer.write(&rows?)?;
            }
        }
    }
    let new = writer.map_or(Ok(Vec::new()), DataWriter::finish)?;
    let new = new.into_iter().map(|add| Add { data_change: false, ..add }).collect();
    Ok(Rewritten { base: base.clone(), old, new })
}

impl Rewritten {
    /// Returns whether no file was chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.old.is_empty()
    }

    /// Adds what every such commit says to the description of one: how many files there were and are.
    pub(crate) fn described(&self, operation: Operation) -> Operation {
        operation
            .metric("numRemovedFiles", self.old.iter().map(|batch| batch.num_rows() as u64).sum())
            .metric("numAddedFiles", self.new.len() as u64)
            .metric("numAddedBytes", self.new.iter().filter_map(|add| u64::try_from(add.size).ok()).sum())
    }

    /// Commits the files with what else `begin` puts into the transaction. If the commit fails for certain, the new
    /// files are deleted.
    ///
    /// # Errors
    /// Those of `begin`; `CommitConflict`, `CommitStateUnknown`, and errors of the store.
    pub(crate) fn commit(self, begin: impl FnOnce(&Self) -> Result<Transaction>) -> Result<Committed> {
        let committed = begin(&self).and_then(|transaction| self.put(transaction));
        if committed.as_ref().is_err_and(|error| error.kind() != ErrorKind::CommitStateUnknown) {
            delete_unused(self.base.storage(), self.new.into_iter().map(|add| add.path).collect());
        }
        committed
    }

    fn put(&self, mut transaction: Transaction) -> Result<Committed> {
        self.old.iter().try_for_each(|batch| transaction.remove_moved(batch))?;
        transaction.add_files(&self.new)?;
        transaction.commit_or_fail()
    }
}
