//! Handles Ctrl-C while a call runs, and other signals whose handlers raise exceptions.
//!
//! - Python runs signal handlers only on its main thread. Calls on that thread therefore check for signals from time
//!   to time (`deltalog::engine::interrupt`). Calls on other threads do not, but if they read a stream for a consumer,
//!   they check whether the interpreter is ending (`ending`).
//! - If a handler raises an exception, the exception is kept until the call has stopped, and is raised then. If the
//!   call has made a commit, a `KeyboardInterrupt` becomes a `CommittedInterrupt`, which states the version. If it is
//!   not known whether the call has made a commit, a `KeyboardInterrupt` becomes an `UnknownCommitInterrupt`.
//! - The consumer of a stream gets an error, because Arrow's C interface cannot transport exceptions. Python raises
//!   the exception as soon as the consumer has returned to Python: for a `KeyboardInterrupt`, the program's own
//!   handler of SIGINT is run again; for other exceptions, a replacement handler runs once.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use deltalog::engine::interrupt::{self, Commit, Look, Watched};
use deltalog::{Error, ErrorKind};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::to_python;
use crate::{foreign, logging};

/// The time between two checks for signals while a stream is consumed.
const INTERVAL: Duration = Duration::from_millis(200);

thread_local! {
    /// The exception that a handler has raised during a call of this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// The time from which a stream that this thread consumes should check for signals again.
    static NEXT_LOOK: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The id of a process, and whether this thread is the main thread of that process.
    static IS_MAIN: Cell<Option<(u32, bool)>> = const { Cell::new(None) };
}

/// Returns the function with which the calls of this thread check for signals, if this is the main thread. On other
/// threads, calls do not check: this returns `None`, or, inside another call, a function that never stops a call. With
/// such a function, the inner call is a call of its own, and knows its commits if the outer call is stopped.
pub(crate) fn look_of_thread(py: Python<'_>) -> PyResult<Option<Look>> {
    let process = std::process::id();
    if IS_MAIN.get().is_none_or(|(known, _)| known != process) {
        let threading = py.import("threading")?;
        let main = threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?;
        let own = threading.call_method0(intern!(py, "get_ident"))?;
        IS_MAIN.set(Some((process, main.eq(own)?)));
    }
    let no_look = || interrupt::is_within_call().then_some((|| false) as Look);
    Ok(known_look().or_else(no_look))
}

/// Returns the function with which the calls of the main thread check for signals, without running Python. Returns
/// `None` on other threads, and on a main thread before its first call.
fn known_look() -> Option<Look> {
    let is_main = IS_MAIN.get().is_some_and(|(process, is_main)| is_main && process == std::process::id());
    is_main.then_some(look)
}

/// Lets Python handle signals that have arrived. Returns whether a handler has raised an exception.
///
/// While Python code from another library is called, signals are left to Python, which handles them when that code
/// continues.
fn look() -> bool {
    if foreign::is_within() {
        return false;
    }
    match Python::try_attach(|py| py.check_signals()) {
        Some(Err(raised)) => {
            keep(raised);
            true
        }
        // An interpreter that is shutting down does not handle signals.
        Some(Ok(())) | None => false,
    }
}

/// Makes the current call of this thread raise an exception from the user's code that asks to stop.
pub(crate) fn stop_with(raised: PyErr) {
    keep(raised);
    interrupt::interrupt();
}

fn keep(raised: PyErr) {
    RAISED.with_borrow_mut(|first| {
        first.get_or_insert(raised);
    });
}

/// Returns the exception that an interrupted call raises after it has ended. `failure` is the call's error, if it
/// failed.
pub(crate) fn exception(py: Python<'_>, commits: &[Commit], failure: Option<&Error>) -> PyErr {
    let raised = RAISED.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()));
    let unknown = failure.filter(|failure| failure.kind() == ErrorKind::CommitStateUnknown);
    let told = match (unknown, commits.last()) {
        (Some(failure), _) => unknown_commit(py, &raised, failure),
        (None, Some(last)) => committed(py, &raised, last, commits),
        (None, None) => return raised,
    };
    told.unwrap_or_else(|failure| failure)
}

