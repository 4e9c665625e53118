//! Values of a file in the types of the table, without loss.
//!
//! | in the file | in the table |
//! | --- | --- |
//! | whole number of any width | whole number, if every value fits; decimal, if every value fits; double, if every such number is one |
//! | float | double |
//! | decimal, however stored | decimal of no fewer fraction digits, if every value fits |
//! | timestamp of any unit, with or without zone, INT96 | timestamp of either kind, the same number of microseconds |
//! | date | timestamp without zone, at midnight |
//! | string, binary, fixed-size binary | string, if it is UTF-8; binary |
//! | nothing but NULLs | anything |

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow::error::ArrowError;

const MICROS_PER_DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// Whether values of type `from` can be values of type `to`, though perhaps not each of them.
pub(super) fn is_convertible(from: &DataType, to: &DataType) -> bool {
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
        (D::Decimal128(_, from), D::Decimal128(_, to)) | (D::Decimal256(_, from), D::Decimal128(_, to)) => {
            from <= to
        }
        (D::Timestamp(..), D::Timestamp(TimeUnit::Microsecond, _)) => true,
        (D::Date32, D::Timestamp(TimeUnit::Microsecond, None)) => true,
        (D::FixedSizeBinary(_), to) => is_bytes(to),
        (from, to) => (is_text(from) || is_bytes(from)) && (is_text(to) || is_bytes(to)),
    }
}

/// `array` as an array of type `to`, for which [`is_convertible`] holds.
///
/// # Errors
/// If a value has no equal in `to`.
pub(super) fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    match (array.data_type(), to) {
        (from, to) if from == to => Ok(Arc::clone(array)),
        (DataType::Timestamp(unit, _), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            let micros = match unit {
                TimeUnit::Second => scaled::<TimestampSecondType>(array, 1_000_000)?,
                TimeUnit::Millisecond => scaled::<TimestampMillisecondType>(array, 1000)?,
                TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().clone(),
                TimeUnit::Nanosecond => {
                    array.as_primitive::<TimestampNanosecondType>().unary(|nanos: i64| nanos.div_euclid(1000))
                }
            };
            Ok(Arc::new(micros.with_timezone_opt(zone.clone())))
        }
        (DataType::Date32, DataType::Timestamp(TimeUnit::Microsecond, None)) => {
            let days = array.as_primitive::<Date32Type>();
            let micros: PrimitiveArray<TimestampMicrosecondType> =
                days.try_unary(|day: i32| times(day.into(), MICROS_PER_DAY))?;
            Ok(Arc::new(micros))
        }
        // Not every pair of texts and bytes has a cast of its own.
        (
            DataType::FixedSizeBinary(_) | DataType::Binary | DataType::LargeBinary | DataType::BinaryView,
            DataType::Utf8View,
        ) => exact_cast(&exact_cast(&exact_cast(array, &DataType::Binary)?, &DataType::Utf8)?, to),
        (
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::FixedSizeBinary(_),
            DataType::BinaryView,
        ) => exact_cast(&exact_cast(array, &DataType::Binary)?, to),
        (_, DataType::Decimal128(precision, _)) => {
            let decimals = exact_cast(array, to)?;
            decimals.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)?;
            Ok(decimals)
        }
        _ => exact_cast(array, to),
    }
}

/// A cast that fails where Arrow's would leave a NULL.
fn exact_cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })
}

fn scaled<T>(array: &ArrayRef, factor: i64) -> Result<PrimitiveArray<TimestampMicrosecondType>, ArrowError>
where
    T: ArrowPrimitiveType<Native = i64>,
{
    array.as_primitive::<T>().try_unary(|value: i64| times(value, factor))
}

fn times(value: i64, factor: i64) -> Result<i64, ArrowError> {
    let overflow = || {
        ArrowError::CastError(format!(
            "{value} times {factor} microseconds is beyond the range of timestamps"
        ))
    };
    value.checked_mul(factor).ok_or_else(overflow)
}
