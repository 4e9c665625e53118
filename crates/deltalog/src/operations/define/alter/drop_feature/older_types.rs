//! Finds files that were written before a type was widened, and still store values of the older type. (PROTOCOL,
//! "Type Widening".)

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};

use crate::error::Result;
use crate::log::replay::{FileColumn, FileColumns, path_of, with_columns};
use crate::protocol::{PathResolver, PrimitiveType};
use crate::scan::{DataFile, PartitionColumns, RowScan, data_files};
use crate::snapshot::Snapshot;

/// A finder of files whose values must be converted to the types in the schema of one version.
pub(super) struct OlderTypes {
    scan: RowScan,
    resolver: PathResolver,
    partitions: PartitionColumns,
    /// The physical names of the partition columns whose type was widened from date.
    former_dates: Vec<String>,
}

impl OlderTypes {
    /// Creates a finder of files whose types are older than the types in the schema of `base`.
    ///
    /// # Errors
    /// `CorruptLog`.
    pub(super) fn of(base: &Snapshot) -> Result<Self> {
        Ok(Self {
            scan: RowScan::of(base)?,
            resolver: base.resolver().clone(),
            partitions: PartitionColumns::of(base)?,
            former_dates: former_dates(base)?,
        })
    }

    /// Returns, for each of `files`, whether it has an older type. `batch` has the `add` actions of the files, in the
    /// same order. Only the footers of the files are read.
    ///
    /// # Errors
    /// Returns `CorruptData`, `FileNotFound`, and errors from the store.
    pub(super) fn find(&self, batch: &RecordBatch, files: &[DataFile]) -> Result<Vec<bool>> {
        let mut found = self.scan.converting_numbers(files)?;
        for (row, found) in found.iter_mut().enumerate() {
            *found |= has_date(batch, row, &self.former_dates);
        }
        Ok(found)
    }

    /// Returns the path of the first file with an older type among `adds`, the `add` actions of a commit.
    ///
    /// # Errors
    /// Returns the same errors as [`OlderTypes::find`], and `CorruptLog`.
    pub(super) fn first_of_commit(&self, adds: &RecordBatch) -> Result<Option<String>> {
        let batch = with_columns(adds, FileColumns::of_removes().iter().map(FileColumn::field).collect())?;
        let files = data_files(&batch, &self.resolver, &self.partitions)?;
        let first = self.find(&batch, &files)?.into_iter().position(|is_older| is_older);
        Ok(first.and_then(|row| path_of(&batch, row)))
    }
}

/// Returns the physical names of the partition columns whose type was widened from date to timestamp. In other
/// partition columns, the log's string for a value of the old type also represents a value of the new type.
/// (PROTOCOL, "Partition Value Serialization".)
fn former_dates(base: &Snapshot) -> Result<Vec<String>> {
    let schema = base.mapped_schema();
    let mut names = Vec::new();
    for name in &base.metadata().partition_columns {
        let Some(field) = schema.logical().field(name) else { continue };
        if field.type_changes()?.iter().any(|change| change.from == PrimitiveType::Date) {
            names.extend(schema.physical_name(name).map(str::to_owned));
        }
    }
    Ok(names)
}

/// Returns whether a file has a date as its value of one of the partition columns `names`.
fn has_date(batch: &RecordBatch, row: usize, names: &[String]) -> bool {
    if names.is_empty() {
        return false;
    }
    let values =
        batch.column_by_name(FileColumn::PartitionValues.name()).and_then(|values| values.as_map_opt());
    let Some(values) = values.filter(|values| values.is_valid(row)) else { return false };
    let entries = values.value(row);
    let texts = |column: &ArrayRef| column.as_string_opt::<i32>().cloned();
    let [Some(keys), Some(values)] =
        [entries.columns().first(), entries.columns().get(1)].map(|c| c.and_then(texts))
    else {
        return false;
    };
    keys.iter().zip(values.iter()).any(|(key, value)| {
        key.is_some_and(|key| names.iter().any(|name| name == key))
            && value.is_some_and(|value| value.parse::<chrono::NaiveDate>().is_ok())
    })
}
