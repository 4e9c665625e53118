//! The conflict rules: pure functions of a transaction and of a commit that was made since its base.
//!
//! | rule | the transaction conflicts if the other commit |
//! | --- | --- |
//! | [`protocol`] | sets the protocol |
//! | [`metadata`] | sets the metadata, except for changes that concern no writer |
//! | [`applications`] | records progress of the same application |
//! | [`domains`] | changes the same metadata domain, or one that the transaction depends on |
//! | [`appends`] | adds rows that the transaction should have read |
//! | [`objections`] | adds a file that the transaction objects to |
//! | [`reads`] | removes a file that the transaction has read |
//! | [`deletes`] | removes a file that the transaction removes |
//! | [`vacuums`] | belongs to a VACUUM, if the transaction brings back files that were removed |
//!
//! The rules are the same as in the JVM implementation, with two differences. Files are compared with what was read by
//! their statistics too and not only by their partition values. Changes of the metadata that do not affect writers are
//! not conflicts.
//!
//! A blind append reads nothing and removes nothing, so it never conflicts with appends, deletes or compactions.

mod appends;
mod applications;
mod deletes;
mod domains;
mod metadata;
mod objections;
mod protocol;
mod reads;
mod vacuums;

use arrow::array::RecordBatch;

use super::changes::Changes;
use super::conflict::{Conflict, ConflictReason};
use super::isolation::IsolationLevel;
use super::read_set::ReadSet;
use crate::error::Result;
use crate::replay::{Commit, FileSet};
use crate::snapshot::Snapshot;

pub(super) use metadata::concerns_writers;

/// A transaction, as far as conflicts depend on it.
pub(super) struct Mine<'a> {
    /// The version that was read.
    pub(super) base: &'a Snapshot,
    /// The reads from it.
    pub(super) reads: &'a ReadSet,
    /// The changes.
    pub(super) changes: &'a Changes,
    /// The data files that are removed.
    pub(super) removed: &'a FileSet,
    /// How strictly added rows are compared with what was read.
    pub(super) isolation: IsolationLevel,
    /// The same for the rows that the new ones were computed from.
    pub(super) source_isolation: IsolationLevel,
}

/// A commit that was made since the base.
pub(super) struct Winner<'a> {
    pub(super) commit: &'a Commit,
    /// Its `add` actions, without those that only take rows away from a file.
    pub(super) appended: &'a RecordBatch,
}

/// Returns the conflict of `mine` with `winner`, if there is one.
///
/// # Errors
/// `CorruptLog` for file actions that cannot be understood.
pub(super) fn conflict(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<Conflict>> {
    type Rule = fn(&Mine<'_>, &Winner<'_>) -> Result<Option<ConflictReason>>;
    const RULES: [Rule; 9] = [
        protocol::check,
        metadata::check,
        applications::check,
        domains::check,
        appends::check,
        objections::check,
        reads::check,
        deletes::check,
        vacuums::check,
    ];
    for rule in RULES {
        if let Some(reason) = rule(mine, winner)? {
            return Ok(Some(Conflict::new(winner.commit.version, reason)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
