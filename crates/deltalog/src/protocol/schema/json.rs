//! Converts schemas from and to JSON. (PROTOCOL, "Schema Serialization Format".)

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ArrayType, DataType, FieldMetadata, MapType, Place, PrimitiveType, StructField, StructType};
use crate::error::{Error, ErrorKind, Result};

/// A type that is written as a JSON object. Its key `type` determines which of the other keys it has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawType<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    fields: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    element_type: Option<&'a RawValue>,
    contains_null: Option<bool>,
    #[serde(borrow)]
    key_type: Option<&'a RawValue>,
    #[serde(borrow)]
    value_type: Option<&'a RawValue>,
    value_contains_null: Option<bool>,
}

#[derive(Deserialize)]
struct RawField<'a> {
    name: String,
    #[serde(borrow)]
    r#type: &'a RawValue,
    nullable: Option<bool>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

impl StructType {
    /// Parses the `schemaString` of a `metaData` action.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::error::ErrorKind::CorruptLog) if the string is not a schema,
    /// [`Unsupported`](crate::error::ErrorKind::Unsupported) if the schema is nested too deeply or has a type that the
    /// protocol does not define.
    pub fn from_json(json: &str) -> Result<Self> {
        let schema: &RawValue = serde_json::from_str(json)
            .map_err(|error| Error::corrupt_log("schema is not JSON").with_source(error))?;
        match parse_type(schema, &Place::ROOT)? {
            DataType::Struct(fields) => Ok(fields),
            _ => Err(Error::corrupt_log("schema is not a struct")),
        }
    }

    /// Returns the schema as JSON, without white space.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        write_struct(self, &mut out);
        out
    }
}

fn parse_type(raw: &RawValue, place: &Place<'_>) -> Result<DataType> {
    place.check_depth()?;
    let corrupt =
        |error| Error::corrupt_log(format!("type of column '{place}' is not valid")).with_source(error);
    let json = raw.get().trim_start();
    if json.starts_with('"') {
        return parse_name(&serde_json::from_str::<String>(json).map_err(corrupt)?, place);
    }
    let raw: RawType<'_> = serde_json::from_str(json).map_err(corrupt)?;
    let missing =
        |part: &str| Error::corrupt_log(format!("type '{}' of column '{place}' has no '{part}'", raw.r#type));
    match raw.r#type.as_ref() {
        "struct" => {
            let fields = raw.fields.as_ref().ok_or_else(|| missing("fields"))?;
            let fields = fields.iter().map(|field| parse_field(field, place)).collect::<Result<_>>()?;
            Ok(DataType::Struct(StructType::try_new(fields)?))
        }
        "array" => Ok(DataType::Array(Box::new(ArrayType {
            element_type: parse_type(
                raw.element_type.ok_or_else(|| missing("elementType"))?,
                &place.child("element"),
            )?,
            contains_null: raw.contains_null.unwrap_or(true),
        }))),
        "map" => Ok(DataType::Map(Box::new(MapType {
            key_type: parse_type(raw.key_type.ok_or_else(|| missing("keyType"))?, &place.child("key"))?,
            value_type: parse_type(
                raw.value_type.ok_or_else(|| missing("valueType"))?,
                &place.child("value"),
            )?,
            value_contains_null: raw.value_contains_null.unwrap_or(true),
        }))),
        name => parse_name(name, place),
    }
}

fn parse_name(name: &str, place: &Place<'_>) -> Result<DataType> {
    match PrimitiveType::from_name(name) {
        Some(primitive) => Ok(primitive.into()),
        None if name == "variant" => Ok(DataType::Variant),
        None => {
            let kind =
                if name.starts_with("decimal(") { ErrorKind::CorruptLog } else { ErrorKind::Unsupported };
            Err(Error::new(kind, format!("column '{place}' has the type '{name}', which is unknown")))
        }
    }
}

fn parse_field(raw: &RawValue, parent: &Place<'_>) -> Result<StructField> {
    let raw: RawField<'_> = serde_json::from_str(raw.get()).map_err(|error| {
        let what = match parent.to_string() {
            root if root.is_empty() => "a column in the schema is not valid".to_owned(),
            parent => format!("a field of '{parent}' in the schema is not valid"),
        };
        Error::corrupt_log(what).with_source(error)
    })?;
    let metadata =
        raw.metadata.map(|metadata| FieldMetadata::parse(metadata.get())).transpose()?.unwrap_or_default();
    let data_type = parse_type(raw.r#type, &parent.child(&raw.name))?;
    Ok(StructField { data_type, nullable: raw.nullable.unwrap_or(true), metadata, name: raw.name })
}

fn write_struct(fields: &StructType, out: &mut String) {
    out.push_str(r#"{"type":"struct","fields":["#);
    for (index, field) in fields.fields().iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(r#"{"name":"#);
        // `Value` formats a string as JSON, which never fails.
        out.push_str(&serde_json::Value::from(field.name.as_str()).to_string());
        out.push_str(r#","type":"#);
        write_type(&field.data_type, out);
        out.push_str(&format!(r#","nullable":{},"metadata":{}}}"#, field.nullable, field.metadata.as_json()));
    }
    out.push_str("]}");
}

fn write_type(data_type: &DataType, out: &mut String) {
    match data_type {
        DataType::Primitive(primitive) => out.push_str(&format!("\"{primitive}\"")),
        DataType::Variant => out.push_str("\"variant\""),
        DataType::Struct(fields) => write_struct(fields, out),
        DataType::Array(array) => {
            out.push_str(r#"{"type":"array","elementType":"#);
            write_type(&array.element_type, out);
            out.push_str(&format!(r#","containsNull":{}}}"#, array.contains_null));
        }
        DataType::Map(map) => {
            out.push_str(r#"{"type":"map","keyType":"#);
            write_type(&map.key_type, out);
            out.push_str(r#","valueType":"#);
            write_type(&map.value_type, out);
            out.push_str(&format!(r#","valueContainsNull":{}}}"#, map.value_contains_null));
        }
    }
}
