//! Reports the progress of long operations to the people who wait for them.
//!
//! ```text
//! operation ── add ── add ──► Progress ──► an event of the level INFO every few seconds (`deltalog::progress`)
//!                                │
//!                                └───────► every ProgressObserver, which asks for reports when it wants them
//! ```
//!
//! - An operation that takes less than a few seconds does not log an event, but observers still see it.
//! - Observers belong to the process: each one sees the operations that begin, on any thread, while it exists. A forked
//!   child process does not have the observers of its parent.
//! - Operations never wait for observers and never call them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::per_process::PerProcess;

/// The time between two log events.
const INTERVAL: Duration = Duration::from_secs(5);

/// The maximum number of operations that an observer remembers between two calls of [`ProgressObserver::reports`].
const MOST_OPERATIONS: usize = 1024;

/// The observers of this process.
static OBSERVERS: PerProcess<Mutex<Vec<Weak<Seen>>>> = PerProcess::new();

/// The operations that one observer has seen.
type Seen = Mutex<Vec<Arc<Work>>>;

/// What an operation has done so far.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgressReport {
    /// A number that identifies the operation within the process.
    pub id: u64,
    /// The name of the operation, such as `OPTIMIZE`.
    pub operation: &'static str,
    /// The location of the table.
    pub table: String,
    /// The amount of work that is done.
    pub done: u64,
    /// The total amount of work, if it is known. It may be an estimate.
    pub all: Option<u64>,
    /// The unit of the amounts: `bytes`, `files`, `rows`, `footers` or `actions`.
    pub unit: &'static str,
    /// Whether the operation has ended, successfully or not.
    pub is_finished: bool,
}

/// Observes the long operations of this process, on all threads, that begin while the observer exists.
///
/// ```
/// use deltalog::{ProgressObserver, Snapshot, TableScan};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// let observer = ProgressObserver::new();
/// let rows: usize = TableScan::new(&Snapshot::open(&storage, None)?)
///     .read()?
///     .map(|batch| Ok(batch?.num_rows()))
///     .sum::<deltalog::Result<_>>()?;
/// // Usually, another thread asks for reports from time to time, and draws a progress bar.
/// let reports = observer.reports();
/// assert!(reports.iter().any(|report| report.operation == "SCAN" && report.unit == "files"));
/// # assert!(rows > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ProgressObserver(Arc<Seen>);

impl ProgressObserver {
    /// Creates an observer, which sees the operations that begin from now on.
    #[must_use]
    pub fn new() -> Self {
        let seen = Arc::new(Seen::default());
        let mut observers = locked(OBSERVERS.get());
        observers.retain(|observer| observer.strong_count() > 0);
        observers.push(Arc::downgrade(&seen));
        Self(seen)
    }

    /// Returns a report for each operation that has begun, in the order in which they began. An operation that has
    /// ended is reported once more and then forgotten.
    pub fn reports(&self) -> Vec<ProgressReport> {
        let mut seen = locked(&self.0);
        let reports: Vec<ProgressReport> = seen.iter().map(|work| work.report()).collect();
        let mut finished = reports.iter().map(|report| report.is_finished);
        seen.retain(|_| !finished.next().unwrap_or(false));
        reports
    }
}

impl Default for ProgressObserver {
    fn default() -> Self {
        Self::new()
    }
}

/// The progress of an operation. Several threads may update it.
#[derive(Debug)]
struct Work {
    id: u64,
    operation: &'static str,
    table: String,
    /// What is counted, such as `bytes` or `files`.
    unit: &'static str,
    all: Option<u64>,
    done: AtomicU64,
    is_finished: AtomicBool,
}

impl Work {
    fn report(&self) -> ProgressReport {
        // This is read first: if the operation has ended, `done` then includes all its work.
        let is_finished = self.is_finished.load(Ordering::Acquire);
        ProgressReport {
            id: self.id,
            operation: self.operation,
            table: self.table.clone(),
            done: self.done.load(Ordering::Relaxed),
            all: self.all,
            unit: self.unit,
            is_finished,
        }
    }

    /// Registers this with all observers.
    fn show(self: &Arc<Self>) {
        let mut observers = locked(OBSERVERS.get());
        observers.retain(|observer| {
            let Some(seen) = observer.upgrade() else { return false };
            let mut seen = locked(&seen);
            if seen.len() >= MOST_OPERATIONS {
                seen.retain(|work| !work.is_finished.load(Ordering::Relaxed));
            }
            if seen.len() < MOST_OPERATIONS {
                seen.push(self.clone());
            }
            true
        });
    }
}

