//! Files that both commits remove: only one of them can have replaced the file's rows. Protocol: "Add File and Remove
//! File".

use super::Mine;
use crate::error::Result;
use crate::replay::Commit;
use crate::transaction::conflict::ConflictReason;

pub(super) fn check(mine: &Mine<'_>, winner: &Commit) -> Result<Option<ConflictReason>> {
    Ok(mine.removed.find(&winner.removes)?.map(|file| ConflictReason::ConcurrentDeleteDelete { file }))
}
