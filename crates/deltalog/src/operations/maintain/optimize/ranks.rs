//! Ranks the values of a column, based on a random sample of the rows.
//!
//! ```text
//!   sample of a column, sorted     a a a a b d d e │ f f g k k k l z       boundaries divide it into 2^bits parts
//!   rank of a value                how many boundaries are below it, and half of those that are equal to it
//! ```
//!
//! - Values of any ordered type are compared as the bytes of Arrow's row format: NULL comes first, NaN last.
//! - The ranks of rare values are close together, and the ranks of frequent values are far apart. Each bit of a rank
//!   thus divides the rows into two groups of about equal size, regardless of the distribution of the values.
//! - Only the first bytes of a value matter, because statistics only contain a prefix of a string.

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch, UInt32Array};
use arrow::compute::{take, unary};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Schema};
use arrow::row::{RowConverter, SortField};
use std::sync::Arc;

use super::curve::{Curve, Grid, bits};
use crate::error::{Error, Result};
use crate::expression::predicate::{ColumnPath, column_at};
use crate::runtime::parallel;

/// The maximum number of rows in the sample.
const SAMPLE: usize = 1 << 16;

/// The number of bytes at the beginning of a value that are compared. In Arrow's row format, they cover the 32
/// characters of a string that statistics contain.
const PREFIX: usize = 160;

/// The minimum number of rows for which positions are computed in another thread.
const MIN_PART: usize = 1 << 11;

/// A random sample of rows, in which each row is equally likely.
pub(super) struct Sample {
    columns: Vec<SampledColumn>,
    seen: u64,
    random: Random,
}

struct SampledColumn {
    column: Comparable,
    values: Vec<Box<[u8]>>,
}

/// A column whose values can be compared as bytes.
struct Comparable {
    path: ColumnPath,
    converter: RowConverter,
}

/// Computes the positions of rows on a curve through the ranks of their values.
pub(super) struct Places {
    grid: Grid,
    columns: Vec<RankedColumn>,
}

struct RankedColumn {
    column: Comparable,
    boundaries: Boundaries,
}

/// The values at which the rank changes, in ascending order.
struct Boundaries {
    /// The first bytes of each value, which usually suffice to distinguish the values. They are adjacent in memory,
    /// which makes searching faster.
    first: Vec<u64>,
    values: Vec<Box<[u8]>>,
}

impl Sample {
    /// Creates an empty sample of the columns at these paths, in a table with this schema.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if there is no such column, or if its values cannot be ordered.
    pub(super) fn new(schema: &Schema, columns: &[ColumnPath]) -> Result<Self> {
        let empty = RecordBatch::new_empty(Arc::new(schema.clone()));
        let columns = columns.iter().map(|path| {
            let data_type = column_at(&empty, path)?.data_type().clone();
            let converter =
                RowConverter::new(vec![SortField::new(data_type)]).map_err(without_order(path))?;
            Ok(SampledColumn { column: Comparable { path: path.clone(), converter }, values: Vec::new() })
        });
        Ok(Self { columns: columns.collect::<Result<_>>()?, seen: 0, random: Random(0) })
    }

    /// Adds the rows of a batch to the sample.
    ///
    /// # Errors
    /// `SchemaMismatch` if the batch lacks a column.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let (mut rows, mut slots) = (Vec::new(), Vec::new());
        for row in 0..batch.num_rows() as u32 {
            let slot = match usize::try_from(self.seen) {
                Ok(seen) if seen < SAMPLE => seen,
                _ => usize::try_from(self.random.below(self.seen + 1)).unwrap_or(usize::MAX),
            };
            if slot < SAMPLE {
                rows.push(row);
                slots.push(slot);
            }
            self.seen += 1;
        }
        if rows.is_empty() {
            return Ok(());
        }
        let rows = UInt32Array::from(rows);
        for SampledColumn { column, values } in &mut self.columns {
            let chosen = take(&column_at(batch, &column.path)?, &rows, None)
                .map_err(|error| Error::corrupt_data("rows could not be sampled").with_source(error))?;
            let chosen = column.rows(chosen)?;
            for (row, slot) in chosen.iter().zip(&slots) {
                let value: Box<[u8]> = prefix(row.as_ref()).into();
                match values.get_mut(*slot) {
                    Some(before) => *before = value,
                    None => values.push(value),
                }
            }
        }
        Ok(())
    }

    /// Completes the sample. Returns an object that computes the positions of rows on `curve`.
    pub(super) fn places(self, curve: Curve) -> Places {
        let grid = Grid::new(curve, self.columns.len());
        let ranges = 1_usize << bits(self.columns.len());
        let columns = self.columns.into_iter().map(|SampledColumn { column, mut values }| {
            values.sort_unstable();
            let values: Vec<Box<[u8]>> =
                (1..ranges).filter_map(|range| values.get(range * values.len() / ranges).cloned()).collect();
            let first = values.iter().map(|value| first(value)).collect();
            RankedColumn { column, boundaries: Boundaries { first, values } }
        });
        Places { grid, columns: columns.collect() }
    }
}

