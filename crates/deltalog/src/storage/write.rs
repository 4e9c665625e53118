//! A data file being written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::Storage;
use super::sync::sync_directory;
use crate::error::{Error, ErrorKind, Result};

/// Removes a directory tree that holds no file. `remove_dir` refuses what is not empty, so nothing can be
/// lost.
pub(super) fn remove_empty(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_empty(&entry.path());
    }
    // Not empty, or gone meanwhile: both are as they should be.
    let _ = fs::remove_dir(directory);
}

/// A file that is written from front to back. Nobody reads it before a commit names it, so it stands under
/// its own name from the start; one that is dropped unfinished is left for clean-up.
#[derive(Debug)]
pub struct FileWriter {
    sink: Sink,
    path: String,
    written: u64,
}

#[derive(Debug)]
enum Sink {
    Local(BufWriter<File>, DirectoriesToSync),
    Memory(Storage, Vec<u8>),
}

/// The directories whose entries must be durable for a file to be: a synced file in a directory that was not
/// is lost with the power.
///
/// - All from the file's own up to the table's root, also those that were there: another writer may have made
///   them a moment ago and not synced them yet.
/// - Beyond the root, those that this writer makes, and the one in which it makes them.
#[derive(Debug)]
struct DirectoriesToSync(Vec<PathBuf>);

impl DirectoriesToSync {
    /// For `file`, which is at `path` relative to the table's root. To be asked before its directories are
    /// made.
    fn of(file: &Path, path: &str) -> Self {
        let within_table = path.split('/').count();
        let mut directories = Vec::new();
        for (level, directory) in file.ancestors().skip(1).enumerate() {
            directories.push(directory.to_owned());
            if level + 1 >= within_table && directory.exists() {
                break;
            }
        }
        Self(directories)
    }

    /// Syncs each by `sync`, the innermost first.
    fn sync(&self, sync: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
        self.0.iter().try_for_each(|directory| sync(directory))
    }
}

impl FileWriter {
    pub(super) fn create_local(file: &Path, path: &str) -> io::Result<Self> {
        let directories = DirectoriesToSync::of(file, path);
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        let sink = Sink::Local(BufWriter::with_capacity(1 << 20, File::create_new(file)?), directories);
        Ok(Self { sink, path: path.to_owned(), written: 0 })
    }

    pub(super) fn in_memory(storage: Storage, path: &str) -> Self {
        Self { sink: Sink::Memory(storage, Vec::new()), path: path.to_owned(), written: 0 }
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Makes the file durable and tells its size in bytes.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    pub fn finish(self) -> Result<u64> {
        let failed = |path: &str, error: io::Error| {
            Error::new(ErrorKind::Unavailable, "the file could not be written")
                .at_path(path)
                .with_source(error)
        };
        match self.sink {
            Sink::Local(buffer, directories) => {
                let file = buffer.into_inner().map_err(|error| failed(&self.path, error.into_error()))?;
                file.sync_all()
                    .and_then(|()| directories.sync(sync_directory))
                    .map_err(|error| failed(&self.path, error))?;
            }
            Sink::Memory(storage, bytes) => storage.put(&self.path, bytes.into())?,
        }
        Ok(self.written)
    }
}

impl Write for FileWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = match &mut self.sink {
            Sink::Local(file, _) => file.write(buffer)?,
            Sink::Memory(_, bytes) => bytes.write(buffer)?,
        };
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Local(file, _) => file.flush(),
            Sink::Memory(..) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directories_up_to_the_root_are_synced_and_those_that_are_new() {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().join("x/table");
        let of = |path: &str| DirectoriesToSync::of(&root.join(path), path).0;
        // Nothing is there: up to the one in which the first new one is made.
        let all = [
            root.join("a=1/b=2"),
            root.join("a=1"),
            root.clone(),
            above.path().join("x"),
            above.path().to_owned(),
        ];
        assert_eq!(of("a=1/b=2/f"), all);
        fs::create_dir_all(&root).unwrap();
        assert_eq!(of("a=1/b=2/f"), all[..3]);
        // Somebody else's, perhaps not synced yet.
        fs::create_dir_all(root.join("a=1/b=2")).unwrap();
        assert_eq!(of("a=1/b=2/f"), all[..3]);
        assert_eq!(of("f"), std::slice::from_ref(&root));
    }

    #[cfg(unix)]
    #[test]
    fn each_is_synced_and_a_failure_is_told() {
        let root = tempfile::tempdir().unwrap();
        let directories = DirectoriesToSync::of(&root.path().join("a/f"), "a/f");
        fs::create_dir(root.path().join("a")).unwrap();
        let synced = std::cell::Cell::new(0);
        let count = |directory: &Path| {
            synced.set(synced.get() + usize::from(directory.is_dir()));
            sync_directory(directory)
        };
        directories.sync(count).unwrap();
        assert_eq!(synced.get(), 2);
        assert!(sync_directory(&root.path().join("b")).is_err());
        assert!(directories.sync(|_| Err(io::Error::other("disk"))).is_err());
    }
}
