//! Writes files sequentially, from beginning to end.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::hadoop::remove_checksum;
use super::names::{Unpublished, publish_if_absent};
use super::remote::Remote;
use super::sync::{Entry, sync_together};
use super::upload::Upload;
use super::{Backend, Storage};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::interrupt;

/// Removes the empty directories in a tree. `remove_dir` refuses to remove a directory that is not empty, so no file
/// can be lost.
pub(super) fn remove_empty(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_empty(&entry.path());
    }
    // A directory that is not empty, or that another process has removed, is not an error.
    let _ = fs::remove_dir(directory);
}

/// A file that is written sequentially.
///
/// - A new file ([`Storage::create_file`]) has its final name from the start, because readers ignore it until the log
///   refers to it. If the writer is dropped before it is finished, the file remains, and a clean-up deletes it later.
/// - A file that may replace another one ([`Storage::replace_file`]) gets its final name when it is finished. Until
///   then, the existing file is unchanged. If the writer is dropped earlier, the temporary file is deleted.
#[derive(Debug)]
pub struct FileWriter {
    sink: Sink,
    path: String,
    written: u64,
}

#[derive(Debug)]
enum Sink {
    Local { file: BufWriter<File>, directories: DirectoriesToSync, staged: Option<Staged> },
    Remote(Upload),
}

/// A file that still has a temporary name. It may be incomplete. Dropping this deletes the temporary name, unless the
/// file was renamed to its final name.
#[derive(Debug)]
pub(super) struct Staged {
    from: PathBuf,
    to: PathBuf,
    is_published: bool,
}

impl Staged {
    /// Returns a new path in the directory of `file`. A log file or a data file cannot have this name, so readers
    /// ignore it.
    pub(super) fn beside(file: &Path) -> Self {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let from = file.with_file_name(format!(".{name}.{}.tmp", Uuid::new_v4()));
        Self { from, to: file.to_owned(), is_published: false }
    }

    /// Returns the path at which the caller has to create the file.
    pub(super) fn file(&self) -> &Path {
        &self.from
    }

    /// Gives the file its final name. If another file has this name, it is replaced.
    fn publish(&mut self) -> io::Result<()> {
        remove_checksum(&self.to)?;
        fs::rename(&self.from, &self.to)?;
        self.is_published = true;
        Ok(())
    }

    /// Gives the file its final name, unless another file has that name. Returns whether it got the name. The file may
    /// also keep its temporary name.
    pub(super) fn publish_if_absent(&self) -> Result<bool, Unpublished> {
        publish_if_absent(&self.from, &self.to)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_published {
            // If the file cannot be deleted here, a clean-up deletes it later.
            let _ = fs::remove_file(&self.from);
        }
    }
}

/// The directories that must be synced to make a file durable. If they are not synced, a power failure can lose even a
/// file that was synced itself:
///
/// - All directories from the file's own up to the table's root, even if they already existed: another writer may have
///   just created them without syncing them yet.
/// - Above the root, the directories that this writer creates, and the existing directory that contains them.
#[derive(Debug)]
pub(super) struct DirectoriesToSync(Vec<PathBuf>);

impl DirectoriesToSync {
    /// Returns the directories for `file`, which is at `path` relative to the table's root. It must be called before
    /// missing directories are created.
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

    /// Returns the directories to sync for `file`, a file of a log: its own directory, missing directories above it,
    /// and the existing directory that will contain the first of these. All other directories were synced when they
    /// were created. It must be called before missing directories are created.
    pub(super) fn of_new(file: &Path) -> Self {
        let mut directories = Vec::new();
        for directory in file.ancestors().skip(1) {
            directories.push(directory.to_owned());
            if directory.exists() {
                break;
            }
        }
        Self(directories)
    }

    /// Syncs the directories, and also `file`, which is in the first one.
    pub(super) fn sync(&self, file: Option<&File>) -> io::Result<()> {
        let directories = self.0.iter().map(|directory| Entry::Directory(directory));
        let entries: Vec<Entry<'_>> = file.map(Entry::Open).into_iter().chain(directories).collect();
        sync_together(&entries).map_err(|(_, error)| error)
    }
}

/// Creates a whole file in an existing directory, unless the file exists. Returns whether it was created.
pub(super) fn create_whole(file: &Path, path: &str, bytes: &[u8], is_durable: bool) -> io::Result<bool> {
    let staged = Staged::beside(file);
    let mut content = File::create_new(&staged.from)?;
    content.write_all(bytes)?;
    if is_durable {
        content.sync_all()?;
    }
    // Some systems do not allow open files to be deleted.
    drop(content);
    let is_created = staged.publish_if_absent().map_err(Unpublished::into_error)?;
    if is_created && is_durable {
        DirectoriesToSync::of(file, path).sync(None)?;
    }
    Ok(is_created)
}

/// Creates a directory in an existing one, unless it already exists.
fn create_last(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(_) if directory.is_dir() => Ok(()),
        created => created,
    }
}

