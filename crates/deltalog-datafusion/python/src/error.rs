//! Errors of the core as the exceptions of `deltalog.errors`.

use deltalog::{Error, ErrorKind};
use pyo3::prelude::*;

/// Returns the exception for an error.
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error).unwrap_or_else(|failure| failure)
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let class = py.import("deltalog.errors")?.getattr(class_name(error.kind()))?;
    let exception = class.call1((error.to_string(),))?;
    exception.setattr("table", error.table())?;
    exception.setattr("version", error.version())?;
    exception.setattr("path", error.path())?;
    exception.setattr("line", error.line())?;
    exception.setattr("hint", error.hint())?;
    exception.setattr("reason", error.reason())?;
    Ok(PyErr::from_value(exception))
}

/// Returns the name of the class for a kind of error, as crates/deltalog-python/src/error.rs does.
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
