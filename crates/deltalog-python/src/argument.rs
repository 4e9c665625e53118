//! Converts the arguments of classes that users call directly, without a layer of Python code in between. A wrong
//! argument raises the same error as in all other calls (`deltalog.errors.wrong_argument`).

use pyo3::prelude::*;
use pyo3::types::PyBool;

/// Returns the value of the parameter `name`, which must be a string.
pub(crate) fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.extract().map_err(|_| wrong(name, value, "text"))
}

/// Returns the value of the parameter `name`, which must be a whole number.
pub(crate) fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let found = match value.is_instance_of::<PyBool>() {
        true => None,
        false => value.extract().ok(),
    };
    found.ok_or_else(|| wrong(name, value, "a whole number from 0, below 2^32"))
}

/// Returns the error for a value that the parameter `name` does not accept. `expected` describes the accepted values.
pub(crate) fn wrong(name: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let errors = value.py().import("deltalog.errors");
    match errors.and_then(|errors| errors.call_method1("wrong_argument", (name, value, expected))) {
        Ok(error) => PyErr::from_value(error),
        Err(failure) => failure,
    }
}
