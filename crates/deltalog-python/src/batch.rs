//! The batches of a stream, for programs that do not have an Arrow library.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, StructArray};
use arrow::datatypes::Field;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use deltalog::Error;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::ffi::{to_array_pycapsules, to_schema_pycapsule};

use crate::call::call;

/// A batch of a stream.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct ArrowBatch(pub(crate) RecordBatch);

#[pymethods]
impl ArrowBatch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Returns a range of the batch's rows, without copying them. The range is limited to the rows that exist.
    #[pyo3(signature = (offset = 0, length = None))]
    fn slice(&self, offset: usize, length: Option<usize>) -> Self {
        let rows = self.0.num_rows();
        let offset = offset.min(rows);
        Self(self.0.slice(offset, length.unwrap_or(rows).min(rows - offset)))
    }

    /// Returns the values of each column as text for display; None for NULL.
    fn texts(&self, py: Python<'_>) -> PyResult<Vec<Vec<Option<String>>>> {
        call(py, || {
            self.0.columns().iter().map(|column| texts_of(column)).collect::<Result<_, _>>().map_err(
                |failure| Error::invalid_argument("a value cannot be shown as text").with_source(failure),
            )
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "ArrowBatch({} rows): pass it to pyarrow.record_batch, polars.DataFrame or similar",
            self.0.num_rows()
        )
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.schema_ref().as_ref())?)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let schema = self.0.schema_ref();
        let field =
            Field::new_struct("", schema.fields().clone(), false).with_metadata(schema.metadata().clone());
        let rows = StructArray::from(self.0.clone());
        Ok(to_array_pycapsules(py, Arc::new(field), &rows, requested_schema)?)
    }
}

/// Formats the values of a column. Strings inside of nested values are quoted, because they may contain commas.
fn texts_of(column: &dyn Array) -> Result<Vec<Option<String>>, ArrowError> {
    let nested = column.data_type().is_nested();
    let options =
        FormatOptions::new().with_null("NULL").with_display_error(false).with_quoted_strings(nested);
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let nulls = column.logical_nulls();
    let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    (0..column.len())
        .map(|row| if is_null(row) { Ok(None) } else { formatter.value(row).try_to_string().map(Some) })
        .collect()
}
