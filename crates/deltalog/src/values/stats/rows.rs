//! Computes the statistics of a column from its values, for files whose footers lack them. (PROTOCOL, "Per-file
//! Statistics".)
//!
//! - NaN is never a minimum. A column with NaN has no maximum, because Spark orders NaN above all other numbers.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};

use super::collect::ColumnStats;
use super::json::{Extreme, Side, value_json};
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;

/// Returns whether columns of a type get a minimum and a maximum. As with the JVM connector, booleans and binary
/// columns do not.
pub(crate) fn is_bounded(data_type: &DataType) -> bool {
    data_type.is_signed_integer()
        || matches!(
            data_type,
            DataType::Float32
                | DataType::Float64
                | DataType::Decimal128(..)
                | DataType::Date32
                | DataType::Timestamp(..)
                | DataType::Utf8
        )
}

/// The statistics of the values added so far.
#[derive(Debug)]
pub(crate) struct ColumnValues {
    path: ColumnPath,
    data_type: DataType,
    extremes: Option<(Extreme, Extreme)>,
    has_nan: bool,
    nulls: i64,
}

impl ColumnValues {
    /// Creates statistics without values for a column of type `data_type`. `path` is the path of the column in the
    /// statistics.
    pub(crate) fn of(path: ColumnPath, data_type: DataType) -> Self {
        Self { path, data_type, extremes: None, has_nan: false, nulls: 0 }
    }

    /// Adds more values.
    ///
    /// # Errors
    /// `SchemaMismatch` for values of another type.
    pub(crate) fn add(&mut self, values: &ArrayRef) -> Result<()> {
        self.nulls += values.logical_null_count() as i64;
        if let Some((least, greatest)) = self.extremes_of(values)? {
            self.extremes = Some(match self.extremes.take() {
                None => (least, greatest),
                Some((min, max)) => (lesser(min, least), greater(max, greatest)),
            });
        }
        Ok(())
    }

    /// Returns the statistics of all values.
    pub(crate) fn finish(self) -> ColumnStats {
        let bound = |extreme: &Extreme, side| value_json(extreme, &self.data_type, side);
        ColumnStats {
            min: self.extremes.as_ref().and_then(|(min, _)| bound(min, Side::Min)),
            max: self.extremes.as_ref().and_then(|(_, max)| bound(max, Side::Max)).filter(|_| !self.has_nan),
            nulls: Some(self.nulls),
            path: self.path,
        }
    }

    /// Returns the least and the greatest of the values, if any of them can be compared.
    fn extremes_of(&mut self, values: &ArrayRef) -> Result<Option<(Extreme, Extreme)>> {
        use arrow::compute::{max, max_string, min, min_string};

        let as_type = |to: &DataType| {
            cast(values, to).map_err(|error| {
                let found = values.data_type();
                Error::schema_mismatch(format!("values of type {found} cannot be read as {to}"))
                    .with_source(error)
            })
        };
        Ok(match &self.data_type {
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Timestamp(..) => {
                let values = as_type(&DataType::Int64)?;
                let values = values.as_primitive::<Int64Type>();
                min(values).zip(max(values)).map(|(a, b)| (Extreme::Integer(a), Extreme::Integer(b)))
            }
            DataType::Date32 => {
                let values = cast(&as_type(&DataType::Int32)?, &DataType::Int64);
                let values = values.map_err(|error| {
                    Error::schema_mismatch("dates cannot be read as numbers of days").with_source(error)
                })?;
                let values = values.as_primitive::<Int64Type>();
                min(values).zip(max(values)).map(|(a, b)| (Extreme::Integer(a), Extreme::Integer(b)))
            }
            DataType::Decimal128(..) => {
                let values = as_type(&self.data_type)?;
                let values = values.as_primitive::<Decimal128Type>();
                min(values).zip(max(values)).map(|(a, b)| (Extreme::Decimal(a), Extreme::Decimal(b)))
            }
            DataType::Float32 | DataType::Float64 => {
                let values = as_type(&DataType::Float64)?;
                let values = values.as_primitive::<Float64Type>().iter().flatten();
                let mut found: Option<(f64, f64)> = None;
                for value in values {
                    if value.is_nan() {
                        self.has_nan = true;
                    } else {
                        let (min, max) = found.unwrap_or((value, value));
                        found = Some((min.min(value), max.max(value)));
                    }
                }
                found.map(|(min, max)| (Extreme::Float(min), Extreme::Float(max)))
            }
            DataType::Utf8 => {
                let values = as_type(&DataType::Utf8)?;
                let values = values.as_string::<i32>();
                let text = |text: &str| Extreme::Text(text.to_owned());
                min_string(values).zip(max_string(values)).map(|(a, b)| (text(a), text(b)))
            }
            _ => None,
        })
    }
}

fn lesser(a: Extreme, b: Extreme) -> Extreme {
    if is_less(&b, &a) { b } else { a }
}

fn greater(a: Extreme, b: Extreme) -> Extreme {
    if is_less(&a, &b) { b } else { a }
}

/// Compares two values of the same column.
fn is_less(a: &Extreme, b: &Extreme) -> bool {
    match (a, b) {
        (Extreme::Integer(a), Extreme::Integer(b)) => a < b,
        (Extreme::Decimal(a), Extreme::Decimal(b)) => a < b,
        (Extreme::Float(a), Extreme::Float(b)) => a < b,
        (Extreme::Text(a), Extreme::Text(b)) => a.as_bytes() < b.as_bytes(),
        _ => false,
    }
}
