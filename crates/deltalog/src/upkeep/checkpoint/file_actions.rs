//! Returns the file actions of a version, batch by batch, as rows of a checkpoint. Protocol: "Checkpoints", "Add File
//! and Remove File".
//!
//! - The number of rows in a batch is limited, so that only a small part of the file list is in memory at a time.
//! - A tombstone expires after `delta.deletedFileRetentionDuration`. A tombstone without a time counts as expired.

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, StructArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Int64Type};

use super::action_file::ActionRows;
use super::adds::AddColumns;
use crate::error::{Error, Result};
use crate::log::replay::{FileAction, FileColumns, remove_fields};
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;

/// The maximum number of rows of a batch.
const BATCH_ROWS: usize = 8 * 1024;

/// How the file actions of a version are written to a checkpoint.
pub(super) struct FileActions {
    adds: AddColumns,
    /// The time before which tombstones have expired, in milliseconds since the epoch.
    expired_ms: i64,
    progress: Progress,
}

impl FileActions {
    /// Returns how the file actions are written, according to the table's properties and at the time `now_ms`.
    ///
    /// # Errors
    /// Returns the same errors as [`AddColumns::of`].
    pub(super) fn of(snapshot: &Snapshot, now_ms: i64) -> Result<Self> {
        // If the retention cannot be parsed, no tombstone expires.
        let retention = snapshot.deleted_file_retention().ok();
        let retention = retention.and_then(|retention| i64::try_from(retention.as_millis()).ok());
        let expired_ms = retention.map_or(i64::MIN, |retention| now_ms.saturating_sub(retention));
        let progress = Progress::new("CHECKPOINT", snapshot.storage().url(), snapshot.known_files(), "files");
        Ok(Self { adds: AddColumns::of(snapshot)?, expired_ms, progress })
    }

    /// Returns the columns of the file actions in the checkpoint.
    pub(super) fn fields(&self) -> [Field; 2] {
        [self.adds.field(), Field::new("remove", DataType::Struct(remove_fields().into()), true)]
    }

    /// Returns the columns of `add` actions that have to be replayed.
    pub(super) fn replayed(&self) -> FileColumns {
        self.adds.replayed()
    }

    /// Returns whether a tombstone of this time has expired. As in VACUUM, it has expired once its age exceeds the
    /// retention. Protocol: "Add File and Remove File".
    pub(super) fn has_expired(&self, time_ms: i64) -> bool {
        time_ms < self.expired_ms
    }

    /// Returns all file actions of `snapshot`. The live files come first.
    ///
    /// # Errors
    /// `CorruptLog`; errors while reading come with the rows.
    pub(super) fn all(&self, snapshot: &Snapshot) -> Result<impl Iterator<Item = Result<ActionRows>>> {
        let adds = snapshot.replay_files(self.replayed())?;
        let removes = snapshot.replay_removes()?;
        Ok(self.adds(adds).chain(self.removes(removes)))
    }

    /// Converts `add` actions to rows of the checkpoint. `files` are batches with the log's own columns.
    pub(super) fn adds(
        &self,
        files: impl Iterator<Item = Result<RecordBatch>>,
    ) -> impl Iterator<Item = Result<ActionRows>> {
        files.flat_map(pieces).map(move |batch| {
            let column = self.adds.convert(&batch?)?;
            self.progress.add(column.len() as u64);
            Ok(ActionRows { kind: FileAction::Add, column })
        })
    }

    /// Converts `remove` actions to rows of the checkpoint, except for the expired ones. `tombstones` are batches with
    /// the log's own columns.
    pub(super) fn removes(
        &self,
        tombstones: impl Iterator<Item = Result<RecordBatch>>,
    ) -> impl Iterator<Item = Result<ActionRows>> {
        let unexpired = tombstones.flat_map(pieces).map(move |batch| self.unexpired(&batch?));
        unexpired.filter(|rows| !matches!(rows, Ok(rows) if rows.column.is_empty()))
    }

    fn unexpired(&self, batch: &RecordBatch) -> Result<ActionRows> {
        let times = batch
            .column_by_name("deletionTimestamp")
            .and_then(|column| column.as_primitive_opt::<Int64Type>());
        let times = times.ok_or_else(|| Error::corrupt_log("remove actions lack 'deletionTimestamp'"))?;
        let keep = |row| Some(times.is_valid(row) && !self.has_expired(times.value(row)));
        let keep: BooleanArray = (0..times.len()).map(keep).collect();
        let failed = |error| Error::corrupt_log("remove actions do not fit a checkpoint").with_source(error);
        let batch = filter_record_batch(batch, &keep).map_err(failed)?;
        // In a checkpoint, `dataChange` is always false.
        let unchanged = BooleanArray::from(vec![false; batch.num_rows()]);
        let columns = batch.schema_ref().fields().iter().zip(batch.columns());
        let columns = columns.map(|(field, column)| match field.name().as_str() {
            "dataChange" => std::sync::Arc::new(unchanged.clone()),
            _ => std::sync::Arc::clone(column),
        });
        let column = StructArray::try_new(remove_fields().into(), columns.collect(), None).map_err(failed)?;
        Ok(ActionRows { kind: FileAction::Remove, column })
    }
}

/// Splits a batch into batches with a limited number of rows.
fn pieces(batch: Result<RecordBatch>) -> Box<dyn Iterator<Item = Result<RecordBatch>>> {
    match batch {
        Ok(batch) if batch.num_rows() > BATCH_ROWS => {
            let starts = (0..batch.num_rows()).step_by(BATCH_ROWS);
            let rows = batch.num_rows();
            Box::new(starts.map(move |start| Ok(batch.slice(start, BATCH_ROWS.min(rows - start)))))
        }
        batch => Box::new(std::iter::once(batch)),
    }
}
