//! Opens stores with options and, optionally, a provider of credentials.
//!
//! A provider is called on a thread that does not hold the interpreter, and that has to wait for it. No thread may
//! therefore hold the interpreter while it waits for a store: calls release it ([`call`](crate::call)), and streams
//! release it if there are providers ([`released`]).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use deltalog::{CredentialProvider, Credentials, Error, ErrorKind, Result, Storage};
use pyo3::prelude::*;

use crate::{ending, foreign, log_store};

const MODULE: &str = "deltalog.credentials";

/// The providers in use, by the address of their Python object. All tables with the same object thus share the
/// credentials that it returns.
///
/// Only threads that hold the interpreter lock this list, so it is never locked when a process forks.
static PROVIDERS: Mutex<Vec<Weak<Provider>>> = Mutex::new(Vec::new());

/// Whether any provider has been used in this process.
static HAS_PROVIDERS: AtomicBool = AtomicBool::new(false);

/// The options of a store: a mapping, or `deltalog.arguments.StoreOptions` in Python.
#[derive(Default)]
pub(crate) struct StoreOptions {
    options: HashMap<String, String>,
    provider: Option<Arc<Provider>>,
}

#[derive(FromPyObject)]
enum Given {
    Both {
        options: HashMap<String, String>,
        credential_provider: Option<Py<PyAny>>,
    },
    #[pyo3(transparent)]
    Options(HashMap<String, String>),
}

impl<'py> FromPyObject<'_, 'py> for StoreOptions {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(match given.extract()? {
            Given::Options(options) => Self { options, provider: None },
            Given::Both { options, credential_provider } => {
                Self { options, provider: credential_provider.map(|object| provider(given.py(), object)) }
            }
        })
    }
}

impl StoreOptions {
    /// Checks the options that users pass directly to a method of this module.
    pub(crate) fn checked(
        uri: &str,
        storage_options: Option<&Bound<'_, PyAny>>,
        credential_provider: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let arguments = (uri, storage_options, credential_provider);
        py.import("deltalog.arguments")?.call_method1("store_argument", arguments)?.extract()
    }

    /// Opens the store of `uri`.
    pub(crate) fn open(&self, uri: &str) -> Result<Storage> {
        let (options, log_store) = log_store::split(&self.options);
        let storage = match &self.provider {
            Some(provider) => Storage::open_with_credentials(uri, options, Arc::clone(provider) as _),
            None => Storage::open(uri, options),
        }?;
        Ok(match log_store {
            Some(log_store) => storage.with_coordinator(log_store),
            None => storage,
        })
    }
}

/// Opens the store of `uri` with the options of the user.
pub(crate) fn open_storage(uri: &str, options: Option<StoreOptions>) -> Result<Storage> {
    options.unwrap_or_default().open(uri)
}

/// Runs `work`, which may wait for a store. If this thread holds the interpreter and there are providers, releases
/// the interpreter while `work` runs.
pub(crate) fn released<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if !HAS_PROVIDERS.load(Ordering::Relaxed) || foreign::is_within() || ending::is_elsewhere() {
        return work();
    }
    let mut work = Some(work);
    let done = Python::try_attach(|py| work.take().map(|work| py.detach(work))).flatten();
    match (done, work) {
        (Some(done), _) => done,
        // The interpreter is shutting down.
        (None, Some(work)) => work(),
        (None, None) => unreachable!("work is taken by what runs it"),
    }
}

/// Returns the provider for a Python object.
fn provider(py: Python<'_>, object: Py<PyAny>) -> Arc<Provider> {
    HAS_PROVIDERS.store(true, Ordering::Relaxed);
    let mut known = PROVIDERS.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|provider| provider.strong_count() > 0);
    let same = |provider: &Arc<Provider>| provider.object.is(&object);
    if let Some(provider) = known.iter().filter_map(Weak::upgrade).find(same) {
        return provider;
    }
    let provider = Arc::new(Provider { name: name(object.bind(py)), object, seen: Mutex::default() });
    known.push(Arc::downgrade(&provider));
    provider
}

