//! The only I/O: a table's root in an object store.
//!
//! [`Storage`] speaks of files by their decoded path relative to the table's root
//! (`_delta_log/00000000000000000007.json`), and of everything else in the terms of [`object_store`]. Its
//! calls block; whoever is asynchronous calls them from a blocking task.
//!
//! - A create is put-if-absent and never retried here: a retry of its own put would be taken for a defeat
//!   ([`PutOutcome`]).
//! - "Not there" is said only when the store said so. Every other failure is `Unavailable` or
//!   `PermissionDenied`.
//! - On a local file system a finished put has synced the file and its directory.

mod list;
mod location;
mod read;
mod sync;
mod write;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use futures::executor::block_on;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use url::Url;

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::LogPath;

pub use location::parse_location;
pub use read::FileReader;
pub use write::FileWriter;

/// The hint for a file that the log refers to and that does not exist. Spark's errors repeat it.
pub(crate) const MISSING_FILE_HINT: &str = "the log refers to this file, but it was vacuumed (if this is an old \
                                            version) or deleted by hand: read a newer version, or restore the file";

/// The root of a table in a store. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    url: Arc<Url>,
    base: Path,
    store: Arc<dyn ObjectStore>,
    local: bool,
    /// Files that are read from here and not from the store.
    held: Arc<HashMap<String, Bytes>>,
}

/// A file as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMeta {
    /// Decoded path relative to the directory that was listed.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Milliseconds since the epoch.
    pub modified_ms: i64,
    /// A number that changes when the file is replaced: made of the entity tag that the store gives, or of the
    /// nanoseconds of a local file's time. `None` where there is neither.
    pub tag: Option<u64>,
}

impl FileMeta {
    fn of_store(name: String, meta: &ObjectMeta) -> Self {
        let tag = |e_tag: &String| {
            let mut hasher = DefaultHasher::new();
            // Some stores quote the tag in one answer and not in the other.
            e_tag.trim_start_matches("W/").trim_matches('"').hash(&mut hasher);
            hasher.finish()
        };
        Self {
            name,
            size: meta.size,
            modified_ms: meta.last_modified.timestamp_millis(),
            tag: meta.e_tag.as_ref().map(tag),
        }
    }

    /// Returns whether `other`, a file of the same path, is the same object and not one that replaced it.
    pub(crate) fn is_same_object(&self, other: &Self) -> bool {
        self.size == other.size
            && match (self.tag, other.tag) {
                (Some(own), Some(other)) => own == other,
                _ => self.modified_ms == other.modified_ms,
            }
    }
}

/// What became of a put-if-absent.
#[derive(Debug)]
pub enum PutOutcome {
    /// The file is there, with our bytes, and durable.
    Created,
    /// Somebody's file was there before (or our own, if an earlier answer was lost).
    AlreadyExists,
    /// The store did not say: the file may be there or not. Read it back before you decide.
    Unknown(Error),
}

