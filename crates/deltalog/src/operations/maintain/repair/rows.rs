//! Checks that all rows of a file can be read, and that its statistics are correct for them. (Protocol: "Per-file
//! Statistics".)
//!
//! - Only statistics that queries use to skip files are checked: minima, maxima, and whether a column has no NULL or
//!   only NULLs. Bounds are widened in the same way as for queries.
//! - Rows that the deletion vector deletes are ignored.
//! - NaN is not compared, and 0.0 and -0.0 are equal.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, Scalar};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::cmp::{gt, lt};
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use super::problem::{FileProblem, Finding};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::{ColumnPath, FileBounds};
use crate::protocol::Add;
use crate::scan::{DataFile, FileRows, RowScan, StatisticsColumns};
use crate::snapshot::Snapshot;
use crate::values::stats::{StatsBounds, leaf_columns, num_records};

/// Compares the rows in the files of a version with the statistics.
pub(super) struct RowCheck {
    scan: RowScan,
    columns: Vec<ColumnPath>,
    statistics: StatisticsColumns,
}

/// The statistics of a column in one file; `None` for statistics that are not known.
struct Column<'a> {
    path: &'a ColumnPath,
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
    nulls: Option<i64>,
    rows: Option<i64>,
}

impl RowCheck {
    /// # Errors
    /// Returns `CorruptLog` for an invalid schema.
    pub(super) fn of(snapshot: &Snapshot) -> Result<Self> {
        let is_partition = |path: &ColumnPath| {
            let names = &snapshot.metadata().partition_columns;
            path.parts().first().is_some_and(|name| names.contains(name))
        };
        let leaves = leaf_columns(snapshot.arrow_schema()).into_iter().map(|(path, _)| path);
        let columns: Vec<ColumnPath> = leaves.filter(|path| !is_partition(path)).collect();
        let statistics = StatisticsColumns::new(snapshot.mapped_schema(), &columns)?;
        Ok(Self { scan: RowScan::of(snapshot)?.with_threads(1), columns, statistics })
    }

    /// Reads a file and compares its rows with its statistics. If the deletion vector does not match the file
    /// (`vector_fits`), only checks whether all rows can be read, including deleted rows.
    ///
    /// # Errors
    /// Returns errors from the store.
    pub(super) fn check(&self, add: &Add, file: &DataFile, vector_fits: bool) -> Result<Option<Finding>> {
        let mut file = file.clone();
        if !vector_fits {
            file.rows = FileRows::All;
        }
        let text = add.stats.as_deref().filter(|_| vector_fits);
        let bounds = StatsBounds::new(self.statistics.decode([text])?, None)?;
        let columns: Vec<Column<'_>> =
            self.columns.iter().map(|path| Column::of(path, &bounds, text)).collect();
        for batch in self.scan.clone().read(std::iter::once(Ok(file))) {
            let batch = match batch {
                Err(error) if error.kind() == ErrorKind::CorruptData => {
                    return Ok(Some(Finding::of_error(FileProblem::DamagedFile, &error)));
                }
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    return Ok(Some(Finding::of_error(FileProblem::UnsupportedFile, &error)));
                }
                batch => batch?,
            };
            for column in &columns {
                if let Some(detail) = column.contradiction(&batch)? {
                    return Ok(Some(Finding::new(FileProblem::WrongStatistics, detail)));
                }
            }
        }
        Ok(None)
    }
}

impl<'a> Column<'a> {
    fn of(path: &'a ColumnPath, bounds: &StatsBounds, text: Option<&str>) -> Self {
        let known = |values: Option<ArrayRef>| values.filter(|values| values.is_valid(0));
        let nulls = bounds.null_count(path).filter(|counts| counts.is_valid(0)).map(|counts| counts.value(0));
        let rows = text.and_then(num_records).and_then(|rows| i64::try_from(rows).ok());
        Self { path, min: known(bounds.min(path)), max: known(bounds.max(path)), nulls, rows }
    }

    /// Returns a description of how the rows of a batch contradict the statistics; `None` if they do not.
    fn contradiction(&self, batch: &RecordBatch) -> Result<Option<String>> {
        let Some(values) = leaf(batch, self.path.parts()) else { return Ok(None) };
        let failed =
            |error| Error::corrupt_data("values cannot be compared with statistics").with_source(error);
        let path = self.path;
        let nulls = values.null_count();
        if self.nulls == Some(0) && nulls > 0 {
            return Ok(Some(format!("column {path} has NULL, but its statistics say that it has none")));
        }
        if self.nulls.is_some() && self.nulls == self.rows && nulls < values.len() {
            return Ok(Some(format!("column {path} has values, but its statistics say that all are NULL")));
        }
        let values = ordered(&values);
        let outside = |found: BooleanArray| found.true_count() > 0;
        if let Some(min) = &self.min
            && outside(lt(&values, &Scalar::new(ordered(min))).map_err(failed)?)
        {
            return Ok(Some(format!("column {path} has a value below the minimum in its statistics")));
        }
        if let Some(max) = &self.max
            && outside(gt(&values, &Scalar::new(ordered(max))).map_err(failed)?)
        {
            return Ok(Some(format!("column {path} has a value above the maximum in its statistics")));
        }
        Ok(None)
    }
}

/// Returns the values of a leaf column. They are NULL wherever a struct that contains the column is NULL.
fn leaf(batch: &RecordBatch, path: &[String]) -> Option<ArrayRef> {
    let (first, inner) = path.split_first()?;
    let mut array = Arc::clone(batch.column_by_name(first)?);
    let mut nulls = array.nulls().cloned();
    for name in inner {
        array = Arc::clone(array.as_struct_opt()?.column_by_name(name)?);
        nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
    }
    let data = array.to_data().into_builder().nulls(nulls).build().ok()?;
    Some(arrow::array::make_array(data))
}

/// Replaces NaN with NULL and -0.0 with 0.0, so that the values can be compared like ordinary numbers.
fn ordered(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => Arc::new(
            values
                .as_primitive::<Float32Type>()
                .unary_opt::<_, Float32Type>(|v| (!v.is_nan()).then_some(v + 0.0)),
        ),
        DataType::Float64 => Arc::new(
            values
                .as_primitive::<Float64Type>()
                .unary_opt::<_, Float64Type>(|v| (!v.is_nan()).then_some(v + 0.0)),
        ),
        _ => Arc::clone(values),
    }
}
