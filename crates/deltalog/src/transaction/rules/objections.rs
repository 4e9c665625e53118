//! Files that the other commit has added and the transaction objects to. Unlike the other rules, this one may read
//! files, as the transaction requires. See [`crate::transaction::objection`].

use super::{Mine, Winner};
use crate::error::Result;
use crate::transaction::conflict::{ConflictReason, WhatWasRead};

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let Some(objection) = &mine.reads.objection else { return Ok(None) };
    let file = objection.find(&winner.commit.adds)?;
    let read = || WhatWasRead::NoFilesThat(objection.what().to_owned());
    Ok(file.map(|file| ConflictReason::ConcurrentAppend { file, read: read() }))
}
