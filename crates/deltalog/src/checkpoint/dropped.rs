//! A table that was dropped while a checkpoint of it was written.
//!
//! Without directories a store takes the file wherever it goes, and a checkpoint alone is a table: the dropped one
//! would be there again, with no file of its rows, and one that was created in its place would be read wrongly. A
//! checkpoint is therefore taken back if the commit that it follows is gone or another one. In a local file system
//! the directory is missing, and nothing is written.
//!
//! - The commit may be gone because the log was cleaned up. Later commits are there then: no clean-up removes the
//!   newest.
//! - A drop that is still deleting what it has listed may overlook the checkpoint, and nobody can tell. Such a drop
//!   does the same to a commit.

use crate::error::Result;
use crate::snapshot::Snapshot;

/// Checks that the table of `snapshot` still exists, after the files `written` of its checkpoint have been written.
/// Deletes them otherwise.
///
/// # Errors
/// `NotATable` or `TableReplaced`; also errors of the store.
pub(super) fn take_back_if_dropped(snapshot: &Snapshot, written: &[String]) -> Result<()> {
    let storage = snapshot.storage();
    if storage.has_directories() {
        return Ok(());
    }
    let Some(dropped) = snapshot.segment().dropped_since(storage)? else { return Ok(()) };
    let failures = written.iter().filter_map(|path| storage.delete(path).err());
    Err(failures.fold(dropped, |dropped, failure| {
        dropped.with_hint(format!("delete the checkpoint that was just written: {failure}"))
    }))
}
