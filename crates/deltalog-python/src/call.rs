//! Calls of the crate from Python: releasing the interpreter lock, delivering log records, mapping errors.

use pyo3::prelude::*;

use crate::error::IntoPython;
use crate::logging;

/// Runs `work` while other Python threads can run, and returns its result.
///
/// # Errors
/// The error of `work`, or the exception of a log handler that asked this thread to stop.
pub(crate) fn call<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> deltalog::Result<T> + Send,
) -> PyResult<T> {
    let (result, stop) = delivered(py, work)?;
    match stop {
        Some(stop) => Err(stop),
        None => result.into_python(),
    }
}

/// As [`call`], for work that commits. Its result is returned even if a log handler asked to stop: what became
/// of a commit must not get lost. The next call raises the handler's exception instead.
pub(crate) fn call_that_commits<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> deltalog::Result<T> + Send,
) -> PyResult<T> {
    let (result, stop) = delivered(py, work)?;
    if let Some(stop) = stop {
        logging::postpone(stop);
    }
    result.into_python()
}

/// Runs `work`, delivers its log records, and returns its result and the exception of a handler that asked to
/// stop.
///
/// # Errors
/// The exception that an earlier call postponed; `work` does not run then.
fn delivered<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> deltalog::Result<T> + Send,
) -> PyResult<(deltalog::Result<T>, Option<PyErr>)> {
    logging::check_stop()?;
    let result = py.detach(|| logging::with_immediate_delivery(work));
    Ok((result, logging::after_call(py).err()))
}
