//! Ids for the parts of fields: the elements of arrays, and the keys and values of maps. (PROTOCOL, "Writer
//! Requirements for IcebergCompatV2".)
//!
//! ```text
//! {"name": "col2", "type": map<int, array<int>>, "metadata": {
//!    "delta.columnMapping.nested.ids": {"col-b7….key": 102, "col-b7….value": 103, "col-b7….value.element": 104}}}
//! ```
//!
//! - The id of a part is stored in the metadata of the nearest field above it. Its key is a path that begins with the
//!   name of that field.
//! - An id is assigned once and never changes. It differs from the ids of all columns and all other parts.
//! - Ids are written under the same metadata key and with the same physical names as in the JVM implementation, as
//!   newer editions of the protocol's text specify. Ids under the key of older editions, or with logical names, can be
//!   read as well.

use serde_json::{Map, Value};

use super::mapping::{ID, PHYSICAL_NAME};
use super::{ArrayType, DataType, FieldMetadata, MapType, StructField, StructType};
use crate::error::{Error, Result};

/// The metadata key of a field for the ids of its parts.
pub(crate) const PART_IDS: &str = "delta.columnMapping.nested.ids";
/// Another name of [`PART_IDS`], used in older editions of the protocol, and in the schemas that tell Spark's tasks how
/// to write files.
pub(crate) const PARQUET_PART_IDS: &str = "parquet.field.nested.ids";

/// Returns `schema` with an id for each part. Parts keep the ids that they have. New ids follow `last_id`, which is set
/// to the last id that was assigned.
///
/// # Errors
/// `CorruptLog` for ids that are not of the protocol's form.
pub(crate) fn with_part_ids(schema: &StructType, last_id: &mut i64) -> Result<StructType> {
    let fields = schema.fields().iter().map(|field| identified(field, last_id)).collect::<Result<_>>()?;
    Ok(StructType::of_distinct(fields))
}

fn identified(field: &StructField, last_id: &mut i64) -> Result<StructField> {
    let mut ids = Map::new();
    for path in part_paths(&field.data_type) {
        let id = match part_id(field, &path)? {
            Some(id) => id,
            None => {
                *last_id += 1;
                *last_id
            }
        };
        ids.insert(format!("{}{path}", physical_name(field)), id.into());
    }
    let says_so = ids.is_empty() || field.metadata.get(PART_IDS) == Some(Value::Object(ids.clone()));
    // Metadata that already has all ids stays unchanged, byte for byte.
    let metadata = match says_so {
        true => field.metadata.clone(),
        false => without_part_ids(&field.metadata).with(PART_IDS, Some(Value::Object(ids))),
    };
    Ok(StructField { data_type: identified_type(&field.data_type, last_id)?, metadata, ..field.clone() })
}

/// Assigns ids to the parts of all fields inside a type.
fn identified_type(data_type: &DataType, last_id: &mut i64) -> Result<DataType> {
    Ok(match data_type {
        DataType::Primitive(_) | DataType::Variant => data_type.clone(),
        DataType::Struct(fields) => DataType::Struct(with_part_ids(fields, last_id)?),
        DataType::Array(array) => {
            ArrayType::new(identified_type(&array.element_type, last_id)?, array.contains_null).into()
        }
        DataType::Map(map) => {
            let key_type = identified_type(&map.key_type, last_id)?;
            MapType::new(key_type, identified_type(&map.value_type, last_id)?, map.value_contains_null).into()
        }
    })
}

/// Returns the id of the part of `field` at `path`, which begins with a dot.
///
/// # Errors
/// `CorruptLog` for an id that is not a 32-bit integer.
pub(super) fn part_id(field: &StructField, path: &str) -> Result<Option<i64>> {
    let names = [physical_name(field), field.name.clone()];
    for key in [PART_IDS, PARQUET_PART_IDS] {
        let Some(ids) = field.metadata.get(key) else { continue };
        let Some(id) = names.iter().find_map(|name| ids.get(format!("{name}{path}"))) else { continue };
        return id.as_i64().filter(|id| i32::try_from(*id).is_ok()).map(Some).ok_or_else(|| {
            Error::corrupt_log(format!(
                "the column '{}' has the id {id} for '{path}' in '{key}', which is not a 32-bit integer",
                field.name
            ))
        });
    }
    Ok(None)
}

/// Returns the paths of all parts of a type, in order, down to the next field. Each path begins with a dot.
pub(super) fn part_paths(data_type: &DataType) -> Vec<String> {
    let below = |name: &str, part: &DataType| {
        let inner = part_paths(part).into_iter().map(|path| format!(".{name}{path}"));
        std::iter::once(format!(".{name}")).chain(inner).collect::<Vec<_>>()
    };
    match data_type {
        DataType::Primitive(_) | DataType::Variant | DataType::Struct(_) => Vec::new(),
        DataType::Array(array) => below("element", &array.element_type),
        DataType::Map(map) => [below("key", &map.key_type), below("value", &map.value_type)].concat(),
    }
}

/// Returns the metadata of a field without the ids of its parts.
pub(super) fn without_part_ids(metadata: &FieldMetadata) -> FieldMetadata {
    metadata.with(PART_IDS, None).with(PARQUET_PART_IDS, None)
}

/// Returns the metadata of a field, with the ids of its parts stored under its physical name. Some writers store them
/// under the logical name, which can change.
pub(crate) fn with_part_ids_by_physical_name(field: &StructField) -> FieldMetadata {
    let physical = physical_name(field);
    [PART_IDS, PARQUET_PART_IDS].into_iter().fold(field.metadata.clone(), |metadata, key| {
        let Some(Value::Object(ids)) = metadata.get(key) else { return metadata };
        let renamed = |(path, id): (String, Value)| match path.strip_prefix(&field.name) {
            Some(part) if part.starts_with('.') && !ids.contains_key(&format!("{physical}{part}")) => {
                (format!("{physical}{part}"), id)
            }
            _ => (path, id),
        };
        let renamed = ids.clone().into_iter().map(renamed).collect();
        metadata.with(key, Some(Value::Object(renamed)))
    })
}

/// Returns the highest id of any column, or of any part of an array or map; 0 if there are no ids.
pub(crate) fn greatest_id(schema: &StructType) -> i64 {
    let mut greatest = 0;
    schema.any_field(&mut |field| {
        let of_parts =
            [PART_IDS, PARQUET_PART_IDS].into_iter().filter_map(|key| match field.metadata.get(key) {
                Some(Value::Object(ids)) => ids.values().filter_map(Value::as_i64).max(),
                _ => None,
            });
        let of_column = field.metadata.get(ID).and_then(|id| id.as_i64());
        greatest = of_parts.chain(of_column).fold(greatest, i64::max);
        false
    });
    greatest
}

fn physical_name(field: &StructField) -> String {
    match field.metadata.get(PHYSICAL_NAME) {
        Some(Value::String(name)) => name,
        _ => field.name.clone(),
    }
}
