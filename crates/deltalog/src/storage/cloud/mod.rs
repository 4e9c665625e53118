//! Parses locations in object stores, and creates the clients of these stores.
//!
//! - A location has one name for all its spellings: `s3a` and `s3n` become `s3`, and the name of an Azure location
//!   includes the account (`protocol::path`). The name never contains credentials, because it is shown and compared.
//! - All tables of a process that have the same bucket, options and environment share their clients, and so their
//!   connections and credentials (`shared`). The clients are created when the first of these tables is opened.
//! - Options override environment variables.

#[cfg(feature = "azure")]
mod azure;
mod client;
#[cfg(feature = "s3")]
mod dynamodb;
#[cfg(feature = "gcs")]
mod gcs;
#[cfg(feature = "hdfs")]
mod hdfs;
mod http;
#[cfg(feature = "s3")]
mod log_store;
#[cfg(feature = "s3")]
mod machine;
mod options;
mod patience;
#[cfg(feature = "s3")]
mod profile;
mod provider;
#[cfg(feature = "s3")]
mod s3;
mod secrets;
mod shared;

use std::sync::Arc;

use object_store::list::PaginatedListStore;
use object_store::{ObjectStore, RetryConfig};
use url::Url;

#[cfg(feature = "s3")]
pub(super) use self::dynamodb::DynamoDb;
use self::http::Connector;
use self::options::{Options, Retries};
use super::answers::Settings;
use super::cache::Cache;
use super::cache::settings::{self, CacheSettings};
use super::coordinator::CommitCoordinator;
use super::credentials::CredentialProvider;
use super::remote::{Client, Recipe, Remote};
use crate::error::{Error, Result};
use crate::protocol::path;

/// Values that are this long or longer are not shown in errors.
const SHORTEST_SECRET: usize = 8;

/// The credential provider, if there is one.
type Provider = Option<Arc<dyn CredentialProvider>>;

/// A location in a store.
pub(super) struct Opened {
    /// The canonical URL.
    pub(super) url: Url,
    pub(super) store: Remote,
    /// The log store that decides commits, if the store cannot decide them itself.
    pub(super) log_store: Option<LogStore>,
    pub(super) cache: Option<Arc<Cache>>,
}

/// The log store that decides the commits of all tables in a store.
pub(super) struct LogStore {
    pub(super) coordinator: Arc<dyn CommitCoordinator>,
    /// The scheme in the table paths of the coordinator's entries.
    pub(super) scheme: String,
}

