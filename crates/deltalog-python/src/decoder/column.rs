//! Collects the values of a column while they are parsed from text.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int8Builder, Int16Builder, Int32Builder, Int64Builder, ListArray, MapArray,
    StringBuilder, StructArray, TimestampMicrosecondBuilder,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};
use arrow::error::ArrowError;
use deltalog::{Error, Result};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::scalar::{self, shown};

/// A column to which values are appended.
pub(super) struct Column {
    pub(super) field: FieldRef,
    values: Values,
}

enum Values {
    Boolean(BooleanBuilder),
    Byte(Int8Builder),
    Short(Int16Builder),
    Integer(Int32Builder),
    Long(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, u8, i8),
    Text(StringBuilder),
    Binary(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder, bool),
    List(Box<Column>, Lists),
    Map(Box<[Column; 2]>, Lists),
    Struct(Vec<Column>, Vec<bool>),
}

/// The ends of lists, and which lists are not NULL.
struct Lists {
    ends: Vec<i32>,
    valid: Vec<bool>,
}

impl Lists {
    fn new() -> Self {
        Self { ends: vec![0], valid: Vec::new() }
    }

    /// Ends the current list, after `count` more values.
    fn push(&mut self, count: usize, is_valid: bool) -> std::result::Result<(), String> {
        let end = i32::try_from(count).ok().and_then(|count| self.ends.last().copied()?.checked_add(count));
        self.ends.push(end.ok_or("the lists have too many values")?);
        self.valid.push(is_valid);
        Ok(())
    }

    fn finish(&mut self) -> (OffsetBuffer<i32>, NullBuffer) {
        let Self { ends, valid } = std::mem::replace(self, Self::new());
        (OffsetBuffer::new(ScalarBuffer::from(ends)), NullBuffer::from(valid))
    }
}

