//! Runs calls of the Rust crate for Python: releases the interpreter lock, checks for signals, delivers log records,
//! and converts errors.

use pyo3::prelude::*;

use deltalog::engine::interrupt::{Watched, watched};

use crate::error::IntoPython;
use crate::{foreign, interrupts, logging};

/// Runs `work` while other Python threads can run, and returns its result.
///
/// # Errors
/// Returns the error of `work`, or the exception of a log handler or a signal handler that asked this thread to stop.
pub(crate) fn call<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> deltalog::Result<T> + Send,
) -> PyResult<T> {
    let Ended { result, watched, stop } = ended(py, work)?;
    if watched.is_interrupted {
        return Err(interrupts::exception(py, &watched.commits, result.as_ref().err()));
    }
    match stop {
        Some(stop) => Err(stop),
        None => result.into_python(),
    }
}

/// Runs `work`, which commits, as [`call`] does. Its result is returned even if a log handler asked to stop, because
/// the outcome of a commit must not get lost; the next call then raises the handler's exception. If a signal handler
/// raises an exception, a note about the commit is added to it.
pub(crate) fn call_that_commits<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> deltalog::Result<T> + Send,
) -> PyResult<T> {
    let Ended { result, watched, stop } = ended(py, work)?;
    if let Some(stop) = stop {
        logging::postpone(stop);
    }
    if watched.is_interrupted {
        return Err(interrupts::exception(py, &watched.commits, result.as_ref().err()));
    }
    let value = result.into_python()?;
    interrupts::after_commits(py, &watched.commits)?;
    Ok(value)
}

/// The outcome of a call that has ended.
struct Ended<T> {
    result: deltalog::Result<T>,
    watched: Watched,
    /// The exception of a log handler that asked this thread to stop.
    stop: Option<PyErr>,
}

/// Runs `work`, checks for signals while it runs, and delivers its log records.
///
/// # Errors
/// Returns the exception that an earlier call has postponed. In that case, `work` is not run.
fn ended<T: Send>(py: Python<'_>, work: impl FnOnce() -> deltalog::Result<T> + Send) -> PyResult<Ended<T>> {
    logging::check_stop()?;
    let look = interrupts::look_of_thread(py)?;
    let (result, watched) =
        py.detach(|| foreign::called(|| logging::with_immediate_delivery(|| watched(look, work))));
    Ok(Ended { result, watched, stop: logging::after_call(py).err() })
}
