//! Makes files and directories durable.
//!
//! Files and their directories are synced in parallel, not one after another. This applies to a new file as well as to
//! the files that another program has written. A journaling file system can then make all of them durable with one
//! write of the journal, and the disk flushes its cache only once. The order of the syncs does not matter, because no
//! file is referred to before all syncs have returned.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::{Backend, Storage};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::parallel;

/// The number of concurrent syncs. It may exceed the number of cores, because each sync waits for the disk.
const THREADS: usize = 8;

/// Something that can be synced.
#[derive(Debug)]
pub(super) enum Entry<'a> {
    /// A file that this process has written.
    Open(&'a File),
    /// A file that another program has written.
    File(&'a Path),
    /// The entries of a directory.
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
            // Systems other than Unix write the entries of directories to a journal, and cannot open a directory as a
            // file.
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

/// Syncs all `entries`. An error is returned with the path of the entry that failed; `None` for an open file, because
/// an open file does not know its path.
pub(super) fn sync_together(entries: &[Entry<'_>]) -> std::result::Result<(), (Option<PathBuf>, io::Error)> {
    let sync = |entry: &Entry<'_>| entry.sync().map_err(|error| (entry.path().map(Path::to_owned), error));
    parallel::each(entries, THREADS, sync).map(drop)
}

/// Syncs `files`, which another program has written, and all their parent directories up to `root`. An error is
/// returned with the path that failed.
pub(super) fn sync_files(root: &Path, files: &[PathBuf]) -> std::result::Result<(), (PathBuf, io::Error)> {
    let directories: BTreeSet<&Path> = files
        .iter()
        .flat_map(|file| file.ancestors().skip(1).take_while(|path| path.starts_with(root)))
        .collect();
    let files = files.iter().map(|file| Entry::File(file));
    let entries: Vec<Entry<'_>> = files.chain(directories.into_iter().map(Entry::Directory)).collect();
    sync_together(&entries).map_err(|(path, error)| (path.unwrap_or_else(|| root.to_owned()), error))
}

impl Storage {
    /// Makes files that another program has written durable, including their directories.
    ///
    /// In a remote store, files are durable as soon as they exist. There, only checks that one of the files exists: the
    /// other program may have written to a different store, which has the same name at another endpoint.
    ///
    /// # Errors
    /// `FileNotFound` or `Unavailable`, naming the file.
    #[doc(hidden)]
    pub fn sync<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Result<()> {
        if let Backend::Remote(_) = self.backend {
            let Some(path) = paths.into_iter().next() else { return Ok(()) };
            return match self.head(path)? {
                Some(_) => Ok(()),
                None => Err(Error::new(ErrorKind::FileNotFound, "the file does not exist")
                    .at_path(path)
                    .in_table(self.url())),
            };
        }
        let local = |path: &str| self.local_file(path, &self.path(path)?);
        let paths = paths.into_iter().map(local).collect::<Result<Vec<_>>>()?;
        let root = self
            .url
            .to_file_path()
            .map_err(|()| Error::invalid_argument("the location is not a local path").in_table(self.url()))?;
        sync_files(&root, &paths).map_err(|(path, error)| {
            let (kind, what) = match error.kind() {
                io::ErrorKind::NotFound => (ErrorKind::FileNotFound, "the file does not exist"),
                _ => (ErrorKind::Unavailable, "the file could not be made durable"),
            };
            Error::new(kind, what).at_path(path.display().to_string()).in_table(self.url()).with_source(error)
        })
    }

    /// Does the same as [`Storage::sync`] for files that the tasks of an engine have reported.
    ///
    /// # Errors
    /// Returns the same errors as [`Storage::sync`]. If a file is not found, the hint says that the table's path must
    /// refer to the same place on all machines.
    #[doc(hidden)]
    pub fn sync_reported<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Result<()> {
        self.sync(paths).map_err(|error| match error.kind() {
            ErrorKind::FileNotFound => error.with_hint(
                "make sure that the table's path is the same place for the driver and all executors, such as a \
                 directory of a shared file system, or a store at the same endpoint",
            ),
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_entry_that_cannot_be_synced() {
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
