//! Casts of values, as in Spark with ANSI mode.
//!
//! - A value that cannot be cast becomes NULL in these functions. The caller turns it into an error, or keeps the
//!   NULL for `TRY_CAST`.
//! - Numbers are truncated toward zero when they become whole numbers. They are rounded to the nearest value, with
//!   halves away from zero, when they become decimals. A floating-point number is converted to a decimal through its
//!   shortest text.
//! - Strings are trimmed. Dates and times may omit parts at the end (`time_text`). A TIMESTAMP_NTZ ignores the zone
//!   in its text.
//! - Floating-point numbers are not cast to strings, because their text depends on the version of Java.

use super::super::function::{Purpose, cast_values};
use super::super::values::decimals_to_floats;
use super::super::zone::Clock;
use super::digits::{parse_digits, rounded_to};
use super::nested_cast::{cast_nested, is_castable_nested};
use super::number_cast::{decimal_to_f32, floats_to_decimals, floats_to_whole};
use super::time_text::{self, trimmed};
use super::types::{clocks, is_float, is_number, is_whole};
use crate::error::{Error, Result};
use crate::protocol::text::{date_text, decimal_text, timestamp_text};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BooleanArray, PrimitiveArray, StringArray,
    new_null_array,
};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use std::sync::Arc;

/// Returns whether this crate can cast values of type `from` to `to`.
pub(in crate::expression::predicate) fn is_castable(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let is_time = |t: &T| matches!(t, T::Date32 | T::Timestamp(..));
    match (from, to) {
        (from, to) if from == to => true,
        (T::Null, _) => true,
        (from, to) if from.is_nested() && to.is_nested() => is_castable_nested(from, to),
        (from, T::Boolean) => is_number(from) || *from == T::Utf8,
        (T::Boolean, to) => is_whole(to) || is_float(to) || *to == T::Utf8,
        (from, to) if is_number(from) && is_number(to) => true,
        (from, T::Utf8) => is_whole(from) || matches!(from, T::Decimal128(..) | T::Binary) || is_time(from),
        (T::Utf8, to) => is_number(to) || is_time(to) || *to == T::Binary,
        (T::Timestamp(_, Some(_)), T::Int64) => true,
        (from, to) => is_time(from) && is_time(to),
    }
}

/// Returns whether this crate implements the cast completely, so that Spark also fails to cast every value that fails
/// here.
pub(in crate::expression::predicate) fn is_complete(from: &DataType, to: &DataType) -> bool {
    *from != DataType::Utf8 || !(matches!(to, DataType::Date32 | DataType::Timestamp(..)) || is_float(to))
}

/// Casts the values. Values that cannot be cast become NULL. `clock` is the clock of the session's time zone.
///
/// # Errors
/// Fails if the types are not [castable](is_castable).
pub(in crate::expression::predicate) fn cast(
    array: &ArrayRef,
    to: &DataType,
    clock: Clock,
) -> Result<ArrayRef> {
    use DataType as T;
    let from = array.data_type();
    Ok(match (from, to) {
        (from, to) if from == to => Arc::clone(array),
        (T::Null, to) => new_null_array(to, array.len()),
        (from, to) if from.is_nested() && to.is_nested() => cast_nested(array, to, clock)?,
        (T::Utf8, to) => from_text(array.as_string::<i32>(), to, clock)?,
        (_, T::Utf8) => to_text(array, clock)?,
        (from, T::Decimal128(precision, scale)) if is_float(from) => {
            let wide = by_arrow(array, &T::Float64)?;
            let decimals = floats_to_decimals(wide.as_primitive::<Float64Type>(), *precision, *scale);
            Arc::new(decimals.with_data_type(to.clone()))
        }
        (from, to) if is_float(from) && is_whole(to) => {
            let wide = by_arrow(array, &T::Float64)?;
            match floats_to_whole(wide.as_primitive::<Float64Type>(), to) {
                Some(whole) => whole,
                None => by_arrow(array, to)?,
            }
        }
        (T::Decimal128(_, scale), to) if is_float(to) => {
            let decimals = array.as_primitive::<Decimal128Type>();
            match to {
                T::Float64 => Arc::new(decimals_to_floats(decimals)),
                _ => Arc::new(decimals.unary::<_, Float32Type>(|unscaled| decimal_to_f32(unscaled, *scale))),
            }
        }
        (T::Decimal128(..), T::Boolean) => {
            Arc::new(BooleanArray::from_unary(array.as_primitive::<Decimal128Type>(), |v| v != 0))
        }
        (T::Timestamp(..), T::Int64) => Arc::new(
            array
                .as_primitive::<TimestampMicrosecondType>()
                .unary::<_, Int64Type>(|v| v.div_euclid(1_000_000)),
        ),
        (T::Date32 | T::Timestamp(..), _) => cast_values(array, to, clock, Purpose::Value)?,
        _ => by_arrow(array, to)?,
    })
}