/// Opens the location `url`.
///
/// # Errors
/// `Unsupported` for an unknown scheme; `InvalidArgument` for an invalid location, an unknown option or an invalid
/// value.
pub(super) fn open<'a>(
    url: &Url,
    options: impl IntoIterator<Item = (&'a str, &'a str)>,
    provider: Provider,
) -> Result<Opened> {
    let mut given: Vec<(&str, &str)> = options.into_iter().collect();
    let mut options = Options::new(given.iter().copied())?;
    let asked = options.clone();
    let reads = options.reads()?;
    let has_user = !url.username().is_empty() && !path::has_container(url.scheme());
    if has_user || url.password().is_some() {
        return Err(Error::invalid_argument("the location contains credentials")
            .with_hint("pass them as storage options: locations are shown and logged"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Error::invalid_argument("the location has a query or a fragment")
            .with_hint("write %3F for '?' and %23 for '#'; pass tokens as storage options"));
    }
    let asked_provider = provider.clone();
    let cache = CacheSettings::new(options.take("cache_dir"), options.take("cache_size"))?;
    given.retain(|(name, _)| !settings::NAMES.contains(&name.to_ascii_lowercase().as_str()));
    let Place { url, recipe, log_store_scheme } = match path::canonical_scheme(url.scheme()).as_str() {
        #[cfg(feature = "s3")]
        "s3" => s3::open(url, options, provider)?,
        #[cfg(feature = "gcs")]
        "gs" => gcs::open(url, options, provider)?,
        #[cfg(feature = "azure")]
        "abfss" | "az" | "azure" => azure::open(url, options, provider)?,
        #[cfg(feature = "hdfs")]
        "hdfs" => {
            let of_reads = |(name, _): &(&str, &str)| options::READS.contains(&&*name.to_ascii_lowercase());
            let others: Vec<_> = given.iter().copied().filter(|option| !of_reads(option)).collect();
            hdfs::open(url, &others, provider.is_some())?
        }
        scheme => return Err(unsupported(scheme)),
    };
    // The state of these files is part of the key of a shared store, because a file with credentials may have been
    // replaced since the store was opened.
    #[cfg(feature = "s3")]
    let files = if url.scheme() == "s3" { profile::files() } else { Vec::new() };
    #[cfg(not(feature = "s3"))]
    let files = Vec::new();
    // The clients are created now, so that invalid settings are reported immediately and not by the first request.
    let make = || Remote::made(recipe, reads).map_err(|error| invalid(&error, &asked.values()));
    let store = shared::find_or_insert(&url, asked.clone(), asked_provider.as_ref(), files, make)?;
    #[cfg(feature = "s3")]
    let log_store = log_store_scheme.map(|scheme| LogStore {
        coordinator: Arc::new(dynamodb::DynamoDbCoordinator(store.clone())),
        scheme,
    });
    #[cfg(not(feature = "s3"))]
    let log_store = log_store_scheme.map(|never| match never {});
    let cache = cache.map(|wanted| Cache::open(wanted.directory, wanted.limit, &asked.endpoints()));
    Ok(Opened { url, store, log_store, cache })
}

/// The canonical URL of a location and the recipe for its clients. If a log store decides commits, also the scheme in
/// its entries.
struct Place {
    url: Url,
    recipe: Recipe,
    #[cfg(feature = "s3")]
    log_store_scheme: Option<String>,
    #[cfg(not(feature = "s3"))]
    log_store_scheme: Option<std::convert::Infallible>,
}

fn unsupported(scheme: &str) -> Error {
    let error = Error::unsupported(format!("the store '{scheme}' is not supported"));
    match scheme {
        "s3" | "gs" | "abfss" | "az" | "azure" | "hdfs" => {
            error.with_hint("this build lacks it: turn on the crate's feature 's3', 'gcs', 'azure' or 'hdfs'")
        }
        _ => error.with_hint("use a local path, or s3://, gs://, abfss:// or hdfs://"),
    }
}

/// Returns `url` in its canonical form, which is the same for all spellings of the location.
fn canonical(url: &Url) -> Result<Url> {
    let scheme = path::canonical_scheme(url.scheme());
    let authority = path::canonical_authority(url.scheme(), url.authority());
    place(&format!("{scheme}://{authority}{}", url.path()))
}

fn place(text: &str) -> Result<Url> {
    Url::parse(text).map_err(|error| Error::invalid_argument("the location is not valid").with_source(error))
}

/// Returns the bucket that `url` names.
fn bucket(url: &Url) -> Result<&str> {
    url.host_str().filter(|bucket| !bucket.is_empty() && url.port().is_none()).ok_or_else(|| {
        Error::invalid_argument("the location names no bucket").with_hint("write scheme://bucket/path")
    })
}

/// Refuses an endpoint that is not a URL, because it would make the client panic. Also refuses an endpoint without
/// encryption unless that is allowed, because the client would refuse each request.
fn check_endpoint(endpoint: Option<&str>, allows_http: Option<&str>) -> Result<()> {
    let Some(endpoint) = endpoint else { return Ok(()) };
    let has_host = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let url = Url::parse(endpoint).ok().filter(has_host).ok_or_else(|| {
        Error::invalid_argument("the endpoint of the store is not a URL").with_hint(
            "write https:// and the host; for the store's own endpoint, unset the option or variable",
        )
    })?;
    let is_allowed = || allows_http.is_some_and(is_true);
    if url.scheme() == "http" && !is_allowed() {
        return Err(Error::invalid_argument("the endpoint of the store is not encrypted")
            .with_hint("use https://, or set the storage option 'allow_http' to 'true'"));
    }
    Ok(())
}

/// Returns whether the clients interpret this string as true.
fn is_true(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "1" | "true" | "on" | "yes" | "y")
}

/// Refuses values that cannot be sent in a header, because they would make the client panic. Such values were usually
/// read from a file, including the line break at its end.
fn check_texts<K: AsRef<str>>(keys: &[K], value: impl Fn(&K) -> Option<String>) -> Result<()> {
    for key in keys {
        if value(key).is_some_and(|value| value.bytes().any(|byte| !matches!(byte, b' '..=b'~'))) {
            return Err(Error::invalid_argument(format!(
                "the value of '{}' has a line break or another character that is not printable ASCII",
                key.as_ref()
            ))
            .with_hint("remove it from the option, or from the variable of the environment"));
        }
    }
    Ok(())
}

/// Converts an error of a builder, which checks the settings without sending a request. The builder's message may quote
/// any setting, even the bytes of a private key that cannot be parsed. Therefore all `values` that are long enough to
/// be secrets are removed from it, and everything from the beginning of a list of numbers on.
fn invalid(error: &object_store::Error, values: &[String]) -> Error {
    let mut text = error.to_string();
    for value in values.iter().filter(|value| value.len() >= SHORTEST_SECRET) {
        text = text.replace(value.as_str(), "…");
    }
    let is_list = |at: &usize| {
        text.get(at + 1..).is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
    };
    if let Some(at) = text.match_indices('[').map(|(at, _)| at).find(is_list) {
        text.replace_range(at.., "…");
    }
    Error::invalid_argument("the storage options do not describe a store").with_source(text)
}

