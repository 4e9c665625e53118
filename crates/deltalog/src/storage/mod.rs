//! All I/O of the crate: reads and writes the files below a table's root, in a local directory or in a remote store.
//!
//! [`Storage`] names a file by its decoded path relative to the table's root, such as
//! `_delta_log/00000000000000000007.json`. All calls block, so asynchronous callers must use a blocking task.
//!
//! - A put-if-absent is never retried. If the first try created the file but its response was lost, a retry would find
//!   the file and report a conflict ([`PutOutcome`]).
//! - A file is only reported as missing if the store says so. Every other failure is reported as `Unavailable` or
//!   `PermissionDenied`.
//! - On a local file system, a put syncs the file and its directory before it returns. Files that accompany a commit
//!   are only written to existing directories (see `beside`).

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
mod get;
mod hadoop;
mod list;
mod local;
mod location;
mod lock;
mod markers;
mod meta;
mod names;
mod open;
mod parts;
mod put;
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
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use url::Url;

use crate::error::{Error, Result};
use crate::runtime::parallel;
use crate::runtime::row_bytes::BatchBytes;

use beneath::Place;
use cache::Cache;
pub use cache::{CacheStatistics, Listed};
pub(crate) use chunks::column_ranges;
use coordinated::Coordination;
pub use coordinator::{CommitCoordinator, CoordinatorEntry};
pub use credentials::{CredentialProvider, Credentials};
pub use location::parse_location;
pub use meta::FileMeta;
pub use put::PutOutcome;
pub use read::FileReader;
use remote::Remote;
pub use replace::{FileState, Replacement};
pub(crate) use surroundings::Surroundings;
pub use write::FileWriter;

/// The hint for a file that does not exist although the log refers to it. Spark's errors use the same text.
pub(crate) const MISSING_FILE_HINT: &str = concat!(
    "the log refers to this file, but it was vacuumed (if this is an old version) or deleted by hand: ",
    "read a newer version, or restore the file"
);

/// The number of files that are read from a remote store at the same time, unless an option sets it.
const REQUESTS: usize = 16;

/// The root of a table in a store. It is cheap to clone.
#[derive(Clone)]
pub struct Storage {
    url: Arc<Url>,
    base: Path,
    backend: Backend,
    /// Files that are kept in memory and read instead of the store.
    held: Arc<HashMap<String, Bytes>>,
    /// The coordinator that decides commits, if the store cannot decide them itself.
    coordination: Option<Arc<Coordination>>,
    /// The cache on the local disk, if the user has configured one.
    cache: Option<Arc<Cache>>,
    /// The limits for the size of batches of rows.
    batch_bytes: BatchBytes,
}

/// The place where the files of a table are stored.
#[derive(Clone)]
enum Backend {
    Local,
    Remote(Remote),
}

impl Storage {
    /// Returns how often this value and its clones have requested data from the cache on the local disk, and how much.
    /// Returns `None` if there is no cache.
    pub fn cache_statistics(&self) -> Option<CacheStatistics> {
        self.cache.as_ref().map(|cache| cache.statistics())
    }

    /// Returns the URL by which the cache identifies an object.
    fn object_url(&self, located: &Path) -> String {
        format!("{}://{}/{located}", self.url.scheme(), self.url.authority())
    }

    /// Returns the same root with additional `files`, each given by its path and its content. They can be read as if
    /// they were in the store, but listings do not show them.
    #[must_use]
    #[doc(hidden)]
    pub fn holding(&self, files: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        let mut held = HashMap::clone(&self.held);
        held.extend(files);
        Self { held: Arc::new(held), ..self.clone() }
    }

    /// Returns the number of threads that read or decode `files` files at the same time. With a remote store, most of
    /// them wait for responses.
    pub(crate) fn readers(&self, files: usize) -> usize {
        self.most_readers().min(files)
    }

    /// Returns the number of threads for an unknown number of files.
    pub(crate) fn most_readers(&self) -> usize {
        match &self.backend {
            Backend::Remote(store) if store.waits() => match store.reads().concurrency {
                Some(files) => parallel::exactly(files),
                None => parallel::waiting(REQUESTS),
            },
            _ => parallel::cores(),
        }
    }

    /// Returns the limits for the size of batches of rows.
    pub(crate) fn batch_bytes(&self) -> BatchBytes {
        self.batch_bytes
    }

    /// Limits batches of rows to about `bytes` bytes, and arrays to 64 times as much, so that tests of wide rows need
    /// only a few rows.
    #[doc(hidden)]
    #[must_use]
    pub fn with_batch_bytes(self, bytes: usize) -> Self {
        Self { batch_bytes: BatchBytes::of(bytes), ..self }
    }

    /// Returns whether a file can only be created in an existing directory.
    pub(crate) fn has_directories(&self) -> bool {
        matches!(self.backend, Backend::Local)
    }

    /// Returns whether reading means waiting for a network.
    pub(crate) fn waits(&self) -> bool {
        matches!(&self.backend, Backend::Remote(store) if store.waits())
    }

    /// Returns two numbers that identify the store among all open stores. Stores differ by account, options,
    /// credentials and commit coordinator. All local files belong to one store.
    #[doc(hidden)]
    pub fn store_id(&self) -> (usize, usize) {
        let store = match &self.backend {
            Backend::Local => 0,
            Backend::Remote(store) => store.id(),
        };
        (store, self.coordination.as_deref().map_or(0, Coordination::id))
    }

    /// Returns the URL of the table's root, without user information, query string and trailing slash.
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

    /// Returns the local path for a path of the store.
    fn place(&self, path: &str, located: &Path) -> Result<Place> {
        let file = |path_of: &Path| local::file(path_of).map_err(|error| self.error(path, error));
        Ok(Place::new(file(located)?, &file(&self.base)?))
    }

    /// Returns the local file or directory for a path of the store, for callers that create it or list it.
    fn local_file(&self, path: &str, located: &Path) -> Result<PathBuf> {
        let place = self.place(path, located)?;
        place.path().map(std::path::Path::to_owned).map_err(|error| self.io_error(path, error))
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Storage").field(&self.url()).finish()
    }
}
