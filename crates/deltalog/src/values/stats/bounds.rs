//! Uses statistics and partition values as bounds, to prune files. (PROTOCOL, "Per-file Statistics".)
//!
//! - The maximum of a timestamp may have been truncated to milliseconds (a footnote in that section), so it is widened
//!   to the end of its millisecond.
//! - If the maximum of a string ends in U+FFFD, an old writer may have truncated it and appended U+FFFD as the
//!   supposedly greatest character. There are greater ones, so the maximum is widened to cover every string with the
//!   same prefix. That writer also cut characters beyond U+FFFF in half, which left `?` or U+FFFD in their place.
//! - Some writers, such as `deltalake`, convert decimals to doubles, and write the shortest text for the double.
//!   Decimals of more than 15 digits lose digits in this way, so such bounds are widened for every writer.
//! - `deltalake` also writes the bounds of decimals with scale 0 as 64-bit integers. Greater values become 2^63 - 1.
//!   For types that can have such values, a bound at either end of the range of 64-bit integers is treated as unknown.
//!   This applies if the number itself is at that end, and if its unscaled value is.
//! - The structs of a checkpoint do not show the offset with which a timestamp was written. If a timestamp is old
//!   enough that some region still had an offset with seconds, its bounds are widened by the margin for seconds that
//!   were cut off ([`super::leaf`]).
//! - The maximum of a floating-point column only includes NaN if this crate has written it ([`super::origin`]).
//! - A negative number of NULLs or records is treated as unknown.

use super::by_path::ByPath;
use super::leaf::CUT_FROM_OFFSET;
use crate::error::{Error, Result};
use crate::expression::predicate::{ColumnPath, FileBounds};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int64Type, TimeUnit};
use std::sync::{Arc, OnceLock};

/// The bounds of a batch of files, from the result of [`super::decode_stats`] and the files' partition values.
#[derive(Debug, Clone)]
pub struct StatsBounds {
    stats: StructArray,
    partition_values: Option<StructArray>,
    origin: Origin,
    /// The columns of the statistics, followed by the columns of the partition values.
    by_path: OnceLock<[ByPath; 2]>,
}

/// The origin of the statistics.
#[derive(Debug, Clone)]
enum Origin {
    /// It is not known which writer has computed the statistics.
    Unknown,
    /// For each file, whether this crate has computed its statistics.
    Own(BooleanArray),
    /// The statistics are from the structs of a checkpoint.
    Structs,
}

impl StatsBounds {
    /// Combines statistics with partition values. `partition_values` has one typed column per partition column, and one
    /// row per file.
    ///
    /// # Errors
    /// `InvalidArgument` if the numbers of rows differ.
    pub fn new(stats: StructArray, partition_values: Option<StructArray>) -> Result<Self> {
        match &partition_values {
            Some(values) if values.len() != stats.len() => {
                let message = format!("{} rows of statistics for {} files", stats.len(), values.len());
                Err(Error::invalid_argument(message))
            }
            _ => Ok(Self { stats, partition_values, origin: Origin::Unknown, by_path: OnceLock::new() }),
        }
    }

    /// Adds, for each file, whether this crate has computed its statistics, as [`super::decode_stats_with_origin`]
    /// returns it.
    pub(crate) fn with_origin(mut self, is_own: BooleanArray) -> Self {
        self.origin = Origin::Own(is_own);
        self
    }

    /// Records that the statistics are from the structs of a checkpoint.
    pub(crate) fn of_structs(mut self) -> Self {
        self.origin = Origin::Structs;
        self
    }

    fn by_path(&self) -> &[ByPath; 2] {
        self.by_path.get_or_init(|| {
            let partitions = self.partition_values.as_ref().map(ByPath::new);
            [ByPath::new(&self.stats), partitions.unwrap_or_default()]
        })
    }

    /// Returns the values of a partition column, or `None` if `column` is a data column.
    fn partition(&self, column: &ColumnPath) -> Option<&ArrayRef> {
        let [_, partitions] = self.by_path();
        match column.parts() {
            [name] => partitions.get([name.as_str()]),
            _ => None,
        }
    }

    /// Returns one kind of statistics, such as `minValues`, of a leaf column.
    fn statistic(&self, kind: &str, column: &ColumnPath) -> Option<&ArrayRef> {
        let [statistics, _] = self.by_path();
        statistics.get(std::iter::once(kind).chain(column.parts().iter().map(String::as_str)))
    }
}

