//! Passes Arrow streams to Python, and reads them from Python, through the Arrow PyCapsule interface.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow::datatypes::{Field, SchemaRef};
use arrow::error::ArrowError;
use deltalog::engine::protocol::StructType;
use deltalog::{Error, ErrorKind, RowsRead, Snapshot as CoreSnapshot};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use pyo3_arrow::{PyRecordBatch, PyRecordBatchReader, PySchema};

use crate::batch::ArrowBatch;
use crate::call::call;
use crate::ending;
use crate::error::{IntoPython, is_ours, to_python};
use crate::foreign;
use crate::interrupts;
use crate::panics::caught;
use crate::several::Several;
use crate::store_options::released;

type Batches = Box<dyn Iterator<Item = deltalog::Result<RecordBatch>> + Send>;

/// The table from which the rows of a stream were read.
#[derive(Clone)]
pub(crate) struct Origin {
    /// The version of the table.
    pub(crate) snapshot: CoreSnapshot,
    /// Which rows of that version were read.
    pub(crate) rows: RowsRead,
    /// Whether the caller has chosen the version, so that its rows may be older than the newest version.
    pub(crate) is_chosen: bool,
}

/// A stream of record batches that can be consumed once.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct ArrowStream {
    schema: SchemaRef,
    /// The table from which the rows were read, if they come from a table.
    origin: Option<Origin>,
    state: Mutex<State>,
}

/// Where the remaining batches of a stream are.
enum State {
    /// In the stream itself.
    Left(Batches),
    /// With a call that is reading the next batch.
    Reading,
    /// With a consumer, which has taken all of them.
    Taken,
}

impl ArrowStream {
    /// Starts a stream and reads the first batch. An error at the beginning is then raised as an exception of
    /// deltalog, and not as an exception of the stream's consumer.
    pub(crate) fn start(
        py: Python<'_>,
        schema: SchemaRef,
        batches: impl Iterator<Item = deltalog::Result<RecordBatch>> + Send + 'static,
    ) -> PyResult<Self> {
        let mut batches: Batches = Box::new(batches);
        let first = call(py, || batches.next().transpose())?;
        let batches: Batches = Box::new(first.map(Ok).into_iter().chain(batches));
        Ok(Self { schema, origin: None, state: Mutex::new(State::Left(batches)) })
    }

    /// Takes the remaining batches out of the stream. The lock is held only for a moment, so that a call that holds it
    /// never waits for Python's interpreter lock.
    fn take(&self, next: State) -> PyResult<Batches> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *state, next) {
            State::Left(batches) => Ok(batches),
            State::Reading => {
                *state = State::Reading;
                Err(PyValueError::new_err("another thread is reading this stream"))
            }
            State::Taken => {
                *state = State::Taken;
                Err(PyValueError::new_err("this stream was already read; request another one from the table"))
            }
        }
    }

    fn put_back(&self, batches: Batches) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Left(batches);
    }

    /// Records where the rows of the stream were read from, and returns the stream.
    pub(crate) fn of(self, origin: Origin) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// Returns where the rows were read from, if they come from a table.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Returns where the rows were read from, if they come from the table of `snapshot`.
    pub(crate) fn origin_in(&self, snapshot: &CoreSnapshot) -> Option<&Origin> {
        let is_same = |origin: &&Origin| {
            origin.snapshot.storage().url() == snapshot.storage().url()
                && origin.snapshot.metadata().id == snapshot.metadata().id
        };
        self.origin().filter(is_same)
    }
}

/// Opens an object with `__arrow_c_stream__` or `__arrow_c_array__`, or an iterable of such objects. If the source is a
/// table of deltalog and raises deltalog's errors, these are returned unchanged.
pub(crate) fn reader_of(stream: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let open = || {
        let module = stream.py().import("deltalog.arrow_data")?;
        let stream = module.call_method1("importable", (stream,))?;
        if stream.hasattr("__arrow_c_stream__")? {
            return stream.extract::<PyRecordBatchReader>()?.into_reader();
        }
        if stream.hasattr("__arrow_c_array__")? {
            let batch = stream.extract::<PyRecordBatch>()?.into_inner();
            let schema = batch.schema();
            return Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)) as Box<_>);
        }
        Ok(Box::new(Several::open(&stream)?) as Box<dyn RecordBatchReader + Send>)
    };
    foreign::calling(open).map_err(|failure| {
        if is_ours(stream.py(), &failure) {
            return failure;
        }
        to_python(
            &Error::invalid_argument("the data is not an Arrow stream of rows")
                .with_source(failure)
                .with_hint("pass a pyarrow table, a polars or pandas 3 frame, or similar data"),
        )
    })
}

