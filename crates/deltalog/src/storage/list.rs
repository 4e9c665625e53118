//! Lists directories.
//!
//! Every reader and writer lists the log, which has at least one file per version. Files that are not needed are
//! skipped by their names, without requesting their metadata.

use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::{Backend, FileMeta, Storage, markers};
use crate::error::Result;
use crate::runtime::interrupt;

/// Whether a listing includes the files in nested directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The listing includes all files below the directory, at any depth.
    All,
    /// The listing includes only files directly in the directory.
    One,
}

impl Storage {
    /// Returns the files below `directory` whose relative path is greater than `after`, sorted by that path in byte
    /// order. Files in nested directories are included. A directory that does not exist has no files. Objects that only
    /// mark a directory are left out ([`markers`]).
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn list_after(&self, directory: &str, after: &str) -> Result<Vec<FileMeta>> {
        self.list(directory, after, Depth::All)
    }

    /// Does the same as [`Storage::list_after`], but without the files in nested directories.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn list_directory_after(&self, directory: &str, after: &str) -> Result<Vec<FileMeta>> {
        self.list(directory, after, Depth::One)
    }

    fn list(&self, directory: &str, after: &str, depth: Depth) -> Result<Vec<FileMeta>> {
        self.recover_newest(directory)?;
        let prefix = self.path(directory)?;
        let store = match &self.backend {
            Backend::Local => {
                interrupt::check()?;
                let path = self.local_file(directory, &prefix)?;
                return list_local(&path, after, depth).map_err(|error| self.io_error(directory, error));
            }
            Backend::Remote(store) => store,
        };
        let offset = match (directory, after) {
            (_, "") => None,
            ("", after) => Some(self.path(after)?),
            (directory, after) => Some(self.path(&format!("{directory}/{after}"))?),
        };
        let skip = match prefix.as_ref() {
            "" => 0,
            prefix => prefix.len() + 1,
        };
        let found = match store.list(prefix, offset, depth) {
            Err(failure) if failure.is_missing() => Vec::new(),
            found => found.map_err(|failure| self.error(directory, failure))?,
        };
        let mut files: Vec<FileMeta> = found
            .into_iter()
            .filter_map(|meta| {
                let name = meta.location.as_ref().get(skip..)?.to_owned();
                Some(FileMeta::of_store(name, &meta))
            })
            // Stores that do not support offsets or directories return more files than requested.
            .filter(|file: &FileMeta| file.name.as_str() > after)
            .filter(|file| depth == Depth::All || !file.name.contains('/'))
            .collect();
        markers::remove(&mut files);
        files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }
}

/// Returns the files below `directory` whose relative path is greater than `after`, sorted by that path.
///
/// A directory that does not exist has no files. The temporary files of `object_store`, files with names that are not
/// UTF-8, and links to directories are left out.
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
        // Nothing is below a path that does not exist or is a file.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else { continue };
        // A directory may contain names greater than `after`, although its own name is less than `after`.
        let kind = entry.file_type()?;
        let is_skipped = kind.is_file() && (name.as_str() <= after || is_staged(&name));
        if is_skipped || (kind.is_dir() && depth == Depth::One) {
            continue;
        }
        let Some(metadata) = followed(&entry)? else { continue };
        if metadata.is_dir() {
            if depth == Depth::All && kind.is_dir() {
                walk(&entry.path(), &format!("{name}/"), after, depth, files)?;
            }
        } else if name.as_str() > after && !is_staged(&name) {
            files.push(file_meta(name, &metadata)?);
        }
    }
    Ok(())
}

/// Returns the metadata of a directory entry, or of its target if it is a link. Returns `None` if the file does not
/// exist, for example because it was just deleted. If a link cannot be followed for another reason, returns the
/// metadata of the link itself.
pub(super) fn followed(entry: &fs::DirEntry) -> io::Result<Option<fs::Metadata>> {
    match fs::metadata(entry.path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(_) if entry.file_type()?.is_symlink() => entry.metadata().map(Some),
        found => found.map(Some),
    }
}

