//! Makes the import of the module fail in every interpreter except the main one.
//!
//! Threads of the core that call Python attach to the main interpreter. If Python code in another interpreter waits
//! for such a thread, both wait forever. Web servers such as `mod_wsgi` create an interpreter for each application.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The names of the module that distinguishes interpreters, in Python 3.13 and in earlier versions.
const MODULES: [&str; 2] = ["_interpreters", "_xxsubinterpreters"];

/// # Errors
/// Returns `ImportError` in every interpreter except the main one. If neither module exists, this cannot be checked,
/// and there is no error.
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