impl Storage {
    /// Creates a file, which must not exist yet, and its directories. The file is complete and durable when
    /// [`FileWriter::finish`] returns.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn create_file(&self, path: &str) -> Result<FileWriter> {
        self.write_file(path, FileWriter::create_local)
    }

    pub(super) fn write_file(
        &self,
        path: &str,
        local: impl FnOnce(&Path, &str) -> io::Result<FileWriter>,
    ) -> Result<FileWriter> {
        let located = self.path(path)?;
        interrupt::check()?;
        match &self.backend {
            Backend::Local => {
                let file = self.local_file(path, &located)?;
                local(&file, path).map_err(|error| self.not_written(path, error))
            }
            Backend::Remote(store) => Ok(FileWriter::remote(self.clone(), store.clone(), path)),
        }
    }
}

impl FileWriter {
    /// Creates a file, and the directories above it.
    pub(super) fn create_local(file: &Path, path: &str) -> io::Result<Self> {
        Self::local(file, path, None, |directory| fs::create_dir_all(directory))
    }

    /// Creates a file, and its directory if the directory above that exists.
    pub(super) fn create_local_in_log(file: &Path, path: &str) -> io::Result<Self> {
        Self::local(file, path, None, create_last)
    }

    /// Writes a file in an existing directory.
    pub(super) fn replace_local(file: &Path, path: &str) -> io::Result<Self> {
        Self::local(file, path, Some(Staged::beside(file)), |_| Ok(()))
    }

    /// Writes a file that may already exist, and creates the directories above it.
    pub(super) fn publish_local(file: &Path, path: &str) -> io::Result<Self> {
        Self::local(file, path, Some(Staged::beside(file)), |directory| fs::create_dir_all(directory))
    }

    fn local(
        file: &Path,
        path: &str,
        staged: Option<Staged>,
        create_directory: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<Self> {
        let directories = DirectoriesToSync::of(file, path);
        file.parent().map_or(Ok(()), create_directory)?;
        let file = File::create_new(staged.as_ref().map_or(file, |staged| &staged.from))?;
        let file = BufWriter::with_capacity(1 << 20, file);
        Ok(Self { sink: Sink::Local { file, directories, staged }, path: path.to_owned(), written: 0 })
    }

    pub(super) fn remote(storage: Storage, store: Remote, path: &str) -> Self {
        Self { sink: Sink::Remote(Upload::new(storage, store, path)), path: path.to_owned(), written: 0 }
    }

    /// Returns the number of bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Syncs the file and returns its size in bytes.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`. An existing file may have been replaced nevertheless.
    pub fn finish(self) -> Result<u64> {
        let failed = |path: &str, error: io::Error| {
            Error::new(ErrorKind::Unavailable, "the file could not be written")
                .at_path(path)
                .with_source(error)
        };
        match self.sink {
            Sink::Local { file, directories, mut staged } => {
                let file = file.into_inner().map_err(|error| failed(&self.path, error.into_error()))?;
                let synced = match &mut staged {
                    None => directories.sync(Some(&file)),
                    // A file may only be replaced by a file that is already durable.
                    Some(staged) => {
                        file.sync_all().and_then(|()| staged.publish()).and_then(|()| directories.sync(None))
                    }
                };
                synced.map_err(|error| failed(&self.path, error))?;
            }
            Sink::Remote(upload) => upload.finish()?,
        }
        Ok(self.written)
    }
}

impl Write for FileWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = match &mut self.sink {
            Sink::Local { file, .. } => file.write(buffer)?,
            Sink::Remote(upload) => {
                upload.write(buffer)?;
                buffer.len()
            }
        };
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Local { file, .. } => file.flush(),
            Sink::Remote(_) => Ok(()),
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
        // No directory exists yet, so all of them are synced, up to the existing one that will contain the first new
        // one.
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
        // Another writer has created the directories, but perhaps has not synced them yet.
        fs::create_dir_all(root.join("a=1/b=2")).unwrap();
        assert_eq!(of("a=1/b=2/f"), all[..3]);
        assert_eq!(of("f"), std::slice::from_ref(&root));
    }

    #[test]
    fn a_replacement_becomes_visible_when_it_is_finished() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("f");
        let names = || {
            let entries = fs::read_dir(root.path()).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        for (before, content) in [(None, "first"), (Some("first"), "second")] {
            let mut writer = FileWriter::replace_local(&file, "f").unwrap();
            writer.write_all(content.as_bytes()).unwrap();
            writer.flush().unwrap();
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), before);
            assert_eq!(writer.finish().unwrap(), content.len() as u64);
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
            assert_eq!(names(), ["f"]);
        }
        let mut abandoned = FileWriter::replace_local(&file, "f").unwrap();
        abandoned.write_all(b"third").unwrap();
        assert_eq!(names().len(), 2);
        drop(abandoned);
        assert_eq!(
            (names(), fs::read_to_string(&file).unwrap()),
            (vec!["f".to_owned()], "second".to_owned())
        );
    }
}
