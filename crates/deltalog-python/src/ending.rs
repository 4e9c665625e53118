//! Keeps other threads out of this library while the interpreter shuts down.
//!
//! Python waits at its end for threads of the program, but not for threads of other libraries, which read ahead or
//! call a provider of credentials. A shutdown is not safe while they are at work:
//!
//! - A thread that is to attach to the interpreter after the shutdown has begun waits forever, and the process with it.
//!   A thread that runs Python code at that moment may crash the process.
//! - pyarrow destroys its thread pools one after the other. It crashes if a thread of one pool then passes a batch to
//!   another pool.
//!
//! At its end, the interpreter therefore waits until no other thread is in this library. Threads that read a stream
//! stop soon, even if they wait for a store, because their reads check for the end as other calls check for Ctrl-C.
//! From then on, other threads get an error instead of a batch.
//!
//! Functions that a program has registered with `atexit` may still run after that. The thread that runs them can still
//! read, and another library can read the streams that this thread passes to it, until the interpreter removes this
//! module. It then waits once more, for the readers of these streams.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use deltalog::engine::interrupt::Look;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// The error of calls that come too late.
pub(crate) const TOO_LATE: &str = "the interpreter is ending";

/// Whether the interpreter has begun to end.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether the interpreter has also run all functions that were registered with `atexit`.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// The number of threads that are currently in this library.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// The number of streams that other libraries have taken and not yet released.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The same for streams that the thread which ends the interpreter has passed to them since.
static OPEN_LATE: AtomicUsize = AtomicUsize::new(0);

/// The longest time that the interpreter waits for other threads. Providers may need more than a moment, for example.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval at which the wait checks for signals.
const SLICE: Duration = Duration::from_millis(50);

/// How long another library may need for the last batch of a stream that it has not released. This library has
/// returned the batch by then, so it cannot see when the work is done.
const LAST_BATCH: Duration = Duration::from_millis(50);

thread_local! {
    /// Whether this thread ends the interpreter.
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Makes the interpreter wait for other threads when it ends.
pub(crate) fn start(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(end, module)?,))?;
    // Not every operating system can fork.
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        let hooks = PyDict::new(py);
        hooks.set_item("after_in_child", wrap_pyfunction!(forked, module)?)?;
        register.call((), Some(&hooks))?;
    }
    // The interpreter destroys the capsule when it removes the module.
    module.setattr("_end", PyCapsule::new_with_value_and_destructor(py, 0_u8, c"end", |_, _| over())?)
}

/// Waits when the interpreter ends. Ctrl-C ends the wait.
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

/// Waits for the readers of streams that were opened after `end`. They do not need the interpreter.
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

/// Returns whether the interpreter has begun to end.
pub(crate) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::SeqCst)
}

/// Returns whether another thread has begun to end the interpreter.
pub(crate) fn is_elsewhere() -> bool {
    has_begun() && !IS_HERE.get()
}

/// Returns whether another thread has run all functions that were registered with `atexit`.
fn is_over_elsewhere() -> bool {
    IS_OVER.load(Ordering::SeqCst) && !IS_HERE.get()
}

/// Is counted as long as this value exists. In a forked child, what its parent has counted does not count.
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

/// Runs `work`, for which the end of the interpreter waits. Returns `None` if another thread has begun to end the
/// interpreter.
pub(crate) fn before<T>(work: impl FnOnce() -> T) -> Option<T> {
    unless(is_elsewhere, work)
}

/// Runs `work`, for which the end of the interpreter waits. Returns `None` if `look` says that it is too late.
fn unless<T>(look: Look, work: impl FnOnce() -> T) -> Option<T> {
    // The thread is counted before the check, so that the interpreter waits if the check sees no end.
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

    /// Calls `read`, for which the end of the interpreter waits. `read` gets the function with which it checks whether
    /// it should stop. Returns `None` if this thread must no longer read this stream.
    pub(crate) fn before<T>(&self, read: impl FnOnce(Look) -> T) -> Option<T> {
        unless(self.look, || read(self.look))
    }
}
