//! An S3 server in memory, which records requests and makes them fail.
//!
//! ```
//! use deltalog_testkit::s3::{ErrorAnswer, Fault, Kind, Rule, S3Server, When};
//!
//! let server = S3Server::start();
//! server.create_bucket("tables");
//! server.put_object("tables", "t/_delta_log/00000000000000000000.json", "{}");
//! // The first put-if-absent of a commit takes effect, but its answer is lost.
//! let lost = Rule::new(Fault::CloseAfter).on(Kind::Create).key("_delta_log/").when(When::First(1));
//! let denied = Rule::new(Fault::Error(ErrorAnswer::new("AccessDenied"))).on(Kind::List);
//! server.faults([lost, denied]);
//! assert!(server.endpoint().starts_with("http://127.0.0.1:"));
//! assert!(server.take_requests().is_empty());
//! ```
//!
//! - The crate `s3s` provides operations, signatures and the XML. Conditional writes are exact, because the check and
//!   the write happen under the same lock.
//! - Below `s3s`, in the HTTP service, requests are recorded and delayed, and [`Rule`]s decide how they fail.
//! - If a client gives up on a request, the request continues, so it may take effect later.
//! - The bucket is the first part of the path of a request, and not a part of the host name.

mod access;
mod answers;
mod buckets;
mod control;
mod listener;
mod listing;
mod operations;
mod pace;
mod requests;
mod rules;
mod running;
mod server;
mod settings;
mod uploads;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use answers::ErrorAnswer;
pub use control::{Controlled, Fill};
pub use requests::{Kind, Request, count};
pub use rules::{Fault, Rule, When};
pub use server::S3Server;
pub use settings::Settings;

use buckets::Buckets;
use pace::Line;
use rules::Rules;

/// The state that all connections share.
#[derive(Debug, Default)]
struct Shared {
    buckets: Mutex<Buckets>,
    settings: Mutex<Settings>,
    rules: Mutex<Rules>,
    log: Mutex<Vec<Request>>,
    numbers: AtomicU64,
    line: Arc<Line>,
}

impl Shared {
    fn buckets(&self) -> MutexGuard<'_, Buckets> {
        lock(&self.buckets)
    }

    fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        lock(&self.rules)
    }

    fn log(&self) -> MutexGuard<'_, Vec<Request>> {
        lock(&self.log)
    }

    /// Returns the number of a new request.
    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
