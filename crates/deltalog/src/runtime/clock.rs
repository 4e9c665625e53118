//! The clock of the machine, for what is about this machine: how long a store is silent, when credentials end, when a
//! file of the cache was last used.
//!
//! What a commit records comes from [`Environment`](super::environment::Environment), whose clock tests decide.
//! `clippy.toml` refuses every other way to the time.

use std::time::{Duration, Instant, SystemTime};

/// Returns a moment, to measure what passes from there on.
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

/// Pauses the thread, whether or not its call is interrupted. For less than a moment: see
/// [`interrupt::sleep`](super::interrupt::sleep).
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}
