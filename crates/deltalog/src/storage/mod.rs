//! The I/O layer: a table's root in an object store.
//!
//! [`Storage`] names files by their decoded path relative to the table's root, such as
//! `_delta_log/00000000000000000007.json`. All calls block; asynchronous callers use a blocking task.
//!
//! - Creating a file is put-if-absent and is never retried: a retry that finds the file of the first try would
//!   be mistaken for a conflict ([`PutOutcome`]).
//! - A file is reported as missing only if the store says so. Every other failure is `Unavailable` or
//!   `PermissionDenied`.
//! - On a local file system, a put syncs the file and its directory before it returns. Only commits and data files
//!   create directories, see `beside`.

mod answers;
mod beneath;
mod beside;
mod budget;
mod cache;
mod check;
mod chunks;
#[cfg(feature = "_cloud")]
mod cloud;
mod coordinated;
#[cfg(test)]
mod coordinated_tests;
mod coordinator;
mod credentials;
mod delete;
mod driver;
mod errors;
mod hadoop;
mod list;
mod local;
mod location;
mod markers;
mod names;
mod open;
mod parts;
mod ranges;
#[cfg(test)]
#[cfg(feature = "s3")]
mod ranges_tests;
mod read;
mod remote;
mod replace;
mod runtime;
mod surroundings;
mod sync;
mod upload;
mod walk;
mod write;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectMeta, PutPayload};
use url::Url;

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::LogPath;
use crate::runtime::row_bytes::BatchBytes;
use crate::runtime::{interrupt, parallel};

use beneath::{Place, Refused};
use cache::Cache;
pub use cache::{CacheStatistics, Listed};
pub(crate) use chunks::column_ranges;
use coordinated::Coordination;
pub use coordinator::{CommitCoordinator, CoordinatorEntry};
pub use credentials::{CredentialProvider, Credentials};
pub use location::parse_location;
use names::Unpublished;
use ranges::RemoteFile;
pub use read::FileReader;
use remote::Remote;
pub use replace::FileState;
pub(crate) use surroundings::Surroundings;
pub use write::FileWriter;

/// The hint for a file that the log refers to and that does not exist. Spark's errors repeat it.
pub(crate) const MISSING_FILE_HINT: &str = concat!(
    "the log refers to this file, but it was vacuumed (if this is an old version) or deleted by hand: ",
    "read a newer version, or restore the file"
);

/// The number of files of a remote store that are read at the same time, unless an option says otherwise.
const REQUESTS: usize = 16;

/// The root of a table in a store. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    url: Arc<Url>,
    base: Path,
    backend: Backend,
    /// Files that are read from memory instead of the store.
    held: Arc<HashMap<String, Bytes>>,
    /// Who decides the commits, if it is not the store.
    coordination: Option<Arc<Coordination>>,
    /// The cache on the local disk, if the user wants one.
    cache: Option<Arc<Cache>>,
    /// How many rows of data files are a batch.
    batch_bytes: BatchBytes,
}

/// Where the files of a table are.
#[derive(Clone)]
enum Backend {
    Local,
    Remote(Remote),
}

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMeta {
    /// The decoded path relative to the listed directory.
    pub name: String,
    /// The size in bytes.
    pub size: u64,
    /// The modification time in milliseconds since the epoch.
    pub modified_ms: i64,
    /// A number that changes when the file is replaced: derived from the entity tag of the store, or from the
    /// modification time of a local file in nanoseconds. `None` if neither is known.
    pub tag: Option<u64>,
}

impl FileMeta {
    fn of_store(name: String, meta: &ObjectMeta) -> Self {
        Self {
            name,
            size: meta.size,
            modified_ms: meta.last_modified.timestamp_millis(),
            tag: meta.e_tag.as_deref().map(cache::tag),
        }
    }

