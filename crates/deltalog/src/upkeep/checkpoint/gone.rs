//! A version that is gone when its checkpoint has been written.
//!
//! - The table was dropped. A store without directories accepts the file even then, and a checkpoint alone is a table:
//!   the dropped one would be there again, with no file of its rows, and one that was created in its place would be
//!   read wrongly. A checkpoint is therefore taken back if the commit that it follows is gone or another one. In a
//!   local file system the directory is missing, and nothing is written.
//! - A clean-up of the log has passed the version. The checkpoint would stand alone below the remaining ones. It is
//!   deleted, too. Later commits exist then: no clean-up removes the newest. A clean-up that comes to the commit after
//!   this look finds the checkpoint (`upkeep::cleanup`).
//! - A drop that is still deleting what it has listed may overlook the checkpoint, which cannot be detected. Such a
//!   drop does the same to a commit.

use crate::error::{Error, ErrorKind, Result};
use crate::log::Fate;
use crate::snapshot::Snapshot;

/// Checks that the version of `snapshot` still exists, after the files `written` of its checkpoint have been written.
/// Deletes them otherwise.
///
/// # Errors
/// `NotATable` or `TableReplaced`; `VersionNotFound` if the log was cleaned up in between; also errors of the
/// store.
pub(super) fn take_back_if_gone(snapshot: &Snapshot, written: &[String]) -> Result<()> {
    let storage = snapshot.storage();
    let gone = match snapshot.segment().fate_in(storage)? {
        Fate::There => return Ok(()),
        Fate::Dropped(_) if storage.has_directories() => return Ok(()),
        Fate::Dropped(dropped) => dropped,
        Fate::CleanedUp => Error::new(
            ErrorKind::VersionNotFound,
            format!("version {} was cleaned up while its checkpoint was written", snapshot.version()),
        )
        .with_hint("write the checkpoint of a newer version"),
    };
    let failures = written.iter().filter_map(|path| storage.delete(path).err());
    Err(failures.fold(gone, |gone, failure| {
        gone.with_hint(format!("delete the checkpoint that was just written: {failure}"))
    }))
}
