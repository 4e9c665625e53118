//! Refuses to be imported by another interpreter than the main one.
//!
//! Threads of the core that call into Python attach to the main interpreter, and would wait for ever for one that runs
//! there. Web servers such as `mod_wsgi` make an interpreter for each application.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The module that distinguishes interpreters, in Python 3.13 and before.
const MODULES: [&str; 2] = ["_interpreters", "_xxsubinterpreters"];

/// # Errors
/// `ImportError` in every interpreter but the main one. Nothing is known if Python has no module that tells.
pub(crate) fn check_main(py: Python<'_>) -> PyResult<()> {
    let Some(module) = MODULES.iter().find_map(|name| py.import(name).ok()) else { return Ok(()) };
    let (main, current) = (module.call_method0("get_main")?, module.call_method0("get_current")?);
    match main.eq(current)? {
        true => Ok(()),
        false => Err(PyImportError::new_err(
            "deltalog cannot be imported in a sub-interpreter; in mod_wsgi, set 'WSGIApplicationGroup %{GLOBAL}', and \
             elsewhere use threads or processes",
        )),
    }
}
