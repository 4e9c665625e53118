//! Forwards the crate's log events to Python's `logging`: to the logger `deltalog`, which has a child for each
//! module.
//!
//! The crate logs with `tracing`. Its feature `log` forwards the events to the logger of this library, [`Bridge`].
//!
//! - A thread must not wait for the interpreter if the thread that holds the interpreter may be waiting for it. Only
//!   a thread that has just released the interpreter ([`with_immediate_delivery`]) delivers its records itself. All
//!   other threads (the crate's own threads, and the threads of consumers of streams) enqueue their records, and a
//!   separate thread delivers them to Python. Records from threads of a call are delivered before the call returns.
//! - An event that is not logged costs only one comparison. The first record imports `logging` and reads its levels.
//! - If a filter or handler raises an exception, the result of the call does not change, unless the exception is a
//!   request to stop, such as `KeyboardInterrupt`. A call that commits is completed first; the next call of the
//!   thread raises the exception.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3_log::{Caching, Logger};

use crate::{ending, foreign};

/// The most detailed level that is meant for users.
const FINEST_LEVEL: LevelFilter = LevelFilter::Info;

/// How long the process waits at exit for undelivered records.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Python's logger. Nothing about it is cached, because levels and handlers may change at any time.
static PYTHON: PyOnceLock<Logger> = PyOnceLock::new();

/// Records that have not been delivered to Python yet.
static PENDING: Mutex<VecDeque<PendingRecord>> = Mutex::new(VecDeque::new());

/// Whether there may be pending records. If there are none, a call does not have to lock the queue.
static HAS_PENDING: AtomicBool = AtomicBool::new(false);

/// The number of running delivery threads.
static DELIVERY_THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread has just released the interpreter.
    static IS_FREE: Cell<bool> = const { Cell::new(false) };
    /// The exception of a handler that asked this thread to stop.
    static STOP: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// A copy of a log record that outlives its event.
struct PendingRecord {
    level: Level,
    target: String,
    text: String,
    file: Option<String>,
    line: Option<u32>,
}

/// The logger of this library.
struct Bridge;

impl Log for Bridge {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= FINEST_LEVEL && metadata.target().split("::").next() == Some("deltalog")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        enqueue(PendingRecord {
            level: record.level(),
            target: record.target().to_owned(),
            text: record.args().to_string(),
            file: record.file().map(str::to_owned),
            line: record.line(),
        });
        match IS_FREE.get() && !foreign::is_within() {
            // The interpreter may be shutting down, in which case no record can be delivered.
            true => {
                if let Some(Err(stop)) = Python::try_attach(deliver_pending) {
                    STOP.set(Some(stop));
                }
            }
            false => deliver_on_thread(),
        }
    }

    fn flush(&self) {}
}

/// Sets up logging, and makes the process wait at exit for undelivered records.
pub(crate) fn start(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // This fails if a logger is already set, which is not a problem.
    if log::set_logger(&Bridge).is_ok() {
        log::set_max_level(FINEST_LEVEL);
    }
    ending::at_exit(&wrap_pyfunction!(before_exit, module)?)
}

/// Calls `work` and delivers the records of this thread to Python immediately. The thread must not hold the
/// interpreter.
pub(crate) fn with_immediate_delivery<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_FREE.set(self.0);
        }
    }
    let _restore = Restore(IS_FREE.replace(true));
    work()
}

/// Delivers the pending records of other threads. Raises the exception of a handler that asked this thread to
/// stop.
pub(crate) fn after_call(py: Python<'_>) -> PyResult<()> {
    check_stop()?;
    if HAS_PENDING.load(Ordering::Acquire) { deliver_pending(py) } else { Ok(()) }
}

/// Raises the exception of a handler that asked this thread to stop. It is raised only once.
pub(crate) fn check_stop() -> PyResult<()> {
    STOP.take().map_or(Ok(()), Err)
}

/// Makes the next call of this thread raise `stop`.
pub(crate) fn postpone(stop: PyErr) {
    STOP.set(Some(stop));
}

fn enqueue(record: PendingRecord) {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner).push_back(record);
    HAS_PENDING.store(true, Ordering::Release);
}

fn next_pending() -> Option<PendingRecord> {
    let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let next = pending.pop_front();
    HAS_PENDING.store(!pending.is_empty(), Ordering::Release);
    next
}

/// Starts a thread that delivers the pending records. If no thread can be started, they stay pending, and are delivered
/// at the latest when the next call from Python ends (`after_call`), or at exit.
fn deliver_on_thread() {
    DELIVERY_THREADS.fetch_add(1, Ordering::AcqRel);
    let thread = std::thread::Builder::new().name("deltalog-log".to_owned()).spawn(|| {
        // The interpreter may be shutting down, in which case no record can be delivered.
        let _ = Python::try_attach(deliver_all_pending);
        DELIVERY_THREADS.fetch_sub(1, Ordering::AcqRel);
    });
    if thread.is_err() {
        DELIVERY_THREADS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Delivers the pending records.
///
/// # Errors
/// Returns the exception of a handler that asked this thread to stop. The remaining records are then still pending.
fn deliver_pending(py: Python<'_>) -> PyResult<()> {
    while let Some(record) = next_pending() {
        deliver(py, &record)?;
    }
    Ok(())
}

/// Delivers all pending records, on a thread that handlers cannot stop.
fn deliver_all_pending(py: Python<'_>) {
    while let Err(raised) = deliver_pending(py) {
        raised.write_unraisable(py, None);
    }
}

fn deliver(py: Python<'_>, pending: &PendingRecord) -> PyResult<()> {
    // Handlers must neither see nor lose an exception that is currently being raised.
    let earlier = PyErr::take(py);
    let raised = match PYTHON.get_or_try_init(py, || Logger::new(py, Caching::Nothing)) {
        Ok(logger) => {
            let mut record = Record::builder();
            record
                .level(pending.level)
                .target(&pending.target)
                .file(pending.file.as_deref())
                .line(pending.line);
            logger.log(&record.args(format_args!("{}", pending.text)).build());
            PyErr::take(py)
        }
        Err(raised) => Some(raised),
    };
    if let Some(earlier) = earlier {
        earlier.restore(py);
    }
    match raised {
        Some(stop) if !stop.is_instance_of::<PyException>(py) => Err(stop),
        Some(raised) => {
            raised.write_unraisable(py, None);
            Ok(())
        }
        None => Ok(()),
    }
}

/// Waits for the delivery threads, because Python stops a thread that attaches to an ending interpreter, no matter what
/// the thread is doing.
#[pyfunction]
fn before_exit(py: Python<'_>) {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    py.detach(|| {
        while DELIVERY_THREADS.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    deliver_all_pending(py);
}
