//! Finds and reads files, either whole or by ranges.

use std::io;

use bytes::Bytes;
use object_store::path::Path;

use super::beneath::Refused;
use super::ranges::RemoteFile;
use super::{Backend, FileMeta, FileReader, Listed, Storage, list};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::LogPath;
use crate::runtime::interrupt;

impl Storage {
    /// Returns the size and the modification time of a file, or `None` if it does not exist. Its name in the result is
    /// `path`.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn head(&self, path: &str) -> Result<Option<FileMeta>> {
        if let Some(bytes) = self.held.get(path) {
            let size = bytes.len() as u64;
            return Ok(Some(FileMeta { name: path.to_owned(), size, modified_ms: 0, tag: None }));
        }
        match self.head_stored(path)? {
            None if self.recover_missing(path)? => self.head_stored(path),
            found => Ok(found),
        }
    }

    /// Returns the metadata of a file in the store, without asking a coordinator for the file.
    pub(super) fn head_stored(&self, path: &str) -> Result<Option<FileMeta>> {
        let located = self.path(path)?;
        match &self.backend {
            Backend::Local => {
                interrupt::check()?;
                list::head_local(&self.local_file(path, &located)?, path)
                    .map_err(|error| self.io_error(path, error))
            }
            Backend::Remote(store) => match store.head(located) {
                Ok(meta) => Ok(Some(FileMeta::of_store(path.to_owned(), &meta))),
                Err(failure) if failure.is_missing() => Ok(None),
                Err(failure) => Err(self.error(path, failure)),
            },
        }
    }

    /// Reads a whole file. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn get(&self, path: &str) -> Result<Option<Bytes>> {
        if let Some(bytes) = self.held.get(path) {
            return Ok(Some(bytes.clone()));
        }
        match self.get_stored(path)? {
            None if self.recover_missing(path)? => self.get_stored(path),
            found => Ok(found),
        }
    }

    pub(super) fn get_stored(&self, path: &str) -> Result<Option<Bytes>> {
        self.get_with_state(path).map(|found| found.map(|(bytes, _)| bytes))
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// `FileNotFound`, `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn read(&self, path: &str) -> Result<Bytes> {
        self.get(path)?.ok_or_else(|| {
            Error::new(ErrorKind::FileNotFound, "the file is not there").at_path(path).in_table(self.url())
        })
    }

    /// Reads a whole file. `listed` is its metadata from a listing: if the cache has the file in this state, reads it
    /// from the cache. If `listed` is `None`, always reads it from the store.
    ///
    /// # Errors
    /// The same as [`Storage::read`].
    pub(crate) fn read_listed(&self, path: &str, listed: Option<Listed>) -> Result<Bytes> {
        let (Some(cache), Some(listed)) = (&self.cache, listed) else { return self.read(path) };
        if self.held.contains_key(path) {
            return self.read(path);
        }
        let url = self.object_url(&self.path(path)?);
        if let Some(bytes) = cache.whole(url.clone(), listed) {
            return Ok(bytes);
        }
        let Some((bytes, state)) = self.get_with_state(path)? else { return self.read(path) };
        if let Some(e_tag) = state.e_tag() {
            cache.add_whole(url, e_tag, &bytes);
        }
        Ok(bytes)
    }

    /// Opens a file for ranged reads.
    ///
    /// # Errors
    /// `FileNotFound`, `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn open_file(&self, path: &str) -> Result<FileReader> {
        self.open_listed(path, None)
    }

    /// Opens a file for ranged reads. `listed` is its metadata from a listing, if there is one. Ranges that are in the
    /// cache are read from the cache.
    ///
    /// # Errors
    /// The same as [`Storage::open_file`].
    pub(crate) fn open_listed(&self, path: &str, listed: Option<Listed>) -> Result<FileReader> {
        self.open_path(path, &self.path(path)?, listed)
    }

    /// Opens the file at `path`, a decoded absolute path. The caller has checked that it is below a root that the user
    /// has allowed.
    ///
    /// # Errors
    /// The same as [`Storage::open_file`].
    #[doc(hidden)]
    pub fn open_absolute(&self, path: &str) -> Result<FileReader> {
        self.open_path(path, &self.absolute(path)?, None)
    }

    /// Opens the file at `path`. The table's path resolver must have allowed `path`.
    ///
    /// # Errors
    /// The same as [`Storage::open_file`], and `Unsupported` if the file is in another store than the table.
    #[doc(hidden)]
    pub fn open_log_path(&self, path: &LogPath) -> Result<FileReader> {
        match path {
            LogPath::Relative(path) => self.open_file(path),
            LogPath::Absolute(path)
                if path.scheme() == self.url.scheme() && path.authority() == self.url.authority() =>
            {
                self.open_absolute(path.path())
            }
            LogPath::Absolute(path) => Err(Error::unsupported(format!(
                "the file is in another store than the table: {}://{}",
                path.scheme(),
                path.authority()
            ))),
        }
    }

    /// Returns whether the file at `path` exists. The table's path resolver must have allowed `path`.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`, and `Unsupported` if the file is in another store than the table.
    pub(crate) fn has_log_path(&self, path: &LogPath) -> Result<bool> {
        Ok(self.size_of_log_path(path)?.is_some())
    }

    /// Returns the size in bytes of the file at `path`, or `None` if the file does not exist. The table's path resolver
    /// must have allowed `path`.
    ///
    /// # Errors
    /// Returns the same errors as [`Storage::has_log_path`].
    pub(crate) fn size_of_log_path(&self, path: &LogPath) -> Result<Option<u64>> {
        match path {
            LogPath::Relative(path) => Ok(self.head(path)?.map(|file| file.size)),
            LogPath::Absolute(_) => match self.open_log_path(path) {
                Ok(file) => Ok(Some(file.size())),
                Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    fn open_path(&self, name: &str, path: &Path, listed: Option<Listed>) -> Result<FileReader> {
        interrupt::check()?;
        match &self.backend {
            Backend::Local => FileReader::open_local(&self.place(name, path)?).map_err(|error| {
                if Refused::of(&error).is_some() {
                    return self.io_error(name, error);
                }
                let (kind, message) = match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                        (ErrorKind::FileNotFound, "the file is not there")
                    }
                    io::ErrorKind::PermissionDenied => {
                        (ErrorKind::PermissionDenied, "permission to read the file was denied")
                    }
                    _ => (ErrorKind::Unavailable, "the file could not be opened"),
                };
                let located = Error::new(kind, message).at_path(name).in_table(self.url());
                if kind == ErrorKind::FileNotFound { located } else { located.with_source(error) }
            }),
            Backend::Remote(store) => {
                RemoteFile::open(self, store, name, path, listed).map(FileReader::remote)
            }
        }
    }
}