/// Returns `counts` with NULL for negative values.
fn counts(counts: &ArrayRef) -> Option<Int64Array> {
    let counts = counts.as_primitive_opt::<Int64Type>()?;
    Some(counts.unary_opt(|count| (count >= 0).then_some(count)))
}

/// Returns a lower bound for the values of several files. `min` is the least of their minima, from the structs of a
/// checkpoint.
pub(crate) fn widened_min_of_structs(min: &ArrayRef) -> Option<ArrayRef> {
    widened_min(&with_margin(&within_i64(min)?, -CUT_FROM_OFFSET)?)
}

/// Returns an upper bound for the values of several files. `max` is the greatest of their maxima, from the structs of a
/// checkpoint.
pub(crate) fn widened_max_of_structs(max: &ArrayRef) -> Option<ArrayRef> {
    widened_max(&with_margin(&within_i64(max)?, CUT_FROM_OFFSET)?)
}

/// 1972-01-08 in UTC, in microseconds. Liberia was the last country whose offset from UTC had seconds, -00:44:30, until
/// the day before. (tz database, `Africa/Monrovia`.)
const LAST_SECONDS_IN_OFFSETS: i64 = 737 * 86_400_000_000;

/// Returns `bounds` with `margin` added to instants before [`LAST_SECONDS_IN_OFFSETS`].
fn with_margin(bounds: &ArrayRef, margin: i64) -> Option<ArrayRef> {
    match bounds.data_type() {
        DataType::Timestamp(_, Some(_)) => changed(bounds, |micros| match micros < LAST_SECONDS_IN_OFFSETS {
            true => micros.saturating_add(margin),
            false => micros,
        }),
        _ => Some(Arc::clone(bounds)),
    }
}

/// Returns `bounds`, with NULL for decimals at or beyond the ends of the range of 64-bit integers. If the bound of
/// several files is such a decimal, one of them may have an end of the range as its bound in place of an even greater
/// number.
fn within_i64(bounds: &ArrayRef) -> Option<ArrayRef> {
    let Some(decimals) = bounds.as_primitive_opt::<Decimal128Type>() else { return Some(Arc::clone(bounds)) };
    let within = |value: i128| (value.abs() < END_OF_I64 - slack(END_OF_I64)).then_some(value);
    let within = decimals.unary_opt::<_, Decimal128Type>(within);
    Some(Arc::new(within.with_data_type(bounds.data_type().clone())))
}

/// Returns a mask of the floating-point values that are neither NaN nor NULL; `None` for other types.
pub(crate) fn without_nan(values: &ArrayRef) -> Option<BooleanArray> {
    if let Some(values) = values.as_primitive_opt::<Float32Type>() {
        return Some(values.iter().map(|value| Some(value.is_some_and(|value| !value.is_nan()))).collect());
    }
    let values = values.as_primitive_opt::<Float64Type>()?;
    Some(values.iter().map(|value| Some(value.is_some_and(|value| !value.is_nan()))).collect())
}

/// Returns lower bounds of the values for which a writer has recorded the minima `min`.
pub(crate) fn widened_min(min: &ArrayRef) -> Option<ArrayRef> {
    match min.data_type() {
        DataType::Decimal128(precision, _) => widened_decimals(min, *precision, i128::saturating_sub),
        _ => Some(Arc::clone(min)),
    }
}

/// Returns upper bounds of the values for which a writer has recorded the maxima `max`.
pub(crate) fn widened_max(max: &ArrayRef) -> Option<ArrayRef> {
    match max.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => whole_milliseconds(max),
        DataType::Utf8 => Some(Arc::new(above_old_truncations(max.as_string_opt()?))),
        DataType::Decimal128(precision, _) => widened_decimals(max, *precision, i128::saturating_add),
        _ => Some(Arc::clone(max)),
    }
}

/// Returns whether the bound in row `file` is the exact value, given that the file's bounds are tight. Returns false
/// for a decimal that may have been rounded to a double.
pub(crate) fn is_unrounded(bounds: &ArrayRef, file: usize) -> bool {
    bounds
        .as_primitive_opt::<Decimal128Type>()
        .is_none_or(|decimals| decimals.is_null(file) || slack(decimals.value(file)) == 0)
}

/// The absolute value of both ends of the range of 64-bit integers.
const END_OF_I64: i128 = 1 << 63;

/// The maximum number of digits for which every integer fits in 64 bits.
const MOST_DIGITS_OF_I64: u8 = 18;