impl Comparable {
    fn rows(&self, values: ArrayRef) -> Result<arrow::row::Rows> {
        self.converter.convert_columns(&[with_one_nan(values)]).map_err(without_order(&self.path))
    }
}

impl Places {
    /// Returns the positions of a batch's rows on the curve.
    ///
    /// # Errors
    /// `SchemaMismatch` if the batch lacks a column.
    pub(super) fn of(&self, batch: &RecordBatch) -> Result<Vec<u128>> {
        let rows = batch.num_rows();
        let parts = parallel::cores().min(rows / MIN_PART).max(1);
        let parts: Vec<RecordBatch> = (0..parts)
            .map(|part| (rows * part / parts, rows * (part + 1) / parts))
            .map(|(start, end)| batch.slice(start, end - start))
            .collect();
        let places = parallel::each(&parts, parts.len(), |part| self.of_part(part))?;
        Ok(places.concat())
    }

    fn of_part(&self, batch: &RecordBatch) -> Result<Vec<u128>> {
        let dimensions = self.columns.len();
        let mut cells = vec![0_u32; batch.num_rows() * dimensions];
        for (dimension, RankedColumn { column, boundaries }) in self.columns.iter().enumerate() {
            let values = column.rows(column_at(batch, &column.path)?)?;
            for (value, cell) in values.iter().zip(cells.chunks_exact_mut(dimensions)) {
                cell[dimension] = boundaries.rank(prefix(value.as_ref()));
            }
        }
        Ok(cells.chunks_exact_mut(dimensions.max(1)).map(|cell| self.grid.place(cell)).collect())
    }
}

impl Boundaries {
    /// Returns the rank of a value: the number of boundaries below the value, plus half of the boundaries that are
    /// equal to it. This separates a frequent value from the values below and above it.
    fn rank(&self, value: &[u8]) -> u32 {
        let number = first(value);
        let alike = self.first.partition_point(|boundary| *boundary < number);
        if self.first.get(alike) != Some(&number) {
            return alike as u32;
        }
        let end = alike + self.first[alike..].partition_point(|boundary| *boundary == number);
        let alike_values = &self.values[alike..end];
        let below = alike_values.partition_point(|boundary| boundary.as_ref() < value);
        let equal = alike_values[below..].partition_point(|boundary| boundary.as_ref() == value);
        (alike + below + equal / 2) as u32
    }
}

fn prefix(bytes: &[u8]) -> &[u8] {
    bytes.get(..PREFIX).unwrap_or(bytes)
}

/// Returns the first bytes of a value as a number, without the byte that distinguishes NULL from values. The numbers
/// are ordered like the values, but different values may have the same number.
fn first(bytes: &[u8]) -> u64 {
    let value = bytes.get(1..).unwrap_or_default();
    let mut first = [0; 8];
    let length = value.len().min(first.len());
    first[..length].copy_from_slice(&value[..length]);
    u64::from_be_bytes(first)
}

/// Replaces all NaNs of floating-point numbers with the NaN that is greater than all numbers, as in Spark. Returns
/// other values unchanged.
fn with_one_nan(values: ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => {
            let one: Float32Array =
                unary(
                    values.as_primitive::<Float32Type>(),
                    |value| if value.is_nan() { f32::NAN } else { value },
                );
            Arc::new(one)
        }
        DataType::Float64 => {
            let one: Float64Array =
                unary(
                    values.as_primitive::<Float64Type>(),
                    |value| if value.is_nan() { f64::NAN } else { value },
                );
            Arc::new(one)
        }
        _ => values,
    }
}

fn without_order(path: &ColumnPath) -> impl FnOnce(arrow::error::ArrowError) -> Error {
    let message = format!("the values of the column '{path}' have no order");
    move |error| Error::invalid_argument(message).with_source(error)
}

/// The random numbers of SplitMix64. They are the same in every run, so that the same rows are always ordered in the
/// same way.
struct Random(u64);

