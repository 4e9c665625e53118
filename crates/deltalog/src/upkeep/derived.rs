//! Files that are derived from the log and written after a commit: checkpoints, compactions and checksums.
//!
//! Their version may be gone by then.
//!
//! - The table was dropped. A store without directories accepts the file even then, and it is a log by itself: a
//!   checkpoint would bring the dropped table back, with no file of its rows, and a table that was created in its place
//!   would be read wrongly. The file is therefore taken back if the commit that it follows is gone or another one. In a
//!   local file system the directory is missing, and nothing is written.
//! - A clean-up of the log has passed the version. A checkpoint would stand alone below the remaining ones. It is
//!   deleted, too. Later commits exist then: no clean-up removes the newest. A clean-up that comes to the commit after
//!   this look finds the checkpoint (`upkeep::cleanup`). Readers ignore the other files there.
//! - A drop that is still deleting what it has listed may overlook the file, which cannot be detected. Such a drop does
//!   the same to a commit.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::log::Fate;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// Creates the file `path` with `put`, unless it exists: a file about the version of `base` or the next ones. Returns
/// whether it was created.
///
/// # Errors
/// `NotATable` or `TableReplaced` if the table was dropped, in a store without directories: the file is deleted then.
/// Also the errors of `put` and of the store.
pub(super) fn put_derived(
    base: &Snapshot,
    path: &str,
    bytes: Bytes,
    put: fn(&Storage, &str, Bytes) -> Result<bool>,
) -> Result<bool> {
    let storage = base.storage();
    let created = put(storage, path, bytes.clone());
    if storage.has_directories() {
        return created;
    }
    match base.segment().fate_in(storage)? {
        Fate::There | Fate::CleanedUp => created,
        // If the client has sent the request twice, or got no answer, the file that exists may be this one.
        Fate::Dropped(dropped) => {
            match matches!(created, Ok(true)) || storage.get(path)?.as_ref() == Some(&bytes) {
                true => Err(take_back(storage, &[path.to_owned()], dropped)),
                false => Err(dropped),
            }
        }
    }
}

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
    Err(take_back(storage, written, gone))
}

/// Deletes files that were written although their version is `gone`, and returns that error.
fn take_back(storage: &Storage, written: &[String], gone: Error) -> Error {
    let failures = written.iter().filter_map(|path| storage.delete(path).err());
    failures.fold(gone, |gone, failure| {
        gone.with_hint(format!("delete the file that was just written: {failure}"))
    })
}
