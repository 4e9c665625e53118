//! Removes the files of a snapshot that an overwrite replaces.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};

use super::partitions::PartitionSet;
use crate::error::{Error, Result};
use crate::log::replay::{FileColumn, FileColumns, filtered, remove_fields, with_columns};
use crate::snapshot::Snapshot;

/// Returns a `remove` action for each live file of the snapshot, or only for those in `partitions`, in batches with the
/// log's columns.
pub(super) fn removes(
    snapshot: &Snapshot,
    partitions: Option<&PartitionSet>,
    now_ms: i64,
) -> Result<Vec<RecordBatch>> {
    let replaced = |batch: RecordBatch| match partitions {
        None => Ok(batch),
        Some(partitions) => filtered(&batch, &partitions.contains(&batch)?),
    };
    let batches = snapshot
        .replay_files(FileColumns::of_removes())?
        .map(|batch| remove(&replaced(batch?)?, now_ms, RowsOfFile::Removed));
    batches.filter(|batch| !batch.as_ref().is_ok_and(|batch| batch.num_rows() == 0)).collect()
}

/// What happens to the rows of a removed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsOfFile {
    /// The rows are removed from the table.
    Removed,
    /// The rows are now in another file, so the data does not change.
    Moved,
}

/// Returns the `remove` actions of a batch of `add` actions.
pub(super) fn remove(adds: &RecordBatch, now_ms: i64, rows_of_file: RowsOfFile) -> Result<RecordBatch> {
    let rows = adds.num_rows();
    let mut fields = remove_fields();
    if rows_of_file == RowsOfFile::Moved {
        fields.push(FileColumn::Tags.field());
    }
    let columns = with_columns(adds, fields)?;
    let arrays = columns
        .schema()
        .fields()
        .iter()
        .zip(columns.columns())
        .map(|(field, column)| match field.name().as_str() {
            "deletionTimestamp" => Arc::new(Int64Array::from_value(now_ms, rows)) as ArrayRef,
            "dataChange" => Arc::new(BooleanArray::from(vec![rows_of_file == RowsOfFile::Removed; rows])),
            "extendedFileMetadata" => Arc::new(BooleanArray::from(vec![true; rows])),
            _ => Arc::clone(column),
        })
        .collect();
    RecordBatch::try_new(columns.schema(), arrays)
        .map_err(|error| Error::corrupt_log("the files cannot be removed").with_source(error))
}
