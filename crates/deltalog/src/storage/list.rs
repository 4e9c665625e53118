//! Listing a directory of the local file system.
//!
//! The log is listed by every reader and every writer, and it holds a file per version: names that are not
//! wanted are passed over as names, without asking the file system about the file.

use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::FileMeta;

/// Whether directories inside the one that is listed are listed, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// They are.
    All,
    /// They are not: only the files right in it.
    One,
}

/// The files below `directory` whose path relative to it is greater than `after`, sorted by it. A directory
/// that is not there has no files; temporary files of the local store and names that are not UTF-8 are left
/// out; links are followed.
pub(super) fn list_local(directory: &Path, after: &str, depth: Depth) -> io::Result<Vec<FileMeta>> {
    let mut files = Vec::new();
    walk(directory, "", after, depth, &mut files)?;
    files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

fn walk(
    directory: &Path,
    prefix: &str,
    after: &str,
    depth: Depth,
    files: &mut Vec<FileMeta>,
) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        // Below a file there is nothing, either.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else { continue };
        // A directory may come before `after` and hold files that come after it.
        let kind = entry.file_type()?;
        let below = kind.is_file() && (name.as_str() <= after || is_staged(&name));
        if below || (kind.is_dir() && depth == Depth::One) {
            continue;
        }
        let metadata = match fs::metadata(entry.path()) {
            Ok(metadata) => metadata,
            // Deleted since, or a link to nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if metadata.is_dir() {
            if depth == Depth::All {
                walk(&entry.path(), &format!("{name}/"), after, depth, files)?;
            }
        } else if name.as_str() > after && !is_staged(&name) {
            let modified = metadata.modified()?;
            let modified_ms = match modified.duration_since(UNIX_EPOCH) {
                Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                Err(before) => {
                    i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |before| -before)
                }
            };
            files.push(FileMeta { name, size: metadata.len(), modified_ms });
        }
    }
    Ok(())
}

/// Whether it is a put of the local store that is not finished: `name#7`.
fn is_staged(name: &str) -> bool {
    name.rsplit_once('#').is_some_and(|(_, digits)| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use crate::storage::Storage;

    /// The store's own listing is the oracle.
    #[test]
    fn shows_what_the_store_shows() {
        let root = tempfile::tempdir().unwrap();
        let files = ["a", "b", "b/c", "d=1/x y", "d=1/%20", "d=1/e/f", "z#1", "z#x", "z"];
        for file in files {
            let path = root.path().join("log").join(file.replace("b/c", "bb/c"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
        let mut storage = Storage::open(root.path().to_str().unwrap(), []).unwrap();
        for after in ["", "a", "b", "bb", "bb/c", "d=1", "d=1/e/f", "z"] {
            storage.local = true;
            let ours = storage.list_after("log", after).unwrap();
            storage.local = false;
            assert_eq!(ours, storage.list_after("log", after).unwrap(), "{after}");
            assert!(!after.is_empty() || ours.len() == 8, "{ours:?}");
            storage.local = true;
            let flat = storage.list_directory_after("log", after).unwrap();
            storage.local = false;
            assert_eq!(flat, storage.list_directory_after("log", after).unwrap(), "{after}");
            assert_eq!(
                flat,
                ours.into_iter().filter(|file| !file.name.contains('/')).collect::<Vec<_>>(),
                "{after}"
            );
        }
        storage.local = true;
        assert!(storage.list_after("nothing", "").unwrap().is_empty());
    }
}
