//! Reads and writes files of the local file system.
//!
//! All functions here use the standard library's blocking I/O. They need no async runtime, and may be called inside
//! one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use object_store::PutPayload;
use object_store::local::LocalFileSystem;

use super::beneath::Place;
use super::names::Unpublished;
use super::write::{DirectoriesToSync, Staged};

/// Returns the local path for an absolute path of a store.
pub(super) fn file(path: &object_store::path::Path) -> object_store::Result<PathBuf> {
    LocalFileSystem::new().path_to_filesystem(path)
}

/// Reads a whole file. If there is a directory at the path, the file counts as missing.
pub(super) fn read(place: &Place) -> io::Result<Bytes> {
    let (mut file, metadata) = place.open().map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => io::ErrorKind::NotFound.into(),
        _ => error,
    })?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok(bytes.into())
}

/// A durable file that does not have its final name yet.
pub(super) struct Created {
    staged: Staged,
    directories: DirectoriesToSync,
}

/// Writes a new file, and creates the directories of `path`. [`Created::publish`] then gives the file the name `path`.
/// If `create` fails, the file never gets that name.
pub(super) fn create(path: &Path, content: &PutPayload) -> io::Result<Created> {
    let directories = DirectoriesToSync::of_new(path);
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    let staged = Staged::beside(path);
    let mut file = File::create_new(staged.file())?;
    for bytes in content.iter() {
        file.write_all(bytes)?;
    }
    // A file must not become visible without its content, even after a power failure.
    file.sync_all()?;
    Ok(Created { staged, directories })
}

impl Created {
    /// Gives the file its final name, unless another file has that name. Returns whether it got the name. If so, it is
    /// durable.
    ///
    /// After an error, the file may exist nevertheless, unless the error is a refusal: the file system may have failed
    /// to sync the directory that already contains the file.
    pub(super) fn publish(self) -> Result<bool, Unpublished> {
        let is_created = self.staged.publish_if_absent()?;
        if is_created {
            self.directories.sync(None).map_err(Unpublished::Unknown)?;
        }
        Ok(is_created)
    }
}

/// Deletes a file. It is not an error if the file does not exist.
pub(super) fn delete(place: &Place) -> io::Result<()> {
    match place.delete() {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(error)
        }
        _ => Ok(()),
    }
}