impl Column {
    /// Begins a column. Its values may be NULL here; the write checks NOT NULL.
    ///
    /// # Errors
    /// Returns `Unsupported` for a type whose values cannot be written as text.
    pub(super) fn new(field: &Field) -> Result<Self> {
        let within = |field: &FieldRef| Self::new(field);
        let values = match field.data_type() {
            DataType::Boolean => Values::Boolean(BooleanBuilder::new()),
            DataType::Int8 => Values::Byte(Int8Builder::new()),
            DataType::Int16 => Values::Short(Int16Builder::new()),
            DataType::Int32 => Values::Integer(Int32Builder::new()),
            DataType::Int64 => Values::Long(Int64Builder::new()),
            DataType::Float32 => Values::Float(Float32Builder::new()),
            DataType::Float64 => Values::Double(Float64Builder::new()),
            DataType::Decimal128(precision, scale) => Values::Decimal(
                Decimal128Builder::new().with_data_type(DataType::Decimal128(*precision, *scale)),
                *precision,
                *scale,
            ),
            DataType::Utf8 => Values::Text(StringBuilder::new()),
            DataType::Binary => Values::Binary(BinaryBuilder::new()),
            DataType::Date32 => Values::Date(Date32Builder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => Values::Timestamp(
                TimestampMicrosecondBuilder::new().with_timezone_opt(zone.clone()),
                zone.is_some(),
            ),
            DataType::List(element) => Values::List(Box::new(within(element)?), Lists::new()),
            DataType::Map(entries, false) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    Values::Map(Box::new([within(&fields[0])?, within(&fields[1])?]), Lists::new())
                }
                _ => return Err(not_text(field)),
            },
            // A variant is represented by a struct of bytes, but is not an ordinary struct.
            DataType::Struct(fields) if field.extension_type_name().is_none() => {
                Values::Struct(fields.iter().map(within).collect::<Result<_>>()?, Vec::new())
            }
            _ => return Err(not_text(field)),
        };
        let data_type = match &values {
            Values::List(element, _) => DataType::List(Arc::clone(&element.field)),
            Values::Map(entry, _) => {
                let fields = Fields::from(vec![as_key(&entry[0].field), Arc::clone(&entry[1].field)]);
                DataType::Map(Arc::new(Field::new_struct("key_value", fields, false)), false)
            }
            Values::Struct(columns, _) => {
                DataType::Struct(columns.iter().map(|column| Arc::clone(&column.field)).collect())
            }
            _ => field.data_type().clone(),
        };
        Ok(Self { field: Arc::new(Field::new(field.name(), data_type, true)), values })
    }

    /// Returns whether values of the type have no parts, so that CSV can represent them.
    pub(super) fn is_simple(&self) -> bool {
        !self.field.data_type().is_nested()
    }

    pub(super) fn push_null(&mut self) -> std::result::Result<(), String> {
        match &mut self.values {
            Values::Boolean(values) => values.append_null(),
            Values::Byte(values) => values.append_null(),
            Values::Short(values) => values.append_null(),
            Values::Integer(values) => values.append_null(),
            Values::Long(values) => values.append_null(),
            Values::Float(values) => values.append_null(),
            Values::Double(values) => values.append_null(),
            Values::Decimal(values, ..) => values.append_null(),
            Values::Text(values) => values.append_null(),
            Values::Binary(values) => values.append_null(),
            Values::Date(values) => values.append_null(),
            Values::Timestamp(values, _) => values.append_null(),
            Values::List(_, lists) | Values::Map(_, lists) => lists.push(0, false)?,
            Values::Struct(columns, valid) => {
                columns.iter_mut().try_for_each(Self::push_null)?;
                valid.push(false);
            }
        }
        Ok(())
    }

    /// Parses and appends a value without parts.
    pub(super) fn push_text(&mut self, text: &str) -> std::result::Result<(), String> {
        let kind = self.kind();
        let small = |text: &str| scalar::whole(text);
        match &mut self.values {
            Values::Boolean(values) => values.append_value(scalar::boolean(text)?),
            Values::Byte(values) => values.append_value(narrow(small(text)?, text, kind)?),
            Values::Short(values) => values.append_value(narrow(small(text)?, text, kind)?),
            Values::Integer(values) => values.append_value(narrow(small(text)?, text, kind)?),
            Values::Long(values) => values.append_value(narrow(small(text)?, text, kind)?),
            Values::Float(values) => values.append_value(scalar::float(text)?),
            Values::Double(values) => values.append_value(scalar::float(text)?),
            Values::Decimal(values, precision, scale) => {
                values.append_value(scalar::decimal(text, *precision, *scale)?);
            }
            Values::Text(values) => values.append_value(text),
            Values::Binary(values) => values.append_value(scalar::bytes(text)?),
            Values::Date(values) => values.append_value(scalar::date(text)?),
            Values::Timestamp(values, has_zone) => values.append_value(scalar::timestamp(text, *has_zone)?),
            Values::List(..) | Values::Map(..) | Values::Struct(..) => {
                return Err(format!("{} is not {kind}", shown(text)));
            }
        }
        Ok(())
    }

    /// Parses and appends a JSON value.
    pub(super) fn push_json(&mut self, json: &RawValue) -> std::result::Result<(), String> {
        let text = json.get();
        let kind = self.kind();
        let wrong = || format!("{} is not {kind}", shown(text));
        match (&mut self.values, text.as_bytes().first()) {
            (_, Some(b'n')) => self.push_null(),
            (Values::List(element, lists), Some(b'[')) => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| wrong())?;
                items.iter().try_for_each(|item| element.push_json(item))?;
                lists.push(items.len(), true)
            }
            (Values::Map(entry, lists), Some(b'{')) => {
                let members = members_of(text)?;
                if let Some((name, _)) = members.iter().enumerate().find_map(|(at, member)| {
                    members.iter().take(at).any(|(name, _)| *name == member.0).then_some(member)
                }) {
                    return Err(format!("the key {} occurs twice", shown(name)));
                }
                let [key, value] = entry.as_mut();
                for (name, json) in &members {
                    key.push_text(name)?;
                    value.push_json(json)?;
                }
                lists.push(members.len(), true)
            }
            (Values::Struct(columns, valid), Some(b'{')) => {
                push_members(columns, &members_of(text)?)?;
                valid.push(true);
                Ok(())
            }
            (Values::List(..) | Values::Map(..) | Values::Struct(..), _) | (_, Some(b'[' | b'{')) => {
                Err(wrong())
            }
            (_, Some(b'"')) => {
                let text: Cow<'_, str> = serde_json::from_str(text).map_err(|_| wrong())?;
                self.push_text(&text)
            }
            (Values::Boolean(_), Some(b't' | b'f')) => self.push_text(text),
            (
                Values::Byte(_)
                | Values::Short(_)
                | Values::Integer(_)
                | Values::Long(_)
                | Values::Float(_)
                | Values::Double(_)
                | Values::Decimal(..),
                Some(b'-' | b'0'..=b'9'),
            ) => self.push_text(text),
            // This includes a number for a string column, because JSON does not distinguish the spellings of a number,
            // such as `1` and `1.0`.
            _ => Err(wrong()),
        }
    }

    fn kind(&self) -> &'static str {
        match self.values {
            Values::Boolean(_) => "true or false",
            Values::Byte(_) => "an 8-bit number",
            Values::Short(_) => "a 16-bit number",
            Values::Integer(_) => "a 32-bit number",
            Values::Long(_) => "a 64-bit number",
            Values::Float(_) | Values::Double(_) | Values::Decimal(..) => "a number",
            Values::Text(_) => "text in quotes",
            Values::Binary(_) => "bytes in hexadecimal form, in quotes",
            Values::Date(_) => "a date in quotes",
            Values::Timestamp(..) => "a time in quotes",
            Values::List(..) => "an array",
            Values::Map(..) | Values::Struct(..) => "an object",
        }
    }

    /// Returns the values collected so far, and empties the column.
    pub(super) fn finish(&mut self) -> std::result::Result<ArrayRef, ArrowError> {
        Ok(match &mut self.values {
            Values::Boolean(values) => Arc::new(values.finish()),
            Values::Byte(values) => Arc::new(values.finish()),
            Values::Short(values) => Arc::new(values.finish()),
            Values::Integer(values) => Arc::new(values.finish()),
            Values::Long(values) => Arc::new(values.finish()),
            Values::Float(values) => Arc::new(values.finish()),
            Values::Double(values) => Arc::new(values.finish()),
            Values::Decimal(values, ..) => Arc::new(values.finish()),
            Values::Text(values) => Arc::new(values.finish()),
            Values::Binary(values) => Arc::new(values.finish()),
            Values::Date(values) => Arc::new(values.finish()),
            Values::Timestamp(values, _) => Arc::new(values.finish()),
            Values::List(element, lists) => {
                let (offsets, nulls) = lists.finish();
                let field = Arc::clone(&element.field);
                Arc::new(ListArray::try_new(field, offsets, element.finish()?, Some(nulls))?)
            }
            Values::Map(entry, lists) => {
                let (offsets, nulls) = lists.finish();
                let DataType::Map(field, _) = self.field.data_type() else {
                    return Err(ArrowError::SchemaError("a map has another type".to_owned()));
                };
                let DataType::Struct(fields) = field.data_type() else {
                    return Err(ArrowError::SchemaError("a map has no entries".to_owned()));
                };
                let [key, value] = entry.as_mut();
                let entries =
                    StructArray::try_new(fields.clone(), vec![key.finish()?, value.finish()?], None)?;
                Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, Some(nulls), false)?)
            }
            Values::Struct(columns, valid) => {
                let fields: Fields = columns.iter().map(|column| Arc::clone(&column.field)).collect();
                let nulls = NullBuffer::from(std::mem::take(valid));
                let arrays = columns.iter_mut().map(Self::finish).collect::<std::result::Result<_, _>>()?;
                Arc::new(StructArray::try_new(fields, arrays, Some(nulls))?)
            }
        })
    }
}

