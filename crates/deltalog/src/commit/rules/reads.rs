//! Files that the transaction has read and the other commit has removed, whether their rows were deleted or only
//! moved: the transaction knows the rows by the file. The same is true of files that its new rows were computed from.

use super::{Mine, Winner};
use crate::commit::conflict::ConflictReason;
use crate::error::Result;
use crate::log::replay::path_of;

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
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
