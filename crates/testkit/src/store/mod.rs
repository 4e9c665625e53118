//! A store in memory. A [`Director`] decides how its requests fail.
//!
//! - Puts are atomic, put-if-absent is exact, and reads are consistent, as the protocol requires of a store. The
//!   director only determines the response that the caller gets, and the time at which a request takes effect.
//! - A listing may leave out files that are created while it runs, and others if the director says so.
//! - A crash unwinds the calling thread, with [`Crash`] as the payload.

mod director;
mod fault;
mod faulty;
mod objects;
mod requests;
mod upload;

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use object_store::Error;

pub use director::{Answer, Call, Director, Op};
pub use fault::Fault;
pub use faulty::FaultyStore;
pub use objects::{Entry, Object, Objects};

/// The payload of the panic with which a thread crashes in a request.
#[derive(Debug, Clone, Copy)]
pub struct Crash;

/// A connection to a store in memory. Each connection has its own director; clones and other connections share the
/// objects.
#[derive(Clone)]
pub struct Store {
    objects: Arc<Mutex<Objects>>,
    director: Arc<dyn Director>,
}

impl Store {
    /// Connects to `objects`. `director` decides how requests fail.
    pub fn new(objects: Arc<Mutex<Objects>>, director: Arc<dyn Director>) -> Self {
        Self { objects, director }
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        // No crash unwinds while the lock is held, so the contents of a poisoned lock are valid.
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

/// Unwinds the calling thread. If it is already unwinding, returns an error instead, because a second panic would end
/// the process.
fn crash() -> Error {
    if std::thread::panicking() { lost() } else { resume_unwind(Box::new(Crash)) }
}

fn lost() -> Error {
    Error::Generic { store: "testkit", source: "connection reset".into() }
}

fn denied(path: &str) -> Error {
    Error::PermissionDenied { path: path.to_owned(), source: "403".into() }
}

fn exists(path: &str) -> Error {
    Error::AlreadyExists { path: path.to_owned(), source: "412".into() }
}

fn missing(path: &str) -> Error {
    Error::NotFound { path: path.to_owned(), source: "404".into() }
}
