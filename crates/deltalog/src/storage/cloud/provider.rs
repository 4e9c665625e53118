//! Renews the credentials that a caller's provider returns to the clients of a store.
//!
//! - Credentials are kept until shortly before they expire. Then one request gets new ones. The other requests continue
//!   with the old credentials while these are valid; otherwise they wait and share the result, even if it is an error.
//! - The provider is called on a thread of its own, so it may block. It may wait for other requests, and for a lock
//!   that the caller of the request has released, but not longer than `PATIENCE`.
//! - If the provider fails while the old credentials are still valid, these are used, and the provider is called again
//!   a little later.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use object_store::CredentialProvider as Provider;
use tokio::sync::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::runtime::clock;
use crate::storage::answers::ProviderFailure;
use crate::storage::credentials::{CredentialProvider, Credentials, Secret};

/// How long before the credentials expire new credentials are requested.
const MARGIN: Duration = Duration::from_secs(5 * 60);
/// How long to wait after a failure before the provider is called again, if the old credentials are still valid.
const PAUSE: Duration = Duration::from_secs(10);
/// How long a provider may take. During this time, a person may have to log in.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Converts what the provider returns to the credentials of a client.
pub(super) type Convert<C> = fn(Secret) -> Result<C>;

/// Credentials of type `C`, which are renewed in time.
pub(super) struct Renewed<C> {
    provider: Arc<dyn CredentialProvider>,
    convert: Convert<C>,
    current: RwLock<Option<Kept<C>>>,
    /// Locked by the request that calls the provider. It contains the last failure and its time.
    asking: Mutex<Option<(Instant, Error)>>,
}

struct Kept<C> {
    credential: Arc<C>,
    renew_at: Option<Instant>,
    expires_at: Option<Instant>,
}

impl<C> Clone for Kept<C> {
    fn clone(&self) -> Self {
        Self { credential: Arc::clone(&self.credential), ..*self }
    }
}

impl<C> Kept<C> {
    fn new(credential: C, expires_at: Option<Duration>, ask_again_after: Option<Duration>) -> Self {
        let now = clock::instant();
        let renew_at = expires_at.map(|left| left - MARGIN.min(left / 2));
        Self {
            credential: Arc::new(credential),
            renew_at: renew_at
                .into_iter()
                .chain(ask_again_after)
                .min()
                .and_then(|after| now.checked_add(after)),
            expires_at: expires_at.and_then(|left| now.checked_add(left)),
        }
    }

    fn is_fresh(&self) -> bool {
        self.renew_at.is_none_or(|time| clock::instant() < time)
    }

    fn is_valid(&self) -> bool {
        self.expires_at.is_none_or(|time| clock::instant() < time)
    }
}

