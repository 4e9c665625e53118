//! The options of stores.
//!
//! Options have the names of the crate `object_store`, which `deltalake` and Polars use as well, in upper or lower
//! case.

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

/// The names of options for all stores that concern retries.
const RETRIES: [&str; 5] = [
    // How many times a request is sent again. Default: 13.
    "max_retries",
    // The time for which a store may be silent, over all requests of a call. Default: 30s.
    "retry_timeout",
    // The pause before the first repetition of a request. Default: 100ms.
    "backoff_config.init_backoff",
    // The longest pause. Default: 5s.
    "backoff_config.max_backoff",
    // By how much the pause grows each time. Default: 2.
    "backoff_config.base",
];

/// The names of options for all stores that concern reads.
pub(super) const READS: [&str; 2] = [
    // The number of files that a scan reads at the same time. Default: 16, or more on more cores.
    "io_concurrency",
    // The number of bytes that may be read ahead. Default: 256 MiB, shared by all stores of a process.
    "read_memory",
];

/// The names of options for all stores that concern connections.
const CLIENT: [&str; 19] = [
    // Allows an endpoint without TLS. Default: false.
    "allow_http",
    // Accepts any certificate, which makes TLS worthless. Default: false.
    "allow_invalid_certificates",
    // The time limit of connecting. Default: 5s.
    "connect_timeout",
    // The content type of objects that are written.
    "default_content_type",
    // Ignores the certificates of the machine. Default: false.
    "disable_system_certificates",
    // Uses HTTP/1 only.
    "http1_only",
    // The interval of pings over HTTP/2.
    "http2_keep_alive_interval",
    // The time limit for the answer to a ping.
    "http2_keep_alive_timeout",
    // Pings also without requests. Default: false.
    "http2_keep_alive_while_idle",
    // The largest frame of HTTP/2, in bytes.
    "http2_max_frame_size",
    // Uses HTTP/2 only. Default: false.
    "http2_only",
    // How long a connection without requests is kept.
    "pool_idle_timeout",
    // How many connections without requests are kept for each host.
    "pool_max_idle_per_host",
    // The certificate of the proxy's authority, as PEM.
    "proxy_ca_certificate",
    // Hosts that are reached without the proxy.
    "proxy_excludes",
    // The proxy.
    "proxy_url",
    // The time for which a store may be silent within a request. Default: 12s.
    "read_timeout",
    // The time limit of a whole request. Default: 10m.
    "timeout",
    // The name of the client in requests.
    "user_agent",
];

/// The beginnings of the names of variables that configure stores.
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

/// The time for which a store may be silent in one request.
const READ_TIMEOUT: &str = "12s";
/// The time after which every request fails.
const TIMEOUT: &str = "10m";
/// The total time for which a store may be silent.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// The longest pause between two requests. Pauses count as silence.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How many times a request is sent again. If a store asks for fewer requests, this takes about 45 seconds.
const MOST_RETRIES: usize = 13;

/// The options of a store: names in lower case, and values.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Options(BTreeMap<String, String>);

/// When to send a request again.
#[derive(Debug, Clone)]
pub(super) struct Retries {
    pub(super) config: RetryConfig,
    /// The time for which a store may be silent, over all requests. If it answers with refusals, a call may take
    /// longer.
    pub(super) silence: Duration,
}

impl Options {
    /// # Errors
    /// `InvalidArgument` for two spellings of one option with different values.
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

    /// Returns the first of `names` that is set.
    #[cfg(feature = "s3")]
    pub(super) fn contains_any(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.0.contains_key(*name))
    }

    /// Removes and returns the option `name`, or an alias of it. Aliases may also be environment variables, unless
    /// their name has a dot.
    ///
    /// # Errors
    /// `InvalidArgument` for two options with different values.
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

    /// Returns the values of these options, and of the environment variables with the same meaning.
    pub(super) fn values(&self) -> Vec<String> {
        self.0.values().cloned().chain(environment().into_iter().map(|(_, value)| value)).collect()
    }

    /// Sets options that neither the caller nor the environment has set, with the names that begin with `prefix`.
    ///
    /// A request fails when no bytes have arrived for a while, not because its body is large: the clients' own limit of
    /// 30 seconds for a whole body is too short for many files over a slow connection.
    pub(super) fn set_time_limits(&mut self, prefix: &str) {
        for (name, value) in [("read_timeout", READ_TIMEOUT), ("timeout", TIMEOUT)] {
            let full = format!("{prefix}{name}");
            let is_set = self.0.contains_key(name) || self.0.contains_key(&full);
            if !is_set && std::env::var_os(full.to_ascii_uppercase()).is_none() {
                self.0.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// Removes the options about retries, and returns their values.
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

    /// Removes the options about reads, and returns their values.
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

    /// Returns the endpoints in these options and in the environment, because with another endpoint the same URL may be
    /// another object.
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

    /// Takes out the option `name`.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Returns the options with their names parsed to the keys of a store.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is not among `known`, the names of this store. The hint suggests the closest
    /// known name.
    pub(super) fn keys<K: FromStr>(self, store: &str, known: &[&'static str]) -> Result<Vec<(K, String)>> {
        let key = |(name, value): (String, String)| match name.parse() {
            Ok(key) => Ok((key, value)),
            Err(_) => Err(unknown(store, &name, known)),
        };
        self.0.into_iter().map(key).collect()
    }
}

/// Returns the duration that is the value of an option.
///
/// # Errors
/// `InvalidArgument` for another value.
pub(super) fn duration(name: &str, value: &str) -> Result<Duration> {
    parsed::<humantime::Duration>(name, value, "a duration such as '30s'").map(Duration::from)
}

fn parsed<T: FromStr>(name: &str, value: &str, wanted: &str) -> Result<T> {
    value.parse().map_err(|_| Error::invalid_argument(format!("the storage option '{name}' is not {wanted}")))
}

/// Returns the variables of the environment that configure stores.
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
    fn retries_are_taken_out() {
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

    /// A request to a silent store ends at the limit for one request, earlier, or at once.
    #[test]
    fn the_defaults_for_a_silent_store_add_up_to_half_a_minute() {
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
    fn limits_of_reads_are_taken_out() {
        let mut options = Options::new([("io_concurrency", "40"), ("READ_MEMORY", "1000")]).unwrap();
        let reads = options.reads().unwrap();
        assert_eq!(reads.concurrency, Some(40));
        assert!(reads.budget.take(999, Duration::ZERO).is_some_and(|_held| {
            // One byte is left.
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
        // Without options, all stores share a budget.
        let (one, other) = (Reads::default(), Reads::default());
        assert!(std::sync::Arc::ptr_eq(&one.budget, &other.budget));
    }

    #[test]
    fn the_nearest_name_is_proposed() {
        let keys = |name| Options::new([(name, "x")]).unwrap().keys::<ClientConfigKey>("S3", &["aws_region"]);
        let error = keys("aws_regoin").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no storage option 'aws_regoin' for S3; spell it 'aws_region'"
        );
        assert!(keys("conect_timeout").unwrap_err().to_string().ends_with("spell it 'connect_timeout'"));
    }

    #[test]
    fn time_limits_are_those_of_the_user_if_there_are_any() {
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
    fn an_option_has_one_value() {
        assert!(Options::new([("aws_region", "a"), ("AWS_REGION", "a")]).is_ok());
        assert!(Options::new([("aws_region", "a"), ("AWS_REGION", "b")]).is_err());
    }
}