fn not_text(field: &Field) -> Error {
    Error::unsupported(format!(
        "column '{}' has a type that cannot be read from text: {}",
        field.name(),
        field.data_type()
    ))
    .with_hint("append Parquet or Arrow")
}

/// The key of a map is never NULL.
fn as_key(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_nullable(false))
}

fn narrow<T: TryFrom<i128>>(value: i128, text: &str, kind: &str) -> std::result::Result<T, String> {
    T::try_from(value).map_err(|_| format!("{} is not {kind}", shown(text)))
}

/// Appends the members of a JSON object to columns. Missing members are NULL.
///
/// # Errors
/// Returns an error for a member that has no column, or that occurs twice.
pub(super) fn push_members(
    columns: &mut [Column],
    members: &[(Cow<'_, str>, &RawValue)],
) -> std::result::Result<(), String> {
    for (name, _) in members {
        if !columns.iter().any(|column| column.field.name() == name) {
            return Err(format!("there is no column {}", shown(name)));
        }
    }
    for column in columns {
        let mut found = members.iter().filter(|(name, _)| name == column.field.name());
        match (found.next(), found.next()) {
            (None, _) => column.push_null(),
            (Some((_, json)), None) => column.push_json(json),
            (Some(_), Some(_)) => Err("it occurs twice".to_owned()),
        }
        .map_err(|wrong| format!("column {}: {wrong}", shown(column.field.name())))?;
    }
    Ok(())
}

/// Returns the members of an object in order, including members that have the same name.
pub(super) fn members_of(text: &str) -> std::result::Result<Vec<(Cow<'_, str>, &RawValue)>, String> {
    struct Members;

    impl<'a> Visitor<'a> for Members {
        type Value = Vec<(Cow<'a, str>, &'a RawValue)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(name) = map.next_key::<String>()? {
                members.push((Cow::Owned(name), map.next_value()?));
            }
            Ok(members)
        }
    }

    let mut reader = serde_json::Deserializer::from_str(text);
    let members =
        reader.deserialize_map(Members).map_err(|error| format!("it is not a JSON object: {error}"))?;
    reader.end().map_err(|_| "there is something after the object".to_owned())?;
    Ok(members)
}
