//! What a commit stands on: whether the log still goes on from the base of a transaction, and how far.
//!
//! A put of `N + 1` succeeds in three cases in which nobody would ever see it, or in which it would mix two
//! tables: the commits after the base were cleaned up behind a checkpoint; the table was dropped; it was dropped
//! and created again. So before the first put:
//!
//! - One listing from the base on shows that the base's commit is still the same object, see
//!   [`Snapshot::refresh`].
//! - Every version between the base and the newest one is read and checked for a conflict. If one of them was
//!   cleaned up, nobody can tell what it did: then only a blind append goes on, provided that protocol and
//!   metadata are still those of the base.

use super::commit::read_commit;
use super::conflict::{Conflict, ConflictReason, ReadSet, conflict};
use crate::error::{ErrorKind, Result};
use crate::protocol::Action;
use crate::snapshot::Snapshot;

/// Returns the version that a transaction on `base` can be committed as next, or the conflict that makes it
/// impossible.
///
/// # Errors
/// `CorruptLog`, and the store's own.
pub(super) fn next_version(
    base: &Snapshot,
    read: ReadSet,
    actions: &[Action],
) -> Result<std::result::Result<u64, Conflict>> {
    let newest = match base.newest_version() {
        Ok(newest) => newest,
        Err(error) if matches!(error.kind(), ErrorKind::TableReplaced | ErrorKind::NotATable) => {
            return Ok(Err(Conflict { version: base.version(), reason: ConflictReason::TableReplaced }));
        }
        Err(error) => return Err(error),
    };
    for version in base.version() + 1..=newest {
        let Some(winner) = read_commit(base.storage(), version)? else {
            return past_a_gap(base, version, read, actions);
        };
        if let Some(conflict) = conflict(read, actions, false, &winner) {
            return Ok(Err(conflict));
        }
    }
    Ok(Ok(newest + 1))
}

/// Returns the same for a log in which `version`, a version after the base, was cleaned up.
fn past_a_gap(
    base: &Snapshot,
    version: u64,
    read: ReadSet,
    actions: &[Action],
) -> Result<std::result::Result<u64, Conflict>> {
    let is_blind = read == ReadSet::Nothing && !actions.iter().any(|action| matches!(action, Action::Txn(_)));
    if !is_blind {
        return Ok(Err(Conflict { version, reason: ConflictReason::LogCleanedUp }));
    }
    let newest = base.refresh()?;
    let reason = if newest.protocol() != base.protocol() {
        ConflictReason::ProtocolChanged
    } else if newest.metadata() != base.metadata() {
        ConflictReason::MetadataChanged
    } else {
        return Ok(Ok(newest.version() + 1));
    };
    Ok(Err(Conflict { version: newest.version(), reason }))
}
