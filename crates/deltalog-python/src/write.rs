//! Data from Arrow to a committed version, without an engine.

use std::collections::{BTreeMap, HashMap};

use arrow::array::RecordBatchReader;
use deltalog::protocol::StructType;
use deltalog::transaction::{Operation, SaveMode};
use deltalog::{Environment, Error, PendingWrite, Result, WriteRequest};
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatchReader;

use crate::error::IntoPython;
use crate::snapshot::open_storage;

/// Writes an Arrow stream and commits it; `None` if the mode is `ignore` and the table is there.
#[pyfunction]
#[pyo3(signature = (uri, stream, mode, partition_by = None, configuration = None, name = None, description = None, user_metadata = None, storage_options = None))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments in Python")]
pub(crate) fn write_stream(
    py: Python<'_>,
    uri: &str,
    stream: PyRecordBatchReader,
    mode: &str,
    partition_by: Option<Vec<String>>,
    configuration: Option<BTreeMap<String, String>>,
    name: Option<String>,
    description: Option<String>,
    user_metadata: Option<String>,
    storage_options: Option<HashMap<String, String>>,
) -> PyResult<Option<u64>> {
    let reader = stream.into_reader()?;
    py.detach(|| {
        let storage = open_storage(uri, storage_options)?;
        let mode = SaveMode::parse(mode)?;
        let request = WriteRequest {
            schema: StructType::from_arrow(&reader.schema())?,
            mode,
            partition_by,
            configuration: configuration.unwrap_or_default(),
            name,
            description,
        };
        let Some(pending) = PendingWrite::begin(&storage, request, &Environment::system())? else { return Ok(None) };
        let partition_by = serde_json::Value::from(pending.partition_columns()).to_string();
        let mut operation = Operation::new("WRITE").parameter("mode", mode.name()).parameter("partitionBy", partition_by);
        operation.user_metadata = user_metadata;
        let files = write_batches(&pending, reader)?;
        Ok(Some(pending.commit(files, operation)?.version))
    })
    .into_python()
}

/// Writes everything that `reader` gives; on any failure what was written is deleted.
pub(crate) fn write_batches(pending: &PendingWrite, reader: Box<dyn RecordBatchReader + Send>) -> Result<Vec<deltalog::protocol::Add>> {
    let mut writer = pending.writer()?;
    for batch in reader {
        let written = batch
            .map_err(|error| Error::invalid_argument("the data stream failed").with_source(error))
            .and_then(|batch| writer.write(&batch));
        if let Err(error) = written {
            // The first error is the one to tell; what could not be deleted is left for clean-up.
            let _ = writer.abort();
            return Err(error);
        }
    }
    writer.finish()
}

/// Makes a table without data; the version it has.
#[pyfunction]
#[pyo3(signature = (uri, schema_json, mode, partition_by = None, configuration = None, name = None, description = None, storage_options = None))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments in Python")]
pub(crate) fn create_table(
    py: Python<'_>,
    uri: &str,
    schema_json: &str,
    mode: &str,
    partition_by: Option<Vec<String>>,
    configuration: Option<BTreeMap<String, String>>,
    name: Option<String>,
    description: Option<String>,
    storage_options: Option<HashMap<String, String>>,
) -> PyResult<Option<u64>> {
    py.detach(|| {
        let storage = open_storage(uri, storage_options)?;
        let mode = SaveMode::parse(mode)?;
        if !matches!(mode, SaveMode::Ignore | SaveMode::ErrorIfExists) {
            return Err(Error::invalid_argument("a table can only be made with the mode error or ignore")
                .with_hint("to replace its rows, write with the mode overwrite"));
        }
        let request = WriteRequest {
            schema: StructType::from_json(schema_json)?,
            mode,
            partition_by,
            configuration: configuration.unwrap_or_default(),
            name,
            description,
        };
        let Some(pending) = PendingWrite::begin(&storage, request, &Environment::system())? else { return Ok(None) };
        let partition_by = serde_json::Value::from(pending.partition_columns()).to_string();
        let operation = Operation::new("CREATE TABLE").parameter("mode", mode.name()).parameter("partitionBy", partition_by);
        Ok(Some(pending.commit(Vec::new(), operation)?.version))
    })
    .into_python()
}
