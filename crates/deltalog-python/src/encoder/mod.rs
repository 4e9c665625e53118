//! `Encoder`: writes rows as the bytes of a file, without an Arrow library. The formats are JSON lines (`json`), CSV
//! (`csv`), an Arrow IPC stream without compression, and Parquet.

mod csv;
mod json;

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_ipc::writer::StreamWriter;
use deltalog::{Error, Result};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PySchema;

use self::csv::CsvWriter;
use crate::batch::ArrowBatch;
use crate::call::call;
use crate::error::IntoPython;

/// Encodes batches that have the same schema.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct Encoder(Mutex<Form>);

/// The format of the output, with the state of its encoder.
enum Form {
    Json { schema: SchemaRef },
    Csv(CsvWriter),
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Parquet(Box<Option<ArrowWriter<Drained>>>, Drained),
}

/// The bytes that a writer has written and that have not been taken yet.
#[derive(Clone, Default)]
struct Drained(Arc<Mutex<Vec<u8>>>);

impl Drained {
    fn take(&self) -> Vec<u8> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Drained {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[pymethods]
impl Encoder {
    /// Begins a file. The delimiter, the text for NULL and the header line only matter for CSV.
    #[new]
    #[pyo3(signature = (form, schema, delimiter = ",", null = "", has_names = true))]
    fn new(form: &str, schema: PySchema, delimiter: &str, null: &str, has_names: bool) -> PyResult<Self> {
        let schema = schema.into_inner();
        let form = match form {
            "csv" => CsvWriter::new(schema, delimiter, null.to_owned(), has_names).map(Form::Csv),
            _ => Form::new(form, schema),
        };
        form.map(|form| Self(Mutex::new(form))).into_python()
    }

    /// Returns the encoded bytes of a batch.
    fn encode<'py>(&self, py: Python<'py>, batch: &Bound<'py, ArrowBatch>) -> PyResult<Bound<'py, PyBytes>> {
        let batch = batch.get();
        let bytes = call(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).encode(&batch.0))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the bytes that follow the last batch.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = call(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).finish())?;
        Ok(PyBytes::new(py, &bytes))
    }
}

impl Form {
    fn new(form: &str, schema: SchemaRef) -> Result<Self> {
        match form {
            "json" => Ok(Self::Json { schema: json::with_text_keys(&schema) }),
            "arrow" => StreamWriter::try_new(Vec::new(), &schema)
                .map(|writer| Self::Arrow(Box::new(writer)))
                .map_err(not_encoded),
            "parquet" => {
                let written = Drained::default();
                let writer = ArrowWriter::try_new(written.clone(), schema, Some(properties()));
                Ok(Self::Parquet(Box::new(Some(writer.map_err(not_encoded)?)), written))
            }
            _ => Err(Error::invalid_argument(format!("there is no format {form:?}"))
                .with_hint("pass 'json', 'csv', 'arrow' or 'parquet'")),
        }
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        match self {
            Self::Json { schema } => json::json_lines(schema, batch).map_err(not_encoded),
            Self::Csv(writer) => writer.encode(batch).map_err(not_encoded),
            Self::Arrow(writer) => {
                writer.write(batch).map(|()| mem::take(writer.get_mut())).map_err(not_encoded)
            }
            Self::Parquet(writer, written) => match writer.as_mut() {
                Some(writer) => writer.write(batch).map(|()| written.take()).map_err(not_encoded),
                None => Err(Error::invalid_argument("the file has ended")),
            },
        }
    }

    fn finish(&mut self) -> Result<Vec<u8>> {
        match self {
            Self::Json { .. } => Ok(Vec::new()),
            Self::Csv(writer) => Ok(writer.names()),
            Self::Arrow(writer) => writer.finish().map(|()| mem::take(writer.get_mut())).map_err(not_encoded),
            Self::Parquet(writer, written) => {
                if let Some(writer) = writer.take() {
                    writer.close().map_err(not_encoded)?;
                }
                Ok(written.take())
            }
        }
    }
}

fn properties() -> WriterProperties {
    WriterProperties::builder().set_compression(Compression::SNAPPY).build()
}

fn not_encoded(failure: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::invalid_argument("rows cannot be written in this format").with_source(failure)
}
