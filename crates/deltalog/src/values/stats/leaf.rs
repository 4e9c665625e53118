//! Converts one statistic of one leaf column from JSON to Arrow.
//!
//! - A JSON text that is not a value of the column's type becomes NULL. So does a number that would have to be rounded
//!   to an integer or a decimal.
//! - A timestamp with an offset other than UTC's that does not state seconds gets a margin of 59 seconds. The reason is
//!   that versions 3.2 and 3.3 of the JVM connector omit the seconds: they write `+00:53` for an offset of 53 minutes
//!   and 28 seconds, such as Berlin's before 1893.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayBuilder, ArrayRef, BooleanBuilder, Decimal128Builder, Float64Builder, Int64Builder,
    StringBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::json::Side;
use crate::error::{Error, Result};
use crate::protocol::text::{Offset, parse_date, parse_decimal, parse_timestamp};

/// Builds the values of one leaf column, one per file.
pub(super) struct Leaf {
    data_type: DataType,
    /// Whether the values are minima or maxima. For other values, this has no effect.
    side: Side,
    builder: Builder,
    pending: Option<Value>,
    /// The content of a [`Value::Text`]. The same buffer is used for all files.
    text: String,
}

/// The value of the current file.
enum Value {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Decimal(i128),
    /// The text is in [`Leaf::text`].
    Text,
}

enum Builder {
    Boolean(BooleanBuilder),
    Integer(Int64Builder),
    Float(Float64Builder),
    Decimal(Decimal128Builder, u8, i8),
    Text(StringBuilder),
}

/// Returns whether columns of this type may have a minimum and a maximum.
pub(super) fn has_bounds(data_type: &DataType) -> bool {
    builder(data_type).is_some()
}

fn builder(data_type: &DataType) -> Option<Builder> {
    Some(match data_type {
        DataType::Boolean => Builder::Boolean(BooleanBuilder::new()),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            Builder::Integer(Int64Builder::new())
        }
        DataType::Date32 | DataType::Timestamp(..) => Builder::Integer(Int64Builder::new()),
        DataType::Float32 | DataType::Float64 => Builder::Float(Float64Builder::new()),
        DataType::Decimal128(precision, scale) => {
            let builder = Decimal128Builder::new().with_data_type(data_type.clone());
            Builder::Decimal(builder, *precision, *scale)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Builder::Text(StringBuilder::new()),
        _ => return None,
    })
}

impl Leaf {
    pub(super) fn new(data_type: &DataType, side: Side) -> Result<Self> {
        let builder = builder(data_type)
            .ok_or_else(|| Error::unsupported(format!("statistics of a column of type {data_type}")))?;
        Ok(Self { data_type: data_type.clone(), side, builder, pending: None, text: String::new() })
    }

    /// Sets the value of the current file. If this is called several times for a file, the last call counts.
    pub(super) fn set(&mut self, json: &str) {
        self.pending = match &self.builder {
            Builder::Boolean(_) => match json {
                "true" => Some(Value::Boolean(true)),
                "false" => Some(Value::Boolean(false)),
                _ => None,
            },
            Builder::Integer(_) => integer(json, &self.data_type, self.side).map(Value::Integer),
            Builder::Float(_) => float(json, &self.data_type).map(Value::Float),
            Builder::Decimal(_, precision, scale) => decimal(json, *precision, *scale).map(Value::Decimal),
            Builder::Text(_) => text(json).map(|text| {
                self.text.clear();
                self.text.push_str(&text);
                Value::Text
            }),
        };
    }

    /// Discards the value of the current file.
    pub(super) fn forget(&mut self) {
        self.pending = None;
    }

