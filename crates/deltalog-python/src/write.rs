//! Writing and committing Arrow data without an engine.

use std::collections::HashMap;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::error::ArrowError;
use deltalog::engine::protocol::{Add, StructType};
use deltalog::engine::write::DataWriter;
use deltalog::{Error, ErrorKind, Result};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::call::call_that_commits;
use crate::commit_arguments::{AlreadyApplied, Answer};
use crate::logging::check_stop;
use crate::snapshot::Snapshot;
use crate::stream::reader_of;
use crate::upkeep;
use crate::write_arguments::WriteArguments;
use crate::write_target::WriteTarget;

/// Writes an Arrow stream and commits it. Returns `None` if the mode is `ignore` and the table exists, and does not
/// read the stream if an application has done the write before.
#[pyfunction]
#[pyo3(signature = (uri, stream, arguments, storage_options = None, base = None))]
pub(crate) fn write_stream(
    py: Python<'_>,
    uri: &str,
    stream: &Bound<'_, PyAny>,
    arguments: WriteArguments,
    storage_options: Option<HashMap<String, String>>,
    base: Option<Bound<'_, Snapshot>>,
) -> PyResult<Option<Answer>> {
    let reader = reader_of(stream)?;
    let base = base.map(|base| base.get().0.clone());
    call_that_commits(py, || {
        let target = WriteTarget::new(uri, storage_options, base)?;
        let schema = StructType::from_arrow(&reader.schema())
            .map_err(|error| error.in_table(target.storage().url()))?;
        let Some(pending) = target.begin(arguments.request(schema)?, &upkeep::environment())? else {
            return Ok(None);
        };
        if let Some(applied) = pending.already_applied() {
            return Ok(Some(Answer::AlreadyApplied(AlreadyApplied::new(applied))));
        }
        let operation = arguments.operation(&pending)?;
        let files = write_batches(pending.writer()?, reader)?;
        Ok(Answer::of(pending.commit(files, operation)?))
    })
}

/// The number of rows that are written at once. It bounds the memory of conversions, and signals are checked in
/// between.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Writes all rows of `reader`, and completes the files. If that fails, they are deleted.
pub(crate) fn write_batches(
    writer: DataWriter,
    reader: Box<dyn RecordBatchReader + Send>,
) -> Result<Vec<Add>> {
    written(writer, reader)?.finish()
}

/// Writes all rows of `reader`. If that fails, the written files are deleted.
pub(crate) fn written(
    mut writer: DataWriter,
    reader: Box<dyn RecordBatchReader + Send>,
) -> Result<DataWriter> {
    match write_all(&mut writer, reader) {
        Ok(()) => Ok(writer),
        Err(error) => {
            // The first error is returned. Files that could not be deleted are left for clean-up.
            let _ = writer.abort();
            Err(error)
        }
    }
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
