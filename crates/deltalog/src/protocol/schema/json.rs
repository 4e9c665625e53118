//! The schema's JSON form, which is also Spark's.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::MAX_DEPTH;
use super::types::{ArrayType, DataType, MapType, PrimitiveType, StructField, StructType};
use crate::error::{Error, Result};

/// Any type that is not a bare name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Complex<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    fields: Option<Vec<FieldText<'a>>>,
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
struct FieldText<'a> {
    name: String,
    #[serde(rename = "type", borrow)]
    data_type: &'a RawValue,
    nullable: Option<bool>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

impl StructType {
    /// Reads a `schemaString`.
    ///
    /// # Errors
    /// `CorruptLog` if it is none, `Unsupported` for a type that is not known.
    pub fn from_json(text: &str) -> Result<Self> {
        match parse(text, 0)? {
            DataType::Struct(schema) => Ok(schema),
            _ => Err(Error::corrupt_log("the schema is not a struct")),
        }
    }

    /// Writes a `schemaString`.
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        write_struct(self, &mut text);
        text
    }
}

fn parse(text: &str, depth: usize) -> Result<DataType> {
    if depth > MAX_DEPTH {
        return Err(Error::unsupported(format!("the schema nests deeper than {MAX_DEPTH} levels")));
    }
    let bad = |error: serde_json::Error| Error::corrupt_log("the schema is not as the protocol says").with_source(error);
    if text.trim_start().starts_with('"') {
        let name: String = serde_json::from_str(text).map_err(bad)?;
        return PrimitiveType::parse(&name).map(DataType::Primitive);
    }
    let complex: Complex<'_> = serde_json::from_str(text).map_err(bad)?;
    let required = |part: Option<&RawValue>, name: &str| match part {
        Some(part) => parse(part.get(), depth + 1),
        None => Err(Error::corrupt_log(format!("the schema has a type '{}' without '{name}'", complex.kind))),
    };
    match complex.kind.as_str() {
        "struct" => {
            let fields = complex.fields.ok_or_else(|| Error::corrupt_log("the schema has a struct without 'fields'"))?;
            let fields = fields.into_iter().map(|field| parse_field(field, depth)).collect::<Result<Vec<_>>>()?;
            StructType::new(fields)
                .map(DataType::Struct)
                .map_err(|error| Error::corrupt_log("the schema names a column twice").with_source(error))
        }
        "array" => Ok(DataType::Array(Box::new(ArrayType {
            element_type: required(complex.element_type, "elementType")?,
            contains_null: complex.contains_null.unwrap_or(true),
        }))),
        "map" => Ok(DataType::Map(Box::new(MapType {
            key_type: required(complex.key_type, "keyType")?,
            value_type: required(complex.value_type, "valueType")?,
            value_contains_null: complex.value_contains_null.unwrap_or(true),
        }))),
        other => Err(Error::unsupported(format!("the type '{other}' is not known to deltalog"))),
    }
}

fn parse_field(field: FieldText<'_>, depth: usize) -> Result<StructField> {
    let data_type = parse(field.data_type.get(), depth + 1).map_err(|error| error.with_hint(format!("in the column '{}'", field.name)))?;
    let metadata = field.metadata.unwrap_or(RawValue::NULL).to_owned();
    Ok(StructField { name: field.name, data_type, nullable: field.nullable.unwrap_or(true), metadata })
}

fn write_struct(schema: &StructType, text: &mut String) {
    text.push_str(r#"{"type":"struct","fields":["#);
    for (index, field) in schema.fields().iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        let _ = write!(text, r#"{{"name":{},"type":"#, quoted(&field.name));
        write_type(&field.data_type, text);
        let _ = write!(text, r#","nullable":{},"metadata":{}}}"#, field.nullable, field.metadata_json());
    }
    text.push_str("]}");
}

fn write_type(data_type: &DataType, text: &mut String) {
    match data_type {
        DataType::Primitive(primitive) => {
            let _ = write!(text, "\"{primitive}\"");
        }
        DataType::Struct(schema) => write_struct(schema, text),
        DataType::Array(array) => {
            text.push_str(r#"{"type":"array","elementType":"#);
            write_type(&array.element_type, text);
            let _ = write!(text, r#","containsNull":{}}}"#, array.contains_null);
        }
        DataType::Map(map) => {
            text.push_str(r#"{"type":"map","keyType":"#);
            write_type(&map.key_type, text);
            text.push_str(r#","valueType":"#);
            write_type(&map.value_type, text);
            let _ = write!(text, r#","valueContainsNull":{}}}"#, map.value_contains_null);
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_type() -> impl Strategy<Value = DataType> {
        let primitive = prop_oneof![
            Just(PrimitiveType::String),
            Just(PrimitiveType::Long),
            Just(PrimitiveType::Timestamp),
            Just(PrimitiveType::TimestampNtz),
            Just(PrimitiveType::Binary),
            Just(PrimitiveType::Variant),
            Just(PrimitiveType::Void),
            (1..=38u8).prop_flat_map(|precision| (0..=precision).prop_map(move |scale| PrimitiveType::Decimal { precision, scale })),
        ]
        .prop_map(DataType::Primitive);
        primitive.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                (inner.clone(), any::<bool>())
                    .prop_map(|(element_type, contains_null)| DataType::Array(Box::new(ArrayType { element_type, contains_null }))),
                (inner.clone(), inner.clone(), any::<bool>()).prop_map(|(key_type, value_type, value_contains_null)| {
                    DataType::Map(Box::new(MapType { key_type, value_type, value_contains_null }))
                }),
                prop::collection::vec((inner, "\\PC{0,4}", any::<bool>()), 0..4).prop_map(|fields| {
                    let fields = fields.into_iter().enumerate().map(|(n, (data_type, name, nullable))| StructField {
                        name: format!("{name}{n}"),
                        data_type,
                        nullable,
                        metadata: RawValue::from_string(format!(r#"{{"b":[{n}, 1.50],  "a":"x"}}"#)).unwrap(),
                    });
                    DataType::Struct(StructType::new(fields.collect()).unwrap_or_else(|_| StructType::empty()))
                }),
            ]
        })
    }

    proptest! {
        /// Protocol: "Schema Serialization Format". Metadata stays as it is, spaces and key order included.
        #[test]
        fn a_schema_is_read_as_it_was_written(data_type in any_type()) {
            let schema = StructType::new(vec![StructField::new("a", data_type, true)]).unwrap();
            let text = schema.to_json();
            let again = StructType::from_json(&text).unwrap();
            prop_assert_eq!(&again, &schema);
            prop_assert_eq!(again.to_json(), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = StructType::from_json(&text);
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let mut text = "\"long\"".to_owned();
        for _ in 0..20_000 {
            text = format!(r#"{{"type":"array","elementType":{text},"containsNull":true}}"#);
            if text.len() > 100_000 {
                break;
            }
        }
        assert!(StructType::from_json(&format!(r#"{{"type":"struct","fields":[{{"name":"a","type":{text}}}]}}"#)).is_err());
    }

    #[test]
    fn unknown_types_are_named() {
        let error = StructType::from_json(r#"{"type":"struct","fields":[{"name":"g","type":"geometry","nullable":true,"metadata":{}}]}"#)
            .unwrap_err();
        assert!(error.to_string().contains("geometry") && error.to_string().contains("'g'"), "{error}");
        assert!(StructType::from_json(r#"{"type":"struct","fields":[{"name":"g","type":"decimal(39,2)"}]}"#).is_err());
        assert!(StructType::from_json(r#"{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"A","type":"long"}]}"#).is_err());
    }
}
