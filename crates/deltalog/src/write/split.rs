//! Splits batches by their partition values.
//!
//! - Each row is in exactly one part, and the rows of a part keep their order.
//! - Two values belong to the same partition if the log has the same text for them.

use std::collections::HashMap;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use arrow::compute::{nullif, take_record_batch};
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow::row::{Row, RowConverter, SortField};

use crate::error::{Error, Result};
use crate::protocol::partition_value::to_log_string;

/// The values of one partition in the order of the partition columns.
pub(super) type PartitionKey = Vec<Option<String>>;

/// A splitter of batches by the partition columns of a table.
pub(super) struct Splitter {
    columns: Vec<PartitionColumn>,
    converter: RowConverter,
}

struct PartitionColumn {
    index: usize,
    name: String,
    is_required: bool,
}

/// The rows of one partition.
pub(super) struct Part {
    pub(super) key: PartitionKey,
    rows: Rows,
}

enum Rows {
    Range(Range<usize>),
    Scattered(Vec<u32>),
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
        Ok(Self { columns, converter })
    }

    /// Returns `batch` with the partition values that readers will find: an empty string is stored as NULL. Protocol:
    /// "Partition Value Serialization".
    ///
    /// # Errors
    /// `SchemaMismatch` if a NOT NULL column has an empty string.
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

    /// Splits `batch` into parts, in the order of their first rows.
    ///
    /// # Errors
    /// `SchemaMismatch` for a value that cannot be a partition value.
    pub(super) fn split(&self, batch: &RecordBatch) -> Result<Vec<Part>> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(Vec::new());
        }
        if u32::try_from(rows).is_err() {
            return Err(Error::invalid_argument(format!("a batch of {rows} rows is too large"))
                .with_hint("write it in smaller batches"));
        }
        if self.columns.is_empty() {
            return Ok(vec![Part { key: Vec::new(), rows: Rows::Range(0..rows) }]);
        }
        let arrays: Vec<ArrayRef> =
            self.columns.iter().map(|column| batch.column(column.index).clone()).collect();
        let compared = self.converter.convert_columns(&arrays).map_err(unsplittable)?;
        let mut known: HashMap<Row<'_>, usize> = HashMap::new();
        let mut parts: Vec<Part> = Vec::new();
        let mut by_key: HashMap<PartitionKey, usize> = HashMap::new();
        let mut previous: Option<(Row<'_>, usize)> = None;
        for (row, values) in compared.iter().enumerate() {
            let at = match previous {
                Some((before, at)) if before == values => at,
                _ => match known.get(&values) {
                    Some(at) => *at,
                    None => {
                        let key = self.key(&arrays, row)?;
                        let next = parts.len();
                        let at = *by_key.entry(key.clone()).or_insert(next);
                        if at == next {
                            parts.push(Part { key, rows: Rows::Range(row..row) });
                        }
                        known.insert(values, at);
                        at
                    }
                },
            };
            if let Some(part) = parts.get_mut(at) {
                part.rows.push(row);
            }
            previous = Some((values, at));
        }
        Ok(parts)
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

impl Rows {
    fn push(&mut self, row: usize) {
        match self {
            Self::Range(range) if range.end == row => range.end += 1,
            Self::Range(range) => {
                // `split` has checked that row numbers fit in a u32.
                let mut rows: Vec<u32> = range.clone().map(|row| row as u32).collect();
                rows.push(row as u32);
                *self = Self::Scattered(rows);
            }
            Self::Scattered(rows) => rows.push(row as u32),
        }
    }
}

impl Part {
    /// Returns the rows of this part from `data`, which has the same rows as the batch that was split.
    pub(super) fn of(&self, data: &RecordBatch) -> Result<RecordBatch> {
        match &self.rows {
            Rows::Range(range) => Ok(data.slice(range.start, range.len())),
            Rows::Scattered(rows) => {
                take_record_batch(data, &UInt32Array::from(rows.clone())).map_err(unsplittable)
            }
        }
    }
}

/// Returns the error for a NOT NULL partition column without a value. (PROTOCOL, "Partition Value Serialization".)
pub(super) fn null_in_partition_column(name: &str) -> Error {
    Error::schema_mismatch(format!(
        "partition column '{name}' has NULL or an empty string, which is stored as NULL, but it is NOT NULL"
    ))
}

fn unsplittable(error: ArrowError) -> Error {
    Error::schema_mismatch("the batch cannot be split by its partition values").with_source(error)
}
