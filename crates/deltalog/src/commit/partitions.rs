//! A set of partitions. It describes which files a transaction replaces, which part of the table it has read, or which
//! files are compacted after a write.
//!
//! Values are compared by type, because writers spell them differently: for a number, `1` and `01` are the same
//! partition. NULL is an ordinary value here.

use std::collections::HashSet;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::row::{OwnedRow, RowConverter, SortField};

use crate::error::{Error, Result};
use crate::log::replay::{FileColumn, with_columns};
use crate::protocol::TableHeader;
use crate::protocol::{ColumnMappingMode, MappedSchema};
use crate::scan::PartitionColumns;
use crate::snapshot::Snapshot;

/// A set of partitions of one table.
pub(crate) struct PartitionSet {
    columns: PartitionColumns,
    converter: RowConverter,
    values: HashSet<OwnedRow>,
}

impl PartitionSet {
    /// Returns an empty set of partitions of `snapshot`, or of `evolved`, the table after a write that changes the
    /// schema. The partition columns of `evolved` may have wider types, which can hold the old and the new values.
    ///
    /// # Errors
    /// `CorruptLog` if a partition column is not in the schema.
    pub(crate) fn of(snapshot: &Snapshot, evolved: Option<&TableHeader>) -> Result<Self> {
        let columns = match evolved {
            None => PartitionColumns::of(snapshot)?,
            Some(TableHeader { protocol, metadata, .. }) => {
                let mode = ColumnMappingMode::of(protocol, metadata)?;
                let schema = MappedSchema::new(metadata.schema()?, mode)?;
                PartitionColumns::new(&schema, &metadata.partition_columns)?
            }
        };
        let sort_fields = columns.fields().iter().map(|field| SortField::new(field.data_type().clone()));
        let converter = RowConverter::new(sort_fields.collect()).map_err(incomparable)?;
        Ok(Self { columns, converter, values: HashSet::new() })
    }

    /// Adds the partitions of the files of `batch`, which has the log's columns.
    ///
    /// # Errors
    /// `CorruptLog` for a value that does not have the type of its column.
    pub(crate) fn insert(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = self.rows(batch)?;
        self.values.extend(rows);
        Ok(())
    }

    /// Returns for each file of `batch` whether its partition is in the set.
    ///
    /// # Errors
    /// Returns the same errors as [`PartitionSet::insert`].
    pub(crate) fn contains(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        Ok(self.rows(batch)?.iter().map(|row| Some(self.values.contains(row))).collect())
    }

    fn rows(&self, batch: &RecordBatch) -> Result<Vec<OwnedRow>> {
        let column = with_columns(batch, vec![FileColumn::PartitionValues.field()])?;
        let values = self.columns.parse(column.column(0).as_map())?;
        let rows = self.converter.convert_columns(values.columns()).map_err(incomparable)?;
        if values.columns().is_empty() {
            return Err(Error::invalid_argument("the table has no partition columns"));
        }
        Ok((0..values.len()).map(|row| rows.row(row).owned()).collect())
    }
}

fn incomparable(error: arrow::error::ArrowError) -> Error {
    Error::invalid_argument("the partition columns cannot be compared").with_source(error)
}

impl std::fmt::Debug for PartitionSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartitionSet").field("partitions", &self.values.len()).finish()
    }
}
