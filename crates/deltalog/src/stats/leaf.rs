//! One statistic of one leaf column, from the text of a JSON value.
//!
//! - A text that is no value of the column's type is NULL, as is a number that the type would have to round.

use crate::error::{Error, Result};
use crate::protocol::text::{Offset, parse_date, parse_timestamp};
use arrow::array::{Array, ArrayBuilder};
use arrow::array::{
    ArrayRef, BooleanBuilder, Decimal128Builder, Float64Builder, Int64Builder, StringBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use std::borrow::Cow;
use std::sync::Arc;

/// Collects the values of one leaf column, one per file.
pub(super) struct Leaf {
    data_type: DataType,
    builder: Builder,
    pending: Option<Value>,
    /// The text of [`Value::Text`], in one buffer for all files.
    text: String,
}

/// The value of the file at hand.
enum Value {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Decimal(i128),
    /// In [`Leaf::text`].
    Text,
}

enum Builder {
    Boolean(BooleanBuilder),
    Integer(Int64Builder),
    Float(Float64Builder),
    Decimal(Decimal128Builder, u32),
    Text(StringBuilder),
}

/// Whether a column of this type may have a minimum and a maximum.
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
        DataType::Decimal128(precision, _) => Builder::Decimal(
            Decimal128Builder::new().with_data_type(data_type.clone()),
            u32::from(*precision),
        ),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Builder::Text(StringBuilder::new()),
        _ => return None,
    })
}

impl Leaf {
    pub(super) fn new(data_type: &DataType) -> Result<Self> {
        let builder = builder(data_type)
            .ok_or_else(|| Error::unsupported(format!("statistics of a column of type {data_type}")))?;
        Ok(Self { data_type: data_type.clone(), builder, pending: None, text: String::new() })
    }

    /// Takes the value of the file at hand; of several, the last.
    pub(super) fn set(&mut self, json: &str) {
        self.pending = match &self.builder {
            Builder::Boolean(_) => match json {
                "true" => Some(Value::Boolean(true)),
                "false" => Some(Value::Boolean(false)),
                _ => None,
            },
            Builder::Integer(_) => integer(json, &self.data_type).map(Value::Integer),
            Builder::Float(_) => float(json, &self.data_type).map(Value::Float),
            Builder::Decimal(_, precision) => decimal(json, *precision, &self.data_type).map(Value::Decimal),
            Builder::Text(_) => text(json).map(|text| {
                self.text.clear();
                self.text.push_str(&text);
                Value::Text
            }),
        };
    }

    /// Drops the value of the file at hand.
    pub(super) fn forget(&mut self) {
        self.pending = None;
    }

    /// Goes on to the next file.
    pub(super) fn end_file(&mut self) {
        match (&mut self.builder, self.pending.take()) {
            (Builder::Boolean(b), Some(Value::Boolean(v))) => b.append_value(v),
            (Builder::Integer(b), Some(Value::Integer(v))) => b.append_value(v),
            (Builder::Float(b), Some(Value::Float(v))) => b.append_value(v),
            (Builder::Decimal(b, _), Some(Value::Decimal(v))) => b.append_value(v),
            (Builder::Text(b), Some(Value::Text)) => b.append_value(&self.text),
            _ => self.append_null(),
        }
    }

    fn append_null(&mut self) {
        match &mut self.builder {
            Builder::Boolean(b) => b.append_null(),
            Builder::Integer(b) => b.append_null(),
            Builder::Float(b) => b.append_null(),
            Builder::Decimal(b, _) => b.append_null(),
            Builder::Text(b) => b.append_null(),
        }
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        let builder: &mut dyn ArrayBuilder = match &mut self.builder {
            Builder::Boolean(b) => b,
            Builder::Integer(b) => b,
            Builder::Float(b) => b,
            Builder::Decimal(b, _) => b,
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

/// The content of a JSON string.
fn text(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str::<String>(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Whole numbers, days, and microseconds.
fn integer(json: &str, data_type: &DataType) -> Option<i64> {
    let within = |min: i64, max: i64| json.parse().ok().filter(|v| (min..=max).contains(v));
    match data_type {
        DataType::Int8 => within(i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => within(i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => within(i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => json.parse().ok(),
        DataType::Date32 => parse_date(&text(json)?).map(i64::from),
        DataType::Timestamp(_, zone) => match (parse_timestamp(&text(json)?)?, zone) {
            ((micros, Offset::Seconds(seconds)), Some(_)) => micros.checked_sub(seconds * 1_000_000),
            // Some writers end a time of no zone in a Z; it is the same time.
            ((micros, Offset::None | Offset::Seconds(0)), None) => Some(micros),
            _ => None,
        },
        _ => None,
    }
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

/// A decimal, as a JSON number or a string of one, without going through a floating-point number.
fn decimal(json: &str, precision: u32, data_type: &DataType) -> Option<i128> {
    let DataType::Decimal128(_, scale) = data_type else { return None };
    let quoted = text(json);
    let number = quoted.as_deref().unwrap_or(json);
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (negative, whole) = whole.strip_prefix('-').map_or((false, whole), |whole| (true, whole));
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut unscaled: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        unscaled = unscaled.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    let shift = i32::from(*scale).checked_add(exponent)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    if unscaled != 0 {
        let power = 10i128.checked_pow(shift.unsigned_abs())?;
        if shift < 0 && unscaled % power != 0 {
            return None;
        }
        unscaled = if shift < 0 { unscaled / power } else { unscaled.checked_mul(power)? };
    }
    let fits = unscaled < 10i128.checked_pow(precision)?;
    fits.then_some(if negative { -unscaled } else { unscaled })
}
