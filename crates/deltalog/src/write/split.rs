//! Finds the partition of each row.
//!
//! - Two values belong to the same partition if the log represents them by the same string.
//! - Each combination of values is converted to strings only once per write. After that, each row costs one look-up
//!   of its values as bytes.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow::row::{RowConverter, SortField};
use hashbrown::HashMap;

use crate::error::{Error, Result};
use crate::protocol::partition_value::to_log_string;

/// The values of one partition, in the order of the partition columns.
pub(super) type PartitionKey = Vec<Option<String>>;

/// The number of a partition within a write. Partitions are numbered in the order in which they appear.
pub(super) type PartitionId = usize;

/// Finds the partitions of batches.
pub(super) struct Splitter {
    columns: Vec<PartitionColumn>,
    converter: RowConverter,
    /// The partitions by their values, encoded as comparable bytes. Values that the log represents by the same string
    /// have the same partition.
    by_value: HashMap<Box<[u8]>, PartitionId>,
    by_key: HashMap<PartitionKey, PartitionId>,
    keys: Vec<PartitionKey>,
}

struct PartitionColumn {
    index: usize,
    name: String,
    is_required: bool,
}

impl Splitter {
    /// Creates a splitter for batches of `schema`.
    ///
    /// # Errors
    /// `InvalidArgument` if a partition column is not in the schema or is nested.
    pub(super) fn new(schema: &Schema, partition_columns: &[String]) -> Result<Self> {
        let mut columns = Vec::new();
        let mut sort_fields = Vec::new();
        for name in partition_columns {
            let Some((index, field)) = schema.column_with_name(name) else {
                return Err(Error::invalid_argument(format!(
                    "partition column '{name}' is not in the schema"
                )));
            };
            if field.data_type().is_nested() {
                let data_type = field.data_type();
                return Err(Error::invalid_argument(format!(
                    "a table cannot be partitioned by column '{name}' of type {data_type}"
                )));
            }
            columns.push(PartitionColumn { index, name: name.clone(), is_required: !field.is_nullable() });
            sort_fields.push(SortField::new(field.data_type().clone()));
        }
        let converter = RowConverter::new(sort_fields).map_err(|error| {
            Error::invalid_argument("the partition columns cannot be compared").with_source(error)
        })?;
        Ok(Self { columns, converter, by_value: HashMap::new(), by_key: HashMap::new(), keys: Vec::new() })
    }

    /// Returns `batch` with the partition values that readers will find: an empty string becomes NULL. (Protocol:
    /// "Partition Value Serialization".)
    ///
    /// # Errors
    /// Returns `SchemaMismatch` if a partition column is NOT NULL and has an empty string.
    pub(super) fn as_stored(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let (schema, mut arrays, rows) = batch.into_parts();
        for column in &self.columns {
            let Some(array) = arrays.get_mut(column.index) else { continue };
            let is_empty = match array.data_type() {
                DataType::Utf8 => array.as_string::<i32>().iter().map(|text| text == Some("")).collect(),
                DataType::Binary => {
                    array.as_binary::<i32>().iter().map(|bytes| bytes.is_some_and(<[u8]>::is_empty)).collect()
                }
                _ => continue,
            };
            let is_empty = BooleanArray::new(is_empty, None);
            if !is_empty.has_true() {
                continue;
            }
            if column.is_required {
                return Err(null_in_partition_column(&column.name));
            }
            *array = nullif(array, &is_empty).map_err(unsplittable)?;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema, arrays, &options).map_err(unsplittable)
    }

    /// Returns whether the table has no partition columns, so that all rows belong to one partition.
    pub(super) fn is_trivial(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the number of partitions that have been found so far.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the values of a partition.
    pub(super) fn values(&self, partition: PartitionId) -> &[Option<String>] {
        self.keys.get(partition).map_or(&[], Vec::as_slice)
    }

    /// Returns the partition of each row of `batch`.
    ///
    /// # Errors
    /// Returns `SchemaMismatch` for a value that the log cannot represent as a partition value.
    pub(super) fn partitions(&mut self, batch: &RecordBatch) -> Result<Vec<PartitionId>> {
        let arrays: Vec<ArrayRef> =
            self.columns.iter().map(|column| batch.column(column.index).clone()).collect();
        let compared = self.converter.convert_columns(&arrays).map_err(unsplittable)?;
        let mut partitions = Vec::with_capacity(batch.num_rows());
        let mut previous: Option<(&[u8], PartitionId)> = None;
        for (row, values) in compared.iter().enumerate() {
            let values = values.data();
            let partition = match previous {
                Some((before, partition)) if before == values => partition,
                _ => match self.by_value.get(values) {
                    Some(partition) => *partition,
                    None => {
                        let key = self.key(&arrays, row)?;
                        self.add(values, key)
                    }
                },
            };
            partitions.push(partition);
            previous = Some((values, partition));
        }
        Ok(partitions)
    }

    /// Records that the log represents `values` by the strings `key`, and returns their partition.
    fn add(&mut self, values: &[u8], key: PartitionKey) -> PartitionId {
        let next = self.keys.len();
        let partition = self.by_key.get(&key).copied().unwrap_or(next);
        if partition == next {
            self.by_key.insert(key.clone(), next);
            self.keys.push(key);
        }
        self.by_value.insert(values.into(), partition);
        partition
    }

    fn key(&self, arrays: &[ArrayRef], row: usize) -> Result<PartitionKey> {
        let value = |(column, array): (&PartitionColumn, &ArrayRef)| {
            let text = to_log_string(array, row).map_err(|error| {
                Error::schema_mismatch(format!("partition column '{}' has an invalid value", column.name))
                    .with_source(error)
            })?;
            if text.is_none() && column.is_required {
                return Err(null_in_partition_column(&column.name));
            }
            Ok(text)
        };
        self.columns.iter().zip(arrays).map(value).collect()
    }
}

/// Returns the error for a NOT NULL partition column that has no value. (PROTOCOL, "Partition Value Serialization".)
pub(super) fn null_in_partition_column(name: &str) -> Error {
    Error::schema_mismatch(format!(
        "partition column '{name}' has NULL or an empty string, which is stored as NULL, but it is NOT NULL"
    ))
}

fn unsplittable(error: ArrowError) -> Error {
    Error::schema_mismatch("the batch cannot be split by its partition values").with_source(error)
}
