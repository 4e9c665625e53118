//! Files that the other commit has added and the transaction objects to. Unlike the other rules, it may read files: it
//! does what the transaction asks for. See [`crate::commit::objection`].

use super::{Mine, Winner};
use crate::commit::conflict::{ConflictReason, WhatWasRead};
use crate::error::Result;

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let Some(objection) = &mine.reads.objection else { return Ok(None) };
    let file = objection.find(&winner.commit.adds)?;
    let read = || WhatWasRead::NoFilesThat(objection.what().to_owned());
    Ok(file.map(|file| ConflictReason::ConcurrentAppend { file, read: read() }))
}
