//! Calls of the crate from Python: releasing the interpreter lock, delivering log records, mapping errors.

use pyo3::prelude::*;

use crate::error::IntoPython;
use crate::logging;

/// Runs `work` while other Python threads can run, and returns its result.
pub(crate) fn call<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> deltalog::Result<T> + Send,
) -> PyResult<T> {
    let result = py.detach(|| logging::with_immediate_delivery(work));
    logging::after_call(py)?;
    result.into_python()
}
