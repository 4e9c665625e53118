//! Deletes files, and directories without files.

use std::fs;
use std::time::UNIX_EPOCH;

use object_store::path::Path;

use super::{Backend, Storage, local, write};
use crate::error::{Error, Result};
use crate::runtime::{interrupt, parallel};

/// The number of threads that delete local files. It may exceed the number of cores, because network file systems
/// respond slowly.
const LOCAL_THREADS: usize = 4;

/// The number of files that a thread deletes at a time, which is also the number that one request to S3 can delete.
const FILES_OF_REQUEST: usize = 1000;

/// The number of local files that a thread deletes at a time.
const LOCAL_FILES: usize = 64;

impl Storage {
    /// Deletes a file. It is not an error if the file does not exist. If the call was interrupted, the file is still
    /// deleted, unless the store does not respond.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`, `Interrupted`.
    #[doc(hidden)]
    pub fn delete(&self, path: &str) -> Result<()> {
        let located = self.path(path)?;
        match &self.backend {
            Backend::Local => {
                local::delete(&self.place(path, &located)?).map_err(|error| self.io_error(path, error))
            }
            // If the store does not respond, waiting for each file in turn would take too long.
            Backend::Remote(_) if interrupt::is_hurried() => {
                Err(Error::from(interrupt::Interrupted).at_path(path).in_table(self.url()))
            }
            Backend::Remote(store) => match interrupt::shielded(|| store.delete(located)) {
                Err(failure) if !failure.is_missing() => Err(self.error(path, failure)),
                _ => Ok(()),
            },
        }
    }

    /// Deletes files in parallel. In stores that support it, one request deletes many files. It is not an error if a
    /// file does not exist. If the call is interrupted, it stops after the current requests, or after a few local
    /// files.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`, `Interrupted`. Some of the files may have been deleted already.
    #[doc(hidden)]
    pub fn delete_files(&self, paths: &[&str]) -> Result<()> {
        match &self.backend {
            Backend::Local => {
                let chunks: Vec<&[&str]> = paths.chunks(LOCAL_FILES).collect();
                let delete = |chunk: &&[&str]| {
                    interrupt::check()?;
                    chunk.iter().try_for_each(|path| self.delete(path))
                };
                parallel::each(&chunks, parallel::waiting(LOCAL_THREADS), delete).map(drop)
            }
            Backend::Remote(store) => {
                let chunks: Vec<&[&str]> = paths.chunks(FILES_OF_REQUEST).collect();
                let delete = |chunk: &&[&str]| {
                    let located: Vec<Path> =
                        chunk.iter().map(|path| self.path(path)).collect::<Result<_>>()?;
                    interrupt::check()?;
                    let first = chunk.first().copied().unwrap_or_default();
                    interrupt::shielded(|| store.delete_all(located))
                        .map_err(|failure| self.error(first, failure))
                };
                parallel::each(&chunks, self.most_readers(), delete).map(drop)
            }
        }
    }

    /// Removes a directory that contains no files, including its nested directories. Directories with files are kept,
    /// and stores without directories are not changed.
    ///
    /// # Errors
    /// `CorruptLog` for a path that is not valid in the store.
    #[doc(hidden)]
    pub fn delete_empty_directories(&self, directory: &str) -> Result<()> {
        if let Backend::Local = self.backend {
            write::remove_empty(&self.local_file(directory, &self.path(directory)?)?);
        }
        Ok(())
    }

    /// Removes the local directories in `directories` that are empty and have not changed since the time `before_ms`.
    /// Returns how many were removed, which is 0 for stores without directories.
    ///
    /// # Errors
    /// `CorruptLog` for a path that is not valid in the store.
    #[doc(hidden)]
    pub fn delete_old_empty_directories(&self, directories: &[String], before_ms: i64) -> Result<u64> {
        if !self.has_directories() {
            return Ok(0);
        }
        let mut removed = 0;
        for directory in directories {
            let path = self.local_file(directory, &self.path(directory)?)?;
            let is_old = |metadata: &fs::Metadata| {
                let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let modified_ms = modified.and_then(|since| i64::try_from(since.as_millis()).ok());
                metadata.is_dir() && modified_ms.is_some_and(|modified_ms| modified_ms < before_ms)
            };
            // A directory that is not empty is kept, and a directory that another process has removed is not an error.
            let found = fs::symlink_metadata(&path);
            if found.is_ok_and(|metadata| is_old(&metadata)) && fs::remove_dir(&path).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }
}
