//! Single rows of `add` actions as structs, for the few places that need them.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;

use super::columns::FileColumn;
use super::deletion_vectors::DeletionVectorColumn;
use crate::error::{Error, Result};
use crate::protocol::Add;

/// Returns the `add` action in `row` of a batch in the form of the log, which may lack columns that are null in
/// every row.
///
/// # Errors
/// `CorruptLog` if the action lacks a required field.
pub(crate) fn add_at(batch: &RecordBatch, row: usize) -> Result<Add> {
    let column =
        |column: FileColumn| batch.column_by_name(column.name()).filter(|column| column.is_valid(row));
    let text = |wanted: FileColumn| Some(column(wanted)?.as_string_opt::<i32>()?.value(row).to_owned());
    let long = |wanted: FileColumn| Some(column(wanted)?.as_primitive_opt::<Int64Type>()?.value(row));
    let data_change = || Some(column(FileColumn::DataChange)?.as_boolean_opt()?.value(row));
    let lacks =
        |column: FileColumn| move || Error::corrupt_log(format!("an add action lacks '{}'", column.name()));
    let deletion_vector = match column(FileColumn::DeletionVector) {
        Some(_) => DeletionVectorColumn::of_log(batch)?.get(row)?,
        None => None,
    };
    Ok(Add {
        path: text(FileColumn::Path).ok_or_else(lacks(FileColumn::Path))?,
        partition_values: pairs(batch, FileColumn::PartitionValues, row).unwrap_or_default(),
        size: long(FileColumn::Size).ok_or_else(lacks(FileColumn::Size))?,
        modification_time: long(FileColumn::ModificationTime).unwrap_or_default(),
        data_change: data_change().unwrap_or(true),
        stats: text(FileColumn::Stats),
        tags: pairs(batch, FileColumn::Tags, row),
        deletion_vector,
        base_row_id: long(FileColumn::BaseRowId),
        default_row_commit_version: long(FileColumn::DefaultRowCommitVersion),
        clustering_provider: text(FileColumn::ClusteringProvider),
    })
}

/// Returns the map from text to text in `row`.
fn pairs<T: FromIterator<(String, Option<String>)>>(
    batch: &RecordBatch,
    column: FileColumn,
    row: usize,
) -> Option<T> {
    let column = batch.column_by_name(column.name()).filter(|column| column.is_valid(row))?;
    let entries = column.as_map_opt()?.value(row);
    let keys = entries.column_by_name("key")?.as_string_opt::<i32>()?;
    let values = entries.column_by_name("value")?.as_string_opt::<i32>()?;
    let pair = |(key, value): (Option<&str>, Option<&str>)| Some((key?.to_owned(), value.map(str::to_owned)));
    Some(keys.iter().zip(values.iter()).filter_map(pair).collect())
}
