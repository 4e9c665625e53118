//! Converts `stats_parsed` and `partitionValues_parsed` to the strings that the log has in `stats` and
//! `partitionValues`. Protocol: "Checkpoints", "Per-file Statistics", "Partition Value Serialization".
//!
//! - No digits are lost: numbers, decimals and microseconds are written in full.
//! - A value that cannot be written as a string is omitted, which means that it is unknown.
//! - Statistics from a struct are never marked as computed by this crate, because the writer of the struct may have
//!   changed them. (See [`crate::values::stats::is_own`].)

use std::sync::Arc;

use arrow::array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow::array::{
    Array, ArrayRef, AsArray, MapBuilder, MapFieldNames, StringArray, StringBuilder, StructArray,
};
use arrow::datatypes::{DataType, TimeUnit};

use crate::error::{Error, Result};
use crate::protocol::text::{date_text, decimal_text, json_string, timestamp_text};
use crate::protocol::to_log_string;
use crate::values::stats::MARK;

/// Returns the statistics of each row as JSON; null for rows without statistics.
pub(super) fn stats_text(parsed: &StructArray) -> StringArray {
    (0..parsed.len())
        .map(|row| {
            let mut text = String::new();
            (parsed.is_valid(row) && write_fields(parsed, row, &mut text, Some(MARK))).then_some(text)
        })
        .collect()
}

/// Writes the fields of `row` that have a value, except those in `except`. If no field has a value, writes nothing and
/// returns false.
fn write_fields(array: &StructArray, row: usize, text: &mut String, except: Option<&str>) -> bool {
    let start = text.len();
    text.push('{');
    for (field, column) in array.fields().iter().zip(array.columns()) {
        if column.is_null(row) || except == Some(field.name()) {
            continue;
        }
        let before = text.len();
        if before > start + 1 {
            text.push(',');
        }
        text.push_str(&json_string(field.name()));
        text.push(':');
        if !write_value(column, row, text) {
            text.truncate(before);
        }
    }
    if text.len() == start + 1 {
        text.truncate(start);
        return false;
    }
    text.push('}');
    true
}

