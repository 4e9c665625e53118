//! The options of stores.
//!
//! The options have the names of the crate `object_store`, which `deltalake` and Polars use as well. The names may be
//! in upper or lower case.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU16, NonZeroU64};
use std::str::FromStr;
use std::time::Duration;

use object_store::RetryConfig;

use crate::error::{Error, Result};
use crate::runtime::spelling::nearest;
use crate::storage::budget::Budget;
use crate::storage::cache::settings;
use crate::storage::remote::Reads;

/// The names of the options for retries, which all stores have.
const RETRIES: [&str; 5] = [
    // How many times a failed request is sent again. Default: 13.
    "max_retries",
    // How long a store may be silent in total, over a request and its retries, before a call fails. Default: 30s.
    "retry_timeout",
    // The pause before a request is sent again for the first time. Default: 100ms.
    "backoff_config.init_backoff",
    // The maximum pause. Default: 5s.
    "backoff_config.max_backoff",
    // The factor by which the pause grows each time. Default: 2.
    "backoff_config.base",
];

/// The names of the options for reads, which all stores have.
pub(super) const READS: [&str; 2] = [
    // The number of files that a scan reads at the same time. Default: 16, or more on machines with more cores.
    "io_concurrency",
    // The maximum number of bytes that are read ahead. Default: 256 MiB, shared by all stores of a process.
    "read_memory",
];

/// The names of the options for connections, which all stores have.
const CLIENT: [&str; 19] = [
    // Allows an endpoint without TLS. Default: false.
    "allow_http",
    // Accepts any certificate, so that TLS no longer protects the connection. Default: false.
    "allow_invalid_certificates",
    // The time limit for making a connection. Default: 5s.
    "connect_timeout",
    // The content type of objects that are written.
    "default_content_type",
    // Does not trust the certificates that are installed on the machine. Default: false.
    "disable_system_certificates",
    // Uses only HTTP/1.
    "http1_only",
    // The interval between HTTP/2 pings.
    "http2_keep_alive_interval",
    // The time limit for the response to a ping.
    "http2_keep_alive_timeout",
    // Sends pings even if there are no requests. Default: false.
    "http2_keep_alive_while_idle",
    // The maximum size of an HTTP/2 frame, in bytes.
    "http2_max_frame_size",
    // Uses only HTTP/2. Default: false.
    "http2_only",
    // How long a connection without requests is kept open.
    "pool_idle_timeout",
    // The number of connections without requests that are kept open for each host.
    "pool_max_idle_per_host",
    // The certificate of the authority that has signed the proxy's certificate, in PEM format.
    "proxy_ca_certificate",
    // The hosts to which requests are sent without the proxy.
    "proxy_excludes",
    // The URL of the proxy.
    "proxy_url",
    // How long a store may take within a request without sending or receiving a byte. Default: 12s.
    "read_timeout",
    // The time limit for a whole request. Default: 10m.
    "timeout",
    // The name of the client, which is sent with requests.
    "user_agent",
];

/// The prefixes of the names of environment variables that configure stores.
const PREFIXES: [&str; 10] = [
    "AWS_",
    "AZURE_",
    "GOOGLE_",
    "MSI_",
    "IDENTITY_",
    "SERVICE_ACCOUNT",
    "AZURITE_",
    "DELTA_DYNAMO_",
    "HADOOP_",
    "KRB5",
];

/// How long a store may be silent within one request.
const READ_TIMEOUT: &str = "12s";
/// The time after which every request fails.
const TIMEOUT: &str = "10m";
/// How long a store may be silent in total, over a request and its retries.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// The maximum pause between two requests. Pauses count as time without a response.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How many times a request is sent again. If a store keeps asking for fewer requests, this takes about 45 seconds in
/// all.
const MOST_RETRIES: usize = 13;

/// The options of a store: their names in lower case, and their values.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Options(BTreeMap<String, String>);

/// Determines when to send a request again.
#[derive(Debug, Clone)]
pub(super) struct Retries {
    pub(super) config: RetryConfig,
    /// How long a store may be silent in total, over a request and its retries. A call may take longer than that if the
    /// store refuses the requests, because a refusal is a response.
    pub(super) silence: Duration,
}

