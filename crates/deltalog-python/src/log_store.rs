//! Log stores that are Python objects. They decide which commits succeed.
//!
//! An object is registered under a name. The storage option `log_store` then refers to the object by this name. The
//! object is kept until the process ends, because any table may use its name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use deltalog::{CommitCoordinator, CoordinatorEntry, Error, ErrorKind, Result};
use pyo3::exceptions::{PyException, PyPermissionError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::ending;
use crate::interrupts::stop_with;

/// The storage option that contains the name.
const OPTION: &str = "log_store";

static REGISTERED: Mutex<Option<HashMap<String, Arc<PythonLogStore>>>> = Mutex::new(None);

/// Registers an object under a name. Returns false if another object is already registered under the name, because
/// open tables, and snapshots that the process keeps, may use that object.
#[pyfunction]
pub(crate) fn register_log_store(name: String, log_store: Py<PyAny>) -> bool {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let registered = registered.get_or_insert_default();
    let object = log_store.as_ptr();
    let found = registered.entry(name).or_insert_with(|| Arc::new(PythonLogStore(log_store)));
    found.0.as_ptr() == object
}

/// Returns the registered object whose name is in `options`, and the remaining options.
pub(crate) fn split(
    options: &HashMap<String, String>,
) -> (impl Iterator<Item = (&str, &str)>, Option<Arc<dyn CommitCoordinator>>) {
    let named = options.iter().find(|(name, _)| name.eq_ignore_ascii_case(OPTION));
    let found = named.and_then(|(option, name)| {
        let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        registered.as_ref()?.get(name).map(|found| (option, Arc::clone(found)))
    });
    let (option, log_store) = found.unzip();
    let others = options.iter().filter(move |(name, _)| Some(*name) != option);
    let others = others.map(|(name, value)| (name.as_str(), value.as_str()));
    (others, log_store.map(|log_store| log_store as _))
}

/// An object with the methods of `deltalog.storage.LogStore`.
#[derive(Debug)]
struct PythonLogStore(Py<PyAny>);

impl PythonLogStore {
    fn call<T>(
        &self,
        method: &str,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>>,
        answer: impl for<'py> FnOnce(Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Result<T> {
        let called = Python::try_attach(|py| {
            let called = arguments(py).and_then(|arguments| self.0.bind(py).call_method1(method, arguments));
            called.and_then(answer).map_err(|exception| failed(py, method, exception))
        });
        called.unwrap_or_else(|| Err(Error::new(ErrorKind::Unavailable, ending::TOO_LATE)))
    }
}

/// Returns the error for an exception that the object raised, which becomes the error's cause. If the exception is a
/// request to stop, the call is also ended, whether its commit succeeds or not.
fn failed(py: Python<'_>, method: &str, exception: PyErr) -> Error {
    if !exception.is_instance_of::<PyException>(py) {
        stop_with(exception.clone_ref(py));
    }
    let kind = match exception.is_instance_of::<PyPermissionError>(py) {
        true => ErrorKind::PermissionDenied,
        false => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("the log store failed in '{method}'")).with_source(exception)
}

/// Converts the entry of a commit coordinator for Python.
fn entry_to_python<'py>(py: Python<'py>, entry: &CoordinatorEntry) -> PyResult<Bound<'py, PyTuple>> {
    let class = py.import("deltalog.storage")?.getattr("LogEntry")?;
    let fields = (&entry.table_path, &entry.file_name, &entry.temp_path, entry.is_complete);
    (class.call1(fields)?,).into_pyobject(py)
}

fn entry_of(found: &Bound<'_, PyAny>) -> PyResult<Option<CoordinatorEntry>> {
    if found.is_none() {
        return Ok(None);
    }
    let text = |name: &str| found.getattr(name)?.extract::<String>();
    let entry = CoordinatorEntry::new(text("table_path")?, text("file_name")?, text("temp_path")?);
    Ok(Some(entry.with_complete(found.getattr("is_complete")?.extract()?)))
}

impl CommitCoordinator for PythonLogStore {
    fn put_if_absent(&self, entry: &CoordinatorEntry) -> Result<bool> {
        self.call("put_if_absent", |py| entry_to_python(py, entry), |is_new| is_new.extract())
    }

    fn get(&self, table_path: &str, file_name: &str) -> Result<Option<CoordinatorEntry>> {
        self.call("get", |py| (table_path, file_name).into_pyobject(py), |found| entry_of(&found))
    }

    fn newest(&self, table_path: &str) -> Result<Option<CoordinatorEntry>> {
        self.call("newest", |py| (table_path,).into_pyobject(py), |found| entry_of(&found))
    }

    fn complete(&self, entry: &CoordinatorEntry) -> Result<()> {
        self.call("complete", |py| entry_to_python(py, entry), |_| Ok(()))
    }
}
