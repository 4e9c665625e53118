//! The column `add` of checkpoints. Protocol: "Checkpoints", "Checkpoint Schema", "Per-file Statistics".
//!
//! | table property | default | columns |
//! | --- | --- | --- |
//! | `delta.checkpoint.writeStatsAsJson` | true | `stats`, the same JSON text as in commits |
//! | `delta.checkpoint.writeStatsAsStruct` | false | `stats_parsed`; if partitioned, `partitionValues_parsed` |
//!
//! - Columns are named as in the log, that is, by their physical names if the table has column mapping.
//! - `stats_parsed` has the leaf columns for which statistics are collected, with their types in the table's schema. A
//!   statistic that is not a value of that type is left out. Bounds of a column that was a `float` are widened; see
//!   [`crate::scan::StatisticsColumns`].
//! - A partition value that does not have its column's type is an error. If it were left out, readers would take it for
//!   NULL.
//! - In a checkpoint, `dataChange` is false for all actions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Schema};

use crate::error::{Error, Result};
use crate::log::replay::{FileColumn, FileColumns, STATS_PARSED};
use crate::scan::{PartitionColumns, StatisticsColumns};
use crate::snapshot::Snapshot;
use crate::values::stats::indexed;
use crate::write::selected_columns;

const PARTITION_VALUES_PARSED: &str = "partitionValues_parsed";

/// How the `add` actions of a table are written.
pub(super) struct AddColumns {
    plain: FileColumns,
    partitions: Option<PartitionStructs>,
    statistics: Option<StatisticsStructs>,
    fields: Fields,
}

/// The column `partitionValues_parsed`.
struct PartitionStructs {
    columns: PartitionColumns,
    fields: Fields,
}

/// The column `stats_parsed`.
struct StatisticsStructs {
    columns: StatisticsColumns,
    fields: Fields,
}

impl AddColumns {
    /// Returns the columns that the table's properties request.
    ///
    /// # Errors
    /// `CorruptLog` for a partition column whose type is not primitive.
    pub(super) fn of(snapshot: &Snapshot) -> Result<Self> {
        let metadata = snapshot.metadata();
        let as_text = metadata
            .property("delta.checkpoint.writeStatsAsJson")
            .is_none_or(|value| !value.trim().eq_ignore_ascii_case("false"));
        let as_struct = metadata.is_enabled("delta.checkpoint.writeStatsAsStruct");
        let written: Vec<FileColumn> =
            FileColumn::ALL.into_iter().filter(|column| as_text || *column != FileColumn::Stats).collect();
        let partitions = if as_struct { PartitionStructs::of(snapshot)? } else { None };
        let statistics = as_struct.then(|| StatisticsStructs::of(snapshot)).transpose()?;
        let parsed = [
            partitions.as_ref().map(|partitions| (PARTITION_VALUES_PARSED, &partitions.fields)),
            statistics.as_ref().map(|statistics| (STATS_PARSED, &statistics.fields)),
        ];
        let parsed = parsed.into_iter().flatten();
        let parsed = parsed.map(|(name, fields)| Field::new(name, DataType::Struct(fields.clone()), true));
        let fields = written.iter().map(|column| column.field()).chain(parsed).collect();
        Ok(Self { plain: FileColumns::of(&written), partitions, statistics, fields })
    }

    /// Returns the columns of `add` actions that have to be replayed.
    pub(super) fn replayed(&self) -> FileColumns {
        match self.statistics {
            Some(_) => self.plain.with(FileColumn::Stats),
            None => self.plain,
        }
    }

    /// Returns the column `add` of a checkpoint.
    pub(super) fn field(&self) -> Field {
        Field::new("add", DataType::Struct(self.fields.clone()), true)
    }

