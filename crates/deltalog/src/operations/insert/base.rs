//! Determines the version that a write is based on.

use crate::commit::{AlreadyApplied, ConflictReason, Transaction};
use crate::error::{ErrorKind, Result};
use crate::protocol::SetTransaction;
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// Returns the newest version of the table; `None` if there is no table.
///
/// # Errors
/// Returns the same errors as [`Snapshot::open`].
pub(crate) fn newest(storage: &Storage) -> Result<Option<Snapshot>> {
    match Snapshot::open(storage, None) {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(error) if error.kind() == ErrorKind::NotATable => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the base of a write that replaces all rows of the version `read`. The base is exactly that version, unless
/// the write has already been committed. The base is then the newest version, which has recorded the write's
/// `progress`.
///
/// # Errors
/// Returns `CommitConflict` if another commit has changed files, protocol or metadata since, `CorruptLog`, and errors
/// from the store.
pub(super) fn of_replacement(
    read: &Snapshot,
    progress: &[SetTransaction],
    environment: &Environment,
) -> Result<Snapshot> {
    let Some(conflict) = Transaction::conflict_since(read, environment)? else {
        return Ok(read.clone());
    };
    // The conflicting commit may have been made by an earlier attempt of the same write.
    if !progress.is_empty() && conflict.reason != ConflictReason::TableReplaced {
        let newest = read.refresh()?;
        if AlreadyApplied::in_snapshot(&newest, progress)?.is_some() {
            return Ok(newest);
        }
    }
    Err(conflict.into_error(ErrorKind::CommitConflict, read.storage().url()))
}
