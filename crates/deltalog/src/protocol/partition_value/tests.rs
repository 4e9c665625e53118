//! Tests with the examples of "Partition Value Serialization", and round trips.

use std::sync::Arc;

use arrow::array::types::{Date32Type, Decimal128Type, Float64Type, Int32Type, TimestampMicrosecondType};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use proptest::prelude::*;

use super::*;
use crate::ErrorKind;
use crate::protocol::schema::PrimitiveType;

fn column(name: &str, values: &[Option<&str>]) -> crate::Result<ArrayRef> {
    let mut builder = PartitionColumnBuilder::new("part", &PrimitiveType::from_name(name).unwrap());
    values.iter().try_for_each(|value| builder.append(*value))?;
    Ok(builder.finish())
}

const EVERY_TYPE: [&str; 14] = [
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "decimal(10,2)",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "void",
];

#[test]
fn empty_and_missing_are_null_for_every_type() {
    for name in EVERY_TYPE {
        let array = column(name, &[None, Some("")]).unwrap();
        assert_eq!(array.data_type(), &PrimitiveType::from_name(name).unwrap().to_arrow());
        assert_eq!(array.logical_null_count(), 2, "{name}");
        assert_eq!(to_log_string(&array, 1).unwrap(), None);
    }
}

#[test]
fn dates_and_timestamps_are_read_in_every_encoding() {
    for (text, days) in [
        ("1970-01-01", 0),
        ("1969-12-31", -1),
        ("0001-01-01", -719_162),
        ("-0001-01-01", -719_893),
        ("+10000-01-01", 2_932_897),
    ] {
        assert_eq!(
            column("date", &[Some(text)]).unwrap().as_primitive::<Date32Type>().value(0),
            days,
            "{text}"
        );
    }
    for (text, micros) in [
        ("1970-01-01 00:00:00", 0),
        ("1970-01-01 00:00:00.123456", 123_456),
        ("1970-01-01T00:00:00.123456Z", 123_456),
        ("1970-01-01 00:00:00.1", 100_000),
        ("1970-01-01 00:00:00.123456000", 123_456),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T19:00:00.5-0500", 500_000),
        ("1969-12-31 23:59:59.999999", -1),
        ("1970-01-02", 86_400_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
    ] {
        assert_eq!(
            column("timestamp", &[Some(text)]).unwrap().as_primitive::<TimestampMicrosecondType>().value(0),
            micros,
            "{text}"
        );
    }
}

#[test]
fn decimals_are_read_exactly() {
    for (text, unscaled) in [
        ("1.5", 150),
        ("-0.01", -1),
        ("+7", 700),
        ("1E+3", 100_000),
        ("0E-18", 0),
        ("1.500", 150),
        (".5", 50),
        ("99999999.99", 9_999_999_999),
    ] {
        assert_eq!(
            column("decimal(10,2)", &[Some(text)]).unwrap().as_primitive::<Decimal128Type>().value(0),
            unscaled,
            "{text}"
        );
    }
    let largest = "9".repeat(38);
    assert_eq!(
        to_log_string(&column("decimal(38,0)", &[Some(&largest)]).unwrap(), 0).unwrap(),
        Some(largest)
    );
}

#[test]
fn invalid_values_are_a_corrupt_log_naming_column_and_value() {
    for (name, text) in [
        ("long", "9223372036854775808"),
        ("integer", "1.0"),
        ("byte", "128"),
        ("double", "one"),
        ("boolean", "1"),
        ("decimal(10,2)", "1.005"),
        ("decimal(10,2)", "100000000"),
        ("decimal(10,2)", "0.001"),
        ("decimal(10,2)", "1e99999999999"),
        ("decimal(10,2)", "1e2147483647"),
        ("decimal(10,2)", "."),
        ("date", "1970-02-30"),
        ("date", "1970-01"),
        ("date", "999999999-01-01"),
        ("timestamp", "1970-01-01 25:00:00"),
        ("timestamp", "1970-01-01 00:00:00.1234567"),
        ("timestamp", "1970-01-01 00:00:00+99:00"),
        ("timestamp", "now"),
        ("timestamp_ntz", "1970-01-01T00:00:00Z"),
        ("void", "x"),
    ] {
        let error = column(name, &[Some(text)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptLog, "{name} {text}");
        assert!(error.to_string().contains("'part'") && error.to_string().contains(text), "{error}");
    }
}

#[test]
fn values_are_written_as_in_the_protocol_and_in_java() {
    let utc =
        |micros| Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone("UTC")) as ArrayRef;
    let local = |micros| Arc::new(TimestampMicrosecondArray::from(vec![micros])) as ArrayRef;
    let dictionary: DictionaryArray<Int32Type> = ["b", "a"].into_iter().collect();
    for (array, text) in [
        (utc(123_456), "1970-01-01T00:00:00.123456Z"),
        (utc(0), "1970-01-01T00:00:00.000000Z"),
        (local(123_456), "1970-01-01 00:00:00.123456"),
        (local(0), "1970-01-01 00:00:00"),
        (Arc::new(Date32Array::from(vec![0])), "1970-01-01"),
        (Arc::new(BooleanArray::from(vec![true])), "true"),
        (Arc::new(Float64Array::from(vec![f64::NEG_INFINITY])), "-Infinity"),
        (Arc::new(Float64Array::from(vec![f64::NAN])), "NaN"),
        (Arc::new(Float64Array::from(vec![1.0])), "1.0"),
        (Arc::new(BinaryArray::from(vec![&b"\x01\x02\x03"[..]])), "\u{1}\u{2}\u{3}"),
        (Arc::new(Decimal128Array::from(vec![-5]).with_precision_and_scale(10, 2).unwrap()), "-0.05"),
        (Arc::new(dictionary), "b"),
    ] {
        assert_eq!(to_log_string(&array, 0).unwrap().as_deref(), Some(text));
        assert_eq!(to_log_string(&array, array.len()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    let not_utf8 = BinaryArray::from(vec![&b"\xff"[..]]);
    assert_eq!(to_log_string(&not_utf8, 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    for (array, name) in [
        (utc(i64::MAX), "timestamp"),
        (utc(i64::MIN), "timestamp"),
        (local(i64::MIN), "timestamp_ntz"),
        (Arc::new(Date32Array::from(vec![i32::MAX])) as ArrayRef, "date"),
        (Arc::new(Date32Array::from(vec![i32::MIN])), "date"),
    ] {
        round_trip(array, name);
    }
}

fn round_trip(array: ArrayRef, name: &str) {
    let text = to_log_string(&array, 0).unwrap();
    assert_eq!(&column(name, &[text.as_deref()]).unwrap(), &array, "{text:?}");
}

proptest! {
    #[test]
    fn integers_round_trip(value in any::<i64>()) {
        round_trip(Arc::new(Int64Array::from(vec![value])), "long");
        round_trip(Arc::new(Int32Array::from(vec![value as i32])), "integer");
        round_trip(Arc::new(Int16Array::from(vec![value as i16])), "short");
        round_trip(Arc::new(Int8Array::from(vec![value as i8])), "byte");
        round_trip(Arc::new(BooleanArray::from(vec![value > 0])), "boolean");
    }

    #[test]
    fn floats_round_trip(value in prop::num::f64::ANY) {
        let value = if value.is_nan() { f64::NAN } else { value };
        let array: ArrayRef = Arc::new(Float64Array::from(vec![value]));
        let text = to_log_string(&array, 0).unwrap();
        let read = column("double", &[text.as_deref()]).unwrap().as_primitive::<Float64Type>().value(0);
        prop_assert_eq!(read.to_bits(), value.to_bits());
        if !(value as f32).is_nan() {
            round_trip(Arc::new(Float32Array::from(vec![value as f32])), "float");
        }
    }

    #[test]
    fn decimals_round_trip(
        unscaled in -(10_i128.pow(38) - 1)..10_i128.pow(38), precision in 1u8..=38, scale in 0u8..=38,
    ) {
        let scale = scale.min(precision);
        let unscaled = unscaled % 10_i128.pow(precision.into());
        let array = Decimal128Array::from(vec![unscaled]).with_precision_and_scale(precision, scale as i8).unwrap();
        round_trip(Arc::new(array), &format!("decimal({precision},{scale})"));
    }

    #[test]
    fn dates_and_timestamps_round_trip(
        days in any::<i32>(), micros in any::<i64>(), seconds in -9_000_000_000_i64..400_000_000_000,
    ) {
        round_trip(Arc::new(Date32Array::from(vec![days])), "date");
        for micros in [micros, seconds * 1_000_000] {
            round_trip(Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone("UTC")), "timestamp");
            round_trip(Arc::new(TimestampMicrosecondArray::from(vec![micros])), "timestamp_ntz");
        }
    }

    #[test]
    fn text_round_trips(text in ".+") {
        round_trip(Arc::new(StringArray::from(vec![text.as_str()])), "string");
        round_trip(Arc::new(BinaryArray::from(vec![text.as_bytes()])), "binary");
    }

    #[test]
    fn no_text_panics(text in r"\PC*|[+-]?[0-9]{1,6}-[0-9]{1,2}-[0-9]{1,2}([ T][0-9:.+Z-]*)?|[0-9eE.+-]{1,50}") {
        for name in EVERY_TYPE {
            let _ = column(name, &[Some(&text)]);
        }
    }
}
