//! The conflict rules: pure functions of a transaction and of a commit that was made since its base version.
//!
//! [`RULES`] lists all rules in the order in which they are checked. Longer rules are in files of their own.
//!
//! The rules are the same as in the JVM implementation, with two differences: statistics are used in addition to
//! partition values to decide whether a file matches what was read, and changes of the metadata that do not affect
//! writers are not conflicts.
//!
//! A blind append reads nothing and removes nothing, so it never conflicts with appends, deletes or compactions.

mod appends;
mod domains;
mod metadata;

use arrow::array::RecordBatch;

use super::changes::Changes;
use super::conflict::{Conflict, ConflictReason, WhatWasRead};
use super::isolation::IsolationLevel;
use super::read_set::ReadSet;
use crate::error::Result;
use crate::log::replay::{Commit, FileSet, path_of};
use crate::snapshot::Snapshot;

pub(super) use metadata::concerns_writers;

/// The properties of a transaction on which conflicts depend.
pub(super) struct Mine<'a> {
    /// The version that was read.
    pub(super) base: &'a Snapshot,
    /// The part of the table that was read.
    pub(super) reads: &'a ReadSet,
    /// The changes that the transaction makes.
    pub(super) changes: &'a Changes,
    /// The data files that are removed.
    pub(super) removed: &'a FileSet,
    /// The isolation level for added rows that belong to the part of the table that was read.
    pub(super) isolation: IsolationLevel,
    /// The isolation level for added rows that the query for the transaction's new rows would have read.
    pub(super) source_isolation: IsolationLevel,
}

/// A commit that was made since the base.
pub(super) struct Winner<'a> {
    pub(super) commit: &'a Commit,
    /// The `add` actions of the commit, without those that only delete rows from an existing file.
    pub(super) appended: &'a RecordBatch,
}

/// A rule: returns the reason why a transaction conflicts with a commit, if it does.
type Rule = fn(&Mine<'_>, &Winner<'_>) -> Result<Option<ConflictReason>>;

/// The rules, in the order in which they are checked.
const RULES: [Rule; 9] = [
    // The other commit sets another protocol.
    protocol,
    // The other commit sets the metadata, and the change affects writers.
    metadata::check,
    // The other commit records progress of the same application.
    applications,
    // The other commit changes the same metadata domain, or one that the transaction depends on.
    domains::check,
    // The other commit adds rows that the transaction should have read.
    appends::check,
    // The other commit adds a file that the transaction objects to (see `objection`).
    objections,
    // The other commit removes a file that the transaction has read.
    reads,
    // The other commit removes a file that the transaction removes, too.
    deletes,
    // The other commit belongs to a VACUUM, and the transaction adds files that an earlier version has removed.
    vacuums,
];

/// Returns the conflict of the transaction `mine` with the commit `winner`, if there is one.
///
/// # Errors
/// `CorruptLog` for file actions that cannot be understood.
pub(super) fn conflict(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<Conflict>> {
    for rule in RULES {
        if let Some(reason) = rule(mine, winner)? {
            return Ok(Some(Conflict::new(winner.commit.version, reason)));
        }
    }
    Ok(None)
}

/// A protocol that differs from the one that was read may require something that the transaction did not do. Protocol:
/// "Protocol Evolution".
fn protocol(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let new = winner.commit.protocol.as_ref();
    let has_changed = new.is_some_and(|new| new != mine.base.protocol() || mine.changes.protocol.is_some());
    Ok(has_changed.then_some(ConflictReason::ProtocolChanged))
}

/// If two commits record progress of the same application, two instances of it write at the same time. It is not a
/// conflict if the other commit has recorded the same version or a later one, because then this write was already
/// committed ([`AlreadyApplied`](super::AlreadyApplied)). Protocol: "Transaction Identifiers".
fn applications(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let is_winners = |app: &&String| winner.commit.transactions.iter().any(|other| other.app_id == **app);
    let mut apps = mine.changes.transactions.iter().map(|progress| &progress.app_id);
    Ok(apps.find(is_winners).map(|app| ConflictReason::AppTransaction(app.clone())))
}

/// Unlike the other rules, this rule may read files, if the transaction's [`objection`](super::objection) requires it.
fn objections(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let Some(objection) = &mine.reads.objection else { return Ok(None) };
    let file = objection.find(&winner.commit.adds)?;
    let read = || WhatWasRead::NoFilesThat(objection.what().to_owned());
    Ok(file.map(|file| ConflictReason::ConcurrentAppend { file, read: read() }))
}

/// It does not matter whether the rows of the removed file were deleted or only moved, because the transaction
/// identifies rows by their file. The same is true of files from which the transaction's new rows were computed.
fn reads(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let file = match mine.reads.whole_table {
        true => path_of(&winner.commit.removes, 0),
        false => mine.reads.files.find(&winner.commit.removes)?,
    };
    let file = match file {
        Some(file) => Some(file),
        None => mine.reads.source.find(&winner.commit.removes, mine.base)?,
    };
    Ok(file.map(|file| ConflictReason::ConcurrentDeleteRead { file }))
}

/// If both commits remove the same file, only one of them can have replaced its rows. Protocol: "Add File and Remove
/// File".
fn deletes(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    Ok(mine.removed.find(&winner.commit.removes)?.map(|file| ConflictReason::ConcurrentDeleteDelete { file }))
}

/// A VACUUM keeps the files that are live in the newest version after its first commit, `VACUUM START`. If a
/// transaction that adds removed files again commits later than that, the VACUUM may delete the files, although the
/// transaction has checked that they exist.
fn vacuums(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let operation = winner.commit.commit_info.as_ref().and_then(|info| info.operation.as_deref());
    let is_vacuum = operation.is_some_and(|name| name.starts_with("VACUUM"));
    Ok((mine.changes.brings_files_back && is_vacuum).then_some(ConflictReason::FilesVacuumed))
}

#[cfg(test)]
mod tests;
