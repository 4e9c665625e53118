//! The files of a scan, serialized for another process.

use std::sync::Arc;

use arrow::array::{Array, AsArray, MapArray, RecordBatch};
use arrow::datatypes::Int64Type;
use serde::{Deserialize, Serialize};

use super::files::{FileListing, ListColumn, partition_map, required};
use super::partitions::PartitionColumns;
use super::rows::{DataFile, PartitionRow, RowTracking};
use super::size::LiveRows;
use crate::error::{Error, Result};
use crate::log::replay::{DeletionVectorColumn, FileColumn};
use crate::protocol::{DeletionVectorDescriptor, MappedSchema, PartitionColumnBuilder, PathResolver};
use crate::snapshot::Snapshot;

/// A file, with its path and partition values as the log spells them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TaskFile {
    pub(super) path: String,
    pub(super) size: u64,
    partition_values: Vec<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deletion_vector: Option<DeletionVectorDescriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_row_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default_row_commit_version: Option<i64>,
    /// The number of rows that are not deleted, if the task counts rows and the log states their number. Readers do
    /// not need it.
    #[serde(skip)]
    pub(super) rows: Option<u64>,
}

/// Which optional properties of the files are listed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Listed {
    pub(super) row_ids: bool,
    pub(super) rows: bool,
}

/// Returns the files of a listing of `snapshot`, in the listing's order.
pub(super) fn task_files(snapshot: &Snapshot, listing: FileListing, listed: Listed) -> Result<Vec<TaskFile>> {
    let mut columns =
        vec![ListColumn::Path, ListColumn::Size, ListColumn::PartitionValues, ListColumn::DeletionVector];
    if listed.rows {
        columns.push(ListColumn::NumRecords);
    }
    if listed.row_ids {
        columns.extend([ListColumn::BaseRowId, ListColumn::DefaultRowCommitVersion]);
    }
    let schema = snapshot.mapped_schema();
    let partitions: Vec<&str> =
        snapshot.metadata().partition_columns.iter().filter_map(|name| schema.physical_name(name)).collect();
    let live = LiveRows::of(snapshot)?;
    let mut list = listing.columns(columns).read()?;
    let mut files = Vec::new();
    while let Some(batch) = list.next_kept() {
        let more = files_of(&batch?, &partitions, listed.rows.then_some(&live));
        files.extend(more.map_err(|error| list.located(error))?);
    }
    Ok(files)
}

fn files_of(batch: &RecordBatch, partitions: &[&str], live: Option<&LiveRows>) -> Result<Vec<TaskFile>> {
    let wrong =
        |column: &str| Error::corrupt_log(format!("the column '{column}' has values of another type"));
    let paths = required(batch, FileColumn::Path)?.as_string_opt::<i32>().ok_or_else(|| wrong("path"))?;
    let sizes =
        required(batch, FileColumn::Size)?.as_primitive_opt::<Int64Type>().ok_or_else(|| wrong("size"))?;
    let values = partition_map(batch)?;
    let vectors = DeletionVectorColumn::of_log(batch)?;
    let rows = live.map(|live| live.count(batch)).transpose()?.unwrap_or_default();
    let file = |row: usize| -> Result<TaskFile> {
        if paths.is_null(row) || sizes.is_null(row) {
            return Err(Error::corrupt_log("an add action lacks its path or size"));
        }
        let path = paths.value(row);
        let size = u64::try_from(sizes.value(row))
            .map_err(|_| Error::corrupt_log("a file has a negative size").at_path(path))?;
        Ok(TaskFile {
            path: path.to_owned(),
            size,
            partition_values: partitions.iter().map(|name| value_of(values, row, name)).collect(),
            deletion_vector: vectors.get(row).map_err(|error| error.at_path(path))?,
            base_row_id: number(batch, FileColumn::BaseRowId, row),
            default_row_commit_version: number(batch, FileColumn::DefaultRowCommitVersion, row),
            rows: rows.get(row).copied().flatten(),
        })
    };
    (0..batch.num_rows()).map(file).collect()
}

fn number(batch: &RecordBatch, column: FileColumn, row: usize) -> Option<i64> {
    let numbers = batch.column_by_name(column.name())?.as_primitive_opt::<Int64Type>()?;
    numbers.is_valid(row).then(|| numbers.value(row))
}

fn value_of(values: &MapArray, row: usize, name: &str) -> Option<String> {
    let entries = values.value(row);
    let (keys, texts) =
        (entries.column(0).as_string_opt::<i32>()?, entries.column(1).as_string_opt::<i32>()?);
    let at = (0..keys.len()).find(|at| keys.value(*at) == name)?;
    texts.is_valid(at).then(|| texts.value(at).to_owned())
}

/// Converts the files to the data files that a scan of rows reads.
pub(super) fn data_files(
    files: &[TaskFile],
    schema: &MappedSchema,
    partition_columns: &[String],
    resolver: &PathResolver,
) -> Result<Vec<DataFile>> {
    let columns = PartitionColumns::new(schema, partition_columns)?;
    let mut arrays = Vec::new();
    for (index, name) in partition_columns.iter().enumerate() {
        let primitive = schema.logical().field(name).and_then(|field| field.data_type.as_primitive());
        let primitive = primitive.ok_or_else(|| {
            Error::corrupt_log(format!("the partition column '{name}' does not have a primitive type"))
        })?;
        let mut builder = PartitionColumnBuilder::new(name, primitive);
        for file in files {
            builder.append(file.partition_values.get(index).and_then(Option::as_deref))?;
        }
        arrays.push(builder.finish());
    }
    let values = Arc::new(columns.assemble(arrays, files.len())?);
    let file = |(row, file): (usize, &TaskFile)| {
        Ok(DataFile {
            row_tracking: RowTracking {
                base_row_id: file.base_row_id,
                default_row_commit_version: file.default_row_commit_version,
            },
            path: resolver.resolve(&file.path)?,
            size: file.size,
            partition_values: PartitionRow::new(Arc::clone(&values), row)?,
            rows: file.deletion_vector.clone().into(),
        })
    };
    files.iter().enumerate().map(file).collect()
}
