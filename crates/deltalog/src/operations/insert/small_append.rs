//! Appends a few rows to a table that is already open, with a single listing of the log, which the commit makes.
//!
//! Other writes first list the log to find the newest version, and their commits list it again. A small append
//! assumes that the version it has open is still the newest one. Its commit checks for conflicts, as every commit
//! does. The version may be outdated: the schema may have changed, or rows may be refused that the newest version
//! accepts. In this case, the rows are still in memory, and the caller can write them in the ordinary way.
//!
//! - Up to [`MOST_ROWS`] and [`MOST_BYTES`] of rows are held in memory. No file is started before it is known whether
//!   there are more rows.
//! - Whether the schema of the rows fits is checked before their source produces the first row.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::{PendingWrite, WriteOutcome};
use crate::commit::{Operation, SaveMode};
use crate::error::{Error, ErrorKind, Result};
use crate::operations::insert::write_request::WriteRequest;
use crate::protocol::TableFeature;
use crate::runtime::environment::Environment;
use crate::runtime::row_bytes::weight_of;
use crate::snapshot::{MOST_OWN_COMMITS, Snapshot};

/// The maximum number of rows of a small append.
const MOST_ROWS: usize = 1 << 16;

/// The maximum size in bytes of a small append.
const MOST_BYTES: usize = 4 << 20;

/// The rows to write, in pieces that each fit in memory.
pub struct Rows {
    /// The schema of all pieces.
    pub schema: SchemaRef,
    /// The pieces, which are produced one after the other.
    pub pieces: Box<dyn Iterator<Item = Result<RecordBatch>>>,
}

/// The outcome of [`small_append`].
pub enum SmallAppend {
    /// The rows were appended.
    Done(WriteOutcome),
    /// Nothing was written. The caller must write all of these rows in another way.
    Rest(Rows),
}

/// Appends `rows` to the table at `base` if there are only a few. `operation` returns the description of the commit
/// for a write that has begun.
///
/// # Errors
/// Returns the errors of any write.
pub fn small_append(
    base: &Snapshot,
    request: &WriteRequest,
    environment: &Environment,
    operation: impl FnOnce(&PendingWrite) -> Result<Operation>,
    mut rows: Rows,
) -> Result<SmallAppend> {
    let Some(pending) = begun(base, request, environment) else { return Ok(SmallAppend::Rest(rows)) };
    let mut writer = pending.writer()?;
    if writer.write(&RecordBatch::new_empty(rows.schema.clone())).is_err() {
        return Ok(SmallAppend::Rest(rows));
    }
    let (mut held, mut count, mut bytes) = (Vec::new(), 0, 0);
    while let Some(piece) = rows.pieces.next().transpose()? {
        count += piece.num_rows();
        bytes += weight_of(&piece, 0, piece.num_rows());
        held.push(piece);
        if count > MOST_ROWS || bytes > MOST_BYTES {
            return Ok(SmallAppend::Rest(rows.after(held)));
        }
    }
    let description = operation(&pending)?;
    let files = held.iter().try_for_each(|piece| writer.write(piece)).and_then(|()| writer.finish());
    match files.and_then(|files| pending.commit(files, description)) {
        Ok(outcome) => Ok(SmallAppend::Done(outcome)),
        Err(error) if depends_on_version(&error) && base.refresh()?.version() > base.version() => {
            Ok(SmallAppend::Rest(rows.after(held)))
        }
        Err(error) => Err(error),
    }
}

impl Rows {
    /// Puts the batches `held` before the remaining rows.
    fn after(self, held: Vec<RecordBatch>) -> Self {
        Self { pieces: Box::new(held.into_iter().map(Ok).chain(self.pieces)), ..self }
    }
}

/// Begins an append to exactly `base`. Returns `None` if the request needs an ordinary write, which is based on the
/// newest version, or if an ordinary write is more likely to succeed.
fn begun(base: &Snapshot, request: &WriteRequest, environment: &Environment) -> Option<PendingWrite> {
    let own_commits = base.left_over().newest_own_commit().saturating_sub(base.version());
    let is_likely = request.mode == SaveMode::Append
        && request.reads.is_nothing()
        && request.app_transactions.is_empty()
        && own_commits <= MOST_OWN_COMMITS
        // In a table with identity columns, each write changes the metadata, so two writes on the same version
        // conflict.
        && !base.protocol().supports(&TableFeature::IdentityColumns);
    let begun = is_likely
        .then(|| PendingWrite::on(base.storage(), Some(base.clone()), request.clone(), environment))?;
    begun.ok()?.filter(|pending| pending.evolved.is_none())
}

/// Returns whether a newer version might accept the rows that were refused with this error. If so, the kind of the
/// error also shows that nothing was committed.
fn depends_on_version(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::CommitStateUnknown
            | ErrorKind::Unavailable
            | ErrorKind::PermissionDenied
            | ErrorKind::Interrupted
    )
}
