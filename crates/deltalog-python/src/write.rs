//! Writes and commits Arrow data without an engine.

use deltalog::PendingWrite;
use deltalog::engine::commit::SaveMode;
use deltalog::engine::insert::{SmallAppend, small_append};
use pyo3::prelude::*;

use crate::call::call_that_commits;
use crate::commit_arguments::{AlreadyApplied, Answer};
use crate::snapshot::Snapshot;
use crate::store_options::StoreOptions;
use crate::stream::{ArrowStream, Origin, reader_of};
use crate::write_arguments::WriteArguments;
use crate::write_batches::{rows_of, written};
use crate::write_target::WriteTarget;

/// Writes an Arrow stream and commits it. Returns `None` if the mode is `ignore` and the table exists. If an
/// application has already made this write, the stream is not read. If the rows were read from the table itself, at a
/// version that the caller has not chosen, the write is based on that version and depends on the rows that were read.
#[pyfunction]
#[pyo3(signature = (uri, stream, arguments, storage_options = None, base = None))]
pub(crate) fn write_stream(
    py: Python<'_>,
    uri: &str,
    stream: &Bound<'_, PyAny>,
    arguments: WriteArguments,
    storage_options: Option<StoreOptions>,
    base: Option<Bound<'_, Snapshot>>,
) -> PyResult<Option<Answer>> {
    let origin = stream.cast::<ArrowStream>().ok().and_then(|ours| ours.get().origin().cloned());
    let origin = origin.filter(|origin: &Origin| !origin.is_chosen);
    let reader = reader_of(stream)?;
    let base = base.map(|base| base.get().0.clone());
    call_that_commits(py, || {
        let mut target = WriteTarget::new(uri, storage_options, base)?;
        let schema = target.schema_of(&reader.schema(), arguments.redefines_columns()?)?;
        let (mut request, environment) = (arguments.request(schema)?, arguments.environment()?);
        if let Some(origin) = origin
            && origin.snapshot.storage().url() == target.storage().url()
            && matches!(request.mode, SaveMode::Append | SaveMode::Overwrite)
        {
            target = target.computed_from(&origin.snapshot, request.mode == SaveMode::Overwrite)?;
            request.reads = origin.rows;
        }
        let operation = |pending: &PendingWrite| arguments.operation(pending);
        let mut rows = rows_of(reader);
        if let Some(base) = target.base() {
            rows = match small_append(base, &request, &environment, operation, rows)? {
                SmallAppend::Done(outcome) => return Ok(Answer::of(outcome)),
                SmallAppend::Rest(rest) => rest,
            };
        }
        let Some(pending) = target.begin(request, &environment)? else { return Ok(None) };
        if let Some(applied) = pending.already_applied() {
            return Ok(Some(Answer::AlreadyApplied(AlreadyApplied::new(applied))));
        }
        let operation = operation(&pending)?;
        let files = written(pending.writer()?, rows)?.finish()?;
        Ok(Answer::of(pending.commit(files, operation)?))
    })
}