    /// Returns what the cache recognizes the file by, if the store has given it an entity tag.
    pub(crate) fn listed(&self) -> Option<Listed> {
        self.tag.map(|tag| Listed { size: self.size, tag })
    }

    /// Returns whether `other`, a file with the same path, is the same object and not a replacement of it.
    pub(crate) fn is_same_object(&self, other: &Self) -> bool {
        self.size == other.size
            && match (self.tag, other.tag) {
                (Some(own), Some(other)) => own == other,
                _ => self.modified_ms == other.modified_ms,
            }
    }
}

/// The outcome of a put-if-absent.
#[derive(Debug)]
pub enum PutOutcome {
    /// The file was created with the given bytes and is durable.
    Created,
    /// A file already existed. It may be our own if an earlier response was lost.
    AlreadyExists,
    /// The outcome is unknown: the file may exist or not. Read it back to find out.
    Unknown(Error),
}

impl Storage {
    /// Returns the requests to the cache on the local disk through this value and its clones; `None` without a cache.
    pub fn cache_statistics(&self) -> Option<CacheStatistics> {
        self.cache.as_ref().map(|cache| cache.statistics())
    }

    /// Returns the URL of an object for the cache.
    fn object_url(&self, located: &Path) -> String {
        format!("{}://{}/{located}", self.url.scheme(), self.url.authority())
    }

    /// Returns the same root with `files`, pairs of path and bytes, which are read as if the store had them.
    /// Listings do not show them.
    #[must_use]
    #[doc(hidden)]
    pub fn holding(&self, files: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        let mut held = HashMap::clone(&self.held);
        held.extend(files);
        Self { held: Arc::new(held), ..self.clone() }
    }

    /// Returns the number of threads that read or decode `files` at the same time. With a remote store most of them
    /// wait for answers.
    pub(crate) fn readers(&self, files: usize) -> usize {
        self.most_readers().min(files)
    }

    /// Returns the number of threads for any number of files.
    pub(crate) fn most_readers(&self) -> usize {
        match &self.backend {
            Backend::Remote(store) if store.waits() => match store.reads().concurrency {
                Some(files) => parallel::exactly(files),
                None => parallel::waiting(REQUESTS),
            },
            _ => parallel::cores(),
        }
    }

    /// Returns how many rows of data files are a batch.
    pub(crate) fn batch_bytes(&self) -> BatchBytes {
        self.batch_bytes
    }

    /// Limits batches of rows to about `bytes` bytes, and arrays to 64 times that size, so that a test of wide rows
    /// needs only a few rows.
    #[doc(hidden)]
    #[must_use]
    pub fn with_batch_bytes(self, bytes: usize) -> Self {
        Self { batch_bytes: BatchBytes::of(bytes), ..self }
    }

    /// Returns whether a file can only be created in a directory that exists.
    pub(crate) fn has_directories(&self) -> bool {
        matches!(self.backend, Backend::Local)
    }

    /// Returns whether reading means waiting for a network.
    pub(crate) fn waits(&self) -> bool {
        matches!(&self.backend, Backend::Remote(store) if store.waits())
    }

    /// Returns two numbers that identify the store among the open ones. Stores differ by account, options, credentials
    /// and coordinator of commits. All local files are one store.
    #[doc(hidden)]
    pub fn store_id(&self) -> (usize, usize) {
        let store = match &self.backend {
            Backend::Local => 0,
            Backend::Remote(store) => store.id(),
        };
        (store, self.coordination.as_deref().map_or(0, Coordination::id))
    }

    /// Returns the URL of the table's root, without user information, query and trailing slash.
    pub fn url(&self) -> String {
        location::redacted(&self.url)
    }

    /// Returns the URL of the table's root.
    #[doc(hidden)]
    pub fn root(&self) -> &Url {
        &self.url
    }

    /// Returns the URL of the file at the decoded relative path `path`.
    #[doc(hidden)]
    pub fn file_url(&self, path: &str) -> String {
        location::join(&self.url, path)
    }

