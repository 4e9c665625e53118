//! Reads the rows of a Parquet file that does not belong to a table.

use std::fs::File;

use arrow::array::RecordBatchReader;
use deltalog::{Error, Result};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use pyo3::prelude::*;

use crate::call::call;
use crate::stream::ArrowStream;

/// Returns the rows of a local file.
#[pyfunction]
pub(crate) fn read_parquet(py: Python<'_>, path: &str) -> PyResult<ArrowStream> {
    let reader = call(py, || open(path))?;
    let schema = reader.schema();
    ArrowStream::start(py, schema, reader.map(|batch| batch.map_err(damaged)))
}

fn open(path: &str) -> Result<ParquetRecordBatchReader> {
    let file = File::open(path)
        .map_err(|failure| Error::invalid_argument("the file cannot be opened").with_source(failure))?;
    ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(damaged)
}

fn damaged(failure: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::schema_mismatch("the file cannot be read as Parquet").with_source(failure)
}
