//! Rows with marker columns that say what a task of a statement does to each of them.
//!
//! | column | type | |
//! | --- | --- | --- |
//! | the table's columns | | the row to write, if a row is written |
//! | [`OPERATION`] | int | bits: [`REMOVE`], [`WRITE`], [`MATCHED`], [`BY_SOURCE`] |
//! | [`FILE`], [`ROW`] | int, long | the row to remove: the number of its file, and its position in the file |
//!
//! - An update is one row with both bits, [`REMOVE`] and [`WRITE`]. It has the old position and the new values.
//! - The bits have the same meaning as in `RowAction.java`.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, PrimitiveArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{ArrowPrimitiveType, Int32Type, Int64Type, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::write::{RowsByFile, StatementCounts, statement_report};

/// The name of the column that says what happens to a row.
pub(super) const OPERATION: &str = "__deltalog_operation";
/// The name of the column with the number of a row's file.
pub(super) const FILE: &str = "__deltalog_file";
/// The name of the column with the position of a row in its file.
pub(super) const ROW: &str = "__deltalog_row";

/// The bit for removing a row of the target.
const REMOVE: i32 = 1;
/// The bit for writing a row to the table. Together with [`REMOVE`], it means that a row is changed.
const WRITE: i32 = 2;
/// The bit for a row of the target that matches a row of the source, and that only one row may match.
const MATCHED: i32 = 4;
/// The bit for a row that a clause `WHEN NOT MATCHED BY SOURCE` changes or deletes.
const BY_SOURCE: i32 = 8;

/// A record of what a task does to rows.
#[derive(Debug, Default)]
pub struct MarkedRows {
    removed: RowsByFile,
    /// Rows that are marked as removed at least twice.
    removed_again: RowsByFile,
    /// Rows that match a row of the source and remain unchanged.
    staying: RowsByFile,
    /// Rows that are marked as matching and unchanged at least twice.
    staying_again: RowsByFile,
    counts: StatementCounts,
}

impl MarkedRows {
    /// Returns the schema of the rows to write, without the marker columns; `None` if the rows have no other columns.
    pub fn written_schema(schema: &Schema) -> Option<SchemaRef> {
        let fields: Vec<_> =
            written(schema).filter_map(|index| schema.fields().get(index).cloned()).collect();
        (!fields.is_empty()).then(|| Arc::new(Schema::new(fields)))
    }

    /// Records what is done to the rows. Returns the rows to write, without the marker columns.
    ///
    /// # Errors
    /// Returns `CorruptData` for rows that lack marker columns.
    pub fn note(&mut self, rows: &RecordBatch) -> Result<RecordBatch> {
        let operations: &PrimitiveArray<Int32Type> = marker(rows, OPERATION)?;
        let files: &PrimitiveArray<Int32Type> = marker(rows, FILE)?;
        let positions: &PrimitiveArray<Int64Type> = marker(rows, ROW)?;
        for ((operation, file), position) in
            operations.values().iter().zip(files.values()).zip(positions.values())
        {
            let (removes, matches) = (operation & REMOVE != 0, operation & MATCHED != 0);
            if !removes {
                self.counts.inserted += u64::from(operation & WRITE != 0);
            }
            if !removes && !matches {
                continue;
            }
            let file = u32::try_from(*file).map_err(|_| malformed("a file has a negative number"))?;
            let position = u64::try_from(*position).map_err(|_| malformed("a position is negative"))?;
            let (rows, again) = match removes {
                true => (&mut self.removed, &mut self.removed_again),
                false => (&mut self.staying, &mut self.staying_again),
            };
            let is_new = rows.entry(file).or_default().insert(position);
            if !is_new {
                again.entry(file).or_default().insert(position);
            }
            if removes {
                self.count(*operation, is_new);
            }
        }
        let writes = |operation: &i32| operation & WRITE != 0;
        let mask: BooleanArray =
            operations.values().iter().map(|operation| Some(writes(operation))).collect();
        let columns: Vec<usize> = written(rows.schema_ref()).collect();
        rows.project(&columns)
            .and_then(|rows| filter_record_batch(&rows, &mask))
            .map_err(|error| malformed("rows cannot be selected").with_source(error))
    }

