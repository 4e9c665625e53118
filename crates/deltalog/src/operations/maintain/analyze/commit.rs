//! Commits the new statistics of a batch of files, even if other writers commit at the same time.
//!
//! | state of the file in the newest version | what happens |
//! | --- | --- |
//! | unchanged | it is added again, with the new statistics |
//! | added again, with the same rows | its newest action is added, with the new statistics |
//! | removed, or its deletion vector, size or base row id differs | it is left out |
//!
//! A transaction conflicts with a commit that removes one of its files, changes the deletion vector of one, or adds
//! one again. After such a conflict, the files are compared with a newer version, and the next attempt is based on
//! that version.

use super::compute::Computed;
use super::{RecomputeMetrics, RecomputeRequest};
use crate::commit::{Committed, Conflict, ConflictReason, Objection, Transaction, WhatWasRead};
use crate::error::{Error, ErrorKind, Result};
use crate::log::replay::{FileSet, batches_of_adds};
use crate::operations::rewrite::current_actions;
use crate::protocol::Add;
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::upkeep::Lost;

/// The maximum number of attempts on newer versions. An attempt only fails if another writer has changed one of its
/// files.
const MOST_ATTEMPTS: u32 = 1_000;

/// The end of the error message "… added files that …" for a conflict with a writer that has added a file of the batch
/// again.
const ADDED_AGAIN: &str = "this operation computes statistics for as well";

/// Commits batches of files with new statistics.
pub(super) struct Committer<'a> {
    /// The version whose files were read. Every batch starts from it, so that its first attempt takes all later
    /// commits into account.
    planned: &'a Snapshot,
    request: &'a RecomputeRequest,
    environment: &'a Environment,
}

/// A file to commit, and its action in the version on which the next attempt is based.
struct Pending {
    file: Computed,
    current: Add,
}

impl<'a> Committer<'a> {
    pub(super) fn new(
        planned: &'a Snapshot,
        request: &'a RecomputeRequest,
        environment: &'a Environment,
    ) -> Self {
        Self { planned, request, environment }
    }

    /// Commits the new statistics of `files`, and adds the result to `metrics`. Returns `None` if no files are left
    /// to commit.
    ///
    /// # Errors
    /// Returns `CommitConflict`, `CommitStateUnknown`, `CorruptLog`, and errors from the store.
    pub(super) fn commit(
        &mut self,
        files: Vec<Computed>,
        metrics: &mut RecomputeMetrics,
    ) -> Result<Option<Committed>> {
        let mut base = self.planned.clone();
        let pending = |file: Computed| Pending { current: file.add.clone(), file };
        let mut pending: Vec<Pending> = files.into_iter().map(pending).collect();
        for _ in 0..MOST_ATTEMPTS {
            if pending.is_empty() {
                return Ok(None);
            }
            let lost = match self.put(&base, &pending, metrics)? {
                Ok(committed) => {
                    metrics.updated_files += pending.len() as u64;
                    return Ok(Some(committed));
                }
                Err(lost) => lost,
            };
            if !(lost.conflict.is_about_files() || is_added_again(&lost.conflict)) {
                return Err(lost.into_error());
            }
            base = lost.transaction.newer_base(&base)?;
            let before = pending.len();
            pending = reconciled(&base, pending)?;
            metrics.given_up_files += (before - pending.len()) as u64;
        }
        Err(base.located(
            Error::new(
                ErrorKind::CommitConflict,
                "other writers changed the same files during every attempt",
            )
            .with_hint("compute the statistics when fewer statements change the table"),
        ))
    }

    /// Makes one attempt to commit on `base`.
    fn put(
        &self,
        base: &Snapshot,
        pending: &[Pending],
        metrics: &RecomputeMetrics,
    ) -> Result<Result<Committed, Lost>> {
        let mut operation = self.request.operation.clone();
        "COMPUTE STATS".clone_into(&mut operation.name);
        let predicate: Vec<&str> = self.request.predicate.as_deref().into_iter().collect();
        let predicate = serde_json::Value::from(predicate).to_string();
        let operation = operation
            .parameter("predicate", predicate)
            .metric("numUpdatedFiles", pending.len() as u64)
            .metric("numFilesByFooter", metrics.files_by_footer)
            .metric("numFilesByRows", metrics.files_by_rows);
        let mut transaction = Transaction::new(base, operation, self.environment)?;
        let current: Vec<Add> = pending.iter().map(|pending| pending.current.clone()).collect();
        let mut own = FileSet::of_paths(base.resolver());
        for batch in batches_of_adds(&current)? {
            transaction.read_files(&batch)?;
            own.insert(&batch)?;
        }
        transaction.object(Objection::new(ADDED_AGAIN.to_owned(), move |adds| own.find(adds)));
        let new: Vec<Add> = pending.iter().map(|pending| pending.file.updated(&pending.current)).collect();
        transaction.add_files(&new)?;
        transaction.attempt()
    }
}

/// Returns the files that are still the same as when they were read, with their current actions in `base`.
fn reconciled(base: &Snapshot, pending: Vec<Pending>) -> Result<Vec<Pending>> {
    let resolver = base.resolver();
    let read: Vec<Add> = pending.iter().map(|pending| pending.file.add.clone()).collect();
    let mut found = current_actions(base, &read)?;
    let mut kept = Vec::with_capacity(pending.len());
    for Pending { file, .. } in pending {
        let Some(current) = found.remove(&resolver.parse(&file.add.path)?) else { continue };
        // If row ids were assigned since, their number was taken from the old statistics, which the new statistics may
        // contradict.
        let is_same = current.deletion_vector == file.add.deletion_vector
            && current.size == file.add.size
            && current.base_row_id == file.add.base_row_id;
        if is_same {
            kept.push(Pending { file, current });
        }
    }
    Ok(kept)
}

/// Returns whether the reason of the conflict is that another writer has added one of the files again.
fn is_added_again(conflict: &Conflict) -> bool {
    matches!(&conflict.reason, ConflictReason::ConcurrentAppend { read: WhatWasRead::NoFilesThat(what), .. }
        if what == ADDED_AGAIN)
}