/// Converts an error for Arrow's C interface, which transports only a number and a text. The consumer turns them into
/// an exception of its own.
///
/// For the number `EIO`, pyarrow raises an `OSError`. `MissingFileError` and similar classes are also subclasses of
/// `OSError`, so a caller can catch the error in the same way. The text must not contain NUL, which would end a C
/// string.
fn to_arrow_error(error: &deltalog::Error) -> ArrowError {
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
            "ArrowStream({}): pass it once to pyarrow.table, polars.DataFrame or similar",
            columns.join(", ")
        )
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns the schema as a pyarrow schema.
    #[getter]
    fn schema<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("schema", (slf,))
    }

    /// Reads the remaining rows into a pyarrow table.
    ///
    /// pyarrow does not read the stream itself, because within this call it would detach the thread from the
    /// interpreter a second time.
    fn read_all<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let pyarrow = slf.py().import("pyarrow")?;
        let schema = pyarrow.call_method1("schema", (slf,))?;
        let batches = slf
            .try_iter()?
            .map(|batch| pyarrow.call_method1("record_batch", (batch?,)))
            .collect::<PyResult<Vec<_>>>()?;
        pyarrow.getattr("Table")?.call_method1("from_batches", (batches, schema))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Reads the next batch. After an error, there are no more batches.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowBatch>> {
        let mut batches = self.take(State::Reading)?;
        let read = call(py, || batches.next().transpose());
        self.put_back(if matches!(read, Ok(Some(_))) { batches } else { Box::new(std::iter::empty()) });
        Ok(read?.map(ArrowBatch))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let mut left = Some(self.take(State::Taken)?);
        // The stream counts as open until its consumer releases it, because the consumer may still be processing the
        // last batch.
        let open = ending::Open::new();
        let rows = std::iter::from_fn(move || {
            let batches = left.as_mut()?;
            let read =
                open.before(|look| interrupts::watched(look, || caught(|| released(|| batches.next()))));
            let failure = match read {
                Some(Some(Ok(Some(Ok(batch))))) => {
                    return Some(Ok(Arc::new(StructArray::from(batch)) as ArrayRef));
                }
                Some(Some(Ok(Some(Err(error))))) => return Some(Err(to_arrow_error(&error))),
                Some(Some(Ok(None))) => None,
                // After a panic, no more batches can be requested.
                Some(Some(Err(panic))) => Some(panic),
                // The consumer of the stream recognizes an interrupt by this text.
                Some(None) if !ending::is_elsewhere() => {
                    Some("the call was interrupted\nKeyboardInterrupt".to_owned())
                }
                Some(None) | None => Some(ending::TOO_LATE.to_owned()),
            };
            left = None;
            failure.map(|failure| Err(ArrowError::ExternalError(failure.into())))
        });
        let field = Arc::new(
            Field::new_struct("", self.schema.fields().clone(), false)
                .with_metadata(self.schema.metadata().clone()),
        );
        Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(rows, field)), requested_schema)?)
    }
}

/// Returns rows from another library as a stream whose batches can be read one by one.
#[pyfunction]
pub(crate) fn arrow_stream(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
    let reader = reader_of(data)?;
    let schema = reader.schema();
    let batches = reader.map(|batch| {
        batch.map_err(|failure| {
            Error::invalid_argument("the rows cannot be read to their end").with_source(failure)
        })
    });
    ArrowStream::start(py, schema, batches)
}

/// Converts a Delta schema to an Arrow schema that includes the metadata of the fields. The result is an object with
/// `__arrow_c_schema__`.
#[pyfunction]
pub(crate) fn schema_to_arrow(json: &str) -> PyResult<PySchema> {
    let schema =
        StructType::from_json(json).and_then(|schema| schema.to_arrow_with_metadata()).into_python()?;
    Ok(PySchema::new(Arc::new(schema)))
}

/// Converts an object with `__arrow_c_schema__` to a Delta schema as JSON.
#[pyfunction]
pub(crate) fn schema_from_arrow(schema: PySchema) -> PyResult<String> {
    Ok(StructType::from_arrow(schema.as_ref()).into_python()?.to_json())
}
