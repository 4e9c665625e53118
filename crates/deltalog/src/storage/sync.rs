//! Making files and directories durable.
//!
//! A file and its directories, or the files that another program has written and theirs, are synced in parallel and not
//! one after another. A file system with a journal then makes all of them durable in one write of the journal, and the
//! disk flushes its cache once. The order does not matter: nothing refers to a file before all of these syncs have
//! returned.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::runtime::parallel;

/// The number of syncs at the same time. Each sync waits for the disk, not for a core.
const THREADS: usize = 8;

/// An item that can be synced.
#[derive(Debug)]
pub(super) enum Entry<'a> {
    /// A file that this process has written.
    Open(&'a File),
    /// A file that another program has written.
    File(&'a Path),
    /// The names in a directory.
    Directory(&'a Path),
}

impl Entry<'_> {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Open(_) => None,
            Self::File(path) | Self::Directory(path) => Some(path),
        }
    }

    fn sync(&self) -> io::Result<()> {
        match self {
            Self::Open(file) => file.sync_all(),
            Self::File(path) => File::open(path)?.sync_all(),
            // Systems other than Unix journal the names, and cannot open a directory as a file.
            Self::Directory(path) => {
                if cfg!(unix) {
                    File::open(path)?.sync_all()
                } else {
                    Ok(())
                }
            }
        }
    }
}

/// Syncs all `entries`. An error comes with the path that failed, which an open file does not have.
pub(super) fn sync_together(entries: &[Entry<'_>]) -> Result<(), (Option<PathBuf>, io::Error)> {
    let sync = |entry: &Entry<'_>| entry.sync().map_err(|error| (entry.path().map(Path::to_owned), error));
    parallel::each(entries, THREADS, sync).map(drop)
}

/// Syncs `files`, which another program has written, and all their parent directories up to `root`. An error
/// comes with the path that failed.
pub(super) fn sync_files(root: &Path, files: &[PathBuf]) -> Result<(), (PathBuf, io::Error)> {
    let directories: BTreeSet<&Path> = files
        .iter()
        .flat_map(|file| file.ancestors().skip(1).take_while(|path| path.starts_with(root)))
        .collect();
    let files = files.iter().map(|file| Entry::File(file));
    let entries: Vec<Entry<'_>> = files.chain(directories.into_iter().map(Entry::Directory)).collect();
    sync_together(&entries).map_err(|(path, error)| (path.unwrap_or_else(|| root.to_owned()), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_that_cannot_be_synced_is_named() {
        let root = tempfile::tempdir().unwrap();
        let (file, missing) = (root.path().join("a/f"), root.path().join("a/g"));
        std::fs::create_dir(root.path().join("a")).unwrap();
        std::fs::write(&file, "content").unwrap();
        sync_files(root.path(), std::slice::from_ref(&file)).unwrap();
        let (path, error) = sync_files(root.path(), &[file.clone(), missing.clone()]).unwrap_err();
        assert_eq!((path, error.kind()), (missing, io::ErrorKind::NotFound));

        let (opened, absent) = (File::open(&file).unwrap(), root.path().join("b"));
        sync_together(&[Entry::Open(&opened), Entry::Directory(root.path())]).unwrap();
        if cfg!(unix) {
            let failed = sync_together(&[Entry::Open(&opened), Entry::Directory(&absent)]);
            assert_eq!(failed.unwrap_err().0, Some(absent));
        }
    }
}