impl<C: Send + Sync + 'static> Renewed<C> {
    pub(super) fn new(provider: Arc<dyn CredentialProvider>, convert: Convert<C>) -> Self {
        Self { provider, convert, current: RwLock::default(), asking: Mutex::default() }
    }

    fn kept(&self) -> Option<Kept<C>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns credentials that are valid now.
    pub(super) async fn get(&self) -> Result<Arc<C>> {
        let kept = self.kept();
        if let Some(kept) = kept.as_ref().filter(|kept| kept.is_fresh()) {
            return Ok(Arc::clone(&kept.credential));
        }
        let valid = kept.filter(Kept::is_valid);
        let came = clock::instant();
        let mut failed = match (&valid, self.asking.try_lock()) {
            (_, Ok(failed)) => failed,
            // Another request is already calling the provider.
            (Some(kept), Err(_)) => return Ok(Arc::clone(&kept.credential)),
            (None, Err(_)) => self.asking.lock().await,
        };
        if let Some(kept) = self.kept().filter(Kept::is_fresh) {
            return Ok(kept.credential);
        }
        match (&*failed, &valid) {
            (Some((at, _)), Some(kept)) if at.elapsed() < PAUSE => return Ok(Arc::clone(&kept.credential)),
            (Some((at, error)), None) if *at >= came => return Err(error.again()),
            _ => {}
        }
        match self.ask().await {
            Ok(new) => {
                let credential = Arc::clone(&new.credential);
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(new);
                *failed = None;
                Ok(credential)
            }
            Err(error) => {
                *failed = Some((clock::instant(), error.again()));
                let Some(kept) = valid.filter(Kept::is_valid) else { return Err(error) };
                tracing::warn!(%error, "credentials could not be renewed: the old ones are still valid");
                Ok(kept.credential)
            }
        }
    }

    async fn ask(&self) -> Result<Kept<C>> {
        let provider = Arc::clone(&self.provider);
        let asked = tokio::task::spawn_blocking(move || provider.credentials());
        let name = || self.provider.name();
        let denied = |what: String| Error::new(ErrorKind::PermissionDenied, what);
        let Credentials { secret, expires_at, ask_again_after } = match tokio::time::timeout(PATIENCE, asked)
            .await
        {
            Ok(Ok(answer)) => answer?,
            Ok(Err(_)) => return Err(denied(format!("the credential provider {} panicked", name()))),
            Err(_) => {
                return Err(denied(format!("the credential provider {} does not answer", name())).with_hint(
                    "it must not wait for the thread that reads or writes the table, nor for a lock that \
                         this thread holds",
                ));
            }
        };
        // If the expiration is in the past, no time is left.
        let left = expires_at.map(|time| time.duration_since(clock::system_time()).unwrap_or_default());
        if left.is_some_and(|left| left.is_zero()) {
            let what = format!("the credential provider {} returned credentials that have expired", name());
            return Err(denied(what).with_hint("check the provider, and the clock of this machine"));
        }
        let credential = (self.convert)(secret).map_err(|error| {
            Error::invalid_argument(format!("the credentials of the provider {} cannot be used", name()))
                .with_source(error)
        })?;
        Ok(Kept::new(credential, left, ask_again_after))
    }
}

#[async_trait::async_trait]
impl<C: Send + Sync + 'static> Provider for Renewed<C> {
    type Credential = C;

    async fn get_credential(&self) -> object_store::Result<Arc<C>> {
        self.get().await.map_err(failure)
    }
}

impl<C> fmt::Debug for Renewed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewed").field("provider", &self.provider.name()).finish_non_exhaustive()
    }
}

/// Returns the error for a request without credentials, in the form in which the clients pass it on.
pub(super) fn failure(error: Error) -> object_store::Error {
    object_store::Error::Generic { store: "credentials", source: Box::new(ProviderFailure(error)) }
}

/// Returns the error for a kind of credentials that the store does not accept.
pub(super) fn wrong_kind(wanted: &str) -> Error {
    Error::invalid_argument(format!("this store takes {wanted}"))
}

