//! Arrow streams out, by the Arrow PyCapsule interface.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, RecordBatch, StructArray};
use arrow::datatypes::{Field, SchemaRef};
use arrow::error::ArrowError;
use deltalog::ErrorKind;
use deltalog::engine::protocol::StructType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PySchema;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

use crate::call::call;
use crate::error::IntoPython;

type Batches = Box<dyn Iterator<Item = deltalog::Result<RecordBatch>> + Send>;

/// A stream of record batches that can be taken once.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct ArrowStream {
    schema: SchemaRef,
    batches: Mutex<Option<Batches>>,
}

impl ArrowStream {
    /// The first batch is read at once: what goes wrong at the start is then an exception of ours and not one
    /// of the consumer's.
    pub(crate) fn start(
        py: Python<'_>,
        schema: SchemaRef,
        batches: impl Iterator<Item = deltalog::Result<RecordBatch>> + Send + 'static,
    ) -> PyResult<Self> {
        let mut batches: Batches = Box::new(batches);
        let first = call(py, || batches.next().transpose())?;
        let batches: Batches = Box::new(first.map(Ok).into_iter().chain(batches));
        Ok(Self { schema, batches: Mutex::new(Some(batches)) })
    }
}

/// An error as it goes through the C interface: a number and a text, of which the consumer makes an exception
/// of its own. With `EIO` pyarrow's is an `OSError`, which `MissingFileError` and its like are too. The text
/// must not hold what ends a C string.
fn consumers_error(error: &deltalog::Error) -> ArrowError {
    let text = error.to_string().replace('\0', "\u{fffd}");
    match error.kind() {
        ErrorKind::FileNotFound | ErrorKind::Unavailable | ErrorKind::PermissionDenied => {
            ArrowError::IoError(text.clone(), io::Error::other(text))
        }
        _ => ArrowError::ExternalError(text.into()),
    }
}

#[pymethods]
impl ArrowStream {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    fn __repr__(&self) -> String {
        let columns: Vec<String> = self
            .schema
            .fields()
            .iter()
            .map(|field| format!("{}: {}", field.name(), field.data_type()))
            .collect();
        format!(
            "ArrowStream({}): hand it to pyarrow.table, polars.DataFrame or alike, once",
            columns.join(", ")
        )
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let taken = self.batches.lock().unwrap_or_else(PoisonError::into_inner).take();
        let batches = taken.ok_or_else(|| {
            PyValueError::new_err("this stream was read already; ask the table for another")
        })?;
        let rows = batches.map(|batch| match batch {
            Ok(batch) => Ok(Arc::new(StructArray::from(batch)) as ArrayRef),
            Err(error) => Err(consumers_error(&error)),
        });
        let field = Arc::new(
            Field::new_struct("", self.schema.fields().clone(), false)
                .with_metadata(self.schema.metadata().clone()),
        );
        Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(rows, field)), requested_schema)?)
    }
}

/// The Arrow schema of a Delta schema, as an object with `__arrow_c_schema__`.
#[pyfunction]
pub(crate) fn schema_to_arrow(json: &str) -> PyResult<PySchema> {
    let schema = StructType::from_json(json).and_then(|schema| schema.to_arrow()).into_python()?;
    Ok(PySchema::new(Arc::new(schema)))
}

/// The Delta schema, as JSON, of anything with `__arrow_c_schema__`.
#[pyfunction]
pub(crate) fn schema_from_arrow(schema: PySchema) -> PyResult<String> {
    Ok(StructType::from_arrow(schema.as_ref()).into_python()?.to_json())
}
