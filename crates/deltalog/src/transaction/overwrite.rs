//! The removal of every file of a snapshot.

use arrow::array::{Array, AsArray, MapArray, RecordBatch};
use arrow::datatypes::Int64Type;

use crate::error::{Error, Result};
use crate::protocol::{Action, PartitionValues, Remove};
use crate::replay::{DeletionVectorColumn, FileColumn, FileColumns};
use crate::snapshot::Snapshot;

/// Returns a `remove` action for each live file.
pub(super) fn removes(snapshot: &Snapshot, now_ms: i64) -> Result<Vec<Action>> {
    let columns = FileColumns::of(&[
        FileColumn::Path,
        FileColumn::PartitionValues,
        FileColumn::Size,
        FileColumn::DeletionVector,
        FileColumn::BaseRowId,
        FileColumn::DefaultRowCommitVersion,
    ]);
    let mut actions = Vec::new();
    for batch in snapshot.replay_files(columns)? {
        let batch = batch?;
        let rows = Rows::new(&batch)
            .ok_or_else(|| Error::corrupt_log("add actions do not have the columns of the protocol"))?;
        let vectors = DeletionVectorColumn::of_log(&batch)?;
        for row in 0..batch.num_rows() {
            actions.push(Action::Remove(Remove {
                deletion_vector: vectors.get(row)?,
                ..rows.remove(row, now_ms)?
            }));
        }
    }
    Ok(actions)
}

struct Rows<'a> {
    batch: &'a RecordBatch,
    partition_values: &'a MapArray,
}

impl<'a> Rows<'a> {
    fn new(batch: &'a RecordBatch) -> Option<Self> {
        Some(Self { batch, partition_values: batch.column_by_name("partitionValues")?.as_map_opt()? })
    }

    fn text(&self, name: &str, row: usize) -> Option<String> {
        let column = self.batch.column_by_name(name)?.as_string_opt::<i32>()?;
        column.is_valid(row).then(|| column.value(row).to_owned())
    }

    fn long(&self, name: &str, row: usize) -> Option<i64> {
        let column = self.batch.column_by_name(name)?.as_primitive_opt::<Int64Type>()?;
        column.is_valid(row).then(|| column.value(row))
    }

    fn partition_values(&self, row: usize) -> Option<PartitionValues> {
        let entries = self.partition_values.value(row);
        let (keys, values) =
            (entries.column(0).as_string_opt::<i32>()?, entries.column(1).as_string_opt::<i32>()?);
        Some(
            keys.iter()
                .zip(values)
                .filter_map(|(key, value)| Some((key?.to_owned(), value.map(str::to_owned))))
                .collect(),
        )
    }

    fn remove(&self, row: usize, now_ms: i64) -> Result<Remove> {
        Ok(Remove {
            path: self.text("path", row).ok_or_else(|| Error::corrupt_log("an add action has no path"))?,
            deletion_timestamp: Some(now_ms),
            data_change: true,
            extended_file_metadata: Some(true),
            partition_values: self.partition_values(row),
            size: self.long("size", row),
            base_row_id: self.long("baseRowId", row),
            default_row_commit_version: self.long("defaultRowCommitVersion", row),
            ..Remove::default()
        })
    }
}
