//! Converts Arrow values without loss from the type in a file to the type in the table.
//!
//! | in the file | in the table |
//! | --- | --- |
//! | integer of any width | integer or decimal, if the value fits; double, if the type represents every such integer |
//! | float | double |
//! | decimal of any storage | decimal of at least as many fraction digits, if the value fits |
//! | timestamp of any unit, with or without zone, INT96 | timestamp of either kind, floored to microseconds |
//! | date | timestamp without zone, at midnight |
//! | string, binary, fixed-size binary | string, if it is UTF-8; binary |
//! | null | any type |

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow::error::ArrowError;

use crate::protocol::text::MICROS_PER_DAY;

/// What to do with a value that does not fit the target type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The conversion fails.
    Error,
    /// The value becomes NULL.
    Null,
}

/// Returns whether values of type `from` can be converted to type `to` without loss. Single values may still not fit.
pub(crate) fn is_convertible(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    let is_text = |t: &DataType| matches!(t, D::Utf8 | D::LargeUtf8 | D::Utf8View);
    let is_bytes = |t: &DataType| matches!(t, D::Binary | D::LargeBinary | D::BinaryView);
    match (from, to) {
        _ if from == to => true,
        (D::Null, _) => true,
        (from, to) if from.is_integer() && to.is_integer() => true,
        (from, D::Decimal128(_, scale)) if from.is_integer() => *scale >= 0,
        (D::Int8 | D::Int16 | D::UInt8 | D::UInt16, D::Float32 | D::Float64) => true,
        (D::Int32 | D::UInt32, D::Float64) => true,
        (D::Float16, D::Float32 | D::Float64) | (D::Float32, D::Float64) => true,
        (
            D::Decimal32(_, from) | D::Decimal64(_, from) | D::Decimal128(_, from) | D::Decimal256(_, from),
            D::Decimal128(_, to),
        ) => from <= to,
        (D::Timestamp(..), D::Timestamp(TimeUnit::Microsecond, _)) => true,
        (D::Date32, D::Timestamp(TimeUnit::Microsecond, None)) => true,
        (D::FixedSizeBinary(_), to) => is_bytes(to),
        (from, to) => (is_text(from) || is_bytes(from)) && (is_text(to) || is_bytes(to)),
    }
}

/// Converts `array` to type `to`. [`is_convertible`] must be true for the types.
///
/// # Errors
/// Returns an error if a value does not fit and `misfit` is [`Misfit::Error`].
pub(crate) fn convert(array: &ArrayRef, to: &DataType, misfit: Misfit) -> Result<ArrayRef, ArrowError> {
    let cast = |array: &ArrayRef, to: &DataType| {
        cast_with_options(array, to, &CastOptions { safe: misfit == Misfit::Null, ..CastOptions::default() })
    };
    match (array.data_type(), to) {
        (from, to) if from == to => Ok(Arc::clone(array)),
        (DataType::Timestamp(unit, _), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            let micros = match unit {
                TimeUnit::Second => scaled::<TimestampSecondType>(array, 1_000_000, misfit)?,
                TimeUnit::Millisecond => scaled::<TimestampMillisecondType>(array, 1000, misfit)?,
                TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().clone(),
                TimeUnit::Nanosecond => {
                    array.as_primitive::<TimestampNanosecondType>().unary(|nanos: i64| nanos.div_euclid(1000))
                }
            };
            Ok(Arc::new(micros.with_timezone_opt(zone.clone())))
        }
        (DataType::Date32, DataType::Timestamp(TimeUnit::Microsecond, None)) => {
            let days: ArrayRef =
                Arc::new(array.as_primitive::<Date32Type>().unary::<_, TimestampSecondType>(i64::from));
            Ok(Arc::new(scaled::<TimestampSecondType>(&days, MICROS_PER_DAY, misfit)?))
        }
        // Arrow cannot cast between all pairs of string and binary types.
        (
            DataType::FixedSizeBinary(_) | DataType::Binary | DataType::LargeBinary | DataType::BinaryView,
            DataType::Utf8View,
        ) => cast(&cast(&cast(array, &DataType::Binary)?, &DataType::Utf8)?, to),
        (
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::FixedSizeBinary(_),
            DataType::BinaryView,
        ) => cast(&cast(array, &DataType::Binary)?, to),
        (_, DataType::Decimal128(precision, _)) => {
            let decimals = cast(array, to)?;
            let numbers = decimals.as_primitive::<Decimal128Type>();
            match misfit {
                Misfit::Error => numbers.validate_decimal_precision(*precision)?,
                Misfit::Null => {
                    return Ok(Arc::new(
                        numbers.null_if_overflow_precision(*precision).with_data_type(to.clone()),
                    ));
                }
            }
            Ok(decimals)
        }
        _ => cast(array, to),
    }
}

/// Converts seconds, milliseconds or days to microseconds. `factor` is the number of microseconds per unit.
fn scaled<T>(
    array: &ArrayRef,
    factor: i64,
    misfit: Misfit,
) -> Result<PrimitiveArray<TimestampMicrosecondType>, ArrowError>
where
    T: ArrowPrimitiveType<Native = i64>,
{
    let units = array.as_primitive::<T>();
    match misfit {
        Misfit::Null => Ok(units.unary_opt(|value| value.checked_mul(factor))),
        Misfit::Error => units.try_unary(|value| {
            value.checked_mul(factor).ok_or_else(|| {
                ArrowError::CastError(format!(
                    "{value} times {factor} microseconds is beyond the range of timestamps"
                ))
            })
        }),
    }
}