/// The progress of an operation. Dropping this ends the operation.
#[derive(Debug)]
pub(crate) struct Progress {
    work: Arc<Work>,
    clock: Clock,
}

/// The times at which log events are due.
#[derive(Debug)]
struct Clock {
    begun: Instant,
    last: Mutex<Instant>,
    interval: Duration,
}

impl Progress {
    /// Begins an operation on a table. `all` is the total amount of work, if it is known.
    pub(crate) fn new(
        operation: &'static str,
        table: String,
        all: impl Into<Option<u64>>,
        unit: &'static str,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let now = Instant::now();
        let clock = Clock { begun: now, last: Mutex::new(now), interval: INTERVAL };
        let work = Arc::new(Work {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            operation,
            table,
            unit,
            all: all.into(),
            done: AtomicU64::new(0),
            is_finished: AtomicBool::new(false),
        });
        work.show();
        Self { work, clock }
    }

    /// Adds to the amount of work that is done.
    pub(crate) fn add(&self, count: u64) {
        self.work.done.fetch_add(count, Ordering::Relaxed);
        if let Some(seconds) = self.clock.due(Instant::now()) {
            tracing::info!(target: "deltalog::progress", "{self} after {seconds} s");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.work.is_finished.store(true, Ordering::Release);
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Work { operation, ref table, unit, all, ref done, .. } = *self.work;
        let done = done.load(Ordering::Relaxed);
        match all {
            Some(all) => {
                let percent = done.min(all).saturating_mul(100) / all.max(1);
                write!(f, "{operation}: {done} of {all} {unit} ({percent} %)")?;
            }
            None => write!(f, "{operation}: {done} {unit}")?,
        }
        write!(f, " of the table {table}")
    }
}

impl Clock {
    /// If an event is due, returns the seconds since the operation began.
    fn due(&self, now: Instant) -> Option<u64> {
        let mut last = locked(&self.last);
        if now.saturating_duration_since(*last) < self.interval {
            return None;
        }
        *last = now;
        Some(now.saturating_duration_since(self.begun).as_secs())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_due_every_few_seconds() {
        let progress = Progress::new("VACUUM", "file:///t".to_owned(), 4, "files");
        let clock = &progress.clock;
        let after = |seconds: u64| clock.due(clock.begun + Duration::from_secs(seconds));
        let due: Vec<Option<u64>> = [0, 4, 5, 6, 9, 10, 31, 35].map(after).into();
        assert_eq!(due, [None, None, Some(5), None, None, Some(10), Some(31), None]);
    }

    #[test]
    fn an_event_shows_how_much_is_done() {
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

    /// Tests run at the same time, so operations are distinguished by their tables.
    fn seen(observer: &ProgressObserver, table: &str) -> Vec<(u64, bool)> {
        let reports = observer.reports().into_iter().filter(|report| report.table == table);
        reports.map(|report| (report.done, report.is_finished)).collect()
    }

    #[test]
    fn an_observer_sees_each_operation_up_to_its_end() {
        let unseen = Progress::new("SCAN", "seen".to_owned(), None, "files");
        let (observer, other) = (ProgressObserver::new(), ProgressObserver::new());
        assert!(seen(&observer, "seen").is_empty());
        let first = Progress::new("SCAN", "seen".to_owned(), 9, "files");
        std::thread::scope(|scope| scope.spawn(|| first.add(2)).join().unwrap());
        let second = Progress::new("SCAN", "seen".to_owned(), 9, "files");
        assert_eq!(seen(&observer, "seen"), [(2, false), (0, false)]);
        second.add(9);
        drop((second, unseen));
        assert_eq!(seen(&observer, "seen"), [(2, false), (9, true)]);
        assert_eq!(seen(&observer, "seen"), [(2, false)]);
        drop(observer);
        drop(first);
        assert_eq!(seen(&other, "seen"), [(2, true), (9, true)]);
        assert!(seen(&other, "seen").is_empty());
    }

    #[test]
    fn an_observer_that_never_asks_remembers_a_limited_number() {
        let observer = ProgressObserver::new();
        for _ in 0..3 * MOST_OPERATIONS {
            Progress::new("SCAN", "many".to_owned(), None, "files");
        }
        assert!(locked(&observer.0).len() <= MOST_OPERATIONS);
        let last = Progress::new("SCAN", "last".to_owned(), None, "files");
        assert_eq!(seen(&observer, "last"), [(0, false)]);
        drop(last);
    }
}
