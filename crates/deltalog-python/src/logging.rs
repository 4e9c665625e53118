//! What the crate logs, as records of Python's `logging`: logger `deltalog` and children by module.
//!
//! The crate logs through `tracing`, whose feature `log` passes events on to the one logger of this library,
//! [`Bridge`].
//!
//! - Nobody waits for the interpreter who may be waited for by its holder. Only a thread that has just
//!   released it ([`at_once`]) logs right away. Others, which are the crate's own and those of consumers of
//!   streams, leave their records, and a thread of its own brings them to Python; what comes from threads of
//!   a call is there when the call returns.
//! - What is logged costs, what is not costs a comparison: `logging` is imported, and its loggers are asked
//!   for their level, by the first record.
//! - A filter or handler that raises does not change what the call returns, unless it raises the wish to stop
//!   (`KeyboardInterrupt`).

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

/// What is finer is not meant for users.
const FINEST: LevelFilter = LevelFilter::Info;

/// How long the end of the process waits for records that are on their way.
const AT_EXIT: Duration = Duration::from_secs(1);

/// The way to Python, asked anew for each record: levels and handlers may change at any time.
static PYTHON: PyOnceLock<Logger> = PyOnceLock::new();

/// Records that nobody has brought to Python yet.
static LEFT: Mutex<VecDeque<Said>> = Mutex::new(VecDeque::new());

/// Whether there may be any, so that a call need not lock.
static HAS_LEFT: AtomicBool = AtomicBool::new(false);

/// Threads that bring records.
static MESSENGERS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread has just released the interpreter.
    static IS_FREE: Cell<bool> = const { Cell::new(false) };
    /// What a handler raised that asks this thread to stop.
    static STOP: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// A record that outlives the event.
struct Said {
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
        metadata.level() <= FINEST && metadata.target().split("::").next() == Some("deltalog")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        leave(Said {
            level: record.level(),
            target: record.target().to_owned(),
            text: record.args().to_string(),
            file: record.file().map(str::to_owned),
            line: record.line(),
        });
        match IS_FREE.get() {
            true => Python::attach(bring_left).unwrap_or_else(|stop| STOP.set(Some(stop))),
            false => send(),
        }
    }

    fn flush(&self) {}
}

/// Begins to log, and has the end of the process wait for what is on its way.
pub(crate) fn start(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Fails if it is there already, which is as well.
    if log::set_logger(&Bridge).is_ok() {
        log::set_max_level(FINEST);
    }
    let at_exit = wrap_pyfunction!(before_exit, module)?;
    module.py().import("atexit")?.call_method1("register", (at_exit,))?;
    Ok(())
}

/// Does `work`; what this thread logs meanwhile goes to Python right away. The thread must not hold the
/// interpreter.
pub(crate) fn at_once<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_FREE.set(self.0);
        }
    }
    let _restore = Restore(IS_FREE.replace(true));
    work()
}

/// Brings what other threads have left, and raises what a handler has raised to stop this one.
pub(crate) fn after_call(py: Python<'_>) -> PyResult<()> {
    STOP.take().map_or(Ok(()), Err)?;
    if HAS_LEFT.load(Ordering::Acquire) { bring_left(py) } else { Ok(()) }
}

fn leave(said: Said) {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).push_back(said);
    HAS_LEFT.store(true, Ordering::Release);
}

fn next_left() -> Option<Said> {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    let next = left.pop_front();
    HAS_LEFT.store(!left.is_empty(), Ordering::Release);
    next
}

/// Has a thread bring what was left. If the system has no more threads, the next call does.
fn send() {
    MESSENGERS.fetch_add(1, Ordering::AcqRel);
    let messenger = std::thread::Builder::new().name("deltalog-log".to_owned()).spawn(|| {
        // There is nobody to tell once the interpreter ends.
        let _ = Python::try_attach(bring_all_left);
        MESSENGERS.fetch_sub(1, Ordering::AcqRel);
    });
    if messenger.is_err() {
        MESSENGERS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Brings what was left.
///
/// # Errors
/// What a handler raised to stop this thread; the rest is still left then.
fn bring_left(py: Python<'_>) -> PyResult<()> {
    while let Some(said) = next_left() {
        bring(py, &said)?;
    }
    Ok(())
}

/// The same for a thread that nobody wants to stop.
fn bring_all_left(py: Python<'_>) {
    while let Err(raised) = bring_left(py) {
        raised.write_unraisable(py, None);
    }
}

fn bring(py: Python<'_>, said: &Said) -> PyResult<()> {
    // An exception under way is not for handlers to see, nor to lose.
    let earlier = PyErr::take(py);
    let raised = match PYTHON.get_or_try_init(py, || Logger::new(py, Caching::Nothing)) {
        Ok(logger) => {
            let mut record = Record::builder();
            record.level(said.level).target(&said.target).file(said.file.as_deref()).line(said.line);
            logger.log(&record.args(format_args!("{}", said.text)).build());
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

/// Waits for the messengers, for a thread that comes to an ending interpreter is stopped wherever it is.
#[pyfunction]
fn before_exit(py: Python<'_>) {
    let until = Instant::now() + AT_EXIT;
    py.detach(|| {
        while MESSENGERS.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    bring_all_left(py);
}