/// Writes a value. If the value cannot be written as a string, writes nothing and returns false.
fn write_value(array: &ArrayRef, row: usize, text: &mut String) -> bool {
    let value = match array.data_type() {
        DataType::Struct(_) => return write_fields(array.as_struct(), row, text, None),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        // A float is written as the shortest decimal number that parses to the same float.
        DataType::Float32 => float_text(f64::from(array.as_primitive::<Float32Type>().value(row)), || {
            array.as_primitive::<Float32Type>().value(row).to_string()
        }),
        DataType::Float64 => float_text(array.as_primitive::<Float64Type>().value(row), || {
            format!("{:?}", array.as_primitive::<Float64Type>().value(row))
        }),
        DataType::Decimal128(_, scale) => {
            match decimal_text(array.as_primitive::<Decimal128Type>().value(row), *scale) {
                Some(decimal) => decimal,
                None => return false,
            }
        }
        DataType::Utf8 => json_string(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => json_string(array.as_string::<i64>().value(row)),
        DataType::Utf8View => json_string(array.as_string_view().value(row)),
        DataType::Date32 => format!("\"{}\"", date_text(array.as_primitive::<Date32Type>().value(row))),
        DataType::Timestamp(unit, zone) => {
            let micros = match unit {
                TimeUnit::Microsecond => Some(array.as_primitive::<TimestampMicrosecondType>().value(row)),
                TimeUnit::Millisecond => {
                    array.as_primitive::<TimestampMillisecondType>().value(row).checked_mul(1000)
                }
                TimeUnit::Second | TimeUnit::Nanosecond => None,
            };
            let Some(micros) = micros else { return false };
            format!(
                "\"{}{}\"",
                timestamp_text(micros).replacen(' ', "T", 1),
                if zone.is_some() { "Z" } else { "" }
            )
        }
        _ => return false,
    };
    text.push_str(&value);
    true
}

fn float_text(value: f64, finite: impl Fn() -> String) -> String {
    match value {
        value if value.is_nan() => "\"NaN\"".to_owned(),
        f64::INFINITY => "\"Infinity\"".to_owned(),
        f64::NEG_INFINITY => "\"-Infinity\"".to_owned(),
        _ => finite(),
    }
}

/// Returns the partition values of each row as a map of strings, as in the log.
///
/// # Errors
/// `CorruptLog` for a value of a type that no partition column can have.
pub(super) fn partition_values_text(parsed: &StructArray) -> Result<ArrayRef> {
    let names =
        MapFieldNames { entry: "key_value".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
    let mut map = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    let bad = |source: Error| Error::corrupt_log("partitionValues_parsed cannot be read").with_source(source);
    for row in 0..parsed.len() {
        for (field, column) in parsed.fields().iter().zip(parsed.columns()) {
            map.keys().append_value(field.name());
            map.values().append_option(if parsed.is_valid(row) {
                to_log_string(column, row).map_err(bad)?
            } else {
                None
            });
        }
        map.append(true).map_err(|error| {
            Error::corrupt_log("a map has more entries than an Arrow array can hold").with_source(error)
        })?;
    }
    Ok(Arc::new(map.finish()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, TimestampMicrosecondArray,
    };
    use arrow::datatypes::Field;

    use super::*;

    fn of(columns: Vec<(&str, ArrayRef)>) -> StructArray {
        StructArray::from(
            columns
                .into_iter()
                .map(|(name, array)| (Arc::new(Field::new(name, array.data_type().clone(), true)), array))
                .collect::<Vec<_>>(),
        )
    }

    /// The expected text is what a writer of JSON statistics would have written.
    #[test]
    fn every_type_is_written_as_json() {
        let minima = of(vec![
            ("i", Arc::new(Int64Array::from(vec![Some(i64::MIN), None]))),
            ("f", Arc::new(Float64Array::from(vec![f64::NAN, 0.1]))),
            ("d", Arc::new(Decimal128Array::from(vec![-5, 12345]).with_precision_and_scale(20, 3).unwrap())),
            ("s", Arc::new(StringArray::from(vec!["a\"\u{1}é", ""]))),
            ("b", Arc::new(BooleanArray::from(vec![true, false]))),
            ("day", Arc::new(Date32Array::from(vec![0, -1]))),
            ("utc", Arc::new(TimestampMicrosecondArray::from(vec![1, -1]).with_timezone("UTC"))),
            ("ntz", Arc::new(TimestampMicrosecondArray::from(vec![Some(1_000_000), None]))),
        ]);
        let parsed =
            of(vec![("numRecords", Arc::new(Int64Array::from(vec![3, 4]))), ("minValues", Arc::new(minima))]);
        let texts = stats_text(&parsed);
        assert_eq!(
            texts.value(0),
            "{\"numRecords\":3,\"minValues\":{\"i\":-9223372036854775808,\"f\":\"NaN\",\"d\":-0.005,\
             \"s\":\"a\\\"\\u0001é\",\"b\":true,\
             \"day\":\"1970-01-01\",\"utc\":\"1970-01-01T00:00:00.000001Z\",\"ntz\":\"1970-01-01T00:00:01\"}}"
        );
        assert!(
            texts.value(1).contains("\"f\":0.1,\"d\":12.345") && !texts.value(1).contains("\"i\""),
            "{}",
            texts.value(1)
        );
        assert!(texts.value(1).contains("1969-12-31T23:59:59.999999Z"), "{}", texts.value(1));
    }

    #[test]
    fn unknown_statistics_are_null() {
        let parsed = of(vec![("numRecords", Arc::new(Int64Array::from(vec![None, Some(1)])))]);
        let texts = stats_text(&parsed);
        assert!(texts.is_null(0) && texts.value(1) == "{\"numRecords\":1}");
    }

    #[test]
    fn statistics_from_a_struct_have_no_mark() {
        let one = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
        let minima = of(vec![("deltalog", one())]);
        let parsed = of(vec![("numRecords", one()), ("minValues", Arc::new(minima)), ("deltalog", one())]);
        assert_eq!(stats_text(&parsed).value(0), r#"{"numRecords":1,"minValues":{"deltalog":1}}"#);
        assert!(stats_text(&of(vec![("deltalog", one())])).is_null(0));
    }
}
