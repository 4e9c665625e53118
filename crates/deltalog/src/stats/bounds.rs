//! Statistics and partition values as bounds for pruning. (PROTOCOL, "Per-file Statistics".)
//!
//! - The maximum of a timestamp may be truncated to milliseconds (a footnote of that section), so it stands
//!   for the whole millisecond.
//! - A maximum of a string that ends in U+FFFD may come from an old writer, which truncated the value and
//!   took U+FFFD for the greatest character. It is not, so the maximum stands for every string with the same
//!   start.
//! - Some writers, `deltalake` among them, convert a decimal to a double and write that one's shortest text.
//!   A decimal of more than 15 digits does not survive this, so such bounds are widened, whoever wrote them.
//! - A negative count of NULLs or records is unknown.

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

/// Returns lower bounds of the values that the minima `min` were made from.
pub(crate) fn widened_min(min: &ArrayRef) -> Option<ArrayRef> {
    match min.data_type() {
        DataType::Decimal128(precision, _) => widened_decimals(min, *precision, i128::saturating_sub),
        _ => Some(Arc::clone(min)),
    }
}

/// Returns upper bounds of the values that the maxima `max` were made from.
pub(crate) fn widened_max(max: &ArrayRef) -> Option<ArrayRef> {
    match max.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => whole_milliseconds(max),
        DataType::Utf8 => Some(Arc::new(above_old_cuts(max.as_string_opt()?))),
        DataType::Decimal128(precision, _) => widened_decimals(max, *precision, i128::saturating_add),
        _ => Some(Arc::clone(max)),
    }
}

/// Returns whether the bound in row `file` is certainly the value it was made from, given that the file's
/// bounds are tight: false for a decimal that may have been rounded to a double.
pub(crate) fn is_unrounded(bounds: &ArrayRef, file: usize) -> bool {
    bounds
        .as_primitive_opt::<Decimal128Type>()
        .is_none_or(|decimals| decimals.is_null(file) || slack(decimals.value(file)) == 0)
}

/// Returns how far a decimal may be from the one that a writer turned into a double, both unscaled.
///
/// Decimals of up to 15 digits survive. For others three roundings add up: of the unscaled number to a double,
/// of its quotient by the power of ten, and of the double to its shortest text; each is off by at most one
/// part in 2^53. Powers of ten above 10^22 are inexact too. One part in 2^50 covers all of it.
fn slack(unscaled: i128) -> i128 {
    const FIRST_OF_16_DIGITS: u128 = 10u128.pow(15);
    match unscaled.unsigned_abs() < FIRST_OF_16_DIGITS {
        true => 0,
        false => (unscaled >> 50).abs() + 1,
    }
}

/// Returns `decimals` moved by their slack, but not beyond the values that the type has.
fn widened_decimals(
    decimals: &ArrayRef,
    precision: u8,
    moved: impl Fn(i128, i128) -> i128,
) -> Option<ArrayRef> {
    let greatest = 10i128.checked_pow(precision.into())? - 1;
    let decimals = decimals.as_primitive_opt::<Decimal128Type>()?;
    let widened =
        decimals.unary::<_, Decimal128Type>(|value| moved(value, slack(value)).clamp(-greatest, greatest));
    Some(Arc::new(widened.with_data_type(decimals.data_type().clone())))
}

/// Returns the last microsecond of the milliseconds that `max` may have been truncated to.
fn whole_milliseconds(max: &ArrayRef) -> Option<ArrayRef> {
    let micros = cast(max, &DataType::Int64).ok()?;
    let widened = micros.as_primitive_opt::<Int64Type>()?.unary::<_, Int64Type>(|v| v.saturating_add(999));
    cast(&widened, max.data_type()).ok()
}

/// Returns `max` with the greatest character in place of a final U+FFFD.
fn above_old_cuts(max: &StringArray) -> StringArray {
    const OLD_END: char = '\u{fffd}';
    let is_cut = |text: Option<&str>| text.is_some_and(|text| text.ends_with(OLD_END));
    if !max.iter().any(is_cut) {
        return max.clone();
    }
    let widened = |text: &str| match text.strip_suffix(OLD_END) {
        Some(start) => format!("{start}{}", char::MAX),
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
