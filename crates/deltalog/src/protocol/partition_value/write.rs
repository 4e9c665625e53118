//! Converts values of Arrow arrays to partition values, as strings that the log can hold.

use arrow::array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow::array::{Array, AsArray, downcast_dictionary_array};
use arrow::datatypes::{DataType as ArrowType, TimeUnit};

use crate::error::{Error, Result};
use crate::protocol::text::{date_text, decimal_text, seconds_text};

/// Returns the value of `array` at `row` as a string for the log. Returns `None` for null, and for values that the log
/// cannot distinguish from null.
///
/// Accepts the Arrow types of [`PrimitiveType::to_arrow`](crate::protocol::schema::PrimitiveType::to_arrow),
/// the large and view types of strings and bytes, and dictionaries of all these. A timestamp with a zone is
/// written in UTC as `1970-01-01T00:00:00.123456Z`.
///
/// # Errors
/// [`InvalidArgument`](crate::error::ErrorKind::InvalidArgument) for another Arrow type, a row beyond the end of the
/// array, a decimal of negative scale, and bytes that are not UTF-8.
pub fn to_log_string(array: &dyn Array, row: usize) -> Result<Option<String>> {
    if row >= array.len() {
        return Err(Error::invalid_argument(format!(
            "row {row} is beyond the end of an array with {} rows",
            array.len()
        )));
    }
    if array.is_null(row) {
        return Ok(None);
    }
    let text = match array.data_type() {
        ArrowType::Null => return Ok(None),
        ArrowType::Dictionary(..) => return dictionary_value(array, row),
        ArrowType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        ArrowType::LargeUtf8 => array.as_string::<i64>().value(row).to_owned(),
        ArrowType::Utf8View => array.as_string_view().value(row).to_owned(),
        ArrowType::Binary => text(array.as_binary::<i32>().value(row))?,
        ArrowType::LargeBinary => text(array.as_binary::<i64>().value(row))?,
        ArrowType::BinaryView => text(array.as_binary_view().value(row))?,
        ArrowType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        ArrowType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        ArrowType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        ArrowType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        ArrowType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            special(value.into()).unwrap_or_else(|| format!("{value:?}"))
        }
        ArrowType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            special(value).unwrap_or_else(|| format!("{value:?}"))
        }
        ArrowType::Decimal128(_, scale) => {
            decimal_text(array.as_primitive::<Decimal128Type>().value(row), *scale).ok_or_else(|| {
                Error::invalid_argument(format!("a partition value cannot have the decimal scale {scale}"))
            })?
        }
        ArrowType::Boolean => array.as_boolean().value(row).to_string(),
        ArrowType::Date32 => date_text(array.as_primitive::<Date32Type>().value(row)),
        ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
            timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row), zone.is_some())
        }
        other => {
            return Err(Error::invalid_argument(format!(
                "a partition value cannot be taken from an array of type {other}"
            )));
        }
    };
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn dictionary_value(array: &dyn Array, row: usize) -> Result<Option<String>> {
    downcast_dictionary_array!(
        array => match array.key(row) {
            Some(key) => to_log_string(array.values(), key),
            None => Ok(None),
        },
        other => Err(Error::invalid_argument(format!(
            "a partition value cannot be taken from an array of type {other}"
        ))),
    )
}

fn text(bytes: &[u8]) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(Error::invalid_argument("bytes that are not UTF-8 cannot be a partition value")
            .with_source(error)),
    }
}

/// Returns Java's name of a value that is not a finite number.
fn special(value: f64) -> Option<String> {
    match value {
        _ if value.is_nan() => Some("NaN".into()),
        _ if value.is_infinite() => Some(if value > 0.0 { "Infinity" } else { "-Infinity" }.into()),
        _ => None,
    }
}

/// Formats an instant in UTC, or a local date and time without a zone.
fn timestamp(micros: i64, utc: bool) -> String {
    let (seconds, fraction) = seconds_text(micros);
    match (utc, fraction) {
        (true, _) => format!("{}.{fraction:06}Z", seconds.replacen(' ', "T", 1)),
        (false, 0) => seconds,
        (false, _) => format!("{seconds}.{fraction:06}"),
    }
}