/// Returns the maximum difference between a decimal that was read and the original that a writer has converted to a
/// double. Both are unscaled.
///
/// Decimals of up to 15 digits are exact. For longer ones, three roundings add up: the unscaled number is rounded to a
/// double, the result of dividing it by a power of ten is rounded, and the double is rounded to its shortest text. Each
/// result is off by at most one part in 2^53. Powers of ten above 10^22 are inexact, too. One part in 2^50 covers all
/// of these.
fn slack(unscaled: i128) -> i128 {
    const FIRST_OF_16_DIGITS: u128 = 10u128.pow(15);
    match unscaled.unsigned_abs() < FIRST_OF_16_DIGITS {
        true => 0,
        false => (unscaled >> 50).abs() + 1,
    }
}

/// Returns `decimals` widened by the result of [`slack`], but within the range of the type.
fn widened_decimals(
    decimals: &ArrayRef,
    precision: u8,
    widen: impl Fn(i128, i128) -> i128,
) -> Option<ArrayRef> {
    let greatest = 10i128.checked_pow(precision.into())? - 1;
    let decimals = decimals.as_primitive_opt::<Decimal128Type>()?;
    let may_saturate = precision > MOST_DIGITS_OF_I64;
    let widened = |value: i128| match may_saturate && is_end_of_i64(value, decimals.scale()) {
        true => None,
        false => Some(widen(value, slack(value)).clamp(-greatest, greatest)),
    };
    let widened = decimals.unary_opt::<_, Decimal128Type>(widened);
    Some(Arc::new(widened.with_data_type(decimals.data_type().clone())))
}

/// Returns the last microsecond of each millisecond to which `max` may have been truncated.
fn whole_milliseconds(max: &ArrayRef) -> Option<ArrayRef> {
    changed(max, |micros| micros.saturating_add(999))
}

/// Applies `change` to timestamps, as numbers of microseconds.
fn changed(times: &ArrayRef, change: impl Fn(i64) -> i64) -> Option<ArrayRef> {
    let instants = cast(times, &DataType::Int64).ok()?;
    let changed = instants.as_primitive_opt::<Int64Type>()?.unary::<_, Int64Type>(change);
    cast(&changed, times.data_type()).ok()
}

/// Returns whether a decimal, or its unscaled value, is so close to an end of the range of 64-bit integers that it may
/// stand for a greater number. This includes the doubles next to such an end.
fn is_end_of_i64(unscaled: i128, scale: i8) -> bool {
    let whole = 10i128.checked_pow(scale.unsigned_abs().into()).map_or(0, |factor| unscaled / factor);
    [unscaled, whole].iter().any(|value| (value.abs() - END_OF_I64).abs() <= slack(END_OF_I64))
}

/// Returns `max` with a final U+FFFD, and any half character before it, replaced with the greatest character.
fn above_old_truncations(max: &StringArray) -> StringArray {
    const OLD_SUFFIX: char = '\u{fffd}';
    let is_truncated = |text: Option<&str>| text.is_some_and(|text| text.ends_with(OLD_SUFFIX));
    if !max.iter().any(is_truncated) {
        return max.clone();
    }
    let widened = |text: &str| match text.strip_suffix(OLD_SUFFIX) {
        Some(prefix) => {
            let half = prefix.strip_suffix(['?', OLD_SUFFIX]);
            format!("{}{}", half.unwrap_or(prefix), char::MAX)
        }
        None => text.to_owned(),
    };
    max.iter().map(|text| text.map(widened)).collect()
}

/// The number of UTF-16 units of a string that an old writer has certainly kept. It kept 32, but the last one may be
/// half a character.
const KEPT_OF_TEXTS: usize = 31;

