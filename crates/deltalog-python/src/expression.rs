//! Evaluates SQL expressions on Arrow data.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use deltalog::{DefaultValue, Error, Expression, StructType};
use pyo3::prelude::*;

use crate::call::call;
use crate::stream::{ArrowStream, reader_of};

/// Returns the names of all functions, in lower case.
#[pyfunction]
pub(crate) fn function_names() -> Vec<String> {
    deltalog::function_names()
}

/// Returns the names, in lower case, of the functions that expressions in a table's metadata may call: deterministic
/// functions, and functions that return the time at which the statement began.
#[pyfunction]
pub(crate) fn rule_functions() -> (Vec<String>, Vec<String>) {
    deltalog::rule_functions()
}

/// Returns the maximum number of bytes that the values of an expression may use at the same time.
#[pyfunction]
pub(crate) fn expression_bytes(py: Python<'_>) -> PyResult<usize> {
    call(py, deltalog::expression_bytes)
}

/// Returns a stream with one row and one column, `value`. It is the default value of the schema's only column, which
/// must be the same for all rows of a write.
#[pyfunction]
pub(crate) fn default_value(py: Python<'_>, schema_json: &str, sql: &str) -> PyResult<ArrowStream> {
    let rows = call(py, || {
        let schema = StructType::from_json(schema_json)?.to_arrow()?;
        let column = schema.field(0);
        let value = DefaultValue::new(column.name(), sql, "UTC").for_all_rows(column.data_type())?;
        RecordBatch::try_from_iter([("value", value)]).map_err(|error| {
            Error::invalid_argument("a default value cannot be returned as a row").with_source(error)
        })
    })?;
    ArrowStream::start(py, rows.schema(), std::iter::once(Ok(rows)))
}

/// Returns a stream with one column, the values of `sql` for the rows of `stream`.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    stream: &Bound<'_, PyAny>,
    sql: &str,
    time_zone: &str,
) -> PyResult<ArrowStream> {
    let reader = reader_of(stream)?;
    let schema = reader.schema();
    let expression = call(py, || Expression::bind(sql, &schema, time_zone))?;
    let field = Field::new("value", expression.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let result_schema = Arc::clone(&schema);
    let expression = Arc::new(expression);
    let values = reader.flat_map(move |batch| match batch {
        Ok(batch) => {
            let schema = Arc::clone(&result_schema);
            let parts = Arc::clone(&expression).evaluate_in_parts(&batch).map(move |values| {
                RecordBatch::try_new(Arc::clone(&schema), vec![values?]).map_err(|error| {
                    Error::invalid_argument("the values do not have the type of the expression")
                        .with_source(error)
                })
            });
            Box::new(parts) as Box<dyn Iterator<Item = deltalog::Result<RecordBatch>> + Send>
        }
        Err(error) => {
            let failed = Error::invalid_argument("the data stream failed").with_source(error);
            Box::new(std::iter::once(Err(failed)))
        }
    });
    ArrowStream::start(py, schema, values)
}
