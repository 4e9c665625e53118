//! The position of a literal among the values of a column's type.
//!
//! - Literals are never rounded. A literal that the column's type cannot represent lies *between* two values of the
//!   type, or beyond all of them.
//! - As in Spark, a whole number or decimal is compared with a floating-point number as a floating-point
//!   number.

use super::ast::Literal;
use super::values::{Datum, decimal_to_float};
use arrow::datatypes::DataType;

/// The position of a literal among the values of a type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    /// Equal to this value.
    At(Datum),
    /// Greater than this value and less than the next value of the type.
    JustAbove(Datum),
    /// Less than all values.
    Below,
    /// Greater than all values.
    Above,
}

/// Returns the position of `literal`, which must not be NULL, among values of type `column`. Returns `None` if the
/// two cannot be compared.
pub(super) fn place(literal: &Literal, column: &DataType) -> Option<Place> {
    use Literal as L;
    let at = |datum| Some(Place::At(datum));
    match (literal, column) {
        (L::Boolean(v), DataType::Boolean) => at(Datum::Boolean(*v)),
        (L::Integer(v), whole) if whole.is_signed_integer() => at(Datum::Integer(*v)),
        (L::Decimal { unscaled, scale }, whole) if whole.is_signed_integer() => {
            narrow(rescale(*unscaled, (*scale).into(), 0))
        }
        (L::Double(v), whole) if whole.is_signed_integer() => at(Datum::Float(*v)),
        (L::Integer(v), DataType::Decimal128(_, scale)) => Some(rescale((*v).into(), 0, (*scale).into())),
        (L::Decimal { unscaled, scale }, DataType::Decimal128(_, target)) => {
            Some(rescale(*unscaled, (*scale).into(), (*target).into()))
        }
        (L::Double(v), DataType::Decimal128(..) | DataType::Float32 | DataType::Float64) => {
            at(Datum::Float(*v))
        }
        (L::Integer(v), DataType::Float32 | DataType::Float64) => at(Datum::Float(*v as f64)),
        (L::Decimal { unscaled, scale }, DataType::Float32 | DataType::Float64) => {
            at(Datum::Float(decimal_to_float(*unscaled, i8::try_from(*scale).ok()?)))
        }
        (L::String(v), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
            at(Datum::Bytes(v.as_bytes().to_vec()))
        }
        (L::Binary(v), DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => {
            at(Datum::Bytes(v.clone()))
        }
        (L::Date(v), DataType::Date32) => at(Datum::Integer((*v).into())),
        (L::Timestamp(v), DataType::Timestamp(_, Some(_)))
        | (L::TimestampNtz(v), DataType::Timestamp(_, None)) => at(Datum::Integer(*v)),
        _ => None,
    }
}

/// Returns the position of `unscaled / 10^scale` among the multiples of `1 / 10^target`.
fn rescale(unscaled: i128, scale: i32, target: i32) -> Place {
    let (more, power) = (target >= scale, 10i128.checked_pow(target.abs_diff(scale)));
    let beyond = if unscaled < 0 { Place::Below } else { Place::Above };
    match power {
        _ if unscaled == 0 => Place::At(Datum::Decimal(0)),
        Some(power) if more => unscaled.checked_mul(power).map_or(beyond, |v| Place::At(Datum::Decimal(v))),
        None if more => beyond,
        Some(power) => {
            let floor = Datum::Decimal(unscaled.div_euclid(power));
            if unscaled % power == 0 { Place::At(floor) } else { Place::JustAbove(floor) }
        }
        None => Place::JustAbove(Datum::Decimal(if unscaled < 0 { -1 } else { 0 })),
    }
}

/// Narrows the position to 64-bit whole numbers.
fn narrow(place: Place) -> Option<Place> {
    let (exact, value) = match place {
        Place::At(Datum::Decimal(v)) => (true, v),
        Place::JustAbove(Datum::Decimal(v)) => (false, v),
        beyond => return Some(beyond),
    };
    Some(match i64::try_from(value) {
        Ok(v) if exact => Place::At(Datum::Integer(v)),
        Ok(v) => Place::JustAbove(Datum::Integer(v)),
        Err(_) if value < 0 => Place::Below,
        Err(_) => Place::Above,
    })
}