/// Returns the name of a function, or the name of an object's class. A `repr` could reveal secrets.
fn name(object: &Bound<'_, PyAny>) -> String {
    let of = |object: &Bound<'_, PyAny>| -> PyResult<String> {
        let name: String = object.getattr("__qualname__")?.extract()?;
        let module: String = object.getattr("__module__")?.extract()?;
        Ok(format!("{module}.{name}"))
    };
    of(object).or_else(|_| of(object.get_type().as_any())).unwrap_or_else(|_| "without a name".to_owned())
}

/// A provider of credentials that is a Python object; see the module `deltalog.credentials`.
struct Provider {
    object: Py<PyAny>,
    name: String,
    /// The values of the last returned credentials, which errors must not contain.
    seen: Mutex<Vec<String>>,
}

/// The credentials that a provider returns: `deltalog.credentials.Answer` in Python.
#[derive(FromPyObject)]
struct Answer {
    kind: String,
    secrets: Vec<String>,
    expires_at: Option<f64>,
    ask_again_after: Option<f64>,
}

impl CredentialProvider for Provider {
    fn credentials(&self) -> Result<Credentials> {
        let ask = |py: Python<'_>| match self.ask(py) {
            Ok(answer) => self.read(answer),
            Err(failure) => Err(self.failure(py, failure)),
        };
        let asked = ending::before(|| match foreign::is_within() {
            // The thread that ends the interpreter must not wait for a thread that needs it.
            _ if ending::has_begun() => None,
            true => std::thread::scope(|scope| scope.spawn(|| Python::try_attach(ask)).join().ok().flatten()),
            false => Python::try_attach(ask),
        });
        asked.flatten().unwrap_or_else(|| Err(Error::new(ErrorKind::Unavailable, ending::TOO_LATE)))
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Provider {
    fn ask(&self, py: Python<'_>) -> PyResult<Answer> {
        py.import(MODULE)?.call_method1("ask", (&self.object,))?.extract()
    }

    fn read(&self, answer: Answer) -> Result<Credentials> {
        let Answer { kind, secrets, expires_at, ask_again_after } = answer;
        seen(&self.seen).clone_from(&secrets);
        let mut secrets = secrets.into_iter();
        let mut next = || secrets.next().unwrap_or_default();
        let credentials = match kind.as_str() {
            "access_key" => {
                let (id, secret) = (next(), next());
                Credentials::access_key(id, secret, secrets.next())
            }
            "account_key" => Credentials::account_key(next()),
            "sas" => Credentials::shared_access_signature(next()),
            _ => Credentials::bearer_token(next()),
        };
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let end = expires_at.and_then(|end| SystemTime::UNIX_EPOCH.checked_add(seconds(end)));
        let credentials = end.into_iter().fold(credentials, Credentials::expiring_at);
        Ok(ask_again_after.map(seconds).into_iter().fold(credentials, Credentials::asked_again_after))
    }

    fn failure(&self, py: Python<'_>, failure: PyErr) -> Error {
        let module = py.import(MODULE);
        let text = |name: &str| module.as_ref().ok()?.getattr(name).ok();
        if text("NotCredentialsError").is_some_and(|class| failure.is_instance(py, &class)) {
            let expected: Option<String> = text("EXPECTED").and_then(|text| text.extract().ok());
            let what = format!("the credential provider {} returned {}", self.name, failure.value(py));
            return Error::invalid_argument(what).with_hint(expected.unwrap_or_default());
        }
        let error =
            Error::new(ErrorKind::PermissionDenied, format!("the credential provider {} failed", self.name));
        let said = failure.to_string();
        let mut shown = said.clone();
        for secret in seen(&self.seen).iter().filter(|secret| !secret.is_empty()) {
            shown = shown.replace(secret.as_str(), "…");
        }
        // The exception becomes the cause. If its text contains a secret, only the text without the secret does,
        // because the traceback would show the whole text.
        if shown == said { error.with_source(failure) } else { error.with_source(shown) }
    }
}

fn seen(seen: &Mutex<Vec<String>>) -> std::sync::MutexGuard<'_, Vec<String>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
