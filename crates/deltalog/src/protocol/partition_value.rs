//! Partition values: text in the log, typed columns everywhere else. Protocol: "Partition Value Serialization".
//!
//! - The empty string and an absent value are null, for every type.
//! - A timestamp without a zone is read as UTC; what is written says `Z`.
//! - A text that is no value of the column's type is an error: a wrong value would move rows to another partition.
//! - `parse(to_log_string(value)) == value` for every value but the empty string and empty binary, which are null.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder, Int8Builder,
    Int16Builder, Int32Builder, Int64Builder, NullBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};

use super::schema::PrimitiveType;
use super::text::{Offset, date_text, parse_date, parse_timestamp};
use crate::error::{Error, Result};

/// Builds the typed column of one partition column, a row a file.
#[derive(Debug)]
pub struct PartitionColumnBuilder {
    primitive: PrimitiveType,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Null(NullBuilder),
    Boolean(BooleanBuilder),
    Byte(Int8Builder),
    Short(Int16Builder),
    Integer(Int32Builder),
    Long(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Decimal(Decimal128Builder, u8),
    String(StringBuilder),
    Binary(BinaryBuilder),
}

impl PartitionColumnBuilder {
    /// For a column of this type.
    ///
    /// # Errors
    /// `Unsupported` for a type that cannot partition a table.
    pub fn new(primitive: &PrimitiveType) -> Result<Self> {
        let values = match primitive {
            PrimitiveType::Void => Values::Null(NullBuilder::new()),
            PrimitiveType::Boolean => Values::Boolean(BooleanBuilder::new()),
            PrimitiveType::Byte => Values::Byte(Int8Builder::new()),
            PrimitiveType::Short => Values::Short(Int16Builder::new()),
            PrimitiveType::Integer => Values::Integer(Int32Builder::new()),
            PrimitiveType::Long => Values::Long(Int64Builder::new()),
            PrimitiveType::Float => Values::Float(Float32Builder::new()),
            PrimitiveType::Double => Values::Double(Float64Builder::new()),
            PrimitiveType::Date => Values::Date(Date32Builder::new()),
            PrimitiveType::Timestamp | PrimitiveType::TimestampNtz => {
                Values::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(primitive.to_arrow()?))
            }
            PrimitiveType::Decimal { scale, .. } => Values::Decimal(Decimal128Builder::new().with_data_type(primitive.to_arrow()?), *scale),
            PrimitiveType::String => Values::String(StringBuilder::new()),
            PrimitiveType::Binary => Values::Binary(BinaryBuilder::new()),
            PrimitiveType::Variant => return Err(Error::unsupported("a table cannot be partitioned by a variant")),
        };
        Ok(Self { primitive: primitive.clone(), values })
    }

    /// Adds the value of the next file.
    ///
    /// # Errors
    /// `CorruptLog` if the text is no value of the type.
    pub fn append(&mut self, text: Option<&str>) -> Result<()> {
        let text = text.filter(|text| !text.is_empty());
        let fits = match &mut self.values {
            Values::Null(values) => {
                values.append_null();
                text.is_none()
            }
            Values::String(values) => {
                values.append_option(text);
                true
            }
            Values::Binary(values) => {
                values.append_option(text.map(binary_from_text));
                true
            }
            Values::Boolean(values) => parsed(text, boolean, |value| values.append_option(value)),
            Values::Byte(values) => parsed(text, |text| text.parse().ok(), |value| values.append_option(value)),
            Values::Short(values) => parsed(text, |text| text.parse().ok(), |value| values.append_option(value)),
            Values::Integer(values) => parsed(text, |text| text.parse().ok(), |value| values.append_option(value)),
            Values::Long(values) => parsed(text, |text| text.parse().ok(), |value| values.append_option(value)),
            Values::Float(values) => parsed(text, |text| text.parse().ok(), |value| values.append_option(value)),
            Values::Double(values) => parsed(text, |text| text.parse().ok(), |value| values.append_option(value)),
            Values::Date(values) => parsed(text, parse_date, |value| values.append_option(value)),
            Values::Timestamp(values) => parsed(text, micros, |value| values.append_option(value)),
            Values::Decimal(values, scale) => {
                let (PrimitiveType::Decimal { precision, .. }, scale) = (&self.primitive, *scale) else { return Err(self.misfit(text)) };
                parsed(text, |text| unscaled(text, *precision, scale), |value| values.append_option(value))
            }
        };
        if fits { Ok(()) } else { Err(self.misfit(text)) }
    }

    fn misfit(&self, text: Option<&str>) -> Error {
        Error::corrupt_log(format!("the partition value '{}' is no {}", text.unwrap_or_default(), self.primitive))
    }

