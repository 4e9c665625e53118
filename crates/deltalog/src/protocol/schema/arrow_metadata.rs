//! Converts the metadata of fields to and from Arrow's form, in which every value is a string. (PROTOCOL, "Column
//! Metadata".)
//!
//! | in Delta | in Arrow |
//! | --- | --- |
//! | a string | the same string |
//! | any other value | the value as JSON |
//!
//! - When metadata is converted from Arrow, the values of the keys in [`NOT_TEXT`] are parsed as JSON, and the values
//!   of all other keys are strings, as in `deltalake`. When metadata is converted to Arrow, the key of each value that
//!   would not be read back in this way is listed under [`JSON_KEYS`], and the value is written as JSON. So converting
//!   a schema to Arrow and back does not change it.
//! - Unknown keys are kept, because a schema may have any keys. `ARROW:…` and `PARQUET:…` belong to Arrow, and are not
//!   converted to Delta metadata.

use std::collections::{BTreeMap, HashMap};

use arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields, Schema};
use serde_json::{Map, Value};

use super::column_rules::{
    IDENTITY, IDENTITY_EXPLICIT, IDENTITY_MARK, IDENTITY_START, IDENTITY_STEP, is_of_files,
};
use super::{DataType, FieldMetadata, Place, StructType, TYPE_CHANGES};
use crate::error::{Error, Result};

/// The metadata key whose value lists further keys with JSON values: keys that are not in [`NOT_TEXT`], and keys with
/// values of another kind than that constant states.
const JSON_KEYS: &str = "deltalog.jsonKeys";

/// The kind of a metadata value that is not a string.
#[derive(Clone, Copy)]
enum Kind {
    Whole,
    Truth,
    Any,
}

/// The metadata keys of the protocol and of other writers whose values are not strings.
const NOT_TEXT: [(&str, Kind); 9] = [
    (IDENTITY_START, Kind::Whole),
    (IDENTITY_STEP, Kind::Whole),
    (IDENTITY_MARK, Kind::Whole),
    (IDENTITY_EXPLICIT, Kind::Truth),
    ("delta.columnMapping.id", Kind::Whole),
    ("delta.columnMapping.nested.ids", Kind::Any),
    ("parquet.field.id", Kind::Whole),
    (TYPE_CHANGES, Kind::Any),
    ("__COLLATIONS", Kind::Any),
];

fn kind_of(key: &str) -> Option<Kind> {
    NOT_TEXT.iter().find(|(known, _)| *known == key).map(|(_, kind)| *kind)
}