    /// Completes the current file, and begins the next one.
    pub(super) fn end_file(&mut self) {
        match (&mut self.builder, self.pending.take()) {
            (Builder::Boolean(b), Some(Value::Boolean(v))) => b.append_value(v),
            (Builder::Integer(b), Some(Value::Integer(v))) => b.append_value(v),
            (Builder::Float(b), Some(Value::Float(v))) => b.append_value(v),
            (Builder::Decimal(b, ..), Some(Value::Decimal(v))) => b.append_value(v),
            (Builder::Text(b), Some(Value::Text)) => b.append_value(&self.text),
            _ => self.append_null(),
        }
    }

    fn append_null(&mut self) {
        match &mut self.builder {
            Builder::Boolean(b) => b.append_null(),
            Builder::Integer(b) => b.append_null(),
            Builder::Float(b) => b.append_null(),
            Builder::Decimal(b, ..) => b.append_null(),
            Builder::Text(b) => b.append_null(),
        }
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        let builder: &mut dyn ArrayBuilder = match &mut self.builder {
            Builder::Boolean(b) => b,
            Builder::Integer(b) => b,
            Builder::Float(b) => b,
            Builder::Decimal(b, ..) => b,
            Builder::Text(b) => b,
        };
        let array = builder.finish();
        let through = |array: ArrayRef, to: &DataType| {
            if array.data_type() == to {
                return Ok(array);
            }
            cast(&array, to).map_err(|e| {
                Error::schema_mismatch(format!("statistics cannot be read as {to}")).with_source(e)
            })
        };
        match self.data_type {
            DataType::Date32 => through(through(array, &DataType::Int32)?, &DataType::Date32),
            _ => through(Arc::clone(&array), &self.data_type),
        }
    }
}

/// Returns the content of a JSON string, or `None` for any other JSON.
fn text(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str::<String>(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Parses integers; dates, as numbers of days; and timestamps, as microseconds.
fn integer(json: &str, data_type: &DataType, side: Side) -> Option<i64> {
    let within = |min: i64, max: i64| json.parse().ok().filter(|v| (min..=max).contains(v));
    match data_type {
        DataType::Int8 => within(i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => within(i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => within(i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => json.parse().ok(),
        DataType::Date32 => parse_date(&text(json)?).map(i64::from),
        DataType::Timestamp(_, zone) => {
            let text = text(json)?;
            match (parse_timestamp(&text)?, zone) {
                ((micros, Offset::Seconds(seconds)), Some(_)) => {
                    let instant = micros.checked_sub(seconds * 1_000_000)?;
                    match (seconds == 0 || has_seconds_in_offset(&text), side) {
                        (true, _) => Some(instant),
                        (false, Side::Min) => instant.checked_sub(CUT_FROM_OFFSET),
                        (false, Side::Max) => instant.checked_add(CUT_FROM_OFFSET),
                    }
                }
                // Some writers append `Z` to a time although its type has no time zone.
                ((micros, Offset::None | Offset::Seconds(0)), None) => Some(micros),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The maximum amount that a writer may have cut off an offset, in microseconds.
pub(super) const CUT_FROM_OFFSET: i64 = 59_000_000;

/// Returns whether a timestamp, whose offset is not `Z`, ends with an offset that has seconds (`±HH:mm:ss`).
fn has_seconds_in_offset(text: &str) -> bool {
    let sign = text.len().checked_sub("+00:00:00".len()).and_then(|at| text.as_bytes().get(at));
    matches!(sign, Some(b'+' | b'-'))
}

fn float(json: &str, data_type: &DataType) -> Option<f64> {
    if let Some(name) = text(json) {
        return match name.as_ref() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        };
    }
    let value = match data_type {
        DataType::Float32 => json.parse::<f32>().ok()?.into(),
        _ => json.parse::<f64>().ok()?,
    };
    value.is_finite().then_some(value)
}

/// Parses a decimal from a JSON number, or from a JSON string that contains a number, without using floating-point
/// numbers.
fn decimal(json: &str, precision: u8, scale: i8) -> Option<i128> {
    parse_decimal(text(json).as_deref().unwrap_or(json), precision, scale)
}
