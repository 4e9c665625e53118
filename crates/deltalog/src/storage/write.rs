//! Writing data files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::Storage;
use super::sync::sync_directory;
use crate::error::{Error, ErrorKind, Result};

/// Removes the empty directories of a tree. `remove_dir` refuses directories that are not empty, so no file
/// can be lost.
pub(super) fn remove_empty(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_empty(&entry.path());
    }
    // It is fine if the directory is not empty, or was removed in the meantime.
    let _ = fs::remove_dir(directory);
}

/// A file that is written sequentially.
///
/// The file has its final name from the start, because readers ignore it until a commit refers to it. If the
/// writer is dropped before it is finished, the file is left for clean-up.
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

/// The directories that must be synced for a file to be durable. Without that, a power failure can lose even a
/// file that was synced itself.
///
/// - All directories from the file's own up to the table's root, including existing ones: another writer may
///   have just created them without syncing them yet.
/// - Above the root, the directories that this writer creates, and the existing one that contains them.
#[derive(Debug)]
struct DirectoriesToSync(Vec<PathBuf>);

impl DirectoriesToSync {
    /// Returns the directories for `file`, which is at `path` relative to the table's root. It must be called
    /// before missing directories are created.
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

    /// Calls `sync` with each directory, innermost first.
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

    /// Returns the number of bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Makes the file durable and returns its size in bytes.
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
    fn new_directories_and_those_below_the_root_are_synced() {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().join("x/table");
        let of = |path: &str| DirectoriesToSync::of(&root.join(path), path).0;
        // No directory exists yet: all up to the existing one that will contain the first new one.
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
        // Another writer has created the directories, perhaps without syncing them yet.
        fs::create_dir_all(root.join("a=1/b=2")).unwrap();
        assert_eq!(of("a=1/b=2/f"), all[..3]);
        assert_eq!(of("f"), std::slice::from_ref(&root));
    }

    #[cfg(unix)]
    #[test]
    fn each_directory_is_synced_and_a_failure_is_returned() {
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
