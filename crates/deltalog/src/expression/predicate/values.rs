//! The domains in which values are compared, and Spark's order in each of them.
//!
//! | domain | columns | order |
//! | --- | --- | --- |
//! | `Boolean` | boolean | false < true |
//! | `Integer` | whole numbers, dates, timestamps | as numbers |
//! | `Decimal` | decimals of the same scale, by their unscaled values | as numbers |
//! | `Float` | floating-point numbers, and numbers compared with them | NaN = NaN, above all; -0.0 = 0.0 |
//! | `Bytes` | strings, binary | byte by byte, unsigned |

use super::ast::CompareOp;
use crate::error::{Error, Result};
use crate::runtime::row_bytes::with_small_offsets;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, LargeBinaryArray,
    Scalar, make_comparator,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cmp;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::Arc;

/// The representation in which values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Domain {
    Boolean,
    Integer,
    Decimal,
    Float,
    Bytes,
}

/// A single value in its domain.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Datum {
    Boolean(bool),
    Integer(i64),
    Decimal(i128),
    Float(f64),
    Bytes(Vec<u8>),
}

impl Datum {
    pub(super) fn domain(&self) -> Domain {
        match self {
            Self::Boolean(_) => Domain::Boolean,
            Self::Integer(_) => Domain::Integer,
            Self::Decimal(_) => Domain::Decimal,
            Self::Float(_) => Domain::Float,
            Self::Bytes(_) => Domain::Bytes,
        }
    }

    pub(super) fn is_nan(&self) -> bool {
        matches!(self, Self::Float(v) if v.is_nan())
    }

    /// Returns the order of two values of the same domain; `None` if their domains differ.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            (Self::Decimal(a), Self::Decimal(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => Some(compare_floats(*a, *b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// Compares in Spark's order: all NaNs are equal and greater than all other values, and -0.0 equals 0.0.
pub(super) fn compare_floats(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (a, b) => a.cmp(&b),
    }
}

/// The values of a column, converted to a domain.
#[derive(Debug)]
pub(super) enum Values {
    Boolean(BooleanArray),
    Integer(Int64Array),
    Decimal(Decimal128Array),
    Float(Float64Array),
    Bytes(LargeBinaryArray),
}

/// Returns the domain in which values of `data_type` are compared with each other; `None` if there is none.
pub(super) fn domain_of(data_type: &DataType) -> Option<Domain> {
    match data_type {
        DataType::Boolean => Some(Domain::Boolean),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 => {
            Some(Domain::Integer)
        }
        DataType::Timestamp(..) => Some(Domain::Integer),
        DataType::Decimal128(..) => Some(Domain::Decimal),
        DataType::Float32 | DataType::Float64 => Some(Domain::Float),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => Some(Domain::Bytes),
        _ => None,
    }
}

impl Values {
    /// Converts `array`, whose column has the type `column`, to `domain`.
    pub(super) fn new(array: &ArrayRef, column: &DataType, domain: Domain) -> Result<Self> {
        let array = as_type(array, column)?;
        Ok(match domain {
            Domain::Boolean => Self::Boolean(as_type(&array, &DataType::Boolean)?.as_boolean().clone()),
            Domain::Integer => {
                Self::Integer(as_type(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            Domain::Decimal => match array.as_primitive_opt::<Decimal128Type>() {
                Some(decimals) => Self::Decimal(decimals.clone()),
                None => return Err(Error::schema_mismatch(format!("{column} is not a decimal type"))),
            },
            Domain::Float => match array.as_primitive_opt::<Decimal128Type>() {
                Some(decimals) => Self::Float(decimals_to_floats(decimals)),
                None if matches!(column, DataType::Float32 | DataType::Float64) => Self::Float(
                    as_type(&array, &DataType::Float64)?.as_primitive::<Float64Type>().unary(normal),
                ),
                None => {
                    let whole = as_type(&array, &DataType::Int64)?;
                    Self::Float(whole.as_primitive::<Int64Type>().unary(|v| v as f64))
                }
            },
            Domain::Bytes => Self::Bytes(as_type(&array, &DataType::LargeBinary)?.as_binary::<i64>().clone()),
        })
    }

    /// Compares the value in row `row` with `other`; returns `None` if it is NULL.
    pub(super) fn compare(&self, row: usize, other: &Datum) -> Option<Ordering> {
        if self.is_null(row) {
            return None;
        }
        match (self, other) {
            (Self::Boolean(a), Datum::Boolean(b)) => Some(a.value(row).cmp(b)),
            (Self::Integer(a), Datum::Integer(b)) => Some(a.value(row).cmp(b)),
            (Self::Decimal(a), Datum::Decimal(b)) => Some(a.value(row).cmp(b)),
            (Self::Float(a), Datum::Float(b)) => Some(compare_floats(a.value(row), *b)),
            (Self::Bytes(a), Datum::Bytes(b)) => Some(a.value(row).cmp(b.as_slice())),
            _ => None,
        }
    }

    /// Compares the value in row `row` with the value of `other` in the same row; returns `None` if one of them is
    /// NULL.
    pub(super) fn compare_rows(&self, row: usize, other: &Self) -> Option<Ordering> {
        if self.is_null(row) || other.is_null(row) {
            return None;
        }
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.value(row).cmp(&b.value(row))),
            (Self::Integer(a), Self::Integer(b)) => Some(a.value(row).cmp(&b.value(row))),
            (Self::Decimal(a), Self::Decimal(b)) => Some(a.value(row).cmp(&b.value(row))),
            (Self::Float(a), Self::Float(b)) => Some(compare_floats(a.value(row), b.value(row))),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.value(row).cmp(b.value(row))),
            _ => None,
        }
    }