    /// Converts `files`, a batch with the log's columns, to the column `add`.
    pub(super) fn convert(&self, files: &RecordBatch) -> Result<StructArray> {
        let column = |field: &Arc<Field>| -> Result<ArrayRef> {
            let plain = |name: &str| {
                let column = files.column_by_name(name);
                column.ok_or_else(|| Error::corrupt_log(format!("file actions lack '{name}'")))
            };
            match (field.name().as_str(), &self.partitions, &self.statistics) {
                ("dataChange", ..) => Ok(Arc::new(BooleanArray::from(vec![false; files.num_rows()]))),
                (PARTITION_VALUES_PARSED, Some(partitions), _) => {
                    partitions.convert(plain("partitionValues")?)
                }
                (STATS_PARSED, _, Some(statistics)) => statistics.convert(plain("stats")?),
                (name, ..) => plain(name).cloned(),
            }
        };
        let columns = self.fields.iter().map(column).collect::<Result<Vec<_>>>()?;
        StructArray::try_new_with_length(self.fields.clone(), columns, None, files.num_rows())
            .map_err(|error| Error::corrupt_log("files do not fit a checkpoint").with_source(error))
    }
}

impl PartitionStructs {
    /// Returns the column; `None` if the table has no partition column that Parquet can store.
    fn of(snapshot: &Snapshot) -> Result<Option<Self>> {
        let all = PartitionColumns::of(snapshot)?;
        let is_void = |name: &str| {
            all.fields().find(name).is_some_and(|(_, field)| *field.data_type() == DataType::Null)
        };
        let columns = all.retain(|name| !is_void(name));
        let schema = snapshot.mapped_schema();
        let physical = |field: &Arc<Field>| {
            let name = schema.physical_name(field.name()).unwrap_or(field.name());
            field.as_ref().clone().with_name(name)
        };
        let fields: Fields = columns.fields().iter().map(physical).collect();
        Ok((!columns.is_empty()).then_some(Self { columns, fields }))
    }

    fn convert(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let values = values.as_map_opt().ok_or_else(|| unfit("partitionValues"))?;
        let (_, columns, nulls) = self.columns.parse(values)?.into_parts();
        StructArray::try_new_with_length(self.fields.clone(), columns, nulls, values.len())
            .map(|parsed| Arc::new(parsed) as ArrayRef)
            .map_err(|error| unfit("partitionValues").with_source(error))
    }
}

impl StatisticsStructs {
    fn of(snapshot: &Snapshot) -> Result<Self> {
        let metadata = snapshot.metadata();
        let schema = snapshot.mapped_schema();
        let is_data = |field: &&Arc<Field>| !metadata.partition_columns.contains(field.name());
        let data = Schema::new(schema.arrow().fields().iter().filter(is_data).cloned().collect::<Fields>());
        // If the value of the property is invalid, the default applies.
        let chosen = selected_columns(&metadata.configuration, &data)
            .or_else(|_| selected_columns(&Default::default(), &data))?;
        let leaves: Vec<_> = indexed(&data, &chosen).into_iter().map(|(path, _)| path).collect();
        let columns = StatisticsColumns::new(schema, &leaves)?;
        // Parquet cannot store structs without fields.
        let is_empty =
            |field: &&Arc<Field>| matches!(field.data_type(), DataType::Struct(inner) if inner.is_empty());
        let fields = columns.physical_fields()?.iter().filter(|field| !is_empty(field)).cloned().collect();
        Ok(Self { columns, fields })
    }

    fn convert(&self, texts: &ArrayRef) -> Result<ArrayRef> {
        let texts = texts.as_string_opt::<i32>().ok_or_else(|| unfit("stats"))?;
        let parsed = self.columns.decode_physical(texts)?;
        let column = |field: &Arc<Field>| parsed.column_by_name(field.name()).cloned();
        let columns = self.fields.iter().map(column).collect::<Option<Vec<_>>>();
        let columns = columns.ok_or_else(|| unfit("stats"))?;
        StructArray::try_new_with_length(self.fields.clone(), columns, texts.nulls().cloned(), texts.len())
            .map(|parsed| Arc::new(parsed) as ArrayRef)
            .map_err(|error| unfit("stats").with_source(error))
    }
}

fn unfit(column: &str) -> Error {
    Error::corrupt_log(format!("the column '{column}' of file actions does not have its type"))
}
