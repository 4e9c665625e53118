//! The threads that do the work which follows commits, such as writing checkpoints.
//!
//! - They belong to the process that has imported the module. In its forked children, each commit does this work
//!   before it returns, because a child may end at any time without waiting.
//! - When the interpreter exits, the process waits for the threads for a limited time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use deltalog::{Background, Environment, Error, Result};
use pyo3::prelude::*;

use crate::{ending, logging};

/// The time that the process waits at exit. Unfinished work is then lost; each of its files is written completely or
/// not at all.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The interval at which a wait checks for signals.
const SLICE: Duration = Duration::from_millis(50);

static BACKGROUND: OnceLock<Background> = OnceLock::new();

/// Whether a commit returns only after the work that follows it is done.
static IS_INLINE: AtomicBool = AtomicBool::new(false);

/// Makes the process wait at exit for the work that follows its commits.
pub(crate) fn start(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // The queue is created at import, because it records the id of its process: a forked child then knows that it
    // does not have the queue's threads. This starts no thread.
    BACKGROUND.get_or_init(Background::new);
    ending::at_exit(&wrap_pyfunction!(before_exit, module)?)
}

/// Returns the environment that all commits use.
pub(crate) fn environment() -> Environment {
    let environment = Environment::system();
    if IS_INLINE.load(Ordering::Relaxed) {
        return environment;
    }
    environment.with_background(BACKGROUND.get_or_init(Background::new))
}

/// Returns the environment for a call. `file_format` is a `FileFormat` as JSON, which determines how the call encodes
/// data files; `None` for the defaults.
///
/// # Errors
/// Returns `InvalidArgument` for unknown fields or values.
pub(crate) fn environment_with(file_format: Option<&str>) -> Result<Environment> {
    let Some(json) = file_format else { return Ok(environment()) };
    let format = serde_json::from_str(json).map_err(|error| {
        Error::invalid_argument(format!("writer_properties cannot be used: {error}"))
            .with_hint("pass the fields of WriterProperties, with non-negative numbers and strings")
    })?;
    Ok(environment().with_file_format(format))
}

/// Returns the recorded commits; see [`Environment::with_commits_in`].
pub(crate) fn noted(commits: &Mutex<Vec<u64>>) -> Vec<u64> {
    std::mem::take(&mut *commits.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Sets whether the work after a commit is done in the background.
#[pyfunction]
pub(crate) fn run_upkeep_in_background(enabled: bool) {
    IS_INLINE.store(!enabled, Ordering::Relaxed);
}

/// Waits for the work that follows the commits of this process. Returns whether all of it was done within the
/// timeout. If there is no timeout, it waits without a limit.
#[pyfunction]
#[pyo3(signature = (timeout = None))]
pub(crate) fn wait_for_upkeep(py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
    let Some(background) = BACKGROUND.get() else { return Ok(true) };
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = deadline.map_or(SLICE, |deadline| deadline.saturating_duration_since(Instant::now()));
        let is_done = py.detach(|| background.wait(left.min(SLICE)));
        logging::after_call(py)?;
        py.check_signals()?;
        if is_done || left.is_zero() {
            return Ok(is_done);
        }
    }
}

/// Waits when the process exits. Ctrl-C ends the wait.
#[pyfunction]
fn before_exit(py: Python<'_>) -> PyResult<()> {
    let Some(background) = BACKGROUND.get() else { return Ok(()) };
    background.close();
    if !wait_for_upkeep(py, Some(EXIT_TIMEOUT))? {
        log::warn!(target: "deltalog::upkeep", "the process ends before all due checkpoints were written");
    }
    logging::after_call(py)
}
