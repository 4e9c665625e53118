//! Validation of a transaction's base: the log still continues from the version that was read.
//!
//! A put of `N + 1` would succeed in three cases in which the commit would be invisible or would mix two
//! tables: the commits after the base were cleaned up behind a checkpoint; the table was dropped; the table
//! was dropped and created again. These checks therefore precede the first put:
//!
//! - One listing that starts at the base shows that the base's commit is still the same object. See
//!   [`Snapshot::refresh`].
//! - Every version between the base and the newest one is read and checked for a conflict. If one of them was
//!   cleaned up, its changes are unknown. Then only a blind append continues, and only if protocol and
//!   metadata are still those of the base.

use super::commit::read_commit;
use super::conflict::{Conflict, ConflictReason, ReadSet, conflict};
use crate::environment::Environment;
use crate::error::{ErrorKind, Result};
use crate::protocol::Action;
use crate::snapshot::Snapshot;

/// Returns the next version as which a transaction on `base` can be committed, or the conflict that prevents
/// it.
///
/// # Errors
/// `CorruptLog`; also errors of the store.
pub(super) fn next_version(
    base: &Snapshot,
    read: ReadSet,
    actions: &[Action],
    environment: &Environment,
) -> Result<std::result::Result<u64, Conflict>> {
    let newest = match base.newest_version() {
        Ok(newest) => newest,
        Err(error) if matches!(error.kind(), ErrorKind::TableReplaced | ErrorKind::NotATable) => {
            return Ok(Err(Conflict { version: base.version(), reason: ConflictReason::TableReplaced }));
        }
        Err(error) => return Err(error),
    };
    for version in base.version() + 1..=newest {
        let Some(winner) = read_commit(base.storage(), version, environment)? else {
            return next_version_after_gap(base, version, read, actions);
        };
        if let Some(conflict) = conflict(read, actions, false, &winner) {
            return Ok(Err(conflict));
        }
    }
    Ok(Ok(newest + 1))
}

/// Does the same for a log in which `version`, a version after the base, was cleaned up.
fn next_version_after_gap(
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
