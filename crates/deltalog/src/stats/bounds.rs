//! Statistics and partition values as bounds for pruning. (PROTOCOL, "Per-file Statistics".)
//!
//! - The maximum of a timestamp may be truncated to milliseconds (a footnote of that section), so it is
//!   widened to the end of its millisecond.
//! - A string maximum that ends in U+FFFD may come from an old writer that truncated the value and assumed
//!   that U+FFFD is the greatest character. It is not, so the maximum is widened to cover every string with
//!   the same prefix.
//! - Some writers, such as `deltalake`, convert decimals to doubles and write the shortest text of the double.
//!   Decimals of more than 15 digits do not survive this, so such bounds are widened for every writer.
//! - A negative count of NULLs or records is treated as unknown.

use crate::error::{Error, Result};
use crate::predicate::{ColumnPath, FileBounds};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, TimeUnit};
use std::sync::Arc;

/// The bounds of a batch of files, from [`super::decode_stats`] and the files' partition values.
#[derive(Debug, Clone)]
pub struct StatsBounds {
    stats: StructArray,
    partition_values: Option<StructArray>,
}

impl StatsBounds {
    /// Combines statistics with partition values: `partition_values` has one typed column per partition
    /// column and one row per file.
    ///
    /// # Errors
    /// `InvalidArgument` if the two differ in length.
    pub fn new(stats: StructArray, partition_values: Option<StructArray>) -> Result<Self> {
        match &partition_values {
            Some(values) if values.len() != stats.len() => {
                let message = format!("{} rows of statistics for {} files", stats.len(), values.len());
                Err(Error::invalid_argument(message))
            }
            _ => Ok(Self { stats, partition_values }),
        }
    }

    /// Returns the values of a partition column, or `None` if `column` is a data column.
    fn partition(&self, column: &ColumnPath) -> Option<&ArrayRef> {
        match column.parts() {
            [name] => self.partition_values.as_ref()?.column_by_name(name),
            _ => None,
        }
    }

    /// Returns one kind of statistic (`minValues`, ...) of a leaf column.
    fn statistic(&self, kind: &str, column: &ColumnPath) -> Option<&ArrayRef> {
        let mut array = self.stats.column_by_name(kind)?;
        for part in column.parts() {
            array = array.as_struct_opt()?.column_by_name(part)?;
        }
        Some(array)
    }
}

/// Returns `counts` with NULL for negative values.
fn counts(counts: &ArrayRef) -> Option<Int64Array> {
    let counts = counts.as_primitive_opt::<Int64Type>()?;
    Some(counts.unary_opt(|count| (count >= 0).then_some(count)))
}

/// Returns lower bounds of the values from which a writer derived the minima `min`.
pub(crate) fn widened_min(min: &ArrayRef) -> Option<ArrayRef> {
    match min.data_type() {
        DataType::Decimal128(precision, _) => widened_decimals(min, *precision, i128::saturating_sub),
        _ => Some(Arc::clone(min)),
    }
}

/// Returns upper bounds of the values from which a writer derived the maxima `max`.
pub(crate) fn widened_max(max: &ArrayRef) -> Option<ArrayRef> {
    match max.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => whole_milliseconds(max),
        DataType::Utf8 => Some(Arc::new(above_old_truncations(max.as_string_opt()?))),
        DataType::Decimal128(precision, _) => widened_decimals(max, *precision, i128::saturating_add),
        _ => Some(Arc::clone(max)),
    }
}

/// Returns whether the bound in row `file` is exact, given that the file's bounds are tight. A decimal that
/// may have been rounded to a double is not.
pub(crate) fn is_unrounded(bounds: &ArrayRef, file: usize) -> bool {
    bounds
        .as_primitive_opt::<Decimal128Type>()
        .is_none_or(|decimals| decimals.is_null(file) || slack(decimals.value(file)) == 0)
}

/// Returns how far a decimal may be from the original that a writer converted to a double. Both are unscaled.
///
/// Decimals of up to 15 digits are exact. For longer ones three roundings add up: the unscaled number to a
/// double, its quotient by the power of ten, and the double to its shortest text. Each is off by at most one
/// part in 2^53. Powers of ten above 10^22 are inexact too. One part in 2^50 covers all of them.
fn slack(unscaled: i128) -> i128 {
    const FIRST_OF_16_DIGITS: u128 = 10u128.pow(15);
    match unscaled.unsigned_abs() < FIRST_OF_16_DIGITS {
        true => 0,
        false => (unscaled >> 50).abs() + 1,
    }
}

/// Returns `decimals` widened by their slack, clamped to the range of the type.
fn widened_decimals(
    decimals: &ArrayRef,
    precision: u8,
    widen: impl Fn(i128, i128) -> i128,
) -> Option<ArrayRef> {
    let greatest = 10i128.checked_pow(precision.into())? - 1;
    let decimals = decimals.as_primitive_opt::<Decimal128Type>()?;
    let widened =
        decimals.unary::<_, Decimal128Type>(|value| widen(value, slack(value)).clamp(-greatest, greatest));
    Some(Arc::new(widened.with_data_type(decimals.data_type().clone())))
}

/// Returns the last microsecond of the milliseconds that `max` may have been truncated to.
fn whole_milliseconds(max: &ArrayRef) -> Option<ArrayRef> {
    let micros = cast(max, &DataType::Int64).ok()?;
    let widened = micros.as_primitive_opt::<Int64Type>()?.unary::<_, Int64Type>(|v| v.saturating_add(999));
    cast(&widened, max.data_type()).ok()
}

/// Returns `max` with the greatest character in place of a final U+FFFD.
fn above_old_truncations(max: &StringArray) -> StringArray {
    const OLD_SUFFIX: char = '\u{fffd}';
    let is_truncated = |text: Option<&str>| text.is_some_and(|text| text.ends_with(OLD_SUFFIX));
    if !max.iter().any(is_truncated) {
        return max.clone();
    }
    let widened = |text: &str| match text.strip_suffix(OLD_SUFFIX) {
        Some(prefix) => format!("{prefix}{}", char::MAX),
        None => text.to_owned(),
    };
    max.iter().map(|text| text.map(widened)).collect()
}

impl FileBounds for StatsBounds {
    fn num_files(&self) -> usize {
        self.stats.len()
    }

    fn num_records(&self) -> Option<Int64Array> {
        counts(self.stats.column_by_name("numRecords")?)
    }

    fn min(&self, column: &ColumnPath) -> Option<ArrayRef> {
        if let Some(values) = self.partition(column) {
            return Some(Arc::clone(values));
        }
        widened_min(self.statistic("minValues", column)?)
    }

    fn max(&self, column: &ColumnPath) -> Option<ArrayRef> {
        if let Some(values) = self.partition(column) {
            return Some(Arc::clone(values));
        }
        widened_max(self.statistic("maxValues", column)?)
    }

    fn null_count(&self, column: &ColumnPath) -> Option<Int64Array> {
        let Some(values) = self.partition(column) else {
            return counts(self.statistic("nullCount", column)?);
        };
        let records = self.num_records();
        let count = |file: usize| match &records {
            _ if values.is_valid(file) => Some(0),
            Some(records) if records.is_valid(file) => Some(records.value(file)),
            _ => None,
        };
        Some((0..values.len()).map(count).collect())
    }
}