impl Random {
    /// Returns a random number below `end`, which must not be 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal128Array, Int64Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    /// Returns the positions of rows in a table with one column. They are the ranks of the values.
    fn ranks(values: ArrayRef) -> Vec<u128> {
        let batch = RecordBatch::try_from_iter_with_nullable([("a", values, true)]).unwrap();
        let mut sample = Sample::new(&batch.schema(), &[ColumnPath::new(["a"])]).unwrap();
        sample.add(&batch).unwrap();
        sample.places(Curve::Hilbert).of(&batch).unwrap()
    }

    /// NULL comes first, followed by the values in Spark's order, in which NaN is the greatest number.
    #[test]
    fn values_of_any_type_are_ranked() {
        let long = "x".repeat(100);
        let values: [ArrayRef; 5] = [
            Arc::new(Int64Array::from(vec![
                None,
                Some(i64::MIN),
                Some(-1),
                Some(0),
                Some(7),
                Some(i64::MAX),
            ])),
            Arc::new(Float64Array::from(vec![
                None,
                Some(f64::NEG_INFINITY),
                Some(-0.5),
                Some(1e300),
                Some(f64::INFINITY),
                Some(f64::NAN),
            ])),
            Arc::new(StringArray::from(vec![None, Some(""), Some("A"), Some("a"), Some(&long), Some("é")])),
            Arc::new(
                Decimal128Array::from(vec![
                    None,
                    Some(-10_i128.pow(30)),
                    Some(-1),
                    Some(0),
                    Some(1),
                    Some(10_i128.pow(37)),
                ])
                .with_precision_and_scale(38, 4)
                .unwrap(),
            ),
            Arc::new(
                TimestampMicrosecondArray::from(vec![None, Some(-1), Some(0), Some(1), Some(2), Some(3)])
                    .with_timezone("UTC"),
            ),
        ];
        for values in values {
            let ranks = ranks(Arc::clone(&values));
            assert!(ranks.is_sorted_by(|a, b| a < b), "{values:?}: {ranks:?}");
        }
        let nans: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN, -f32::NAN, 1.0]));
        let found = ranks(nans);
        assert!(found[0] == found[1] && found[2] < found[0], "{found:?}");
    }

    /// If one value of a column is frequent, the other values still have different ranks.
    #[test]
    fn ranks_divide_the_rows_equally() {
        let values: Vec<i64> = (0..10_000).map(|row| if row % 2 == 0 { 0 } else { row }).collect();
        let ranks = ranks(Arc::new(Int64Array::from(values)));
        let upper = ranks.iter().filter(|rank| **rank >= 1 << 15).count();
        assert!((4_900..5_100).contains(&upper), "{upper}");
    }

    /// Values that are rarer than one rank still differ from a frequent value, whether they are below or above it.
    #[test]
    fn rare_values_have_other_ranks_than_a_frequent_one() {
        let values = (0..100_000).map(|row| match row {
            0..5 => None,
            5..10 => Some(5),
            10..15 => Some(2_000),
            _ => Some(1_000),
        });
        let ranks = ranks(Arc::new(values.collect::<Int64Array>()));
        let [null, low, high, frequent] = [ranks[0], ranks[5], ranks[10], ranks[50]];
        assert!(null <= low && low < frequent && frequent < high, "{null} {low} {frequent} {high}");
    }

    /// Statistics contain 32 characters of a string, with up to four bytes each.
    #[test]
    fn ranks_use_as_much_of_a_string_as_statistics_contain() {
        let texts = (0..1_000).map(|row| format!("{}{row:04}", "🙂".repeat(28)));
        let ranks = ranks(Arc::new(StringArray::from_iter_values(texts)));
        assert!(ranks.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn each_row_is_sampled_with_the_same_probability() {
        let schema = Schema::new(vec![arrow::datatypes::Field::new("a", DataType::Int64, true)]);
        let mut sample = Sample::new(&schema, &[ColumnPath::new(["a"])]).unwrap();
        let rows = SAMPLE as i64 * 4;
        for start in (0..rows).step_by(5_000) {
            let values: ArrayRef = Arc::new(Int64Array::from_iter_values(start..(start + 5_000).min(rows)));
            sample.add(&RecordBatch::try_from_iter_with_nullable([("a", values, true)]).unwrap()).unwrap();
        }
        let all: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let all = RecordBatch::try_from_iter_with_nullable([("a", all, true)]).unwrap();
        let ranks = sample.places(Curve::Hilbert).of(&all).unwrap();
        for (row, rank) in ranks.iter().enumerate().step_by(1_000) {
            let expected = row as f64 / rows as f64 * f64::from(1 << 16);
            assert!((*rank as f64 - expected).abs() < 600.0, "{row}: {rank}, not {expected}");
        }
    }
}