impl Storage {
    /// Opens the location `uri`: a path, or a URL with the scheme `file`. Nothing is read or created.
    ///
    /// # Errors
    /// `Unsupported` for a scheme or an option that is not known, `InvalidArgument` for a location that is
    /// none.
    pub fn open<'a>(uri: &str, options: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let url = parse_location(uri)?;
        if url.scheme() != "file" {
            return Err(Error::unsupported(format!("the store '{}' is not supported yet", url.scheme()))
                .in_table(location::redacted(&url))
                .with_hint("use a local path or a file:// URL"));
        }
        if let Some((name, _)) = options.into_iter().next() {
            return Err(Error::invalid_argument(format!(
                "the storage option '{name}' is unknown for local files"
            ))
            .in_table(url.as_str()));
        }
        let store = Arc::new(object_store::local::LocalFileSystem::new().with_fsync(true));
        Self::build(url, store, true)
    }

    /// A table's root `url` in a store of the caller's. The path of `url` is the path in the store.
    ///
    /// # Errors
    /// `InvalidArgument` if the path of `url` cannot be a path in a store.
    pub fn with_store(url: Url, store: Arc<dyn ObjectStore>) -> Result<Self> {
        Self::build(url, store, false)
    }

    fn build(mut url: Url, store: Arc<dyn ObjectStore>, local: bool) -> Result<Self> {
        let trimmed = url.path().trim_end_matches('/').to_owned();
        url.set_path(&trimmed);
        let base = Path::from_url_path(url.path()).map_err(|error| {
            Error::invalid_argument("the location is not a path")
                .in_table(location::redacted(&url))
                .with_source(error)
        })?;
        Ok(Self { url: Arc::new(url), base, store, local, held: Arc::default() })
    }

    /// The same root, where each of `files`, path and bytes, is read as if the store had it. Listings do not
    /// show them.
    #[must_use]
    #[doc(hidden)]
    pub fn holding(&self, files: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        let mut held = HashMap::clone(&self.held);
        held.extend(files);
        Self { held: Arc::new(held), ..self.clone() }
    }

    /// The table's root, without user information, query and trailing slash.
    pub fn url(&self) -> String {
        location::redacted(&self.url)
    }

    /// The table's root as a URL.
    #[doc(hidden)]
    pub fn root(&self) -> &Url {
        &self.url
    }

    /// The URL of the file at the decoded relative path `path`.
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
            Error::corrupt_log("the path cannot be a file of the store")
                .at_path(relative)
                .in_table(self.url())
                .with_source(error)
        })
    }

    fn absolute(&self, path: &str) -> Result<Path> {
        Path::parse(path).map_err(|error| {
            Error::corrupt_log("the path cannot be a file of the store")
                .at_path(path)
                .in_table(self.url())
                .with_source(error)
        })
    }

    fn error(&self, path: &str, error: object_store::Error) -> Error {
        let (kind, message) = match &error {
            object_store::Error::NotFound { .. } => (ErrorKind::FileNotFound, "the file is not there"),
            // Nothing can be below what is a file.
            _ if io_kind(&error) == Some(std::io::ErrorKind::NotADirectory) => {
                (ErrorKind::FileNotFound, "the file is not there")
            }
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                (ErrorKind::PermissionDenied, "the store refused access")
            }
            _ if io_kind(&error) == Some(std::io::ErrorKind::PermissionDenied) => {
                (ErrorKind::PermissionDenied, "the store refused access")
            }
            _ => (ErrorKind::Unavailable, "the store failed"),
        };
        let error_with_place = Error::new(kind, message).at_path(path).in_table(self.url());
        if kind == ErrorKind::FileNotFound { error_with_place } else { error_with_place.with_source(error) }
    }

    /// The files below the directory `directory` whose path relative to it is greater than `after` in byte
    /// order, sorted so. Deeper directories are walked. A directory that is not there has no files.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn list_after(&self, directory: &str, after: &str) -> Result<Vec<FileMeta>> {
        self.list(directory, after, list::Depth::All)
    }

    /// As [`Storage::list_after`], without the files of deeper directories.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn list_directory_after(&self, directory: &str, after: &str) -> Result<Vec<FileMeta>> {
        self.list(directory, after, list::Depth::One)
    }

    fn list(&self, directory: &str, after: &str, depth: list::Depth) -> Result<Vec<FileMeta>> {
        let prefix = self.path(directory)?;
        if self.local {
            let failed = |source: std::io::Error| {
                self.error(
                    directory,
                    object_store::Error::Generic { store: "LocalFileSystem", source: source.into() },
                )
            };
            let path = object_store::local::LocalFileSystem::new()
                .path_to_filesystem(&prefix)
                .map_err(|error| self.error(directory, error))?;
            return list::list_local(&path, after, depth).map_err(failed);
        }
        let offset =
            if after.is_empty() { prefix.clone() } else { self.path(&format!("{directory}/{after}"))? };
        let skip = prefix.as_ref().len() + 1;
        let listing = block_on(self.store.list_with_offset(Some(&prefix), &offset).try_collect::<Vec<_>>());
        let listing = listing.map_err(|error| self.error(directory, error));
        let found = match listing {
            Err(error) if error.kind() == ErrorKind::FileNotFound => Vec::new(),
            listing => listing?,
        };
        let mut files: Vec<FileMeta> = found
            .into_iter()
            .filter_map(|meta| {
                let name = meta.location.as_ref().get(skip..)?.to_owned();
                Some(FileMeta::of_store(name, &meta))
            })
            .filter(|file: &FileMeta| depth == list::Depth::All || !file.name.contains('/'))
            .collect();
        files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// Size and time of a file, or `None` if the store says that it is not there. The name is `path`.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn head(&self, path: &str) -> Result<Option<FileMeta>> {
        if let Some(bytes) = self.held.get(path) {
            let size = bytes.len() as u64;
            return Ok(Some(FileMeta { name: path.to_owned(), size, modified_ms: 0, tag: None }));
        }
        let located = self.path(path)?;
        if self.local {
            let file = object_store::local::LocalFileSystem::new()
                .path_to_filesystem(&located)
                .map_err(|error| self.error(path, error))?;
            return list::head_local(&file, path).map_err(|source| {
                self.error(
                    path,
                    object_store::Error::Generic { store: "LocalFileSystem", source: source.into() },
                )
            });
        }
        match block_on(self.store.head(&located)) {
            Ok(meta) => Ok(Some(FileMeta::of_store(path.to_owned(), &meta))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.error(path, error)),
        }
    }

    /// The whole file, or `None` if the store says that it is not there.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn get(&self, path: &str) -> Result<Option<Bytes>> {
        if let Some(bytes) = self.held.get(path) {
            return Ok(Some(bytes.clone()));
        }
        match block_on(async {
            self.store
                .get(&self.path(path)?)
                .await
                .map_err(|e| self.error(path, e))?
                .bytes()
                .await
                .map_err(|e| self.error(path, e))
        }) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The whole file.
    ///
    /// # Errors
    /// `FileNotFound`, `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn read(&self, path: &str) -> Result<Bytes> {
        self.get(path)?.ok_or_else(|| {
            Error::new(ErrorKind::FileNotFound, "the file is not there").at_path(path).in_table(self.url())
        })
    }

    /// Opens a file for ranged reads.
    ///
    /// # Errors
    /// `FileNotFound`, `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn open_file(&self, path: &str) -> Result<FileReader> {
        self.open_path(path, &self.path(path)?)
    }

    /// Opens the file at the decoded absolute path `path`, which the caller has checked to be within the
    /// roots that the user allowed.
    ///
    /// # Errors
    /// As [`Storage::open_file`].
    #[doc(hidden)]
    pub fn open_absolute(&self, path: &str) -> Result<FileReader> {
        self.open_path(path, &self.absolute(path)?)
    }

    /// Opens the file at `path`, which the resolver of the table's paths has allowed.
    ///
    /// # Errors
    /// As [`Storage::open_file`]; `Unsupported` if the file lies in another store than the table.
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
                "the file lies in another store than the table: {}://{}",
                path.scheme(),
                path.authority()
            ))),
        }
    }

    fn open_path(&self, name: &str, path: &Path) -> Result<FileReader> {
        if self.local {
            let file = object_store::local::LocalFileSystem::new()
                .path_to_filesystem(path)
                .map_err(|error| self.error(name, error))?;
            return FileReader::open_local(&file).map_err(|error| {
                let (kind, message) = match error.kind() {
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                        (ErrorKind::FileNotFound, "the file is not there")
                    }
                    std::io::ErrorKind::PermissionDenied => {
                        (ErrorKind::PermissionDenied, "the file may not be read")
                    }
                    _ => (ErrorKind::Unavailable, "the file could not be opened"),
                };
                let located = Error::new(kind, message).at_path(name).in_table(self.url());
                if kind == ErrorKind::FileNotFound { located } else { located.with_source(error) }
            });
        }
        let bytes = block_on(async { self.store.get(path).await?.bytes().await })
            .map_err(|error| self.error(name, error))?;
        Ok(FileReader::in_memory(bytes))
    }

    /// Writes a file, replacing one that is there. When it returns, the file is durable.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        block_on(self.store.put(&self.path(path)?, bytes.into()))
            .map(drop)
            .map_err(|error| self.error(path, error))
    }

    /// Creates a file unless there is one: the primitive under every commit. Never retried.
    ///
    /// # Errors
    /// `PermissionDenied` when the store refused the request, `Unavailable` when there is no place for the
    /// file: nothing was written.
    #[doc(hidden)]
    pub fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<PutOutcome> {
        let options = PutOptions { mode: PutMode::Create, ..Default::default() };
        match block_on(self.store.put_opts(&self.path(path)?, bytes.into(), options)) {
            Ok(_) => Ok(PutOutcome::Created),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(PutOutcome::AlreadyExists),
            Err(error) => match self.error(path, error) {
                // There is no directory that the file could be in.
                error if self.local && error.kind() == ErrorKind::FileNotFound => {
                    let refused =
                        Error::new(ErrorKind::Unavailable, "the file could not be created").at_path(path);
                    Err(refused.in_table(self.url()).with_hint("check the table's location"))
                }
                // A refusal does not mean that there is no file: the operating system may refuse to sync the
                // directory that already contains it, and a client may have repeated a put whose first answer
                // was lost.
                error => Ok(PutOutcome::Unknown(error)),
            },
        }
    }

    /// Deletes a file; one that is not there is no error.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn delete(&self, path: &str) -> Result<()> {
        match block_on(self.store.delete(&self.path(path)?)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error(path, error)),
        }
    }

    /// Makes files durable that another program has written, with the directories that lead to them. Stores
    /// other than local files have done so.
    ///
    /// # Errors
    /// `Unavailable`, with the file.
    #[doc(hidden)]
    pub fn sync<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Result<()> {
        if !self.local {
            return Ok(());
        }
        let files = object_store::local::LocalFileSystem::new();
        let local =
            |path: &str| files.path_to_filesystem(&self.path(path)?).map_err(|error| self.error(path, error));
        let paths = paths.into_iter().map(local).collect::<Result<Vec<_>>>()?;
        let root = self
            .url
            .to_file_path()
            .map_err(|()| Error::invalid_argument("the location is not a path").in_table(self.url()))?;
        sync::sync_files(&root, &paths).map_err(|(path, error)| {
            Error::new(ErrorKind::Unavailable, "the file could not be made durable")
                .at_path(path.display().to_string())
                .in_table(self.url())
                .with_source(error)
        })
    }

    /// Removes a directory below which no file is left; where the store has no directories, or one holds a
    /// file, nothing happens.
    ///
    /// # Errors
    /// `InvalidArgument` for a path that cannot be.
    #[doc(hidden)]
    pub fn delete_empty_directories(&self, directory: &str) -> Result<()> {
        if self.local {
            let located = self.path(directory)?;
            let path = object_store::local::LocalFileSystem::new()
                .path_to_filesystem(&located)
                .map_err(|error| self.error(directory, error))?;
            write::remove_empty(&path);
        }
        Ok(())
    }

    /// Starts a new data file, which must not exist; it is complete and durable when [`FileWriter::finish`]
    /// has returned.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn create_file(&self, path: &str) -> Result<FileWriter> {
        let located = self.path(path)?;
        if !self.local {
            return Ok(FileWriter::in_memory(self.clone(), path));
        }
        let file = object_store::local::LocalFileSystem::new()
            .path_to_filesystem(&located)
            .map_err(|error| self.error(path, error))?;
        FileWriter::create_local(&file, path).map_err(|error| {
            let kind = if error.kind() == std::io::ErrorKind::PermissionDenied {
                ErrorKind::PermissionDenied
            } else {
                ErrorKind::Unavailable
            };
            Error::new(kind, "the file could not be created")
                .at_path(path)
                .in_table(self.url())
                .with_source(error)
        })
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Storage").field(&self.url()).finish()
    }
}

/// The operating system's word under an error of the local store, whose own enum has no case for it.
fn io_kind(error: &object_store::Error) -> Option<std::io::ErrorKind> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = source {
        if let Some(io) = current.downcast_ref::<std::io::Error>() {
            return Some(io.kind());
        }
        source = current.source();
    }
    None
}
