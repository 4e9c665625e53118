//! Opens the root of a table: on the local disk, in the store that its URL names, or in a store that the caller
//! provides.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use url::Url;

use super::cache::Cache;
#[cfg(feature = "_cloud")]
use super::cloud;
use super::credentials::CredentialProvider;
use super::location::{self, parse_location};
use super::remote::Remote;
use super::{Backend, Storage};
use crate::error::{Error, Result};
use crate::runtime::row_bytes::BatchBytes;

impl Storage {
    /// Opens the location `uri`, which is a path or a URL. Nothing is read or created.
    ///
    /// The scheme of a URL is `file` or, if the crate's feature for it is enabled, `s3` (also `s3a`, `s3n`), `gs`,
    /// `abfss` (also `abfs`, `wasbs`, `az`) or `hdfs`. `options` are the store's options. Most of them have the same
    /// names as in the crate `object_store`. They override environment variables.
    ///
    /// # Errors
    /// `Unsupported` for an unknown scheme, `InvalidArgument` for an unknown option or an invalid location.
    pub fn open<'a>(uri: &str, options: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        Self::open_any(uri, options, None)
    }

    /// Opens the location `uri` in the same way as [`Storage::open`], but with the credentials that `provider` returns,
    /// instead of credentials from the options or the environment.
    ///
    /// # Errors
    /// Returns the same errors as [`Storage::open`]. If the provider fails, its error becomes the error of the
    /// first request.
    pub fn open_with_credentials<'a>(
        uri: &str,
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
        provider: Arc<dyn CredentialProvider>,
    ) -> Result<Self> {
        Self::open_any(uri, options, Some(provider))
    }

    fn open_any<'a>(
        uri: &str,
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
        provider: Option<Arc<dyn CredentialProvider>>,
    ) -> Result<Self> {
        let url = parse_location(uri)?;
        if url.scheme() == "file" {
            let refused = |what: String| {
                Err(Error::invalid_argument(format!("{what} for local files"))
                    .in_table(url.as_str())
                    .with_hint("leave it out, or pass a URL of an object store, such as s3://bucket/table"))
            };
            return match (options.into_iter().next(), provider) {
                (None, None) => Self::build(url, Backend::Local),
                (Some((name, _)), _) => refused(format!("the storage option '{name}' is unknown")),
                (None, Some(_)) => refused("there are no credentials".to_owned()),
            };
        }
        Self::open_remote(&url, options, provider).map_err(|error| error.in_table(location::redacted(&url)))
    }

    #[cfg(feature = "_cloud")]
    fn open_remote<'a>(
        url: &Url,
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
        provider: Option<Arc<dyn CredentialProvider>>,
    ) -> Result<Self> {
        let cloud::Opened { url, store, log_store, cache } = cloud::open(url, options, provider)?;
        let mut storage = Self::build(url, Backend::Remote(store))?;
        storage.cache = cache;
        Ok(match log_store {
            None => storage,
            Some(log_store) => storage.coordinated_by_store(log_store.coordinator, &log_store.scheme),
        })
    }

    #[cfg(not(feature = "_cloud"))]
    fn open_remote<'a>(
        url: &Url,
        _: impl IntoIterator<Item = (&'a str, &'a str)>,
        _: Option<Arc<dyn CredentialProvider>>,
    ) -> Result<Self> {
        Err(Error::unsupported(format!("the store '{}' is not supported by this build", url.scheme()))
            .with_hint("use a local path, or turn on the crate's feature 's3', 'gcs' or 'azure'"))
    }

    /// Opens the table's root `url` in a store that the caller provides. The path in the store is the path of `url`.
    ///
    /// # Errors
    /// `InvalidArgument` if the path of `url` cannot be a path in a store.
    pub fn with_store(url: Url, store: Arc<dyn ObjectStore>) -> Result<Self> {
        Self::build(url, Backend::Remote(Remote::new(store)))
    }

    /// Does the same as [`Storage::with_store`] for a store that never has to wait, such as an in-memory store. Its
    /// requests run on the calling thread.
    ///
    /// # Errors
    /// The same as [`Storage::with_store`].
    #[doc(hidden)]
    pub fn with_immediate_store(url: Url, store: Arc<dyn ObjectStore>) -> Result<Self> {
        Self::build(url, Backend::Remote(Remote::immediate(store)))
    }

    fn build(mut url: Url, backend: Backend) -> Result<Self> {
        let trimmed = url.path().trim_end_matches('/').to_owned();
        url.set_path(&trimmed);
        let base = Path::from_url_path(url.path()).map_err(|error| {
            Error::invalid_argument("the location is not a valid path")
                .in_table(location::redacted(&url))
                .with_source(error)
                .with_hint("choose a path without control characters, or write the location as a URL")
        })?;
        Ok(Self {
            url: Arc::new(url),
            base,
            backend,
            held: Arc::default(),
            coordination: None,
            cache: None,
            batch_bytes: BatchBytes::default(),
        })
    }

    /// Returns the same root with a cache of immutable files in `directory` on the local disk. The cache takes at most
    /// `limit` bytes. All processes of this user may use the same directory. If the directory cannot be used, logs a
    /// warning. Local files are not cached.
    ///
    /// If two stores have different files under the same URL, they need different directories.
    #[must_use]
    pub fn with_cache(self, directory: impl Into<PathBuf>, limit: u64) -> Self {
        let cache = match &self.backend {
            Backend::Local => None,
            Backend::Remote(_) => Some(Cache::open(directory.into(), limit, "")),
        };
        Self { cache, ..self }
    }
}