/// Refuses strings that cannot be sent in a header, because they would make the client panic.
pub(super) fn printable(text: String) -> Result<String> {
    match text.is_empty() || text.bytes().any(|byte| !matches!(byte, b' '..=b'~')) {
        true => {
            Err(Error::invalid_argument("a value is empty, or has characters that are not printable ASCII"))
        }
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::SystemTime;

    use super::*;

    type Answer = dyn Fn(usize) -> Result<Credentials> + Send + Sync;

    /// Returns credentials, and a counter of the calls to their provider. The provider calls `answer` with the number
    /// of the call.
    fn renewed(answer: Box<Answer>) -> (Arc<Renewed<String>>, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let provider = move || answer(count.fetch_add(1, Ordering::SeqCst));
        let token = |secret| match secret {
            Secret::BearerToken(token) => printable(token),
            _ => Err(wrong_kind("a token")),
        };
        (Arc::new(Renewed::new(Arc::new(provider), token)), asked)
    }

    fn token(number: usize) -> Credentials {
        Credentials::bearer_token(format!("token {number}"))
    }

    fn expiring(number: usize, after: Duration) -> Credentials {
        token(number).expiring_at(SystemTime::now() + after)
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    async fn all<C: Send + Sync + 'static>(from: &Renewed<C>) -> Vec<Result<Arc<C>>> {
        futures::future::join_all((0..20).map(|_| from.get())).await
    }

    #[test]
    fn one_request_calls_the_provider_and_all_share_the_result() {
        let (ours, asked) = renewed(Box::new(|number| {
            std::thread::sleep(Duration::from_millis(20));
            Ok(token(number))
        }));
        let all = run(all(&ours));
        assert!(all.iter().all(|one| **one.as_ref().unwrap() == "token 0"));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn waiting_requests_share_a_failure() {
        let (ours, asked) = renewed(Box::new(|number| {
            std::thread::sleep(Duration::from_millis(20));
            Err(Error::new(ErrorKind::PermissionDenied, format!("no {number}")))
        }));
        run(async {
            assert!(all(&ours).await.iter().all(|one| one.as_ref().unwrap_err().to_string() == "no 0"));
            assert_eq!(ours.get().await.unwrap_err().to_string(), "no 1");
        });
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn credentials_are_renewed_before_they_expire() {
        let kept = |expires: u64, again: Option<u64>| {
            let seconds = Duration::from_secs;
            let kept = Kept::new((), Some(seconds(expires)), again.map(seconds));
            kept.renew_at.unwrap().duration_since(Instant::now()).as_secs_f64().round()
        };
        assert_eq!(kept(3600, None), 3300.0);
        assert_eq!(kept(60, None), 30.0);
        assert_eq!(kept(3600, Some(60)), 60.0);
        assert!(Kept::new((), None, None).is_fresh());
    }

    #[test]
    fn old_credentials_are_used_only_while_they_are_valid() {
        let (ours, asked) = renewed(Box::new(|number| match number {
            0 => Ok(expiring(0, Duration::from_secs(3600)).asked_again_after(Duration::ZERO)),
            _ => Err(Error::new(ErrorKind::PermissionDenied, "no")),
        }));
        run(async {
            for _ in 0..10 {
                assert_eq!(*ours.get().await.unwrap(), "token 0");
            }
            assert_eq!(asked.load(Ordering::SeqCst), 2);
            ours.current.write().unwrap().as_mut().unwrap().expires_at = Some(Instant::now());
            assert_eq!(ours.get().await.unwrap_err().to_string(), "no");
        });
    }

    #[test]
    fn a_slow_renewal_delays_only_the_request_that_calls_the_provider() {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        let (ours, _) = renewed(Box::new(move |number| {
            if number > 0 {
                wait.lock().unwrap().recv().unwrap();
            }
            Ok(token(number).asked_again_after(Duration::from_secs(if number == 0 { 0 } else { 60 })))
        }));
        run(async {
            assert_eq!(*ours.get().await.unwrap(), "token 0");
            let asks = tokio::spawn({
                let ours = Arc::clone(&ours);
                async move { ours.get().await }
            });
            tokio::task::yield_now().await;
            assert_eq!(*ours.get().await.unwrap(), "token 0");
            go.send(()).unwrap();
            assert_eq!(*asks.await.unwrap().unwrap(), "token 1");
            assert_eq!(*ours.get().await.unwrap(), "token 1");
        });
    }

    #[test]
    fn unusable_credentials_are_refused_without_being_shown() {
        let text = |answer: Box<Answer>| run(renewed(answer).0.get()).unwrap_err().to_string();
        let past = SystemTime::now() - Duration::from_secs(1);
        assert!(text(Box::new(move |number| Ok(token(number).expiring_at(past)))).contains("have expired"));
        let wrong = text(Box::new(|_| Ok(Credentials::account_key("hidden"))));
        assert!(wrong.contains("takes a token") && !wrong.contains("hidden"), "{wrong}");
        let broken = text(Box::new(|_| Ok(Credentials::bearer_token("hidden\n"))));
        assert!(broken.contains("printable") && !broken.contains("hidden"), "{broken}");
        assert!(text(Box::new(|_| panic!("hidden"))).ends_with("panicked"));
    }
}
