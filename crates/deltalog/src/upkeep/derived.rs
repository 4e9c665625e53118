//! Writes files that are derived from the log after a commit: checkpoints, compactions and checksums.
//!
//! When such a file is written, its version may no longer exist:
//!
//! - The table may have been dropped. A store without directories accepts the file nevertheless, and the file alone
//!   would count as a log: a checkpoint would bring the dropped table back without its data files, or would damage a
//!   table that was created in its place. Therefore the file is deleted again if its commit is missing or is a
//!   different one. In a local file system, the directory does not exist any more, so nothing is written.
//! - A clean-up of the log may have deleted the version. A checkpoint would then be isolated below the remaining
//!   versions, so it is deleted as well. This only happens if later commits exist, because a clean-up never deletes the
//!   newest one. If the clean-up deletes the commit only after this check, it finds the checkpoint itself
//!   (`upkeep::cleanup`). Other files of deleted versions are ignored by readers.
//! - If a table is being dropped, and its files were listed before the new file was written, the drop does not delete
//!   the new file. This cannot be detected, and the same can happen to a commit.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::log::Fate;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// Creates the file `path` by calling `put`, unless it exists. The file must belong to the version of `base` or to one
/// of the next versions. Returns whether it was created.
///
/// # Errors
/// `NotATable` or `TableReplaced` if the table was dropped, in a store without directories. In that case, the file is
/// deleted again. Also the errors of `put` and of the store.
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
        // If the client has sent the request twice or got no answer, the existing file may be the one that this call
        // has created.
        Fate::Dropped(dropped) => {
            match matches!(created, Ok(true)) || storage.get(path)?.as_ref() == Some(&bytes) {
                true => Err(take_back(storage, &[path.to_owned()], dropped)),
                false => Err(dropped),
            }
        }
    }
}

/// After the files `written` of a checkpoint were created, checks that the version of `snapshot` still exists. If it
/// does not, deletes these files.
///
/// # Errors
/// `NotATable` or `TableReplaced`; `VersionNotFound` if the log was cleaned up in the meantime; also errors from the
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

/// Deletes files that were written although their version no longer exists. Returns `gone`, the error that says so.
fn take_back(storage: &Storage, written: &[String], gone: Error) -> Error {
    let failures = written.iter().filter_map(|path| storage.delete(path).err());
    failures.fold(gone, |gone, failure| {
        gone.with_hint(format!("delete the file that was just written: {failure}"))
    })
}
