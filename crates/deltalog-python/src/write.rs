//! Writing and committing Arrow data without an engine, and creating tables.

use std::collections::HashMap;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::error::ArrowError;
use deltalog::engine::protocol::StructType;
use deltalog::engine::transaction::{Operation, PartitionOverwrite, SaveMode};
use deltalog::engine::write::DataWriter;
use deltalog::{Environment, Error, ErrorKind, PendingWrite, ReplaceWhere, Result, SchemaMode};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatchReader;

use crate::call::call_that_commits;
use crate::commit_arguments::{AlreadyApplied, Answer, CommitArguments};
use crate::error::{is_ours, to_python};
use crate::logging::check_stop;
use crate::snapshot::{Snapshot, open_storage};
use crate::table_options::TableOptions;
use crate::write_target::WriteTarget;

/// Writes an Arrow stream and commits it. Returns `None` if the mode is `ignore` and the table exists, and does not
/// read the stream if an application has done the write before.
#[pyfunction]
#[pyo3(signature = (
    uri, stream, mode, options, commit, storage_options = None, base = None, partition_overwrite = "static",
    predicate = None, schema_mode = None
))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
pub(crate) fn write_stream(
    py: Python<'_>,
    uri: &str,
    stream: &Bound<'_, PyAny>,
    mode: &str,
    options: TableOptions,
    commit: CommitArguments,
    storage_options: Option<HashMap<String, String>>,
    base: Option<Bound<'_, Snapshot>>,
    partition_overwrite: &str,
    predicate: Option<&str>,
    schema_mode: Option<&str>,
) -> PyResult<Option<Answer>> {
    let reader = reader_of(stream)?;
    let base = base.map(|base| base.get().0.clone());
    call_that_commits(py, || {
        let target = WriteTarget::new(uri, storage_options, base)?;
        let mode = SaveMode::parse(mode)?;
        let schema = StructType::from_arrow(&reader.schema())
            .map_err(|error| error.in_table(target.storage().url()))?;
        let mut request = options.request(schema, mode);
        request.partition_overwrite = PartitionOverwrite::parse(partition_overwrite)?;
        request.app_transactions = commit.progress();
        request.replace_where = predicate.map(ReplaceWhere::new);
        request.schema_mode = schema_mode.map(SchemaMode::parse).transpose()?.unwrap_or_default();
        let Some(pending) = target.begin(request, &Environment::system())? else {
            return Ok(None);
        };
        if let Some(applied) = pending.already_applied() {
            return Ok(Some(Answer::AlreadyApplied(AlreadyApplied::new(applied))));
        }
        let partition_by = serde_json::Value::from(pending.partition_columns()).to_string();
        let operation =
            Operation::new("WRITE").parameter("mode", mode.name()).parameter("partitionBy", partition_by);
        let operation =
            predicate.into_iter().fold(operation, |operation, sql| operation.parameter("predicate", sql));
        let operation = commit.describe(operation)?;
        let files = write_batches(&pending, reader)?;
        Ok(Some(pending.commit(files, operation)?.into()))
    })
}

/// Opens an object with `__arrow_c_stream__`. Our own errors, which a table as the source may raise, are returned
/// unchanged.
fn reader_of(stream: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let reader = stream.extract::<PyRecordBatchReader>().and_then(PyRecordBatchReader::into_reader);
    reader.map_err(|failure| {
        if is_ours(stream.py(), &failure) {
            return failure;
        }
        to_python(&Error::invalid_argument("the data is not an Arrow stream of rows").with_source(failure))
    })
}

/// The number of rows that are written at once. It bounds the memory of conversions, and signals are checked in
/// between.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Writes all rows of `reader`. If that fails, the written files are deleted.
pub(crate) fn write_batches(
    pending: &PendingWrite,
    reader: Box<dyn RecordBatchReader + Send>,
) -> Result<Vec<deltalog::engine::protocol::Add>> {
    let mut writer = pending.writer()?;
    if let Err(error) = write_all(&mut writer, reader) {
        // The first error is returned. Files that could not be deleted are left for clean-up.
        let _ = writer.abort();
        return Err(error);
    }
    writer.finish()
}

fn write_all(writer: &mut DataWriter, reader: Box<dyn RecordBatchReader + Send>) -> Result<()> {
    // A schema that does not fit is refused before the source produces any row.
    writer.write(&RecordBatch::new_empty(reader.schema()))?;
    for batch in reader {
        let batch = batch.map_err(stream_error)?;
        for start in (0..batch.num_rows()).step_by(ROWS_AT_ONCE) {
            Python::attach(|py| py.check_signals()).and_then(|()| check_stop()).map_err(interrupted)?;
            writer.write(&batch.slice(start, ROWS_AT_ONCE.min(batch.num_rows() - start)))?;
        }
    }
    Ok(())
}

fn interrupted(exception: PyErr) -> Error {
    Error::new(ErrorKind::Unavailable, "the write was interrupted; nothing was committed")
        .with_source(exception)
}

/// Converts an error of the caller's stream.
///
/// The C interface transports only text, where pyarrow puts the traceback; the last line is the exception. An
/// interrupt must remain one, so that code that catches errors and continues can still be stopped.
fn stream_error(error: ArrowError) -> Error {
    let text = error.to_string();
    let is_interrupt = text.trim_end().lines().last() == Some("KeyboardInterrupt");
    if is_interrupt {
        return interrupted(PyKeyboardInterrupt::new_err(()));
    }
    Error::invalid_argument("the data stream failed; nothing was committed").with_source(error)
}

/// Creates a table without data and returns its version.
#[pyfunction]
#[pyo3(signature = (uri, schema_json, mode, options, commit, storage_options = None))]
pub(crate) fn create_table(
    py: Python<'_>,
    uri: &str,
    schema_json: &str,
    mode: &str,
    options: TableOptions,
    commit: CommitArguments,
    storage_options: Option<HashMap<String, String>>,
) -> PyResult<Option<Answer>> {
    call_that_commits(py, || {
        let storage = open_storage(uri, storage_options)?;
        let mode = SaveMode::parse(mode)?;
        if !matches!(mode, SaveMode::Ignore | SaveMode::ErrorIfExists) {
            return Err(Error::invalid_argument("a table can only be created with the mode error or ignore")
                .with_hint("to replace the rows of a table, write with the mode overwrite"));
        }
        let mut request = options.request(StructType::from_json(schema_json)?, mode);
        request.app_transactions = commit.progress();
        let Some(pending) = PendingWrite::begin(&storage, request, &Environment::system())? else {
            return Ok(None);
        };
        let partition_by = serde_json::Value::from(pending.partition_columns()).to_string();
        let operation = Operation::new("CREATE TABLE")
            .parameter("mode", mode.name())
            .parameter("partitionBy", partition_by);
        Ok(Some(pending.commit(Vec::new(), commit.describe(operation)?)?.into()))
    })
}
