//! The clients that the tables of this process share.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use super::super::credentials::CredentialProvider;
use super::super::remote::{Remote, WeakRemote};
use super::options::{Options, environment};
use crate::runtime::per_process::PerProcess;

/// Identifies a store: its scheme and bucket, its options, the memory address of the credential provider, and the
/// environment variables and file times that the store depends on. It is only kept in memory, because it contains
/// secrets.
///
/// The address identifies the provider, because a store that is in use keeps its provider alive.
type Key = (String, Options, Option<usize>, Vec<(String, String)>);

static KNOWN: PerProcess<Mutex<HashMap<Key, WeakRemote>>> = PerProcess::new();

/// For each bucket of an endpoint, a flag that is set once a test has shown that creating an object there never
/// replaces one.
static PROOFS: PerProcess<Mutex<HashMap<String, Arc<AtomicBool>>>> = PerProcess::new();

/// Returns the flag of a bucket at an endpoint. It is set when it is known that creating an object there never replaces
/// another one.
pub(super) fn proof(bucket: &str) -> Arc<AtomicBool> {
    let proofs = PROOFS.get();
    let mut proofs = proofs.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(proofs.entry(bucket.to_owned()).or_default())
}

/// Returns the store that is already in use for this location and these options. If there is none, `make` creates it.
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
