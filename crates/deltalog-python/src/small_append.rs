//! Appends a few rows through an open table with a single listing of the log, which is part of the commit.
//!
//! Other writes are based on the newest version, which they find by a listing, and their commits list the log again.
//! This append assumes that the version of the handle is still the newest one. The commit compares it with concurrent
//! commits, as every commit does. The version may be too old: the schema may have changed, or rows may be refused that
//! the newest version accepts. Then the rows are still in memory, and are written like the rows of any other write.
//!
//! - Rows are held in memory up to [`MOST_BYTES`]. No file is begun before it is known whether there are more.
//! - A schema that does not fit is refused before the source produces any row.

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use deltalog::engine::commit::Operation;
use deltalog::{Environment, Error, ErrorKind, PendingWrite, Result, Snapshot, WriteOutcome, WriteRequest};

use crate::write_batches::{ROWS_AT_ONCE, pieces, written_pieces};

/// The maximum size in bytes of an append with few rows.
const MOST_BYTES: usize = 4 << 20;

/// Rows of a caller's stream.
pub(crate) struct Rows {
    pub(crate) schema: SchemaRef,
    pub(crate) pieces: Box<dyn Iterator<Item = Result<RecordBatch>>>,
}

/// The outcome of an append.
pub(crate) enum SmallAppend {
    Done(WriteOutcome),
    /// Nothing was written. All rows must be written in another way.
    Rest(Rows),
}

impl Rows {
    /// Returns all rows of `reader`.
    pub(crate) fn of(reader: Box<dyn RecordBatchReader + Send>) -> Self {
        Self { schema: reader.schema(), pieces: Box::new(pieces(reader)) }
    }

    /// Returns the rows with `held` before them.
    fn after(self, held: Vec<RecordBatch>) -> Self {
        Self { pieces: Box::new(held.into_iter().map(Ok).chain(self.pieces)), ..self }
    }
}

/// Appends the rows of `reader` to the table at `base`, if there are few.
///
/// # Errors
/// The errors of any write.
pub(crate) fn small_append(
    base: &Snapshot,
    request: &WriteRequest,
    environment: &Environment,
    operation: impl Fn(&PendingWrite) -> Result<Operation>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> Result<SmallAppend> {
    let mut rows = Rows::of(reader);
    let Some(pending) = PendingWrite::begin_append_at(base, request, environment) else {
        return Ok(SmallAppend::Rest(rows));
    };
    let mut writer = pending.writer()?;
    if writer.write(&RecordBatch::new_empty(rows.schema.clone())).is_err() {
        return Ok(SmallAppend::Rest(rows));
    }
    let (mut held, mut count, mut bytes) = (Vec::new(), 0, 0);
    while let Some(piece) = rows.pieces.next().transpose()? {
        count += piece.num_rows();
        bytes += piece.columns().iter().map(size).sum::<usize>();
        held.push(piece);
        if count > ROWS_AT_ONCE || bytes > MOST_BYTES {
            return Ok(SmallAppend::Rest(rows.after(held)));
        }
    }
    let description = operation(&pending)?;
    let again = held.iter().cloned().map(Ok);
    let files = written_pieces(writer, rows.schema.clone(), again).and_then(|written| written.finish());
    match files.and_then(|files| pending.commit(files, description)) {
        Ok(outcome) => Ok(SmallAppend::Done(outcome)),
        Err(error) if depends_on_version(&error) && base.refresh()?.version() > base.version() => {
            Ok(SmallAppend::Rest(rows.after(held)))
        }
        Err(error) => Err(error),
    }
}

/// Returns the size in bytes of a column's rows, which may be part of a larger buffer.
fn size(column: &ArrayRef) -> usize {
    column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
}

/// Returns whether another version might accept the rows. If so, the error shows that nothing was committed.
fn depends_on_version(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::CommitStateUnknown
            | ErrorKind::Unavailable
            | ErrorKind::PermissionDenied
            | ErrorKind::Interrupted
    )
}