    fn path(&self, relative: &str) -> Result<Path> {
        let path = if self.base.as_ref().is_empty() {
            Path::parse(relative)
        } else {
            Path::parse(format!("{}/{relative}", self.base))
        };
        path.map_err(|error| {
            Error::corrupt_log("the path is not valid in the store")
                .at_path(relative)
                .in_table(self.url())
                .with_source(error)
        })
    }

    fn absolute(&self, path: &str) -> Result<Path> {
        Path::parse(path).map_err(|error| {
            Error::corrupt_log("the path is not valid in the store")
                .at_path(path)
                .in_table(self.url())
                .with_source(error)
        })
    }

    /// Returns the local path of a path of the store.
    fn place(&self, path: &str, located: &Path) -> Result<Place> {
        let file = |path_of: &Path| local::file(path_of).map_err(|error| self.error(path, error));
        Ok(Place::new(file(located)?, &file(&self.base)?))
    }

    /// Returns the local file or directory at a path of the store, for what creates or lists it.
    fn local_file(&self, path: &str, located: &Path) -> Result<PathBuf> {
        let place = self.place(path, located)?;
        place.path().map(std::path::Path::to_owned).map_err(|error| self.io_error(path, error))
    }

    /// Returns the size and modification time of a file, or `None` if it does not exist. Its name is `path`.
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

