//! The statistics of a scan according to the log: the number of rows, and the bounds of columns.
//!
//! - Exact numbers and bounds are marked as exact, and DataFusion answers `count(*)`, `min` and `max` from them. If a
//!   filter reads columns other than partition columns, the number of rows is estimated from the sizes of files.
//! - Only integers and dates have bounds, because DataFusion orders them in the same way as deltalog. The log is read
//!   once more for the bounds of columns, so scans with many files and columns have no bounds.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, ScalarValue, Statistics};
use deltalog::engine::scan::DataFile;
use deltalog::{Answers, ColumnPath, Expr, Predicate, Result, Snapshot};

/// The maximum number of bounds, that is, of files times columns, that planning a scan examines.
const MOST_BOUNDS: usize = 20_000;

/// Returns the statistics of a scan with this schema and predicate, which reads `files`.
pub(crate) fn statistics(
    snapshot: &Snapshot,
    schema: &Schema,
    predicate: Option<&Predicate>,
    files: &[DataFile],
) -> Result<Statistics> {
    let mut answers = Answers::new(snapshot);
    if let Some(predicate) = predicate {
        answers = answers.predicate(predicate)?;
    }
    let mut statistics = Statistics::new_unknown(schema);
    statistics.num_rows = match count(&answers)? {
        Some(rows) => Precision::Exact(rows),
        None => estimate(snapshot, files)?,
    };
    let is_exact = matches!(statistics.num_rows, Precision::Exact(_));
    for (field, column) in schema.fields().iter().zip(&mut statistics.column_statistics) {
        if !field.is_nullable() {
            column.null_count = Precision::Exact(0);
        }
    }
    let bounded: Vec<usize> =
        (0..schema.fields().len()).filter(|index| has_bounds(schema.field(*index).data_type())).collect();
    if is_exact && files.len().saturating_mul(bounded.len()) <= MOST_BOUNDS {
        add_bounds(&answers, schema, &bounded, &mut statistics.column_statistics)?;
    }
    Ok(statistics)
}

fn has_bounds(data_type: &DataType) -> bool {
    data_type.is_signed_integer() || *data_type == DataType::Date32
}

/// Adds the bounds of the columns at the positions `bounded`.
fn add_bounds(
    answers: &Answers,
    schema: &Schema,
    bounded: &[usize],
    statistics: &mut [ColumnStatistics],
) -> Result<()> {
    let name = |index: &usize| Expr::Column(ColumnPath::new([schema.field(*index).name()])).to_string();
    let names: Vec<String> = bounded.iter().map(name).collect();
    let value =
        |bound: &ArrayRef| ScalarValue::try_from_array(bound, 0).map_or(Precision::Absent, Precision::Exact);
    for (index, bounds) in bounded.iter().zip(answers.bounds(&names)?) {
        if let (Some(column), Some(bounds)) = (statistics.get_mut(*index), bounds) {
            column.min_value = value(&bounds.min);
            column.max_value = value(&bounds.max);
        }
    }
    Ok(())
}

/// Returns the number of rows, if the log alone contains it.
fn count(answers: &Answers) -> Result<Option<usize>> {
    let counts = answers.by_partition(&[])?;
    let counts = counts.as_ref().and_then(|counts| counts.column_by_name("count"));
    let Some(counts) = counts.and_then(|counts| counts.as_primitive_opt::<Int64Type>()) else {
        return Ok(None);
    };
    Ok(usize::try_from(counts.values().iter().sum::<i64>()).ok())
}

/// Estimates the number of rows in `files` from their share of the table's size in bytes.
fn estimate(snapshot: &Snapshot, files: &[DataFile]) -> Result<Precision<usize>> {
    let (Some(rows), bytes) = (count(&Answers::new(snapshot))?, snapshot.totals()?.bytes) else {
        return Ok(Precision::Absent);
    };
    let read: u64 = files.iter().map(|file| file.size).sum();
    let share = if bytes == 0 { 1.0 } else { (read as f64 / bytes as f64).min(1.0) };
    Ok(Precision::Inexact((rows as f64 * share) as usize))
}
