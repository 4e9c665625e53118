//! The machine's clock. It is only used for what happens on this machine: how long a store has been silent, when
//! credentials expire, when a file in the cache was last used, and when a statement began.
//!
//! Times that a commit records come from [`Environment`](super::environment::Environment), whose clock tests can
//! control. `clippy.toml` forbids getting the time in any other way.

use std::time::{Duration, Instant, SystemTime};

/// Returns the current moment, from which elapsed time can be measured.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Returns the time of day, to compare it with the times of files and credentials.
pub(crate) fn system_time() -> SystemTime {
    SystemTime::now()
}

/// Returns the current time in microseconds since 1970. A statement takes it once, as the time at which it began.
pub(crate) fn micros() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

/// Pauses the thread, even if its call is interrupted. This is only for very short pauses. For longer ones, use
/// [`interrupt::sleep`](super::interrupt::sleep).
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}
