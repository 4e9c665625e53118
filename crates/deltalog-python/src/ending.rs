//! Keeps other threads out of this library while the interpreter shuts down.
//!
//! Python waits at its end for threads of the program, but not for threads of other libraries, which read ahead or
//! call a provider of credentials. A shutdown is not safe while they are at work:
//!
//! - A thread that is to run Python after the shutdown has begun waits forever, and the process with it.
//! - pyarrow destroys its thread pools one after the other. It crashes if a thread of one pool then passes a batch to
//!   another pool.
//!
//! At its end, the interpreter therefore waits a moment until no other thread is in this library. From then on, other
//! threads get an error instead of a batch, so that they soon end by themselves. The thread that ends the interpreter
//! can still read: functions that a program has registered with `atexit` run on it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// The thread that ends the interpreter, once it has begun to.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// The number of threads that are currently in this library.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// The number of streams that another library has taken and not read to their end.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The longest time that the interpreter waits for other threads.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long another library may still process its last batch of an unfinished stream. This library has returned the
/// batch by then, so it cannot see when the work is done.
const LAST_BATCH: Duration = Duration::from_millis(50);

/// Makes the interpreter wait for other threads when it ends.
pub(crate) fn start(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let at_exit = wrap_pyfunction!(end, module)?;
    module.py().import("atexit")?.call_method1("register", (at_exit,))?;
    Ok(())
}

#[pyfunction]
fn end(py: Python<'_>) {
    ENDING.get_or_init(|| std::thread::current().id());
    let deadline = Instant::now() + EXIT_TIMEOUT;
    py.detach(|| {
        while INSIDE.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        if OPEN.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(LAST_BATCH);
        }
    });
}

/// Returns whether the interpreter has begun to end.
pub(crate) fn has_begun() -> bool {
    ENDING.get().is_some()
}

/// Returns whether this thread ends the interpreter.
fn is_here() -> bool {
    ENDING.get().is_some_and(|thread| *thread == std::thread::current().id())
}

/// Counts a thread that is in this library as long as this value exists.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs `work`, for which the end of the interpreter waits. Returns `None` if another thread has begun to end the
/// interpreter.
pub(crate) fn before<T>(work: impl FnOnce() -> T) -> Option<T> {
    // The thread is counted before the check, so that the interpreter waits if the check sees no end.
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let _inside = Inside;
    (!has_begun() || is_here()).then(work)
}

/// Counts a stream that another library has taken, as long as this value exists.
pub(crate) struct Open(());

impl Open {
    pub(crate) fn new() -> Self {
        OPEN.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}
