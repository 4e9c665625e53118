//! A table's columns by their logical names, and by the names and ids used in its files. (PROTOCOL, "Column
//! Mapping".)
//!
//! ```text
//! logical             physical (partition values, statistics)       in a data file
//! price.net  ──────>  col-5f42….col-a7f4…                  ──────>  by physical name, or by field id 5
//! ```
//!
//! - The two schemas have the same shape: the same fields, in the same order, with the same types.
//! - If the mode requires it, every field of every struct has a physical name and an id of its own. A schema without
//!   them is corrupt.
//! - A physical field has an id only in `id` mode. Code that reads files therefore needs to know nothing else: it finds
//!   a field by its id if it has one, otherwise by its name.
//! - The elements of arrays and the keys and values of maps have ids only when files are written, and only if the table
//!   requires it.
//! - If columns are not mapped, both schemas are the same.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Fields, Schema, SchemaRef};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::part_ids::{PARQUET_PART_IDS, part_id, part_paths};
use super::{ArrayType, DataType, FieldMetadata, MapType, Place, StructField, StructType};
use crate::error::{Error, Result};
use crate::protocol::action::{Metadata, Protocol};
use crate::protocol::features::TableFeature;

const PROPERTY: &str = "delta.columnMapping.mode";
pub(super) const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
pub(super) const ID: &str = "delta.columnMapping.id";

/// The metadata key for a column's Parquet field id in the schemas that Spark uses.
const SPARK_FIELD_ID: &str = "parquet.field.id";

/// How columns are found in data files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnMappingMode {
    /// Columns are found by their names in the schema.
    #[default]
    None,
    /// Columns are found by their physical names.
    Name,
    /// Columns are found by their field ids.
    Id,
}

impl ColumnMappingMode {
    /// Returns the mode of a table: the value of the table property, if the protocol requires readers to respect it.
    ///
    /// # Errors
    /// `Unsupported` for a mode that the protocol does not define.
    pub fn of(protocol: &Protocol, metadata: &Metadata) -> Result<Self> {
        match metadata.property(PROPERTY) {
            Some(mode) if protocol.reader_features().contains(&TableFeature::ColumnMapping) => {
                Self::parse(mode)
            }
            _ => Ok(Self::None),
        }
    }

    /// Returns the name of the mode, as in the table property.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Name => "name",
            Self::Id => "id",
        }
    }

    fn parse(mode: &str) -> Result<Self> {
        let known = [Self::None, Self::Name, Self::Id]
            .into_iter()
            .find(|known| mode.trim().eq_ignore_ascii_case(known.name()));
        known.ok_or_else(|| {
            Error::unsupported(format!("the column mapping mode '{mode}' is unknown"))
                .with_hint("use none, name or id")
        })
    }
}

/// A table's schema, with logical and with physical names.
#[derive(Debug, Clone)]
pub struct MappedSchema {
    mode: ColumnMappingMode,
    logical: StructType,
    physical: StructType,
    arrow: SchemaRef,
    physical_arrow: SchemaRef,
}

impl MappedSchema {
    /// Creates the mapped schema from `schema`. The physical names and the ids are taken from the metadata of its
    /// fields.
    ///
    /// # Errors
    /// `CorruptLog`, naming the column, for a field without a physical name or, in `id` mode, without an id, and for a
    /// name or id that two fields share. Also the errors of [`StructType::to_arrow`].
    pub fn new(schema: StructType, mode: ColumnMappingMode) -> Result<Self> {
        Self::mapped(schema, mode, false)
    }

    /// Creates the mapped schema for files in which the parts of arrays and maps have ids too. (PROTOCOL, "Writer
    /// Requirements for IcebergCompatV2".)
    ///
    /// # Errors
    /// Returns the same errors as [`MappedSchema::new`], and `CorruptLog` for a part without an id, and for an id that
    /// a part shares with another part or a field.
    pub(crate) fn with_part_ids(schema: StructType) -> Result<Self> {
        Self::mapped(schema, ColumnMappingMode::Id, true)
    }

    fn mapped(schema: StructType, mode: ColumnMappingMode, has_part_ids: bool) -> Result<Self> {
        let arrow = Arc::new(schema.to_arrow()?);
        if mode == ColumnMappingMode::None {
            let (physical, physical_arrow) = (schema.clone(), Arc::clone(&arrow));
            return Ok(Self { mode, logical: schema, physical, arrow, physical_arrow });
        }
        let mut mapper = Mapper { mode, has_part_ids, ids: HashMap::new() };
        let physical = mapper.fields(&schema, &Place::ROOT)?;
        let fields = identified_fields(physical.to_arrow()?.fields(), &physical);
        Ok(Self { mode, logical: schema, physical, arrow, physical_arrow: Arc::new(Schema::new(fields)) })
    }