    fn count(&mut self, operation: i32, is_new: bool) {
        let writes = operation & WRITE != 0;
        if !is_new && !writes {
            return;
        }
        let StatementCounts { updated, deleted, updated_by_source, deleted_by_source, .. } = &mut self.counts;
        let (all, by_source) =
            if writes { (updated, updated_by_source) } else { (deleted, deleted_by_source) };
        *all += 1;
        *by_source += u64::from(operation & BY_SOURCE != 0);
    }

    /// Returns the report of the task.
    ///
    /// # Errors
    /// Returns `Unsupported` for a task that removes more rows than a report can contain.
    pub fn report(self) -> Result<Vec<u8>> {
        let removed = [self.removed, self.removed_again];
        statement_report(&removed, &[self.staying, self.staying_again], &self.counts)
    }
}

/// Returns the indices of all columns except the marker columns.
fn written(schema: &Schema) -> impl Iterator<Item = usize> {
    let is_marker = |name: &str| [OPERATION, FILE, ROW].contains(&name);
    schema
        .fields()
        .iter()
        .enumerate()
        .filter(move |(_, field)| !is_marker(field.name()))
        .map(|(index, _)| index)
}

fn marker<'a, T: ArrowPrimitiveType>(rows: &'a RecordBatch, name: &str) -> Result<&'a PrimitiveArray<T>> {
    rows.column_by_name(name)
        .and_then(|column| column.as_primitive_opt::<T>())
        .filter(|column| column.null_count() == 0)
        .ok_or_else(|| malformed(&format!("they do not have the column {name}")))
}

fn malformed(what: &str) -> Error {
    Error::corrupt_data(format!("the rows of a statement cannot be used: {what}"))
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int32Array, Int64Array};

    use super::*;
    use crate::write::removed_rows;

    #[test]
    fn rows_are_counted_as_the_native_source_counts_them() {
        let rows = [
            (REMOVE, 1, 5),
            (REMOVE | WRITE, 0, 7),
            (REMOVE, 1, 5),
            (WRITE, 0, 0),
            (REMOVE | WRITE | BY_SOURCE, 1, 6),
            (REMOVE | BY_SOURCE, 1, 8),
            (0, 3, 3),
            (MATCHED, 3, 4),
            (MATCHED, 3, 4),
        ];
        let column = |values: Vec<i32>| Arc::new(Int32Array::from(values)) as ArrayRef;
        let positions: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.2)).collect::<Int64Array>());
        let batch = RecordBatch::try_from_iter([
            ("value", column((0..9).collect())),
            (OPERATION, column(rows.iter().map(|row| row.0).collect())),
            (FILE, column(rows.iter().map(|row| row.1).collect())),
            (ROW, positions),
        ])
        .unwrap();
        let mut marked = MarkedRows::default();
        let written = marked.note(&batch).unwrap();
        assert_eq!(written.schema(), MarkedRows::written_schema(&batch.schema()).unwrap());
        assert_eq!(written.column(0).as_primitive::<Int32Type>().values(), &[1, 3, 4]);
        let expected = StatementCounts {
            updated: 2,
            deleted: 2,
            updated_by_source: 1,
            deleted_by_source: 1,
            inserted: 1,
            copied: 0,
        };
        assert_eq!(marked.counts, expected);
        assert_eq!(marked.removed_again[&1].iter().collect::<Vec<_>>(), [5]);
        assert_eq!(marked.staying_again[&3].iter().collect::<Vec<_>>(), [4]);
        let removed = removed_rows(&marked.report().unwrap()).unwrap();
        assert_eq!(removed[&0].iter().collect::<Vec<_>>(), [7]);
        assert_eq!(removed[&1].iter().collect::<Vec<_>>(), [5, 6, 8]);
        assert_eq!(removed.len(), 2);
    }
}
