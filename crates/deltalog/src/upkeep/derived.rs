//! Files that are derived from the log and written after a commit: checkpoints, compactions and checksums.
//!
//! When such a file is written, its version may no longer exist.
//!
//! - The table may have been dropped. A store without directories accepts the file nevertheless, and the file alone
//!   would count as a log: a checkpoint would bring the dropped table back, but without its data files, or would damage
//!   a table that was created in its place. Therefore the file is deleted again if its commit is gone or is another
//!   one. In a local file system the directory is missing, so nothing is written.
//! - A clean-up of the log may have deleted the version. A checkpoint would then stand alone below the remaining
//!   versions, so it is deleted as well. This only happens if later commits exist, because a clean-up never removes the
//!   newest one. If the clean-up reaches the commit only after this check, it finds the checkpoint itself
//!   (`upkeep::cleanup`). Readers ignore other files of deleted versions.
//! - A drop that is still deleting the files it has listed may miss the new file. This cannot be detected, and the same
//!   can happen to a commit.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::log::Fate;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// Creates the file `path` with `put`, unless it exists. The file must be about the version of `base` or one of the
/// next versions. Returns whether it was created.
///
/// # Errors
/// `NotATable` or `TableReplaced` if the table was dropped, in a store without directories. The file is then deleted.
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
        // If the client has sent the request twice, or got no answer, the existing file may be this one.
        Fate::Dropped(dropped) => {
            match matches!(created, Ok(true)) || storage.get(path)?.as_ref() == Some(&bytes) {
                true => Err(take_back(storage, &[path.to_owned()], dropped)),
                false => Err(dropped),
            }
        }
    }
}

/// Checks that the version of `snapshot` still exists after the files `written` of its checkpoint were written.
/// Otherwise deletes these files.
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

/// Deletes files that were written although their version no longer exists. Returns the error `gone` that says so.
fn take_back(storage: &Storage, written: &[String], gone: Error) -> Error {
    let failures = written.iter().filter_map(|path| storage.delete(path).err());
    failures.fold(gone, |gone, failure| {
        gone.with_hint(format!("delete the file that was just written: {failure}"))
    })
}