/// Returns the exception for a signal that has arrived just after a successful call.
pub(crate) fn after_commits(py: Python<'_>, commits: &[Commit]) -> PyResult<()> {
    if commits.is_empty() {
        return Ok(());
    }
    py.check_signals().map_err(|raised| {
        keep(raised);
        exception(py, commits, None)
    })
}

fn committed(py: Python<'_>, raised: &PyErr, last: &Commit, all: &[Commit]) -> PyResult<PyErr> {
    let versions: Vec<u64> = all.iter().map(|commit| commit.version).collect();
    let text = match versions.as_slice() {
        [version] => format!("interrupted after version {version} of the table {} was committed", last.table),
        _ => format!("interrupted after versions {versions:?} of the table {} were committed", last.table),
    };
    let told = told(py, raised, "CommittedInterrupt", text)?;
    let value = told.value(py);
    value.setattr("table", &last.table)?;
    value.setattr("version", last.version)?;
    value.setattr("versions", PyTuple::new(py, versions)?)?;
    Ok(told)
}

fn unknown_commit(py: Python<'_>, raised: &PyErr, failure: &Error) -> PyResult<PyErr> {
    let told = told(py, raised, "UnknownCommitInterrupt", format!("interrupted; {failure}"))?;
    let value = told.value(py);
    value.setattr("table", failure.table())?;
    value.setattr("version", failure.version())?;
    value.setattr("transaction_id", failure.transaction_id())?;
    told.set_cause(py, Some(to_python(failure)));
    Ok(told)
}

/// Replaces a `KeyboardInterrupt` with an exception of the class `class`. Exceptions of other classes come from the
/// user's code, and get a note instead.
fn told(py: Python<'_>, raised: &PyErr, class: &str, text: String) -> PyResult<PyErr> {
    if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
        let class = py.import("deltalog.errors")?.getattr(class)?;
        return Ok(PyErr::from_value(class.call1((text,))?));
    }
    // Python 3.10 does not support notes.
    if raised.value(py).hasattr(intern!(py, "add_note"))? {
        raised.value(py).call_method1(intern!(py, "add_note"), (text,))?;
    }
    Ok(raised.clone_ref(py))
}

/// Calls `work` on behalf of the consumer of a stream. Returns `None` if it was interrupted: on the main thread by a
/// signal, on other threads if `elsewhere` returns true.
///
/// If the thread is already within a call of this crate, `work` is part of that call.
pub(crate) fn watched<T>(elsewhere: Look, work: impl FnOnce() -> T) -> Option<T> {
    let is_own = !interrupt::is_within_call();
    let signals = known_look().filter(|_| is_own && !foreign::is_within());
    // The consumer may ask for one batch after another without returning to Python.
    let output = match signals.filter(|_| is_time_to_look()).is_some_and(|look| look()) {
        true => None,
        false => {
            let look = signals.or(is_own.then_some(elsewhere));
            let (output, Watched { is_interrupted, .. }) = interrupt::watched(look, work);
            (!is_interrupted).then_some(output)
        }
    };
    if signals.is_some()
        && output.is_none()
        && let Some(raised) = RAISED.take()
    {
        Python::try_attach(|py| raise_again(py, &raised));
    }
    output
}

fn is_time_to_look() -> bool {
    let now = Instant::now();
    let is_time = NEXT_LOOK.get().is_none_or(|next| now >= next);
    if is_time {
        NEXT_LOOK.set(Some(now + INTERVAL));
    }
    is_time
}

/// Makes Python raise `raised` when it runs next. If this is not possible, the next call of this thread raises it.
fn raise_again(py: Python<'_>, raised: &PyErr) {
    let again = || -> PyResult<()> {
        let interrupt_main = py.import("_thread")?.getattr("interrupt_main")?;
        if !raised.is_instance_of::<PyKeyboardInterrupt>(py) {
            py.import("deltalog.interrupts")?.call_method1("raise_in_handler", (raised.value(py),))?;
        }
        // No Python code may run after this line, because the handler would run in it.
        interrupt_main.call0().map(drop)
    };
    if again().is_err() {
        logging::postpone(raised.clone_ref(py));
    }
}
