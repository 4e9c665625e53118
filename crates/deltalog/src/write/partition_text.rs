//! A partition value as the text that the log has. (PROTOCOL, "Partition Value Serialization".)
//!
//! - NULL and the empty text are the same: no value.
//! - An instant is written in UTC, so that no reader needs the writer's zone.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use chrono::{DateTime, Days, NaiveDate, NaiveDateTime};

use crate::error::{Error, Result};

/// Whether columns of this type can be partitioned by.
pub(super) fn has_text(data_type: &DataType) -> bool {
    use DataType as T;
    matches!(
        data_type,
        T::Boolean
            | T::Int8
            | T::Int16
            | T::Int32
            | T::Int64
            | T::Float32
            | T::Float64
            | T::Decimal128(..)
            | T::Date32
            | T::Utf8
            | T::Binary
    ) || matches!(data_type, T::Timestamp(TimeUnit::Microsecond, _))
}

/// The value of `array` at `row`.
///
/// # Errors
/// `SchemaMismatch` for a value that has no text: a date beyond the calendar, bytes that are not UTF-8. `Unsupported` for other types.
pub(super) fn to_log_string(array: &dyn Array, row: usize) -> Result<Option<String>> {
    if array.is_null(row) {
        return Ok(None);
    }
    let no_text = || Error::schema_mismatch(format!("a value of type {} cannot be a partition value", array.data_type()));
    let text = match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            float_text(&format!("{value:?}"), &format!("{value:e}"), value.is_finite(), value.abs().into())
        }
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            float_text(&format!("{value:?}"), &format!("{value:e}"), value.is_finite(), value.abs())
        }
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Date32 => date(array.as_primitive::<Date32Type>().value(row)).ok_or_else(no_text)?.format("%Y-%m-%d").to_string(),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let time = micros(array.as_primitive::<TimestampMicrosecondType>().value(row)).ok_or_else(no_text)?;
            let format = match zone {
                Some(_) => "%Y-%m-%dT%H:%M:%S%.6fZ",
                None if time.and_utc().timestamp_subsec_micros() == 0 => "%Y-%m-%d %H:%M:%S",
                None => "%Y-%m-%d %H:%M:%S%.6f",
            };
            time.format(format).to_string()
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Binary => std::str::from_utf8(array.as_binary::<i32>().value(row)).map_err(|_| no_text())?.to_owned(),
        other => return Err(Error::unsupported(format!("partitioning by a column of type {other}"))),
    };
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn date(days: i32) -> Option<NaiveDate> {
    let epoch = DateTime::UNIX_EPOCH.date_naive();
    let distance = Days::new(days.unsigned_abs().into());
    if days < 0 { epoch.checked_sub_days(distance) } else { epoch.checked_add_days(distance) }
}

fn micros(value: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(value).map(|time| time.naive_utc())
}

/// A floating-point number as Java prints it: plain from 0.001 up to ten millions, else with an exponent; the digits are the fewest that are exact.
fn float_text(plain: &str, scientific: &str, is_finite: bool, magnitude: f64) -> String {
    if !is_finite {
        return plain.replace("inf", "Infinity");
    }
    if magnitude == 0.0 {
        return if plain.starts_with('-') { "-0.0".into() } else { "0.0".into() };
    }
    if (1e-3..1e7).contains(&magnitude) {
        return plain.to_owned();
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{point}E{exponent}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, StringArray,
        TimestampMicrosecondArray,
    };
    use proptest::prelude::*;

    use super::*;

    fn texts(array: ArrayRef) -> Vec<Option<String>> {
        (0..array.len()).map(|row| to_log_string(&array, row).unwrap()).collect()
    }

    /// PROTOCOL, "Partition Value Serialization": the table's own examples.
    #[test]
    fn the_examples_of_the_protocol() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(texts(Arc::new(Date32Array::from(vec![0, -1, 19_782]))), [some("1970-01-01"), some("1969-12-31"), some("2024-02-29")]);
        let times = TimestampMicrosecondArray::from(vec![123_456, 0, -1]);
        assert_eq!(
            texts(Arc::new(times.clone())),
            [some("1970-01-01 00:00:00.123456"), some("1970-01-01 00:00:00"), some("1969-12-31 23:59:59.999999")]
        );
        assert_eq!(texts(Arc::new(times.with_timezone("UTC")))[..1], [some("1970-01-01T00:00:00.123456Z")]);
        assert_eq!(texts(Arc::new(BooleanArray::from(vec![true, false]))), [some("true"), some("false")]);
        assert_eq!(texts(Arc::new(StringArray::from(vec![Some(""), None, Some(" ")]))), [None, None, some(" ")]);
        assert_eq!(texts(Arc::new(BinaryArray::from(vec![&[1u8, 2, 3][..]]))), [some("\u{1}\u{2}\u{3}")]);
        let decimals = Decimal128Array::from(vec![100, -5]).with_precision_and_scale(10, 2).unwrap();
        assert_eq!(texts(Arc::new(decimals)), [some("1.00"), some("-0.05")]);
    }

    /// The texts of `Double.toString` and `Float.toString` (JDK 19 and later) for these values.
    #[test]
    fn floats_as_java_prints_them() {
        let values = vec![1.0, 1e7, 9_999_999.0, 1e10, 1.5e-5, 0.001, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, 1.25e300];
        let expected =
            ["1.0", "1.0E7", "9999999.0", "1.0E10", "1.5E-5", "0.001", "-0.0", "NaN", "Infinity", "-Infinity", "5.0E-324", "1.25E300"];
        assert_eq!(texts(Arc::new(Float64Array::from(values))), expected.map(|text| Some(text.to_owned())));
        assert_eq!(texts(Arc::new(Float32Array::from(vec![0.1, 1e8]))), ["0.1", "1.0E8"].map(|text| Some(text.to_owned())));
    }

    #[test]
    fn what_has_no_text_is_refused() {
        let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&[0xffu8][..]]));
        assert!(to_log_string(&bytes, 0).is_err());
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![i32::MAX]));
        assert!(to_log_string(&dates, 0).is_err());
    }

    proptest! {
        #[test]
        fn a_float_is_read_back(value in any::<f64>()) {
            let text = texts(Arc::new(Float64Array::from(vec![value]))).remove(0).unwrap();
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }
}