impl Kind {
    fn has(self, value: &Value) -> bool {
        match self {
            Self::Whole => value.as_i64().is_some(),
            Self::Truth => value.is_boolean(),
            Self::Any => !value.is_string(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Whole => "a whole number",
            Self::Truth => "true or false",
            Self::Any => "JSON",
        }
    }
}

/// Returns the metadata in Arrow's form.
pub(super) fn to_arrow(metadata: &FieldMetadata) -> HashMap<String, String> {
    let entries = metadata.entries();
    let is_as_expected = |key: &str, value: &Value| match kind_of(key) {
        Some(kind) => kind.has(value),
        None => value.is_string(),
    };
    let others = entries.iter().filter(|(key, value)| !is_as_expected(key, value));
    let json_keys: Vec<Value> = others.map(|(key, _)| Value::from(key.as_str())).collect();
    let is_json = |key: &str| json_keys.iter().any(|name| name.as_str() == Some(key));
    let names =
        (!json_keys.is_empty()).then(|| (JSON_KEYS.to_owned(), Value::Array(json_keys.clone()).to_string()));
    let text = |(key, value): (String, Value)| match value {
        Value::String(text) if !is_json(&key) => (key, text),
        value => (key, value.to_string()),
    };
    entries.into_iter().map(text).chain(names).collect()
}

/// Returns the metadata of the column at `place`, converted from Arrow's form.
///
/// # Errors
/// `InvalidArgument`, naming the column and the key, for a value of the wrong form.
pub(super) fn from_arrow(arrow: &HashMap<String, String>, place: &Place<'_>) -> Result<FieldMetadata> {
    let is_ours = |key: &str| !key.starts_with("ARROW:") && !key.starts_with("PARQUET:") && key != JSON_KEYS;
    let sorted: BTreeMap<&String, &String> = arrow.iter().filter(|(key, _)| is_ours(key)).collect();
    if sorted.is_empty() {
        return Ok(FieldMetadata::default());
    }
    let malformed = |key: &str, text: &str, what: &str| {
        Error::invalid_argument(format!("the metadata '{key}' of the column '{place}' is not {what}: {text}"))
    };
    let json_keys: Vec<String> = match arrow.get(JSON_KEYS) {
        Some(text) => {
            serde_json::from_str(text).map_err(|_| malformed(JSON_KEYS, text, "a JSON array of keys"))?
        }
        None => Vec::new(),
    };
    let value = |(key, text): (&String, &String)| {
        let parsed = || serde_json::from_str::<Value>(text).ok();
        let value = match kind_of(key).filter(|_| !json_keys.contains(key)) {
            Some(kind) => parsed().filter(|value| kind.has(value)).ok_or(kind.name()),
            None if json_keys.contains(key) => parsed().ok_or("JSON"),
            None => Ok(Value::from(text.as_str())),
        };
        Ok((key.clone(), value.map_err(|what| malformed(key, text, what))?))
    };
    let entries = sorted.into_iter().map(value).collect::<Result<Map<String, Value>>>()?;
    FieldMetadata::parse(&Value::Object(entries).to_string())
}

impl StructType {
    /// Returns the schema `rows` with the metadata of this table's fields: comments, and rules for their values. `rows`
    /// may lack some columns of the table, and may have other columns. Metadata about files, or about values that only
    /// this table assigns, is left out, because it does not apply to a table that is created from the rows. Rules are
    /// kept even if they refer to columns that `rows` lacks.
    #[must_use]
    pub(crate) fn describe_rows(&self, rows: &Schema) -> Schema {
        Schema::new_with_metadata(described(self, rows.fields()), rows.metadata().clone())
    }
}

fn described(table: &StructType, rows: &Fields) -> Fields {
    let known = |name: &str| table.fields().get(table.exact_index_of(name)?);
    let field = |field: &FieldRef| match known(field.name()) {
        Some(column) => {
            let is_kept = |key: &String| !is_of_files(key) && !key.starts_with(IDENTITY);
            let mut metadata = field.metadata().clone();
            metadata.extend(to_arrow(&column.metadata.retained(is_kept)));
            let data_type = described_type(&column.data_type, field.data_type());
            field.as_ref().clone().with_data_type(data_type).with_metadata(metadata)
        }
        None => field.as_ref().clone(),
    };
    rows.iter().map(field).collect()
}

fn described_type(table: &DataType, rows: &ArrowType) -> ArrowType {
    let part = |table: &DataType, field: &Field| {
        field.clone().with_data_type(described_type(table, field.data_type())).into()
    };
    match (table, rows) {
        (DataType::Struct(table), ArrowType::Struct(fields)) => ArrowType::Struct(described(table, fields)),
        (DataType::Array(array), ArrowType::List(element)) => {
            ArrowType::List(part(&array.element_type, element))
        }
        (DataType::Map(map), ArrowType::Map(entries, sorted)) => match entries.data_type() {
            ArrowType::Struct(parts) if parts.len() == 2 => {
                let types = [&map.key_type, &map.value_type];
                let parts: Fields =
                    types.iter().zip(parts).map(|(table, field)| part(table, field)).collect();
                let entries = entries.as_ref().clone().with_data_type(ArrowType::Struct(parts));
                ArrowType::Map(entries.into(), *sorted)
            }
            _ => rows.clone(),
        },
        _ => rows.clone(),
    }
}