/// Replaces NaN and the infinities with NULL if the values are to be cast to a decimal type. As in Spark, the cast then
/// returns NULL for them instead of failing.
pub(super) fn castable_values(array: ArrayRef, to: &DataType) -> ArrayRef {
    match (array.data_type(), to) {
        (DataType::Float32, DataType::Decimal128(..)) => Arc::new(
            array.as_primitive::<Float32Type>().unary_opt::<_, Float32Type>(|v| v.is_finite().then_some(v)),
        ),
        (DataType::Float64, DataType::Decimal128(..)) => Arc::new(
            array.as_primitive::<Float64Type>().unary_opt::<_, Float64Type>(|v| v.is_finite().then_some(v)),
        ),
        _ => array,
    }
}

fn by_arrow(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    arrow_cast(array, to).map_err(|error| {
        Error::invalid_argument(format!("{} cannot be cast to {to}", array.data_type())).with_source(error)
    })
}

fn to_text(array: &ArrayRef, clock: Clock) -> Result<ArrayRef> {
    use DataType as T;
    let texts: StringArray = match array.data_type() {
        T::Decimal128(_, scale) => {
            let text = |unscaled| decimal_text(unscaled, *scale);
            array.as_primitive::<Decimal128Type>().iter().map(|v| v.and_then(text)).collect()
        }
        T::Date32 => array.as_primitive::<Date32Type>().iter().map(|v| v.map(date_text)).collect(),
        T::Timestamp(..) => {
            let local = cast_values(array, &clocks(), clock, Purpose::Value)?;
            let local = local.as_primitive::<TimestampMicrosecondType>();
            local.iter().map(|v| v.map(timestamp_text)).collect()
        }
        _ => return by_arrow(array, &T::Utf8),
    };
    Ok(Arc::new(texts))
}

fn from_text(texts: &StringArray, to: &DataType, clock: Clock) -> Result<ArrayRef> {
    use DataType as T;
    Ok(match to {
        T::Int8 => parsed::<Int8Type>(texts, to, whole),
        T::Int16 => parsed::<Int16Type>(texts, to, whole),
        T::Int32 => parsed::<Int32Type>(texts, to, whole),
        T::Int64 => parsed::<Int64Type>(texts, to, whole),
        T::Float32 => parsed::<Float32Type>(texts, to, |text| float(text, f32::INFINITY, f32::NAN)),
        T::Float64 => parsed::<Float64Type>(texts, to, |text| float(text, f64::INFINITY, f64::NAN)),
        T::Decimal128(precision, scale) => {
            parsed::<Decimal128Type>(texts, to, |text| rounded_to(text, *precision, *scale))
        }
        T::Date32 => parsed::<Date32Type>(texts, to, time_text::date),
        T::Timestamp(_, None) => parsed::<TimestampMicrosecondType>(texts, to, |text| {
            time_text::timestamp(text).map(|(micros, _)| micros)
        }),
        T::Timestamp(_, Some(_)) => parsed::<TimestampMicrosecondType>(texts, to, |text| {
            let (micros, of_text) = time_text::timestamp(text)?;
            of_text.unwrap_or(clock).instant(micros)
        }),
        T::Boolean => Arc::new(texts.iter().map(|text| boolean(trimmed(text?))).collect::<BooleanArray>()),
        T::Binary => Arc::new(texts.iter().map(|text| text.map(str::as_bytes)).collect::<BinaryArray>()),
        other => {
            return Err(Error::invalid_argument(format!("strings cannot be cast to {other}")));
        }
    })
}

fn parsed<T: ArrowPrimitiveType>(
    texts: &StringArray,
    to: &DataType,
    of: impl Fn(&str) -> Option<T::Native>,
) -> ArrayRef {
    let values = texts.iter().map(|text| of(trimmed(text?)));
    Arc::new(values.collect::<PrimitiveArray<T>>().with_data_type(to.clone()))
}

fn whole<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.parse().ok()
}

/// Parses a floating-point number with a decimal point and exponent, or the name of NaN or an infinity.
fn float<N: std::str::FromStr + std::ops::Neg<Output = N>>(text: &str, infinity: N, nan: N) -> Option<N> {
    match text.to_ascii_lowercase().as_str() {
        "inf" | "+inf" | "infinity" | "+infinity" => Some(infinity),
        "-inf" | "-infinity" => Some(-infinity),
        "nan" => Some(nan),
        _ => parse_digits(text).and_then(|_| text.parse().ok()),
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "0" => Some(false),
        _ => None,
    }
}