impl Options {
    /// Collects the options of a store. The names may be in upper or lower case.
    ///
    /// # Errors
    /// `InvalidArgument` if an option is given in two spellings with different values.
    pub(super) fn new<'a>(options: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let mut all = BTreeMap::new();
        for (name, value) in options {
            let name = name.to_ascii_lowercase();
            let known = all.insert(name.clone(), value.to_owned());
            if known.is_some_and(|known| known != value) {
                return Err(Error::invalid_argument(format!(
                    "the storage option '{name}' has two different values"
                ))
                .with_hint("pass it once"));
            }
        }
        Ok(Self(all))
    }

    /// Returns the first option among `names` that is set.
    #[cfg(feature = "s3")]
    pub(super) fn contains_any(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.0.contains_key(*name))
    }

    /// Removes the option `name`, or an alias of it, and returns its value. An alias may also be an environment
    /// variable, unless its name contains a dot.
    ///
    /// # Errors
    /// `InvalidArgument` if two of the names are given with different values.
    #[cfg(feature = "s3")]
    pub(super) fn take_with_aliases(&mut self, name: &str, aliases: &[&str]) -> Result<Option<String>> {
        let mut found = self.0.remove(name);
        for alias in aliases {
            let values = [self.0.remove(*alias), self.0.remove(&format!("spark.{alias}"))];
            for value in values.into_iter().flatten() {
                if found.as_ref().is_some_and(|known| *known != value) {
                    return Err(Error::invalid_argument(format!(
                        "the storage options '{name}' and '{alias}' have different values"
                    ))
                    .with_hint("pass one of them"));
                }
                found = Some(value);
            }
        }
        let variable =
            |alias: &&str| (!alias.contains('.')).then(|| std::env::var(alias.to_ascii_uppercase()).ok())?;
        Ok(found.or_else(|| aliases.iter().find_map(variable)))
    }

    /// Returns the values of these options and of the environment variables that configure stores.
    pub(super) fn values(&self) -> Vec<String> {
        self.0.values().cloned().chain(environment().into_iter().map(|(_, value)| value)).collect()
    }

    /// Sets the options for time limits, unless the caller or the environment has set them. `prefix` is the prefix of
    /// the store's own options.
    ///
    /// With these limits, a request fails if no bytes have arrived for a while, and not because its body is large. The
    /// clients' own limit of 30 seconds for a whole body is too short for many files over a slow connection.
    pub(super) fn set_time_limits(&mut self, prefix: &str) {
        for (name, value) in [("read_timeout", READ_TIMEOUT), ("timeout", TIMEOUT)] {
            let full = format!("{prefix}{name}");
            let is_set = self.0.contains_key(name) || self.0.contains_key(&full);
            if !is_set && std::env::var_os(full.to_ascii_uppercase()).is_none() {
                self.0.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// Removes the options for retries, and returns their values.
    ///
    /// # Errors
    /// `InvalidArgument` for a value that is not a number or a duration.
    pub(super) fn retries(&mut self) -> Result<Retries> {
        let is_limited = self.0.contains_key("retry_timeout");
        let mut retries = RetryConfig { max_retries: MOST_RETRIES, ..RetryConfig::default() };
        retries.backoff.max_backoff = LONGEST_PAUSE;
        if let Some(value) = self.0.remove("max_retries") {
            retries.max_retries = parsed("max_retries", &value, "a number")?;
        }
        let backoff = &mut retries.backoff;
        let durations = [
            ("retry_timeout", &mut retries.retry_timeout),
            ("backoff_config.init_backoff", &mut backoff.init_backoff),
            ("backoff_config.max_backoff", &mut backoff.max_backoff),
        ];
        for (name, limit) in durations {
            if let Some(value) = self.0.remove(name) {
                *limit = duration(name, &value)?;
            }
        }
        if let Some(value) = self.0.remove("backoff_config.base") {
            backoff.base = parsed("backoff_config.base", &value, "a number")?;
        }
        let silence = if is_limited { retries.retry_timeout } else { SILENCE };
        Ok(Retries { config: retries, silence })
    }

    /// Removes the options for reads, and returns their values.
    ///
    /// # Errors
    /// `InvalidArgument` for a value that is not a positive number.
    pub(super) fn reads(&mut self) -> Result<Reads> {
        let mut reads = Reads::default();
        if let Some(value) = self.0.remove("io_concurrency") {
            let files: NonZeroU16 = parsed("io_concurrency", &value, "a number of files from 1 to 65535")?;
            reads.concurrency = Some(usize::from(files.get()));
        }
        if let Some(value) = self.0.remove("read_memory") {
            let bytes: NonZeroU64 = parsed("read_memory", &value, "a positive number of bytes")?;
            reads.budget = Budget::new(bytes.get());
        }
        Ok(reads)
    }

    /// Returns the endpoints in these options and in the environment. They identify an object together with its URL,
    /// because the same URL may refer to another object at another endpoint.
    pub(super) fn endpoints(&self) -> String {
        let given = self.0.iter().map(|(name, value)| (name.clone(), value.clone()));
        let is_place = |name: &String| {
            let name = name.to_ascii_lowercase();
            ["endpoint", "emulator", "url", "authority_host"].iter().any(|part| name.contains(part))
        };
        let places = given.chain(environment()).filter(|(name, _)| is_place(name));
        let places: BTreeSet<String> =
            places.map(|(_, value)| value.trim_end_matches('/').to_owned()).collect();
        places.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// Removes the option `name` and returns its value.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Returns the options, with their names parsed to the configuration keys of a store.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is not in `known`, the names of this store's options. The hint suggests the
    /// known name that is most similar.
    pub(super) fn keys<K: FromStr>(self, store: &str, known: &[&'static str]) -> Result<Vec<(K, String)>> {
        let key = |(name, value): (String, String)| match name.parse() {
            Ok(key) => Ok((key, value)),
            Err(_) => Err(unknown(store, &name, known)),
        };
        self.0.into_iter().map(key).collect()
    }
}

/// Returns the value of an option as a duration.
///
/// # Errors
/// `InvalidArgument` if the value is not a duration.
pub(super) fn duration(name: &str, value: &str) -> Result<Duration> {
    parsed::<humantime::Duration>(name, value, "a duration such as '30s'").map(Duration::from)
}

fn parsed<T: FromStr>(name: &str, value: &str, wanted: &str) -> Result<T> {
    value.parse().map_err(|_| Error::invalid_argument(format!("the storage option '{name}' is not {wanted}")))
}

/// Returns the environment variables that configure stores.
pub(super) fn environment() -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    variables.sort_unstable();
    variables
}

fn unknown(store: &str, name: &str, known: &[&'static str]) -> Error {
    let error = Error::invalid_argument(format!("there is no storage option '{name}' for {store}"));
    let all = known.iter().chain(&CLIENT).chain(&RETRIES).chain(&READS).chain(&settings::NAMES).copied();
    match (name, nearest(name, all)) {
        (name, _) if name.ends_with("allow_unsafe_rename") || name.ends_with("copy_if_not_exists") => error
            .with_hint("leave it out: commits are created with a condition, which the store checks itself"),
        (name, _) if name.ends_with("s3_locking_provider") => error.with_hint(
            "leave it out: commits need no lock, because the store itself refuses to replace a commit",
        ),
        (_, Some(near)) => error.with_hint(format!("spell it '{near}'")),
        (_, None) => error.with_hint("see the documentation of the store's options"),
    }
}

#[cfg(test)]
mod tests {
    use object_store::ClientConfigKey;

    use super::super::patience::Limits;
    use super::*;

    #[test]
    fn every_name_is_known() {
        for name in CLIENT {
            assert!(name.parse::<ClientConfigKey>().is_ok(), "{name}");
        }
    }

    #[test]
    fn options_for_retries_are_removed() {
        let mut options =
            Options::new([("max_retries", "3"), ("RETRY_TIMEOUT", "2m"), ("backoff_config.base", "1.5")])
                .unwrap();
        let Retries { config: retries, silence } = options.retries().unwrap();
        assert_eq!(silence, Duration::from_secs(120));
        assert_eq!((retries.max_retries, retries.retry_timeout), (3, Duration::from_secs(120)));
        assert_eq!(retries.backoff.base, 1.5);
        assert!(options.0.is_empty());
        let mut wrong = Options::new([("retry_timeout", "soon")]).unwrap();
        assert_eq!(
            wrong.retries().unwrap_err().to_string(),
            "the storage option 'retry_timeout' is not a duration such as '30s'"
        );
    }

    /// The store never responds. Each request ends when its limit is reached, or earlier, or immediately.
    #[test]
    fn waiting_for_a_silent_store_takes_half_a_minute_by_default() {
        let mut options = Options::new([]).unwrap();
        let Retries { config, silence } = options.retries().unwrap();
        options.set_time_limits("aws_");
        let once = humantime::parse_duration(&options.0["read_timeout"]).unwrap();
        for request in [once, Duration::from_secs(5), Duration::ZERO] {
            let limits = Limits { once: Some(request), altogether: silence };
            let (mut waited, mut pause) = (Duration::ZERO, config.backoff.init_backoff);
            for _ in 0..=config.max_retries {
                waited += request.min(limits.left(waited));
                if limits.are_over(waited) {
                    break;
                }
                pause = pause.mul_f64(config.backoff.base).min(config.backoff.max_backoff);
                waited += pause;
            }
            assert!(waited <= Duration::from_secs(30), "{request:?}: {waited:?}");
        }
    }

    #[test]
    fn options_for_reads_are_removed() {
        let mut options = Options::new([("io_concurrency", "40"), ("READ_MEMORY", "1000")]).unwrap();
        let reads = options.reads().unwrap();
        assert_eq!(reads.concurrency, Some(40));
        assert!(reads.budget.take(999, Duration::ZERO).is_some_and(|_held| {
            // One of the 1,000 bytes is left, so two more are not available.
            reads.budget.take(2, Duration::ZERO).is_none()
        }));
        assert!(options.0.is_empty());
        for (name, value) in [("io_concurrency", "0"), ("io_concurrency", "many"), ("read_memory", "-1")] {
            let error = Options::new([(name, value)]).unwrap().reads().unwrap_err();
            assert!(
                error.to_string().starts_with(&format!("the storage option '{name}' is not a ")),
                "{error}"
            );
        }
        // Without the option, all stores share one budget.
        let (one, other) = (Reads::default(), Reads::default());
        assert!(std::sync::Arc::ptr_eq(&one.budget, &other.budget));
    }

    #[test]
    fn the_most_similar_name_is_suggested() {
        let keys = |name| Options::new([(name, "x")]).unwrap().keys::<ClientConfigKey>("S3", &["aws_region"]);
        let error = keys("aws_regoin").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no storage option 'aws_regoin' for S3; spell it 'aws_region'"
        );
        assert!(keys("conect_timeout").unwrap_err().to_string().ends_with("spell it 'connect_timeout'"));
    }

    #[test]
    fn the_users_time_limits_override_the_defaults() {
        let limits = |given: &[(&'static str, &'static str)]| {
            let mut options = Options::new(given.iter().copied()).unwrap();
            options.set_time_limits("aws_");
            options.0.get("timeout").or(options.0.get("aws_timeout")).cloned()
        };
        assert_eq!(limits(&[]).as_deref(), Some(TIMEOUT));
        assert_eq!(limits(&[("timeout", "5s")]).as_deref(), Some("5s"));
        assert_eq!(limits(&[("AWS_TIMEOUT", "5s")]).as_deref(), Some("5s"));
    }

    #[test]
    fn two_values_of_an_option_are_refused() {
        assert!(Options::new([("aws_region", "a"), ("AWS_REGION", "a")]).is_ok());
        assert!(Options::new([("aws_region", "a"), ("AWS_REGION", "b")]).is_err());
    }
}