/// Returns an upper bound for the strings of several files. `max` is the greatest of their maxima. The maximum of
/// another file may end in U+FFFD in place of characters that an old writer has cut off ([`above_old_truncations`]).
/// The full string then begins with the characters that were kept, so it can only exceed `max` if `max` begins with the
/// same characters.
pub(crate) fn above_cut_texts(max: &ArrayRef) -> ArrayRef {
    let Some(texts) = max.as_string_opt::<i32>() else { return Arc::clone(max) };
    let widened = |text: &str| {
        let mut units = 0;
        let kept = text.char_indices().find(|(_, character)| {
            units += character.len_utf16();
            units >= KEPT_OF_TEXTS
        });
        match kept.and_then(|(start, last)| text.get(..start + last.len_utf8())) {
            Some(kept) => format!("{kept}{}", char::MAX),
            None => text.to_owned(),
        }
    };
    Arc::new(texts.iter().map(|text| text.map(widened)).collect::<StringArray>())
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
        let min = self.statistic("minValues", column)?;
        match self.origin {
            Origin::Structs => widened_min(&with_margin(min, -CUT_FROM_OFFSET)?),
            _ => widened_min(min),
        }
    }

    fn max(&self, column: &ColumnPath) -> Option<ArrayRef> {
        if let Some(values) = self.partition(column) {
            return Some(Arc::clone(values));
        }
        let max = self.statistic("maxValues", column)?;
        match self.origin {
            Origin::Structs => widened_max(&with_margin(max, CUT_FROM_OFFSET)?),
            _ => widened_max(max),
        }
    }

    fn without_nan(&self, column: &ColumnPath) -> Option<BooleanArray> {
        if let Some(values) = self.partition(column) {
            return without_nan(values);
        }
        let Origin::Own(is_own) = &self.origin else { return None };
        let max = self.statistic("maxValues", column)?;
        let is_known = |file: usize| max.is_valid(file) && is_own.is_valid(file) && is_own.value(file);
        Some((0..max.len()).map(|file| Some(is_known(file))).collect())
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use arrow::datatypes::{Field, Fields};

    use super::*;

    /// A predicate may read all columns of a wide table, so the time must not grow faster than the number of columns.
    #[test]
    fn the_bounds_of_many_columns_take_linear_time() {
        const COLUMNS: usize = 40_000;
        let names: Vec<_> = (0..COLUMNS).map(|at| format!("a column with the number {at}")).collect();
        let fields: Fields = names.iter().map(|name| Field::new(name, DataType::Int64, true)).collect();
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7]));
        let minima: ArrayRef = Arc::new(StructArray::new(fields, vec![numbers; COLUMNS], None));
        let kinds = Fields::from(vec![Field::new("minValues", minima.data_type().clone(), true)]);
        let partition = Fields::from(vec![Field::new("p", DataType::Int64, true)]);
        let partition = StructArray::new(partition, vec![Arc::new(Int64Array::from(vec![8]))], None);
        let bounds = StatsBounds::new(StructArray::new(kinds, vec![minima], None), Some(partition)).unwrap();
        let start = Instant::now();
        let first = |min: ArrayRef| min.as_primitive::<Int64Type>().value(0);
        let known =
            names.iter().rev().filter_map(|name| bounds.min(&ColumnPath::new([name.as_str()])).map(first));
        assert!(known.eq([7; COLUMNS]));
        assert_eq!(bounds.min(&ColumnPath::new(["p"])).map(first), Some(8));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }

    #[test]
    fn truncated_maxima_of_old_writers_are_widened_above_the_original() {
        let a = "a".repeat(31);
        // The writer has kept 32 units of UTF-16. When half of a surrogate pair is converted to UTF-8, it becomes `?`.
        for (max, original) in [
            (format!("{a}b\u{fffd}"), format!("{a}b\u{1d11e}")),
            (format!("{a}?\u{fffd}"), format!("{a}\u{1d11e}\u{1d11e}")),
            (format!("{a}\u{fffd}\u{fffd}"), format!("{a}\u{1d11e}\u{1d11e}")),
            (format!("{a}?\u{fffd}"), format!("{a}?b")),
        ] {
            let widened = above_old_truncations(&StringArray::from(vec![max.as_str()]));
            assert!(widened.value(0) >= original.as_str(), "{max}: {} {original}", widened.value(0));
        }
        // The greatest of the maxima of several files does not show how the maxima of the other files end.
        for (max, greatest, original) in [
            (format!("{a}?\u{fffd}"), format!("{a}b"), format!("{a}\u{1d11e}")),
            (format!("{a}b\u{fffd}"), format!("{a}b\u{10000}"), format!("{a}b\u{1d11e}")),
            (format!("{a}?\u{fffd}"), "b".to_owned(), format!("{a}\u{1d11e}")),
            (
                "\u{1d11e}".repeat(15) + "a?\u{fffd}",
                "\u{1d11e}".repeat(15) + "ab",
                "\u{1d11e}".repeat(15) + "a\u{1d11e}",
            ),
        ] {
            assert!(max <= greatest && greatest < original || greatest == "b", "{max} {greatest}");
            let widened =
                above_cut_texts(&(Arc::new(StringArray::from(vec![greatest.as_str()])) as ArrayRef));
            assert!(widened.as_string::<i32>().value(0) >= original.as_str(), "{max}: {greatest} {original}");
        }
        let others = StringArray::from(vec!["a?", "\u{fffd}b", ""]);
        let same = above_cut_texts(&(Arc::new(others.clone()) as ArrayRef));
        assert_eq!(same.as_string::<i32>(), &others);
        assert_eq!(above_old_truncations(&others), others);
    }
}
