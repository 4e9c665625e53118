//! The machine's clock, for purposes of this machine only: how long a store is silent, when credentials expire, when a
//! file of the cache was last used.
//!
//! Times that a commit records come from [`Environment`](super::environment::Environment), whose clock tests can
//! control. `clippy.toml` forbids every other access to the time.

use std::time::{Duration, Instant, SystemTime};

/// Returns the current moment, to measure elapsed time from it.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Returns the time of day, to compare with times of files and of credentials.
pub(crate) fn system_time() -> SystemTime {
    SystemTime::now()
}

/// Returns the time at which a statement begins, in microseconds since 1970.
pub(crate) fn micros() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

/// Pauses the thread, even if its call is interrupted. Only for very short pauses; otherwise use
/// [`interrupt::sleep`](super::interrupt::sleep).
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}