    /// Returns for each row whether `op` is true for its value and `other`; NULL where the value is NULL.
    pub(super) fn compared(&self, op: CompareOp, other: &Datum) -> Result<BooleanArray> {
        match (self, other) {
            (Self::Boolean(a), Datum::Boolean(b)) => compared(op, a, &BooleanArray::new_scalar(*b)),
            (Self::Integer(a), Datum::Integer(b)) => compared(op, a, &Int64Array::new_scalar(*b)),
            (Self::Decimal(a), Datum::Decimal(b)) => compared(
                op,
                a,
                &Scalar::new(Decimal128Array::from_value(*b, 1).with_data_type(a.data_type().clone())),
            ),
            (Self::Float(a), Datum::Float(b)) => compared(op, a, &Float64Array::new_scalar(normal(*b))),
            (Self::Bytes(a), Datum::Bytes(b)) => compared(op, a, &LargeBinaryArray::new_scalar(b)),
            _ => Err(incomparable()),
        }
    }

    /// Returns for each row whether `op` is true for its values in the two columns; NULL where one of them is NULL.
    pub(super) fn compared_rows(&self, op: CompareOp, other: &Self) -> Result<BooleanArray> {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => compared(op, a, b),
            (Self::Integer(a), Self::Integer(b)) => compared(op, a, b),
            // The two columns have the same scale, but their precisions may differ.
            (Self::Decimal(a), Self::Decimal(b)) => {
                compared(op, a, &b.clone().with_data_type(a.data_type().clone()))
            }
            (Self::Float(a), Self::Float(b)) => compared(op, a, b),
            (Self::Bytes(a), Self::Bytes(b)) => compared(op, a, b),
            _ => Err(incomparable()),
        }
    }

    /// Returns the bytes in row `row`; `None` if they are NULL or if the values are of another domain.
    pub(super) fn bytes(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::Bytes(a) if a.is_valid(row) => Some(a.value(row)),
            _ => None,
        }
    }

    /// Returns whether the value in row `row` is a NaN.
    pub(super) fn is_nan(&self, row: usize) -> bool {
        matches!(self, Self::Float(a) if a.is_valid(row) && a.value(row).is_nan())
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.as_array().is_null(row)
    }

    pub(super) fn nulls(&self) -> Option<&NullBuffer> {
        self.as_array().nulls()
    }

    pub(super) fn len(&self) -> usize {
        self.as_array().len()
    }

    fn as_array(&self) -> &dyn Array {
        match self {
            Self::Boolean(a) => a,
            Self::Integer(a) => a,
            Self::Decimal(a) => a,
            Self::Float(a) => a,
            Self::Bytes(a) => a,
        }
    }
}

/// Returns values of one domain as an array of a type that has this domain. Returns `None` for booleans and
/// floating-point numbers, and if the type cannot represent a value.
pub(super) fn array_of(values: &[Datum], data_type: &DataType) -> Option<ArrayRef> {
    let array: ArrayRef = match domain_of(data_type)? {
        Domain::Boolean | Domain::Float => return None,
        Domain::Integer => {
            let number = |value: &Datum| if let Datum::Integer(v) = value { Some(*v) } else { None };
            Arc::new(Int64Array::from(values.iter().map(number).collect::<Option<Vec<_>>>()?))
        }
        Domain::Decimal => {
            let number = |value: &Datum| if let Datum::Decimal(v) = value { Some(*v) } else { None };
            let numbers = Decimal128Array::from(values.iter().map(number).collect::<Option<Vec<_>>>()?);
            return Some(Arc::new(numbers.with_data_type(data_type.clone())));
        }
        Domain::Bytes => {
            let bytes = |value: &Datum| if let Datum::Bytes(v) = value { Some(v.clone()) } else { None };
            let bytes = values.iter().map(bytes).collect::<Option<Vec<_>>>()?;
            Arc::new(LargeBinaryArray::from_iter_values(bytes))
        }
    };
    let array = match data_type {
        DataType::Date32 => cast(&cast(&array, &DataType::Int32).ok()?, data_type),
        _ => cast(&array, data_type),
    };
    array.ok().filter(|array| array.null_count() == 0)
}

