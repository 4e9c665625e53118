//! Converts errors of the Rust crate to the classes of `deltalog.errors`. Each kind of error has a class.

use deltalog::{Error, ErrorKind};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

const MODULE: &str = "deltalog.errors";

/// Returns the name of the class for a kind of error.
fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotATable => "NotATableError",
        ErrorKind::TableReplaced => "TableReplacedError",
        ErrorKind::TableAlreadyExists => "TableAlreadyExistsError",
        ErrorKind::VersionNotFound => "VersionNotFoundError",
        ErrorKind::CorruptLog => "CorruptLogError",
        ErrorKind::CorruptData => "CorruptDataError",
        ErrorKind::FileNotFound => "MissingFileError",
        ErrorKind::Unsupported => "UnsupportedFeatureError",
        ErrorKind::InvalidArgument => "InvalidArgumentError",
        ErrorKind::SchemaMismatch => "SchemaMismatchError",
        ErrorKind::CommitConflict => "CommitConflictError",
        ErrorKind::CommitStateUnknown => "CommitStateUnknownError",
        ErrorKind::Unavailable => "UnavailableError",
        ErrorKind::PermissionDenied => "AccessDeniedError",
        _ => "DeltaError",
    }
}

/// Returns the name of the class for a conflict, depending on its reason.
fn conflict_class_name(reason: Option<&str>) -> &'static str {
    match reason {
        Some("concurrent_append") => "ConcurrentAppendException",
        Some("concurrent_delete_read") => "ConcurrentDeleteReadException",
        Some("concurrent_delete_delete") => "ConcurrentDeleteDeleteException",
        Some("metadata_changed") => "MetadataChangedException",
        Some("protocol_changed") => "ProtocolChangedException",
        Some("app_transaction" | "domain_changed") => "ConcurrentTransactionException",
        Some("log_cleaned_up") => "ConcurrentWriteException",
        _ => class_name(ErrorKind::CommitConflict),
    }
}

const CLASSES: [&str; 18] = [
    "DeltaError",
    "NotATableError",
    "TableReplacedError",
    "TableAlreadyExistsError",
    "VersionNotFoundError",
    "CorruptLogError",
    "CorruptDataError",
    "MissingFileError",
    "UnsupportedFeatureError",
    "InvalidArgumentError",
    "SchemaMismatchError",
    "CommitConflictError",
    "CommitStateUnknownError",
    "UnavailableError",
    "AccessDeniedError",
    "InternalError",
    "CommittedInterrupt",
    "UnknownCommitInterrupt",
];

/// Adds the exception classes to the module.
pub(crate) fn add_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let errors = module.py().import(MODULE)?;
    for class in CLASSES {
        module.add(class, errors.getattr(class)?)?;
    }
    Ok(())
}

/// Returns the Python exception for an error, with the parts of the error as attributes.
///
/// If a Python exception caused the error, it becomes the cause of the returned exception. If it is a request to
/// stop, such as `KeyboardInterrupt`, that exception itself is returned.
pub(crate) fn to_python(error: &Error) -> PyErr {
    Python::attach(|py| {
        let cause = std::error::Error::source(error)
            .and_then(|source| source.downcast_ref::<PyErr>())
            .map(|cause| cause.clone_ref(py));
        if let Some(stop) = cause.as_ref().filter(|cause| !cause.is_instance_of::<PyException>(py)) {
            return stop.clone_ref(py);
        }
        if error.kind() == ErrorKind::Interrupted {
            return PyKeyboardInterrupt::new_err(error.to_string());
        }
        let make = || -> PyResult<PyErr> {
            let name = match error.kind() {
                ErrorKind::CommitConflict => conflict_class_name(error.reason()),
                kind => class_name(kind),
            };
            let class = py.import(MODULE)?.getattr(name)?;
            let exception = class.call1((error.to_string(),))?;
            exception.setattr("table", error.table())?;
            exception.setattr("version", error.version())?;
            exception.setattr("path", error.path())?;
            exception.setattr("line", error.line())?;
            exception.setattr("hint", error.hint())?;
            if error.kind() == ErrorKind::CommitStateUnknown {
                exception.setattr("transaction_id", error.transaction_id())?;
            }
            exception.setattr("reason", error.reason())?;
            let exception = PyErr::from_value(exception);
            exception.set_cause(py, cause);
            Ok(exception)
        };
        make().unwrap_or_else(|failure| failure)
    })
}

/// Returns whether an exception belongs to `deltalog.errors`.
pub(crate) fn is_ours(py: Python<'_>, exception: &PyErr) -> bool {
    py.import(MODULE)
        .and_then(|errors| errors.getattr("DeltaError"))
        .is_ok_and(|class| exception.is_instance(py, &class))
}

/// Converts results of the Rust crate to results of Python functions.
pub(crate) trait IntoPython<T> {
    fn into_python(self) -> PyResult<T>;
}

impl<T> IntoPython<T> for deltalog::Result<T> {
    fn into_python(self) -> PyResult<T> {
        self.map_err(|error| to_python(&error))
    }
}
