//! Files that a VACUUM may have deleted. It looks at the newest version after its first commit, and keeps what is live
//! there; a transaction that brings files back later has looked for them too early.

use super::{Mine, Winner};
use crate::commit::conflict::ConflictReason;
use crate::error::Result;

/// The beginning of the names of the operations `VACUUM START` and `VACUUM END`.
const OPERATION: &str = "VACUUM";

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let operation = winner.commit.commit_info.as_ref().and_then(|info| info.operation.as_deref());
    let is_vacuum = operation.is_some_and(|name| name.starts_with(OPERATION));
    Ok((mine.changes.brings_files_back && is_vacuum).then_some(ConflictReason::FilesVacuumed))
}