/// Returns for each row whether its values in two columns of the same type are equal. NULL equals NULL. Inside of
/// arrays, structs and maps, -0.0 differs from 0.0.
///
/// # Errors
/// InvalidArgument if values of the type cannot be compared.
pub(crate) fn null_safe_equal(left: &ArrayRef, right: &ArrayRef) -> Result<BooleanArray> {
    let data_type = right.data_type();
    if data_type.is_nested() {
        let order = make_comparator(&as_type(left, data_type)?, right, SortOptions::default())
            .map_err(|error| incomparable().with_source(error))?;
        let same = BooleanBuffer::collect_bool(right.len(), |row| order(row, row).is_eq());
        return Ok(BooleanArray::new(same, None));
    }
    let domain = domain_of(data_type).ok_or_else(incomparable)?;
    let (left, right) = (Values::new(left, data_type, domain)?, Values::new(right, data_type, domain)?);
    let same = |row: usize| match (left.is_null(row), right.is_null(row)) {
        (false, false) => left.compare_rows(row, &right) == Some(Ordering::Equal),
        (left, right) => left && right,
    };
    Ok(BooleanArray::new(BooleanBuffer::collect_bool(right.len(), same), None))
}

/// Compares with Arrow's kernels, whose order is Spark's in each domain if all floating-point numbers are [`normal`].
fn compared(
    op: CompareOp,
    left: &dyn arrow::array::Datum,
    right: &dyn arrow::array::Datum,
) -> Result<BooleanArray> {
    let compared = match op {
        CompareOp::Eq | CompareOp::NullSafeEq => cmp::eq(left, right),
        CompareOp::NotEq => cmp::neq(left, right),
        CompareOp::Lt => cmp::lt(left, right),
        CompareOp::LtEq => cmp::lt_eq(left, right),
        CompareOp::Gt => cmp::gt(left, right),
        CompareOp::GtEq => cmp::gt_eq(left, right),
    };
    compared.map_err(|error| incomparable().with_source(error))
}

fn incomparable() -> Error {
    Error::invalid_argument("the predicate compares values of types that cannot be compared")
}

/// Maps all NaNs to a single NaN, and both zeros to a single zero. The total order of IEEE 754 is then Spark's order.
pub(crate) fn normal(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// Casts `array` to the type `to`.
pub(super) fn as_type(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    let from = array.data_type();
    with_small_offsets(array).and_then(|array| cast(&array, to)).map_err(|e| {
        Error::schema_mismatch(format!("a column of type {from} cannot be cast to {to}")).with_source(e)
    })
}

/// Converts each decimal to the nearest floating-point number. Arrow's own cast rounds twice, so its result may be
/// off by one step.
pub(super) fn decimals_to_floats(decimals: &Decimal128Array) -> Float64Array {
    let scale = decimals.scale();
    decimals.unary(|unscaled| decimal_to_float(unscaled, scale))
}

/// Returns the floating-point number nearest to `unscaled / 10^scale`.
pub(super) fn decimal_to_float(unscaled: i128, scale: i8) -> f64 {
    const EXACT: u128 = 1 << 53;
    match scale {
        // Only the conversion rounds.
        0 => unscaled as f64,
        // Both operands are exact, so only the division rounds.
        0..=22 if unscaled.unsigned_abs() <= EXACT => unscaled as f64 / 10f64.powi(scale.into()),
        _ => {
            let mut text = Short::default();
            let written = write!(text, "{unscaled}e{}", -i32::from(scale));
            // The formatted text is always a valid number.
            written.ok().and_then(|()| text.as_str().parse().ok()).unwrap_or(f64::NAN)
        }
    }
}

/// A short text on the stack, which holds a single formatted number.
pub(super) struct Short {
    bytes: [u8; 64],
    length: usize,
}

impl Default for Short {
    fn default() -> Self {
        Self { bytes: [0; 64], length: 0 }
    }
}

impl Short {
    pub(super) fn as_str(&self) -> &str {
        self.bytes.get(..self.length).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
