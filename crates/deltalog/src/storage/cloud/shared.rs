//! The clients that tables in this process share.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use super::super::credentials::CredentialProvider;
use super::super::remote::{Remote, WeakRemote};
use super::options::{Options, environment};
use crate::runtime::per_process::PerProcess;

/// The identity of a store: scheme and bucket, options, the memory address of the provider of credentials, and the
/// environment variables and file times that the store depends on. It is only kept in memory, because it contains
/// secrets.
///
/// The address identifies the provider, because a store that is in use keeps its provider alive.
type Key = (String, Options, Option<usize>, Vec<(String, String)>);

static KNOWN: PerProcess<Mutex<HashMap<Key, WeakRemote>>> = PerProcess::new();

/// The buckets of endpoints, with a flag that is set once a test has shown that a create replaces nothing there.
static PROOFS: PerProcess<Mutex<HashMap<String, Arc<AtomicBool>>>> = PerProcess::new();

/// Returns the flag that says whether a create is known to replace nothing in this bucket of an endpoint.
pub(super) fn proof(bucket: &str) -> Arc<AtomicBool> {
    let proofs = PROOFS.get();
    let mut proofs = proofs.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(proofs.entry(bucket.to_owned()).or_default())
}

/// Returns the store that is in use for this location and these options, or else the store that `make` returns.
pub(super) fn find_or_insert<E>(
    url: &Url,
    options: Options,
    provider: Option<&Arc<dyn CredentialProvider>>,
    files: impl IntoIterator<Item = (String, String)>,
    make: impl FnOnce() -> Result<Remote, E>,
) -> Result<Remote, E> {
    let known = KNOWN.get();
    let provider = provider.map(|provider| Arc::as_ptr(provider).cast::<()>().addr());
    let surroundings = environment().into_iter().chain(files).collect();
    let key = (format!("{}://{}", url.scheme(), url.authority()), options, provider, surroundings);
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = known.get(&key).and_then(WeakRemote::upgrade) {
        return Ok(store);
    }
    known.retain(|_, store| store.upgrade().is_some());
    let store = make()?;
    known.insert(key, store.downgrade());
    Ok(store)
}
