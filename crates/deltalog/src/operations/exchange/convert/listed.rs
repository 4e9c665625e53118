//! Reads the files to convert from a list that the caller passes, for example from a manifest.

use std::collections::HashMap;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchReader, StringArray, StructArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, TimeUnit, TimestampMillisecondType};

use super::FoundFile;
use super::partitions::Partition;
use crate::error::{Error, Result};
use crate::protocol::{LogPath, PathResolver, StructType, to_log_string};
use crate::storage::Storage;

/// The contents of a list of files.
pub(super) struct List {
    pub(super) files: Vec<FoundFile>,
    pub(super) partitions: Vec<Partition>,
    /// The partition columns, if the list has a type for each of them.
    pub(super) columns: Option<StructType>,
}

/// Reads a list of files.
///
/// # Errors
/// Returns `SchemaMismatch` if the list lacks a column, or has a column of a wrong type or of a type that no table
/// has. Returns `InvalidArgument` for a row with a missing value, and for a path that is outside of the directory or
/// occurs twice.
pub(super) fn read(storage: &Storage, files: impl RecordBatchReader) -> Result<List> {
    let resolver = PathResolver::new(storage.root())?;
    let partition_columns = match files.schema().column_with_name("partition_values") {
        Some((_, field)) => typed_columns(field.data_type())?,
        None => None,
    };
    let (mut found, mut partitions) = (Vec::new(), Vec::new());
    let mut numbers: HashMap<Vec<(String, Option<String>)>, usize> = HashMap::new();
    let mut seen = std::collections::HashSet::new();
    for batch in files {
        let batch = batch.map_err(|error| {
            Error::invalid_argument("the list of files could not be read").with_source(error)
        })?;
        let columns = Columns::of(&batch, partition_columns.as_ref())?;
        for row in 0..batch.num_rows() {
            let (given, size, modified_ms) = columns.row(row)?;
            let path = match resolver.resolve_decoded(given) {
                Ok(LogPath::Relative(path)) => path,
                _ => {
                    return Err(Error::invalid_argument(
                        "a path of the list of files is not below the directory",
                    )
                    .at_path(given)
                    .with_hint("convert the directory that all files are below"));
                }
            };
            if !seen.insert(path.clone()) {
                return Err(Error::invalid_argument("the list of files names a file twice").at_path(path));
            }
            let values = columns.partition_values(row).map_err(|error| error.at_path(&path))?;
            let partition = *numbers.entry(values).or_insert_with_key(|values| {
                partitions.push(Partition { directory: path.clone(), values: values.clone() });
                partitions.len() - 1
            });
            found.push(FoundFile { path, size, modified_ms, partition });
        }
    }
    Ok(List { files: found, partitions, columns: partition_columns })
}

/// Returns the partition columns that the fields of a struct describe.
fn typed_columns(values: &DataType) -> Result<Option<StructType>> {
    let DataType::Struct(fields) = values else { return Ok(None) };
    let columns = StructType::types_from_arrow(&Schema::new(fields.clone()))?;
    let nested = columns.fields().iter().find(|field| field.data_type.as_primitive().is_none());
    match nested {
        Some(field) => Err(Error::schema_mismatch(format!(
            "the field '{}' of the column 'partition_values' is nested, which a partition column cannot be",
            field.name
        ))),
        None => Ok(Some(columns)),
    }
}

/// The columns of one batch of the list.
struct Columns {
    path: StringArray,
    size: Int64Array,
    modified_ms: Int64Array,
    partition_values: Option<PartitionValues>,
}

/// The partition values of the files in a batch.
enum PartitionValues {
    Texts(arrow::array::MapArray),
    Typed(Vec<(String, ArrayRef)>, StructArray),
}