    /// The column.
    pub fn finish(self) -> ArrayRef {
        match self.values {
            Values::Null(mut values) => Arc::new(values.finish()),
            Values::Boolean(mut values) => Arc::new(values.finish()),
            Values::Byte(mut values) => Arc::new(values.finish()),
            Values::Short(mut values) => Arc::new(values.finish()),
            Values::Integer(mut values) => Arc::new(values.finish()),
            Values::Long(mut values) => Arc::new(values.finish()),
            Values::Float(mut values) => Arc::new(values.finish()),
            Values::Double(mut values) => Arc::new(values.finish()),
            Values::Date(mut values) => Arc::new(values.finish()),
            Values::Timestamp(mut values) => Arc::new(values.finish()),
            Values::Decimal(mut values, _) => Arc::new(values.finish()),
            Values::String(mut values) => Arc::new(values.finish()),
            Values::Binary(mut values) => Arc::new(values.finish()),
        }
    }
}

/// Parses and appends; whether that went well.
fn parsed<T>(text: Option<&str>, parse: impl Fn(&str) -> Option<T>, mut append: impl FnMut(Option<T>)) -> bool {
    let value = text.map(parse);
    let fits = !matches!(value, Some(None));
    append(value.flatten());
    fits
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn micros(text: &str) -> Option<i64> {
    let (clock, offset) = parse_timestamp(text)?;
    match offset {
        Offset::None => Some(clock),
        Offset::Seconds(east) => clock.checked_sub(east.checked_mul(1_000_000)?),
    }
}

/// The digits of a decimal as a whole number at `scale`; `None` if a digit would be lost or the precision exceeded.
fn unscaled(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = all.trim_start_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let shift = i32::from(scale).checked_add(exponent)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let value = if shift >= 0 {
        let digits: i128 = significant.parse().ok()?;
        10i128.checked_pow(shift.unsigned_abs())?.checked_mul(digits)?
    } else {
        let cut = significant.len().checked_sub(shift.unsigned_abs() as usize)?;
        let (kept, lost) = significant.split_at(cut);
        if lost.bytes().any(|byte| byte != b'0') {
            return None;
        }
        if kept.is_empty() { 0 } else { kept.parse().ok()? }
    };
    (value < 10i128.checked_pow(u32::from(precision))?).then_some(if negative { -value } else { value })
}

/// The bytes of the text: the JVM writer casts binary to a string as UTF-8, and for the protocol's example `"\u0001\u0002\u0003"` that is the same.
fn binary_from_text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// The value at `row` of a column of one of the Arrow types of [`PrimitiveType::to_arrow`], as the log writes it; `None` is null.
///
/// # Errors
/// `SchemaMismatch` for binary that is not UTF-8, which has no text form, and for a type that cannot partition a table.
pub fn to_log_string(array: &dyn Array, row: usize) -> Result<Option<String>> {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Ok(None);
    }
    let text = match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float32 => float_text(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => float_text(array.as_primitive::<Float64Type>().value(row)),
        DataType::Date32 => date_text(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
            let (day, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
            let day = date_text(i32::try_from(day).map_err(|_| Error::schema_mismatch("the timestamp is out of range"))?);
            let clock = format!("{:02}:{:02}:{:02}.{fraction:06}", of_day / 3600, of_day / 60 % 60, of_day % 60);
            if zone.is_some() { format!("{day}T{clock}Z") } else { format!("{day} {clock}") }
        }
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Binary => std::str::from_utf8(array.as_binary::<i32>().value(row))
            .map_err(|error| Error::schema_mismatch("a table cannot be partitioned by binary that is not UTF-8").with_source(error))?
            .to_owned(),
        other => return Err(Error::schema_mismatch(format!("a table cannot be partitioned by a column of the type {other}"))),
    };
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// As Java writes special values; Rust's shortest text elsewhere, which Java reads.
fn float_text<T: std::fmt::Debug + Into<f64> + Copy>(value: T) -> String {
    let wide: f64 = value.into();
    match wide {
        _ if wide.is_nan() => "NaN".to_owned(),
        _ if wide.is_infinite() => if wide > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        _ => format!("{value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, Float32Array, Float64Array, Int64Array, PrimitiveArray, StringArray, TimestampMicrosecondArray};
    use proptest::prelude::*;

    use super::*;

    fn round_trip(primitive: &PrimitiveType, array: &dyn Array) -> ArrayRef {
        let mut builder = PartitionColumnBuilder::new(primitive).unwrap();
        for row in 0..array.len() {
            builder.append(to_log_string(array, row).unwrap().as_deref()).unwrap();
        }
        builder.finish()
    }

    fn one(primitive: &PrimitiveType, text: &str) -> Result<ArrayRef> {
        let mut builder = PartitionColumnBuilder::new(primitive)?;
        builder.append(Some(text))?;
        Ok(builder.finish())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            longs in prop::collection::vec(any::<Option<i64>>(), 1..9),
            micros in prop::collection::vec(-60_000_000_000_000_000i64..250_000_000_000_000_000, 1..9),
            days in prop::collection::vec(-700_000i32..2_900_000, 1..9),
            floats in prop::collection::vec(any::<f32>(), 1..9),
            doubles in prop::collection::vec(any::<f64>(), 1..9),
            digits in prop::collection::vec(-99_999_999_999_999_999_999_999_999_999_999_999_999i128..=99_999_999_999_999_999_999_999_999_999_999_999_999, 1..9),
            scale in 0..=38u8,
            strings in prop::collection::vec("\\PC{1,8}|[\\x01-\\x7f]{1,8}", 1..9),
        ) {
            prop_assert!(*round_trip(&PrimitiveType::Long, &Int64Array::from(longs.clone())) == *(&Int64Array::from(longs) as &dyn Array));
            let zoned = TimestampMicrosecondArray::from(micros.clone()).with_timezone("UTC");
            prop_assert!(*round_trip(&PrimitiveType::Timestamp, &zoned) == *(&zoned as &dyn Array));
            let local = TimestampMicrosecondArray::from(micros);
            prop_assert!(*round_trip(&PrimitiveType::TimestampNtz, &local) == *(&local as &dyn Array));
            let dates = PrimitiveArray::<Date32Type>::from(days);
            prop_assert!(*round_trip(&PrimitiveType::Date, &dates) == *(&dates as &dyn Array));
            let floats = Float32Array::from(floats.into_iter().map(|value| if value.is_nan() { f32::NAN } else { value }).collect::<Vec<_>>());
            prop_assert!(*round_trip(&PrimitiveType::Float, &floats) == *(&floats as &dyn Array));
            let doubles = Float64Array::from(doubles.into_iter().map(|value| if value.is_nan() { f64::NAN } else { value }).collect::<Vec<_>>());
            prop_assert!(*round_trip(&PrimitiveType::Double, &doubles) == *(&doubles as &dyn Array));
            let decimals = PrimitiveArray::<Decimal128Type>::from(digits).with_precision_and_scale(38, scale.cast_signed()).unwrap();
            let decimal = PrimitiveType::Decimal { precision: 38, scale };
            prop_assert!(*round_trip(&decimal, &decimals) == *(&decimals as &dyn Array));
            let strings = StringArray::from(strings);
            prop_assert!(*round_trip(&PrimitiveType::String, &strings) == *(&strings as &dyn Array));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[-+0-9.eE:TZ ]{0,30}", scale in 0..=38u8) {
            for primitive in [PrimitiveType::Date, PrimitiveType::Timestamp, PrimitiveType::Long, PrimitiveType::Double, PrimitiveType::Decimal { precision: 38, scale }] {
                let _ = one(&primitive, &text);
            }
        }
    }

    /// The examples of the section.
    #[test]
    fn both_forms_of_a_timestamp() {
        for (text, expected) in [
            ("1970-01-01 00:00:00", 0),
            ("1970-01-01 00:00:00.123456", 123_456),
            ("1970-01-01T00:00:00.123456Z", 123_456),
            ("1970-01-01T02:00:00+02:00", 0),
        ] {
            assert_eq!(
                one(&PrimitiveType::Timestamp, text).unwrap().as_primitive::<TimestampMicrosecondType>().value(0),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn the_empty_string_is_null_for_every_type() {
        for primitive in [PrimitiveType::String, PrimitiveType::Long, PrimitiveType::Binary, PrimitiveType::Timestamp] {
            assert_eq!(one(&primitive, "").unwrap().null_count(), 1);
        }
        assert_eq!(to_log_string(&StringArray::from(vec![""]), 0).unwrap(), None);
        assert_eq!(to_log_string(&BinaryArray::from_vec(vec![b""]), 0).unwrap(), None);
    }

    #[test]
    fn decimals_are_exact() {
        let decimal = PrimitiveType::Decimal { precision: 5, scale: 2 };
        let value = |text: &str| one(&decimal, text).map(|array| array.as_primitive::<Decimal128Type>().value(0)).ok();
        assert_eq!(value("1"), Some(100));
        assert_eq!(value("-1.50"), Some(-150));
        assert_eq!(value("1.500"), Some(150));
        assert_eq!(value("0E-18"), Some(0));
        assert_eq!(value("1.2E+2"), Some(12_000));
        assert_eq!(value("1.505"), None);
        assert_eq!(value("1000"), None);
        assert_eq!(value("1e99999999"), None);
    }

    #[test]
    fn a_bad_value_is_an_error_that_shows_it() {
        let error = one(&PrimitiveType::Integer, "x1").unwrap_err();
        assert!(error.to_string().contains("'x1'") && error.to_string().contains("integer"), "{error}");
    }
}
