//! Converts the file actions of a batch to structs, for code that needs them one by one.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, MapArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;

use super::columns::FileColumn;
use super::deletion_vectors::DeletionVectorColumn;
use crate::error::{Error, Result};
use crate::protocol::{Add, DeletionVectorDescriptor, PartitionValues, Remove};

/// Returns the `add` actions of `batch`, which has the log's columns. Optional columns that are null in every row may
/// be missing.
///
/// # Errors
/// `CorruptLog` if an action lacks a required field.
pub fn adds_of(batch: &RecordBatch) -> Result<Vec<Add>> {
    let rows = Rows::new(batch)?;
    (0..batch.num_rows()).map(|row| rows.add(row)).collect()
}

/// Returns the `add` action in `row`, as [`adds_of`] does.
///
/// # Errors
/// Returns the same errors as [`adds_of`].
pub(crate) fn add_at(batch: &RecordBatch, row: usize) -> Result<Add> {
    Rows::new(batch)?.add(row)
}

/// Returns the `remove` actions of a batch, as [`adds_of`] does.
///
/// # Errors
/// Returns the same errors as [`adds_of`].
pub(crate) fn removes_of(batch: &RecordBatch) -> Result<Vec<Remove>> {
    let rows = Rows::new(batch)?;
    (0..batch.num_rows()).map(|row| rows.remove(row)).collect()
}

/// The file actions of a batch, row by row, as structs.
struct Rows<'a> {
    path: &'a StringArray,
    partition_values: Option<&'a MapArray>,
    size: Option<&'a Int64Array>,
    modification_time: Option<&'a Int64Array>,
    deletion_timestamp: Option<&'a Int64Array>,
    data_change: Option<&'a BooleanArray>,
    extended_file_metadata: Option<&'a BooleanArray>,
    stats: Option<&'a StringArray>,
    tags: Option<&'a MapArray>,
    deletion_vector: Option<DeletionVectorColumn<'a>>,
    base_row_id: Option<&'a Int64Array>,
    default_row_commit_version: Option<&'a Int64Array>,
    clustering_provider: Option<&'a StringArray>,
}

impl<'a> Rows<'a> {
    fn new(batch: &'a RecordBatch) -> Result<Self> {
        let column = |name: &str| batch.column_by_name(name);
        let long = |name: &str| column(name).and_then(|column| column.as_primitive_opt::<Int64Type>());
        let boolean = |name: &str| column(name).and_then(|column: &ArrayRef| column.as_boolean_opt());
        let text = |name: &str| column(name).and_then(|column| column.as_string_opt::<i32>());
        let map = |name: &str| column(name).and_then(|column| column.as_map_opt());
        Ok(Self {
            path: text("path").ok_or_else(|| Error::corrupt_log("file actions have no column 'path'"))?,
            partition_values: map("partitionValues"),
            size: long("size"),
            modification_time: long("modificationTime"),
            deletion_timestamp: long("deletionTimestamp"),
            data_change: boolean("dataChange"),
            extended_file_metadata: boolean("extendedFileMetadata"),
            stats: text("stats"),
            tags: map("tags"),
            deletion_vector: column(FileColumn::DeletionVector.name())
                .map(|_| DeletionVectorColumn::of_log(batch))
                .transpose()?,
            base_row_id: long("baseRowId"),
            default_row_commit_version: long("defaultRowCommitVersion"),
            clustering_provider: text("clusteringProvider"),
        })
    }

    fn path(&self, row: usize) -> Result<String> {
        owned(Some(self.path), row).ok_or_else(|| Error::corrupt_log("a file action has no path"))
    }

    fn deletion_vector(&self, row: usize) -> Result<Option<DeletionVectorDescriptor>> {
        self.deletion_vector.as_ref().map_or(Ok(None), |vectors| vectors.get(row))
    }

    fn add(&self, row: usize) -> Result<Add> {
        Ok(Add {
            path: self.path(row)?,
            partition_values: pairs(self.partition_values, row).unwrap_or_default(),
            size: long(self.size, row).ok_or_else(|| Error::corrupt_log("an add action has no size"))?,
            modification_time: long(self.modification_time, row).unwrap_or_default(),
            data_change: boolean(self.data_change, row).unwrap_or(true),
            stats: owned(self.stats, row),
            tags: pairs(self.tags, row),
            deletion_vector: self.deletion_vector(row)?,
            base_row_id: long(self.base_row_id, row),
            default_row_commit_version: long(self.default_row_commit_version, row),
            clustering_provider: owned(self.clustering_provider, row),
        })
    }

    fn remove(&self, row: usize) -> Result<Remove> {
        Ok(Remove {
            path: self.path(row)?,
            deletion_timestamp: long(self.deletion_timestamp, row),
            data_change: boolean(self.data_change, row).unwrap_or(true),
            extended_file_metadata: boolean(self.extended_file_metadata, row),
            partition_values: pairs(self.partition_values, row),
            size: long(self.size, row),
            stats: owned(self.stats, row),
            tags: pairs(self.tags, row),
            deletion_vector: self.deletion_vector(row)?,
            base_row_id: long(self.base_row_id, row),
            default_row_commit_version: long(self.default_row_commit_version, row),
        })
    }
}

fn long(column: Option<&Int64Array>, row: usize) -> Option<i64> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

fn boolean(column: Option<&BooleanArray>, row: usize) -> Option<bool> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

fn owned(column: Option<&StringArray>, row: usize) -> Option<String> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row).to_owned())
}

fn pairs(column: Option<&MapArray>, row: usize) -> Option<PartitionValues> {
    let entries = column.filter(|column| column.is_valid(row))?.value(row);
    let (keys, values) =
        (entries.column(0).as_string_opt::<i32>()?, entries.column(1).as_string_opt::<i32>()?);
    let pair = |(key, value): (Option<&str>, Option<&str>)| Some((key?.to_owned(), value.map(str::to_owned)));
    Some(keys.iter().zip(values).filter_map(pair).collect())
}