impl Columns {
    fn of(batch: &RecordBatch, typed: Option<&StructType>) -> Result<Self> {
        let column = |name: &str, data_type: &DataType| {
            let found = batch.column_by_name(name).ok_or_else(|| {
                Error::schema_mismatch(format!("the list of files has no column '{name}'")).with_hint(
                    "it needs the columns path, size and modification_time, and partition_values if there are \
                     partition columns",
                )
            })?;
            cast(name, found, data_type)
        };
        let is_timestamp = batch
            .schema_ref()
            .field_with_name("modification_time")
            .is_ok_and(|field| matches!(field.data_type(), DataType::Timestamp(..)));
        let modified_ms = if is_timestamp {
            let times = column("modification_time", &DataType::Timestamp(TimeUnit::Millisecond, None))?;
            times.as_primitive::<TimestampMillisecondType>().reinterpret_cast()
        } else {
            column("modification_time", &DataType::Int64)?.as_primitive::<Int64Type>().clone()
        };
        Ok(Self {
            path: column("path", &DataType::Utf8)?.as_string().clone(),
            size: column("size", &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
            modified_ms,
            partition_values: batch
                .column_by_name("partition_values")
                .map(|values| PartitionValues::of(values, typed))
                .transpose()?,
        })
    }

    /// Returns the path, size and modification time of the file in a row.
    fn row(&self, row: usize) -> Result<(&str, u64, i64)> {
        let columns: [(&str, &dyn Array); 3] =
            [("path", &self.path), ("size", &self.size), ("modification_time", &self.modified_ms)];
        if let Some((name, _)) = columns.iter().find(|(_, column)| column.is_null(row)) {
            return Err(Error::invalid_argument(format!(
                "row {row} of the list of files has no value in '{name}'"
            )));
        }
        let size = u64::try_from(self.size.value(row)).map_err(|_| {
            Error::invalid_argument(format!("row {row} of the list of files has a negative size"))
        })?;
        Ok((self.path.value(row), size, self.modified_ms.value(row)))
    }

    fn partition_values(&self, row: usize) -> Result<Vec<(String, Option<String>)>> {
        match &self.partition_values {
            None => Ok(Vec::new()),
            Some(values) => values.row(row),
        }
    }
}

impl PartitionValues {
    fn of(column: &ArrayRef, typed: Option<&StructType>) -> Result<Self> {
        match (column.data_type(), typed) {
            (DataType::Struct(_), Some(typed)) => {
                let of = column.as_struct().clone();
                let schema = typed.to_arrow()?;
                let columns = of.columns().iter().zip(schema.fields());
                let columns = columns.map(|(values, field)| {
                    Ok((field.name().clone(), cast("partition_values", values, field.data_type())?))
                });
                Ok(Self::Typed(columns.collect::<Result<_>>()?, of))
            }
            (DataType::Map(..), _) => {
                let entries = Fields::from(vec![
                    Field::new("key", DataType::Utf8, false),
                    Field::new("value", DataType::Utf8, true),
                ]);
                let entries = Field::new("entries", DataType::Struct(entries), false);
                let texts = cast("partition_values", column, &DataType::Map(entries.into(), false))?;
                Ok(Self::Texts(texts.as_map().clone()))
            }
            (other, _) => Err(Error::schema_mismatch(format!(
                "the column 'partition_values' of the list of files has the type {other}"
            ))
            .with_hint("it must be a map of strings, or a struct with a field for each partition column")),
        }
    }

    fn row(&self, row: usize) -> Result<Vec<(String, Option<String>)>> {
        match self {
            Self::Texts(map) if map.is_null(row) => Ok(Vec::new()),
            Self::Texts(map) => {
                let entries = map.value(row);
                let (names, values) =
                    (entries.column(0).as_string::<i32>(), entries.column(1).as_string::<i32>());
                let text = |value: Option<&str>| value.filter(|text| !text.is_empty()).map(str::to_owned);
                Ok(names
                    .iter()
                    .zip(values)
                    .map(|(name, value)| (name.unwrap_or_default().to_owned(), text(value)))
                    .collect())
            }
            Self::Typed(_, of) if of.is_null(row) => Ok(Vec::new()),
            Self::Typed(columns, _) => {
                columns.iter().map(|(name, column)| Ok((name.clone(), to_log_string(column, row)?))).collect()
            }
        }
    }
}

fn cast(name: &str, column: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, to, &options).map_err(|error| {
        Error::schema_mismatch(format!(
            "the column '{name}' of the list of files has the type {}",
            column.data_type()
        ))
        .with_source(error)
    })
}
