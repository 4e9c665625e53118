//! Answers queries for aggregates from the log, and converts the answers to Python values.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Float32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use arrow::util::display::array_value_to_string;
use deltalog::engine::scan::{Answers, MinMax};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::predicate::predicate_in;

/// Prepares queries about the rows for which `predicate` is true. Timestamps without a zone in the predicate are in
/// `time_zone`.
pub(crate) fn of(
    snapshot: &deltalog::Snapshot,
    predicate: Option<&str>,
    time_zone: &str,
) -> deltalog::Result<Answers> {
    match predicate_in(predicate, time_zone)? {
        Some(predicate) => Answers::new(snapshot).predicate(&predicate),
        None => Ok(Answers::new(snapshot)),
    }
}

/// The minimum and the maximum of a column.
pub(crate) type Bounds<'py> = Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// Returns bounds as Python values.
pub(crate) fn bounds_to_python<'py>(py: Python<'py>, bounds: Option<&MinMax>) -> PyResult<Bounds<'py>> {
    bounds.map(|bounds| Ok((to_python(py, &bounds.min)?, to_python(py, &bounds.max)?))).transpose()
}

/// Returns the first value of an array: `bool`, `int`, `float`, `decimal.Decimal`, `str`, `bytes`,
/// `datetime.date`, or `datetime.datetime` (in UTC, or without a zone).
pub(crate) fn to_python<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(0) || array.data_type() == &DataType::Null {
        return Ok(py.None().into_bound(py));
    }
    let failed = |error: arrow::error::ArrowError| PyValueError::new_err(error.to_string());
    let datetime = || py.import("datetime");
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(0).into_bound_py_any(py),
        whole if whole.is_integer() => {
            let number = arrow::compute::cast(array, &DataType::Int64).map_err(failed)?;
            number.as_primitive::<Int64Type>().value(0).into_bound_py_any(py)
        }
        DataType::Float32 => array.as_primitive::<Float32Type>().value(0).into_bound_py_any(py),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(0).into_bound_py_any(py),
        DataType::Decimal128(..) => py
            .import("decimal")?
            .getattr("Decimal")?
            .call1((array_value_to_string(array, 0).map_err(failed)?,)),
        DataType::Utf8 => array.as_string::<i32>().value(0).into_bound_py_any(py),
        DataType::Binary => PyBytes::new(py, array.as_binary::<i32>().value(0)).into_bound_py_any(py),
        DataType::Date32 => {
            let epoch = datetime()?.getattr("date")?.call1((1970, 1, 1))?;
            epoch.add(
                datetime()?.getattr("timedelta")?.call1((array.as_primitive::<Date32Type>().value(0),))?,
            )
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(0);
            let zone = if zone.is_some() {
                datetime()?.getattr("timezone")?.getattr("utc")?
            } else {
                py.None().into_bound(py)
            };
            let epoch = datetime()?.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, zone))?;
            epoch.add(datetime()?.getattr("timedelta")?.call1((0, 0, micros))?)
        }
        other => Err(PyValueError::new_err(format!("values of type {other} cannot be converted to Python"))),
    }
}