/// The parts in which the builders of different stores differ.
struct Traits<S> {
    reads_ends: bool,
    /// The endpoint, unless it is known to respect conditional puts.
    unproven: Option<String>,
    /// Adds further clients that use the store's own connections, such as the client for DynamoDB.
    complete: Complete<S>,
}

type Complete<S> = Box<dyn Fn(&mut Client, &S, &Connector) -> object_store::Result<()> + Send + Sync>;

/// Returns a function that adds nothing.
#[cfg(any(feature = "gcs", feature = "azure"))]
fn complete<S>() -> Complete<S> {
    Box::new(|_, _, _| Ok(()))
}

/// Builds the clients of a store.
trait Builder: Clone + Send + Sync + 'static {
    type Store: ObjectStore + PaginatedListStore;

    /// The names of the store's settings, as hints mention them.
    const SETTINGS: &'static Settings;

    /// If there is a credential provider, uses its credentials instead of those in options and environment variables.
    fn with_provider(self, provider: &Provider) -> Self;

    /// Builds a client. If there is a `first` client, the new one uses its credentials.
    fn build(
        self,
        connector: Connector,
        retries: RetryConfig,
        first: Option<&Self::Store>,
    ) -> object_store::Result<Self::Store>;
}

/// Implements [`Builder`] for a builder of `object_store`. These builders have methods with the same names, but no
/// common trait. `$convert` converts the provider's credentials to the store's credentials.
macro_rules! builder {
    ($builder:ty, $store:ty, $convert:expr, $settings:expr) => {
        impl super::Builder for $builder {
            type Store = $store;

            const SETTINGS: &'static crate::storage::answers::Settings = &$settings;

            fn with_provider(self, provider: &super::Provider) -> Self {
                use std::sync::Arc;
                match provider {
                    Some(provider) => {
                        let renewed = super::provider::Renewed::new(Arc::clone(provider), $convert);
                        self.with_credentials(Arc::new(renewed))
                    }
                    None => self,
                }
            }

            fn build(
                self,
                connector: super::Connector,
                retries: object_store::RetryConfig,
                first: Option<&$store>,
            ) -> object_store::Result<$store> {
                let builder = self.with_http_connector(connector).with_retry(retries);
                match first {
                    Some(first) => builder.with_credentials(first.credentials().clone()).build(),
                    None => builder.build(),
                }
            }
        }
    };
}
use builder;

/// Returns the recipe that creates clients of `url` with `builder`. The second client, which sends every request only
/// once, shares the connections and the credentials of the first. `prepare` is called in each process, and may change
/// the builder.
fn recipe<B: Builder>(
    url: &Url,
    builder: B,
    retries: Retries,
    traits: Traits<B::Store>,
    prepare: impl Fn(B, &Connector) -> object_store::Result<B> + Send + Sync + 'static,
) -> Recipe {
    let bucket = |endpoint| format!("{endpoint} {}", url.authority());
    let unproven = traits.unproven.map(bucket);
    Recipe::new(move || {
        let connector = Connector::new(B::SETTINGS, retries.silence);
        let builder = prepare(builder.clone(), &connector)?;
        let store = builder.clone().build(connector.clone(), retries.config.clone(), None)?;
        let never = RetryConfig { max_retries: 0, ..retries.config.clone() };
        let once = builder.build(connector.clone(), never, Some(&store))?;
        let store = Arc::new(store);
        let mut client = Client {
            pages: Some(Arc::clone(&store) as _),
            store: Arc::clone(&store) as _,
            once: Arc::new(once),
            reads_ends: traits.reads_ends,
            has_directories: false,
            is_proven: unproven.as_deref().map_or_else(|| Arc::new(true.into()), shared::proof),
            #[cfg(feature = "s3")]
            dynamodb: None,
        };
        (traits.complete)(&mut client, &store, &connector)?;
        Ok(client)
    })
}

/// Refuses an option for credentials if there is also a credential provider.
fn check_provider<K: AsRef<str>>(provider: &Provider, keys: &[(K, String)], secrets: &[&str]) -> Result<()> {
    let key = keys.iter().map(|(key, _)| key.as_ref()).find(|key| secrets.contains(key));
    match key.filter(|_| provider.is_some()) {
        Some(key) => Err(Error::invalid_argument(format!(
            "the storage option '{key}' and a credential provider cannot be passed together"
        ))
        .with_hint("leave one of them out")),
        None => Ok(()),
    }
}

/// Returns the error for an option that names a bucket or container.
fn named_twice(what: &str) -> Error {
    Error::invalid_argument(format!("a storage option names a {what}"))
        .with_hint(format!("leave it out: the {what} is part of the location"))
}

#[cfg(test)]
#[cfg(all(feature = "s3", feature = "gcs", feature = "azure"))]
mod tests;
