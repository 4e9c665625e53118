//! Files that both commits remove: only one of them can have replaced the file's rows. Protocol: "Add File and Remove
//! File".

use super::{Mine, Winner};
use crate::commit::conflict::ConflictReason;
use crate::error::Result;

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    Ok(mine.removed.find(&winner.commit.removes)?.map(|file| ConflictReason::ConcurrentDeleteDelete { file }))
}
