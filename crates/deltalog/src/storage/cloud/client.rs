//! The HTTP client of a store. It is the client of `object_store`, but handles redirects differently.
//!
//! Requests contain secrets that an HTTP client does not recognize as such: tokens and keys in special headers, a
//! password in the body, or a signature in the URL. Therefore a redirect is only followed within its origin (scheme,
//! host and port), and no request has a `Referer` header. Any other redirect counts as a response that refuses the
//! request.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use object_store::{ClientConfigKey as Key, ClientOptions, Error, Result};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Attempt, Policy};
use reqwest::tls::Certificate;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy};

use super::is_true;

/// The maximum number of redirects that are followed for one request.
const REDIRECTS: usize = 10;

/// Creates a client with these options.
///
/// # Errors
/// If an option has an invalid value.
pub(super) fn client(options: &ClientOptions) -> Result<Client> {
    let value = |key: Key| options.get_config_value(&key);
    let flag = |key: Key| match value(key) {
        None => Ok(false),
        Some(text) if is_true(&text) => Ok(true),
        Some(text) if matches!(text.to_ascii_lowercase().as_str(), "0" | "false" | "off" | "no" | "n") => {
            Ok(false)
        }
        Some(text) => Err(meaningless(key, &text)),
    };
    let duration = |key: Key| duration(options, key);

    let user_agent = value(Key::UserAgent).unwrap_or_else(|| USER_AGENT.to_owned());
    let mut builder =
        ClientBuilder::new().user_agent(user_agent).redirect(Policy::custom(redirect)).referer(false);
    if let Some(url) = value(Key::ProxyUrl) {
        let mut proxy = Proxy::all(url).map_err(failed)?;
        if let Some(certificate) = value(Key::ProxyCaCertificate) {
            builder =
                builder.tls_certs_merge([Certificate::from_pem(certificate.as_bytes()).map_err(failed)?]);
        }
        if let Some(excluded) = value(Key::ProxyExcludes) {
            proxy = proxy.no_proxy(NoProxy::from_string(&excluded));
        }
        builder = builder.proxy(proxy);
    }
    if flag(Key::NoSystemCertificates)? {
        builder = builder.tls_certs_only([]);
    }
    if let Some(limit) = duration(Key::Timeout)? {
        builder = builder.timeout(limit);
    }
    if let Some(limit) = duration(Key::ConnectTimeout)? {
        builder = builder.connect_timeout(limit);
    }
    if let Some(limit) = duration(Key::PoolIdleTimeout)? {
        builder = builder.pool_idle_timeout(limit);
    }
    if let Some(text) = value(Key::PoolMaxIdlePerHost) {
        let number = text.parse().map_err(|_| meaningless(Key::PoolMaxIdlePerHost, &text))?;
        builder = builder.pool_max_idle_per_host(number);
    }
    if flag(Key::Http1Only)? {
        builder = builder.http1_only();
    }
    if flag(Key::Http2Only)? {
        builder = builder.http2_prior_knowledge();
    }
    if let Some(interval) = duration(Key::Http2KeepAliveInterval)? {
        builder = builder.http2_keep_alive_interval(interval);
    }
    if let Some(limit) = duration(Key::Http2KeepAliveTimeout)? {
        builder = builder.http2_keep_alive_timeout(limit);
    }
    if flag(Key::Http2KeepAliveWhileIdle)? {
        builder = builder.http2_keep_alive_while_idle(true);
    }
    if let Some(text) = value(Key::Http2MaxFrameSize) {
        let size: u32 = text.parse().map_err(|_| meaningless(Key::Http2MaxFrameSize, &text))?;
        builder = builder.http2_max_frame_size(size);
    }
    if flag(Key::AllowInvalidCertificates)? {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    if flag(Key::RandomizeAddresses)? {
        builder = builder.dns_resolver(Arc::new(AnyAddress));
    }
    // Compression, which other crates in the program may have enabled, would hide the length of a file.
    builder = builder.no_gzip().no_brotli().no_zstd().no_deflate();
    builder.https_only(!flag(Key::AllowHttp)?).build().map_err(failed)
}

/// Returns how long a store may take, within one request, without sending or receiving any byte. This crate enforces
/// the limit itself (`patience`), because the client's own limit counts from the beginning of a request, however large
/// its body is.
///
/// # Errors
/// If the value is not a duration.
pub(super) fn read_timeout(options: &ClientOptions) -> Result<Option<Duration>> {
    duration(options, Key::ReadTimeout)
}

fn duration(options: &ClientOptions, key: Key) -> Result<Option<Duration>> {
    let parsed = |text: String| humantime::parse_duration(&text).map_err(|_| meaningless(key, &text));
    options.get_config_value(&key).map(parsed).transpose()
}

const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let is_own = attempt.previous().first().is_some_and(|asked| asked.origin() == attempt.url().origin());
    match is_own && attempt.previous().len() <= REDIRECTS {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}

fn failed(error: reqwest::Error) -> Error {
    Error::Generic { store: "HTTP client", source: Box::new(error.without_url()) }
}

fn meaningless(key: Key, text: &str) -> Error {
    Error::Generic { store: "HTTP client", source: format!("'{}' cannot be '{text}'", key.as_ref()).into() }
}

/// A resolver that puts a random one of the host's addresses first, so that connections are spread over the machines of
/// a store.
struct AnyAddress;

impl Resolve for AnyAddress {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses =
                move || (name.as_str(), 0).to_socket_addrs().map(Iterator::collect::<Vec<SocketAddr>>);
            let mut found = tokio::task::spawn_blocking(addresses).await??;
            let first = RandomState::new().hash_one(0_u8) as usize % found.len().max(1);
            found.rotate_left(first);
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