    /// Returns how columns are found in data files.
    pub fn mode(&self) -> ColumnMappingMode {
        self.mode
    }

    /// Returns the schema that users see.
    pub fn logical(&self) -> &StructType {
        &self.logical
    }

    /// Returns the schema with the names used in files, partition values and statistics. In `id` mode, its fields have
    /// only the metadata `parquet.field.id`, which Spark reads.
    pub fn physical(&self) -> &StructType {
        &self.physical
    }

    /// Returns the Arrow schema of [`MappedSchema::logical`].
    pub fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// Returns the Arrow schema of [`MappedSchema::physical`]. In `id` mode, the ids are stored under the
    /// metadata key that the Parquet reader uses.
    pub fn physical_arrow(&self) -> &SchemaRef {
        &self.physical_arrow
    }

    /// Returns the physical name of the top-level column `name`, which must be spelled exactly as in the schema.
    pub fn physical_name(&self, name: &str) -> Option<&str> {
        let index = self.logical.exact_index_of(name)?;
        self.physical.fields().get(index).map(|field| field.name.as_str())
    }

    /// Returns the physical names of the column at `path`. The path leads through structs only. Its names must be
    /// spelled exactly as in the schema.
    pub fn physical_path(&self, path: &[String]) -> Option<Vec<String>> {
        translated(&self.logical, &self.physical, path)
    }

    /// Translates a path of physical names to logical names; the inverse of [`MappedSchema::physical_path`].
    pub fn logical_path(&self, path: &[String]) -> Option<Vec<String>> {
        translated(&self.physical, &self.logical, path)
    }
}

/// Translates the path of a column from the names in `from` to the names in `to`, a schema of the same shape.
fn translated(from: &StructType, to: &StructType, path: &[String]) -> Option<Vec<String>> {
    let (mut from, mut to) = (Some(from), Some(to));
    let mut names = Vec::with_capacity(path.len());
    for name in path {
        let index = from?.exact_index_of(name)?;
        let (field, counterpart) = (from?.fields().get(index)?, to?.fields().get(index)?);
        names.push(counterpart.name.clone());
        (from, to) = (fields_of(field), fields_of(counterpart));
    }
    Some(names)
}

fn fields_of(field: &StructField) -> Option<&StructType> {
    match &field.data_type {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    }
}

/// Builds fields with physical names.
struct Mapper {
    mode: ColumnMappingMode,
    /// Whether the parts of arrays and maps must have ids.
    has_part_ids: bool,
    /// The ids found so far, each with the column that has it.
    ids: HashMap<i32, String>,
}

impl Mapper {
    fn fields(&mut self, fields: &StructType, place: &Place<'_>) -> Result<StructType> {
        let fields = fields
            .fields()
            .iter()
            .map(|field| self.field(field, &place.child(&field.name)))
            .collect::<Result<Vec<_>>>()?;
        let mut seen = HashSet::with_capacity(fields.len());
        match fields.iter().find(|field| !seen.insert(field.name.as_str())) {
            Some(twice) => {
                Err(Error::corrupt_log(format!("two columns have the physical name '{}'", twice.name)))
            }
            None => Ok(StructType::of_distinct(fields)),
        }
    }

    fn field(&mut self, field: &StructField, place: &Place<'_>) -> Result<StructField> {
        let damaged = |what: &str| {
            Error::corrupt_log(format!("the column '{place}' {what}, but the table maps its columns"))
                .with_hint(format!(
                    "restore '{PHYSICAL_NAME}' and '{ID}' in the metadata of every column, as the table \
                     property '{PROPERTY}' requires"
                ))
        };
        let mut entries = field.metadata.entries();
        let name = match entries.remove(PHYSICAL_NAME) {
            Some(Value::String(name)) if !name.is_empty() => name,
            _ => return Err(damaged("has no physical name")),
        };
        let metadata = if self.mode == ColumnMappingMode::Id {
            let id = entries.get(ID).and_then(Value::as_i64).and_then(|id| i32::try_from(id).ok());
            let id = id.ok_or_else(|| damaged("has no id"))?;
            self.take_id(id, place.to_string()).map_err(|what| damaged(&what))?;
            let metadata = FieldMetadata::parse(&json!({ SPARK_FIELD_ID: id }).to_string())?;
            let part_ids = self.part_ids(field, &name, place)?;
            match part_ids.is_empty() {
                true => metadata,
                false => metadata.with(PARQUET_PART_IDS, Some(Value::Object(part_ids))),
            }
        } else {
            FieldMetadata::default()
        };
        Ok(StructField {
            name,
            data_type: self.data_type(&field.data_type, place)?,
            nullable: field.nullable,
            metadata,
        })
    }

