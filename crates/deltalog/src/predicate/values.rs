//! Values in the few forms they are compared in, and Spark's order on them.
//!
//! | domain | columns | order |
//! | --- | --- | --- |
//! | `Boolean` | boolean | false < true |
//! | `Integer` | whole numbers, dates, timestamps | as numbers |
//! | `Decimal` | decimals, unscaled, of one scale | as numbers |
//! | `Float` | floating-point numbers; whole numbers and decimals that are compared with them | NaN = NaN above all, -0.0 = 0.0 |
//! | `Bytes` | strings, binary | byte by byte, unsigned |

use super::ast::CompareOp;
use crate::error::{Error, Result};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, LargeBinaryArray,
    Scalar,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use std::cmp::Ordering;

/// The form in which values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Domain {
    Boolean,
    Integer,
    Decimal,
    Float,
    Bytes,
}

/// One value.
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

    /// The order of two values of one domain.
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

/// Spark's order: NaN is one value above all others, and the zeros are equal.
pub(super) fn compare_floats(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (a, b) => a.cmp(&b),
    }
}

/// The values of a column in a domain.
#[derive(Debug)]
pub(super) enum Values {
    Boolean(BooleanArray),
    Integer(Int64Array),
    Decimal(Decimal128Array),
    Float(Float64Array),
    Bytes(LargeBinaryArray),
}

/// The domain that values of `data_type` are compared in among themselves, if they can be.
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
    /// The values of `array`, a column of type `column`, in `domain`.
    pub(super) fn new(array: &ArrayRef, column: &DataType, domain: Domain) -> Result<Self> {
        let array = of_type(array, column)?;
        Ok(match domain {
            Domain::Boolean => Self::Boolean(of_type(&array, &DataType::Boolean)?.as_boolean().clone()),
            Domain::Integer => {
                Self::Integer(of_type(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            Domain::Decimal => match array.as_primitive_opt::<Decimal128Type>() {
                Some(decimals) => Self::Decimal(decimals.clone()),
                None => return Err(Error::schema_mismatch(format!("{column} is not a decimal type"))),
            },
            Domain::Float => match array.as_primitive_opt::<Decimal128Type>() {
                Some(decimals) => Self::Float(decimals_to_floats(decimals)),
                None if matches!(column, DataType::Float32 | DataType::Float64) => Self::Float(
                    of_type(&array, &DataType::Float64)?.as_primitive::<Float64Type>().unary(normal),
                ),
                None => {
                    let whole = of_type(&array, &DataType::Int64)?;
                    Self::Float(whole.as_primitive::<Int64Type>().unary(|v| v as f64))
                }
            },
            Domain::Bytes => Self::Bytes(of_type(&array, &DataType::LargeBinary)?.as_binary::<i64>().clone()),
        })
    }

    /// How the value in row `row` compares with `other`; `None` if it is NULL.
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

    /// How the value in row `row` compares with the one of `other` in the same row; `None` if one is NULL.
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

    /// For each row whether `op` holds for its value and `other`; NULL where the value is.
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

    /// For each row whether `op` holds for its value and the one of `other`; NULL where one of them is.
    pub(super) fn compared_rows(&self, op: CompareOp, other: &Self) -> Result<BooleanArray> {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => compared(op, a, b),
            (Self::Integer(a), Self::Integer(b)) => compared(op, a, b),
            // Of one scale, though perhaps not of one precision.
            (Self::Decimal(a), Self::Decimal(b)) => {
                compared(op, a, &b.clone().with_data_type(a.data_type().clone()))
            }
            (Self::Float(a), Self::Float(b)) => compared(op, a, b),
            (Self::Bytes(a), Self::Bytes(b)) => compared(op, a, b),
            _ => Err(incomparable()),
        }
    }

    /// The bytes in row `row`, unless NULL or of another domain.
    pub(super) fn bytes(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::Bytes(a) if a.is_valid(row) => Some(a.value(row)),
            _ => None,
        }
    }

    /// Whether the value in row `row` is a NaN.
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

/// Arrow's order is that of every domain, if floating-point numbers are [`normal`].
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
    Error::invalid_argument("the predicate compares what cannot be compared")
}

/// One of the many NaN for all, and one zero for both: with them the total order of IEEE 754 is Spark's.
fn normal(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// `array` as one of type `to`.
pub(super) fn of_type(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    let from = array.data_type();
    cast(array, to).map_err(|e| {
        Error::schema_mismatch(format!("a column of type {from} cannot be read as {to}")).with_source(e)
    })
}

/// Each decimal's nearest floating-point number: Arrow's own cast rounds twice, which may land on a
/// neighbour.
pub(super) fn decimals_to_floats(decimals: &Decimal128Array) -> Float64Array {
    let scale = decimals.scale();
    decimals.unary(|unscaled| decimal_to_float(unscaled, scale))
}

/// The floating-point number nearest to `unscaled / 10^scale`.
pub(super) fn decimal_to_float(unscaled: i128, scale: i8) -> f64 {
    // The text is always a number.
    format!("{unscaled}e{}", -i32::from(scale)).parse().unwrap_or(f64::NAN)
}