    /// Does the same for the file in the store, without asking a coordinator.
    fn head_stored(&self, path: &str) -> Result<Option<FileMeta>> {
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

    fn get_stored(&self, path: &str) -> Result<Option<Bytes>> {
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

    /// Reads a whole file that a listing has shown, from the cache if it has it. Without `listed`, it reads from the
    /// store.
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

    /// Opens a file that a listing has shown for ranged reads, which use the cache for the parts that it has.
    ///
    /// # Errors
    /// The same as [`Storage::open_file`].
    pub(crate) fn open_listed(&self, path: &str, listed: Option<Listed>) -> Result<FileReader> {
        self.open_path(path, &self.path(path)?, listed)
    }

    /// Opens the file at the decoded absolute path `path`. The caller has checked that it is within the roots
    /// that the user allowed.
    ///
    /// # Errors
    /// The same as [`Storage::open_file`].
    #[doc(hidden)]
    pub fn open_absolute(&self, path: &str) -> Result<FileReader> {
        self.open_path(path, &self.absolute(path)?, None)
    }

    /// Opens the file at `path`, which the resolver of the table's paths has allowed.
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

    /// Returns whether the file at `path` exists, which the resolver of the table's paths has allowed.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`, and `Unsupported` if the file is in another store than the table.
    pub(crate) fn has_log_path(&self, path: &LogPath) -> Result<bool> {
        Ok(self.size_of_log_path(path)?.is_some())
    }

    /// Returns the size of the file at `path` in bytes, which the resolver of the table's paths has allowed; `None` if
    /// it does not exist.
    ///
    /// # Errors
    /// As [`Storage::has_log_path`].
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

    /// Creates a file unless it exists. Every commit is based on this operation, which is never retried.
    ///
    /// # Errors
    /// `CorruptLog` for a path that is not valid in the store; `Unavailable` or `PermissionDenied` if the
    /// file could not be written at all; `Unsupported` for a store that would replace files. Every failure after
    /// which the file may exist is [`PutOutcome::Unknown`].
    #[doc(hidden)]
    pub fn put_if_absent(&self, path: &str, bytes: impl Into<PutPayload>) -> Result<PutOutcome> {
        self.put_if_absent_tagged(path, bytes).map(|(outcome, _)| outcome)
    }

    /// Does the same, and returns the tag that a listing shows for a file that was created, if the store returned it.
    ///
    /// # Errors
    /// As [`Storage::put_if_absent`].
    pub(crate) fn put_if_absent_tagged(
        &self,
        path: &str,
        bytes: impl Into<PutPayload>,
    ) -> Result<(PutOutcome, Option<u64>)> {
        let bytes = bytes.into();
        if let Some(outcome) = self.put_coordinated(path, &bytes)? {
            return Ok((outcome, None));
        }
        if let Backend::Remote(store) = &self.backend {
            self.ensure_checked(store)?;
        }
        self.put_tagged(path, bytes)
    }

    fn put_unchecked(&self, path: &str, bytes: impl Into<PutPayload>) -> Result<PutOutcome> {
        self.put_tagged(path, bytes.into()).map(|(outcome, _)| outcome)
    }

    fn put_tagged(&self, path: &str, bytes: PutPayload) -> Result<(PutOutcome, Option<u64>)> {
        let located = self.path(path)?;
        let store = match &self.backend {
            Backend::Local => {
                let created = local::create(&self.local_file(path, &located)?, &bytes);
                let outcome = match created.map_err(|error| self.not_written(path, error))?.publish() {
                    Ok(true) => PutOutcome::Created,
                    Ok(false) => PutOutcome::AlreadyExists,
                    Err(Unpublished::Refused(error)) => return Err(self.not_written(path, error)),
                    // The operating system may refuse to sync the directory that already contains the file.
                    Err(Unpublished::Unknown(error)) => PutOutcome::Unknown(self.io_error(path, error)),
                };
                return Ok((outcome, None));
            }
            Backend::Remote(store) => store,
        };
        match store.create(located, bytes) {
            Ok(e_tag) => Ok((PutOutcome::Created, e_tag.as_deref().map(cache::tag))),
            Err(failure) if failure.is_existing() => Ok((PutOutcome::AlreadyExists, None)),
            Err(failure) if failure.is_unsent() => Err(self.error(path, failure)),
            // The same holds for the answer of a store, if the caller's own client has repeated a put whose first
            // response was lost.
            Err(failure) => Ok((PutOutcome::Unknown(self.error(path, failure)), None)),
        }
    }

    /// Deletes a file. It is not an error if the file does not exist. An interrupted call still deletes what it has
    /// written, unless the store is silent.
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
            // Otherwise each file would have to be waited for in turn.
            Backend::Remote(_) if interrupt::is_hurried() => {
                Err(Error::from(interrupt::Interrupted).at_path(path).in_table(self.url()))
            }
            Backend::Remote(store) => match interrupt::shielded(|| store.delete(located)) {
                Err(failure) if !failure.is_missing() => Err(self.error(path, failure)),
                _ => Ok(()),
            },
        }
    }

    /// Makes files that another program has written durable, including their directories. Stores other than
    /// local file systems have already done so; there, one of the files is looked for, because the other program may
    /// have written to a different store, with the same name at another endpoint.
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
        sync::sync_files(&root, &paths).map_err(|(path, error)| {
            let (kind, what) = match error.kind() {
                io::ErrorKind::NotFound => (ErrorKind::FileNotFound, "the file does not exist"),
                _ => (ErrorKind::Unavailable, "the file could not be made durable"),
            };
            Error::new(kind, what).at_path(path.display().to_string()).in_table(self.url()).with_source(error)
        })
    }

    /// As [`Storage::sync`], for files that the tasks of an engine report to have written.
    ///
    /// # Errors
    /// The same, with a hint for locations that mean another place to the tasks.
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

    /// Removes a directory that contains no files, and its nested directories. Directories with files are kept,
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

    /// Creates a file, which must not exist yet, and its directories. The file is complete and durable when
    /// [`FileWriter::finish`] returns.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn create_file(&self, path: &str) -> Result<FileWriter> {
        self.write_file(path, FileWriter::create_local)
    }

    fn write_file(
        &self,
        path: &str,
        local: impl FnOnce(&std::path::Path, &str) -> std::io::Result<FileWriter>,
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

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Storage").field(&self.url()).finish()
    }
}
