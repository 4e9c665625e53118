//! What every call of the crate from Python does: release the interpreter, call, pass on what was logged, map
//! the error.

use pyo3::prelude::*;

use crate::error::IntoPython;
use crate::logging;

/// What `work` returns, done while other Python threads run.
pub(crate) fn call<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> deltalog::Result<T> + Send,
) -> PyResult<T> {
    let result = py.detach(|| logging::at_once(work));
    logging::after_call(py)?;
    result.into_python()
}
