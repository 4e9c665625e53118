//! The progress of long operations, for people who wait for them: events of the level INFO with the target
//! `deltalog::progress`.
//!
//! There is an event every few seconds, so that an operation which takes less has none.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two events.
const INTERVAL: Duration = Duration::from_secs(5);

/// The progress of one operation, on which several threads may work.
#[derive(Debug)]
pub(crate) struct Progress {
    operation: &'static str,
    table: String,
    /// The counted units.
    unit: &'static str,
    all: Option<u64>,
    done: AtomicU64,
    clock: Clock,
}

/// When events are due.
#[derive(Debug)]
struct Clock {
    begun: Instant,
    last: Mutex<Instant>,
    interval: Duration,
}

impl Progress {
    /// Begins an operation on a table. `all` is the total amount of work, if that is known.
    pub(crate) fn new(
        operation: &'static str,
        table: String,
        all: impl Into<Option<u64>>,
        unit: &'static str,
    ) -> Self {
        let now = Instant::now();
        let clock = Clock { begun: now, last: Mutex::new(now), interval: INTERVAL };
        Self { operation, table, unit, all: all.into(), done: AtomicU64::new(0), clock }
    }

    /// Counts what was done.
    pub(crate) fn add(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
        if let Some(seconds) = self.clock.due(Instant::now()) {
            tracing::info!(target: "deltalog::progress", "{self} after {seconds} s");
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, done) = (self.operation, self.done.load(Ordering::Relaxed));
        match self.all {
            Some(all) => {
                let percent = done.min(all).saturating_mul(100) / all.max(1);
                write!(f, "{operation}: {done} of {all} {} ({percent} %)", self.unit)?;
            }
            None => write!(f, "{operation}: {done} {}", self.unit)?,
        }
        write!(f, " of the table {}", self.table)
    }
}

impl Clock {
    /// Returns the seconds since the beginning if an event is due.
    fn due(&self, now: Instant) -> Option<u64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(*last) < self.interval {
            return None;
        }
        *last = now;
        Some(now.saturating_duration_since(self.begun).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_due_every_few_seconds() {
        let Progress { clock, .. } = Progress::new("VACUUM", "file:///t".to_owned(), 4, "files");
        let after = |seconds: u64| clock.due(clock.begun + Duration::from_secs(seconds));
        let due: Vec<Option<u64>> = [0, 4, 5, 6, 9, 10, 31, 35].map(after).into();
        assert_eq!(due, [None, None, Some(5), None, None, Some(10), Some(31), None]);
    }

    #[test]
    fn an_event_says_how_much_is_done() {
        let progress = Progress::new("VACUUM", "file:///t".to_owned(), 4, "files");
        progress.add(1);
        progress.add(2);
        assert_eq!(progress.to_string(), "VACUUM: 3 of 4 files (75 %) of the table file:///t");
        let progress = Progress::new("FSCK", "file:///t".to_owned(), None, "files");
        progress.add(7);
        assert_eq!(progress.to_string(), "FSCK: 7 files of the table file:///t");
        assert_eq!(
            Progress::new("OPTIMIZE", "t".to_owned(), 0, "bins").to_string(),
            "OPTIMIZE: 0 of 0 bins (0 %) of the table t"
        );
    }
}