/// Returns the entry of the file `path`, under the name `name`, as [`list_local`] would return it. Returns `None` if
/// the file does not exist or is a directory.
pub(super) fn head_local(path: &Path, name: &str) -> io::Result<Option<FileMeta>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(None),
        Ok(metadata) => file_meta(name.to_owned(), &metadata).map(Some),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn file_meta(name: String, metadata: &fs::Metadata) -> io::Result<FileMeta> {
    let modified = metadata.modified()?;
    let (since, is_before) = match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => (since, false),
        Err(before) => (before.duration(), true),
    };
    let ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    let modified_ms = if is_before { -ms } else { ms };
    // Inode numbers are not used, because on some network file systems they change with every mount.
    let tag = u64::try_from(since.as_nanos()).ok();
    Ok(FileMeta { name, size: metadata.len(), modified_ms, tag })
}

/// Returns whether `name` is the name of a file that `object_store` is still writing, such as `name#7`.
pub(super) fn is_staged(name: &str) -> bool {
    name.rsplit_once('#').is_some_and(|(_, digits)| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::local::LocalFileSystem;

    use crate::storage::{FileMeta, Storage};

    /// Opens the same root in two ways: as a local directory, and through the interface for remote stores.
    fn both(root: &std::path::Path) -> [Storage; 2] {
        let ours = Storage::open(root.to_str().unwrap(), []).unwrap();
        let url = ours.root().clone();
        [ours, Storage::with_store(url, Arc::new(LocalFileSystem::new())).unwrap()]
    }

    #[test]
    fn local_and_remote_listings_are_equal() {
        let root = tempfile::tempdir().unwrap();
        let files = ["a", "b", "b/c", "d=1/x y", "d=1/%20", "d=1/e/f", "z#1", "z#x", "z"];
        for file in files {
            let path = root.path().join("log").join(file.replace("b/c", "bb/c"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
        let [ours, store] = both(root.path());
        // The store derives its tags from other properties of a file, so tags are not compared.
        let untagged = |files: Vec<FileMeta>| -> Vec<FileMeta> {
            files.into_iter().map(|file| FileMeta { tag: None, ..file }).collect()
        };
        for after in ["", "a", "b", "bb", "bb/c", "d=1", "d=1/e/f", "z"] {
            let all = untagged(ours.list_after("log", after).unwrap());
            assert_eq!(all, untagged(store.list_after("log", after).unwrap()), "{after}");
            assert!(!after.is_empty() || all.len() == 8, "{all:?}");
            let flat = untagged(ours.list_directory_after("log", after).unwrap());
            assert_eq!(flat, untagged(store.list_directory_after("log", after).unwrap()), "{after}");
            let directly: Vec<_> = all.into_iter().filter(|file| !file.name.contains('/')).collect();
            assert_eq!(flat, directly, "{after}");
        }
        assert!(ours.list_after("nothing", "").unwrap().is_empty());
    }

    /// To detect that a file was replaced, its entry in a listing is compared with the result of a request by name.
    #[test]
    fn a_listing_and_a_request_by_name_agree() {
        let root = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(root.path().join("a"), text).unwrap();
        write("x");
        let listed = |storage: &Storage| storage.list_after("", "").unwrap().remove(0);
        for (storage, same_size) in both(root.path()).iter().zip(["y", "z"]) {
            assert_eq!(Some(listed(storage)), storage.head("a").unwrap(), "{same_size}");
            assert_eq!((storage.head("b").unwrap(), storage.head("a/b").unwrap_or(None)), (None, None));
            let before = listed(storage);
            assert!(before.is_same_object(&listed(storage)));
            std::fs::remove_file(root.path().join("a")).unwrap();
            write(same_size);
            assert!(!before.is_same_object(&listed(storage)), "{same_size}");
        }
    }
}
