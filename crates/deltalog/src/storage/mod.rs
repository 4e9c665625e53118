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
mod get;
mod hadoop;
mod list;
mod local;
mod location;
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
    /// The coordinator that decides commits, if the store itself does not.
    coordination: Option<Arc<Coordination>>,
    /// The cache on the local disk, if the user wants one.
    cache: Option<Arc<Cache>>,
    /// The limits for the size of batches with rows of data files.
    batch_bytes: BatchBytes,
}

/// Where the files of a table are.
#[derive(Clone)]
enum Backend {
    Local,
    Remote(Remote),
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

    /// Returns the limits for the size of batches with rows of data files.
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
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Storage").field(&self.url()).finish()
    }
}
