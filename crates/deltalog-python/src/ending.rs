//! Keeps other threads out of this library while the interpreter shuts down.
//!
//! Before it shuts down, the interpreter waits for the program's own threads. It does not wait for the threads of
//! libraries, which may be reading ahead in a stream or calling a credential provider. A shutdown is not safe while
//! they run:
//!
//! - A thread that tries to attach to the interpreter after the shutdown has begun waits forever, and so does the
//!   process. A thread that runs Python code at that moment may crash the process.
//! - pyarrow destroys its thread pools one after the other. It crashes if a thread of a remaining pool passes a batch
//!   to a pool that no longer exists.
//!
//! This module therefore makes the interpreter wait until no other thread is in this library. Threads that read a
//! stream stop soon, even if they wait for a store, because their reads check whether the interpreter is ending, as
//! other calls check for Ctrl-C. From then on, other threads get an error instead of a batch.
//!
//! After this wait, functions that the program has registered with `atexit` may still run. Until the interpreter
//! removes this module, the thread that runs these functions can still read streams, and so can other libraries to
//! which it passes streams. When the module is removed, the interpreter waits once more, for the readers of these
//! streams.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use deltalog::engine::interrupt::Look;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyCapsule, PyDict};

/// The error of calls that come too late.
pub(crate) const TOO_LATE: &str = "the interpreter is shutting down";

/// Whether the interpreter has begun to shut down.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether the interpreter has also run all functions that were registered with `atexit`.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// The number of threads that are currently in this library.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// The number of streams that other libraries have taken and not yet released.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The number of such streams that the thread which ends the interpreter has passed on after `end` began.
static OPEN_LATE: AtomicUsize = AtomicUsize::new(0);

/// The longest time that the interpreter waits for other threads. It is long because, for example, a credential
/// provider may take several seconds.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval at which the wait checks for signals.
const SLICE: Duration = Duration::from_millis(50);

/// How long the interpreter waits for other libraries to finish with the last batch of a stream that is still open.
/// This library has already returned the batch, so it cannot see when they finish.
const LAST_BATCH: Duration = Duration::from_millis(50);

thread_local! {
    /// Whether this thread ends the interpreter.
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Makes the interpreter wait for other threads when it ends.
pub(crate) fn start(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    at_exit(&wrap_pyfunction!(end, module)?)?;
    // Not every operating system can fork.
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        let hooks = PyDict::new(py);
        hooks.set_item("after_in_child", wrap_pyfunction!(forked, module)?)?;
        register.call((), Some(&hooks))?;
    }
    // The interpreter destroys the capsule when it removes the module.
    module.setattr("_end", PyCapsule::new_with_value_and_destructor(py, 0_u8, c"end", |_, _| over())?)
}

/// Registers a function with `atexit`.
pub(crate) fn at_exit(function: &Bound<'_, PyCFunction>) -> PyResult<()> {
    function.py().import("atexit")?.call_method1("register", (function,))?;
    Ok(())
}

/// Waits for other threads when the interpreter ends. Ctrl-C ends the wait.
#[pyfunction]
fn end(py: Python<'_>) -> PyResult<()> {
    IS_HERE.set(true);
    HAS_BEGUN.store(true, Ordering::SeqCst);
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while py.detach(|| !are_outside(deadline.min(Instant::now() + SLICE))) && Instant::now() < deadline {
        py.check_signals()?;
    }
    if OPEN.load(Ordering::SeqCst) > 0 {
        py.detach(|| std::thread::sleep(LAST_BATCH));
    }
    Ok(())
}

/// Waits for the readers of streams that were opened after `end`. This thread does not release the interpreter, because
/// the readers do not need it.
fn over() {
    if OPEN_LATE.load(Ordering::SeqCst) > 0 {
        IS_OVER.store(true, Ordering::SeqCst);
        are_outside(Instant::now() + EXIT_TIMEOUT);
        std::thread::sleep(LAST_BATCH);
    }
}

/// Waits until no other thread is in this library. Returns `false` if there still is one at the `deadline`.
fn are_outside(deadline: Instant) -> bool {
    while INSIDE.load(Ordering::SeqCst) > 0 {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Resets the counts and flags in a forked child, which has none of its parent's other threads.
#[pyfunction]
fn forked() {
    INSIDE.store(0, Ordering::SeqCst);
    OPEN.store(0, Ordering::SeqCst);
    OPEN_LATE.store(0, Ordering::SeqCst);
    HAS_BEGUN.store(false, Ordering::SeqCst);
    IS_OVER.store(false, Ordering::SeqCst);
    IS_HERE.set(false);
}

/// Returns whether the interpreter has begun to shut down.
pub(crate) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::SeqCst)
}

/// Returns whether another thread has begun to shut down the interpreter.
pub(crate) fn is_elsewhere() -> bool {
    has_begun() && !IS_HERE.get()
}

/// Returns whether another thread has run all functions that were registered with `atexit`.
fn is_over_elsewhere() -> bool {
    IS_OVER.load(Ordering::SeqCst) && !IS_HERE.get()
}

/// Adds one to a count for as long as this value exists. A value that a forked child inherits from its parent does not
/// change the child's count.
struct Counted {
    count: &'static AtomicUsize,
    process: u32,
}

impl Counted {
    fn new(count: &'static AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self { count, process: std::process::id() }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Runs `work`. If the interpreter begins to shut down while `work` runs, it waits for `work`. Returns `None` if
/// another thread has already begun to shut down the interpreter.
pub(crate) fn before<T>(work: impl FnOnce() -> T) -> Option<T> {
    unless(is_elsewhere, work)
}

/// Runs `work` as [`before`] does, except that `look` returns whether it is too late.
fn unless<T>(look: Look, work: impl FnOnce() -> T) -> Option<T> {
    // The thread is counted before the check. If the check does not see an end that begins at the same time, the
    // interpreter sees the count, and waits.
    let _inside = Counted::new(&INSIDE);
    (!look()).then(work)
}

/// A stream that another library has taken and not yet released.
pub(crate) struct Open {
    _counted: Counted,
    /// Returns whether other threads must no longer read this stream.
    look: Look,
}

impl Open {
    pub(crate) fn new() -> Self {
        match IS_HERE.get() {
            true => Self { _counted: Counted::new(&OPEN_LATE), look: is_over_elsewhere },
            false => Self { _counted: Counted::new(&OPEN), look: is_elsewhere },
        }
    }

    /// Calls `read`. If the interpreter begins to shut down while `read` runs, it waits for `read`. `read` gets a
    /// function that returns whether it should stop. Returns `None` if this thread must no longer read this stream.
    pub(crate) fn before<T>(&self, read: impl FnOnce(Look) -> T) -> Option<T> {
        unless(self.look, || read(self.look))
    }
}