    /// Returns the ids of the parts of `field`, by their paths, if files have such ids.
    fn part_ids(
        &mut self,
        field: &StructField,
        physical_name: &str,
        place: &Place<'_>,
    ) -> Result<Map<String, Value>> {
        let mut ids = Map::new();
        if !self.has_part_ids {
            return Ok(ids);
        }
        for path in part_paths(&field.data_type) {
            let damaged = |what: &str| {
                Error::corrupt_log(format!(
                    "'{place}{path}' {what}, but the table's Iceberg compatibility requires a distinct id"
                ))
                .with_hint(
                    "alter the table, for example set a property: any change to it adds the missing ids",
                )
            };
            let id = part_id(field, &path)?.and_then(|id| i32::try_from(id).ok());
            let id = id.ok_or_else(|| damaged("has no id"))?;
            self.take_id(id, format!("{place}{path}")).map_err(|what| damaged(&what))?;
            ids.insert(format!("{physical_name}{path}"), id.into());
        }
        Ok(ids)
    }

    /// Records that the column or part at `place` has the id `id`. Returns an error if another one already has it.
    fn take_id(&mut self, id: i32, place: String) -> Result<(), String> {
        match self.ids.insert(id, place) {
            Some(other) => Err(format!("has the same id ({id}) as '{other}'")),
            None => Ok(()),
        }
    }

    fn data_type(&mut self, data_type: &DataType, place: &Place<'_>) -> Result<DataType> {
        Ok(match data_type {
            DataType::Primitive(_) | DataType::Variant => data_type.clone(),
            DataType::Struct(fields) => DataType::Struct(self.fields(fields, place)?),
            DataType::Array(array) => DataType::Array(Box::new(ArrayType {
                element_type: self.data_type(&array.element_type, &place.child("element"))?,
                contains_null: array.contains_null,
            })),
            DataType::Map(map) => DataType::Map(Box::new(MapType {
                key_type: self.data_type(&map.key_type, &place.child("key"))?,
                value_type: self.data_type(&map.value_type, &place.child("value"))?,
                value_contains_null: map.value_contains_null,
            })),
        })
    }
}

/// Adds the ids of the fields of `physical` to `arrow`, the same schema in Arrow's form.
fn identified_fields(arrow: &Fields, physical: &StructType) -> Fields {
    let field = |(arrow, physical): (&Arc<Field>, &StructField)| {
        let part_ids = match physical.metadata.get(PARQUET_PART_IDS) {
            Some(Value::Object(ids)) => ids,
            _ => Map::new(),
        };
        let data_type =
            identified_type(arrow.data_type(), &physical.data_type, &PartIds(&part_ids, &physical.name));
        with_id(arrow, data_type, physical.metadata.get(SPARK_FIELD_ID))
    };
    arrow.iter().zip(physical.fields()).map(field).collect()
}

/// The ids of the parts of a field, and the path to a type inside the field.
struct PartIds<'a>(&'a Map<String, Value>, &'a str);

fn identified_type(arrow: &ArrowType, physical: &DataType, ids: &PartIds<'_>) -> ArrowType {
    let part = |field: &Arc<Field>, name: &str, of: &DataType| {
        let path = format!("{}.{name}", ids.1);
        let data_type = identified_type(field.data_type(), of, &PartIds(ids.0, &path));
        with_id(field, data_type, ids.0.get(&path).cloned())
    };
    match (arrow, physical) {
        (ArrowType::Struct(fields), DataType::Struct(physical)) => {
            ArrowType::Struct(identified_fields(fields, physical))
        }
        (ArrowType::List(element), DataType::Array(array)) => {
            ArrowType::List(part(element, "element", &array.element_type))
        }
        (ArrowType::Map(entries, sorted), DataType::Map(map)) => match entries.data_type() {
            ArrowType::Struct(pair) => {
                let parts = [("key", &map.key_type), ("value", &map.value_type)];
                let pair: Fields =
                    pair.iter().zip(parts).map(|(field, (name, of))| part(field, name, of)).collect();
                let entries = entries.as_ref().clone().with_data_type(ArrowType::Struct(pair));
                ArrowType::Map(Arc::new(entries), *sorted)
            }
            _ => arrow.clone(),
        },
        _ => arrow.clone(),
    }
}

/// Returns `field` with this type and, if there is one, this id.
fn with_id(field: &Arc<Field>, data_type: ArrowType, id: Option<Value>) -> Arc<Field> {
    let field = field.as_ref().clone().with_data_type(data_type);
    Arc::new(match id {
        Some(id) => {
            field.with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]))
        }
        None => field,
    })
}
