//! The schema of a table: its types, and how they are written in JSON and in Arrow. (PROTOCOL, "Schema Serialization
//! Format".)
//!
//! - In every struct, column names are unique even if case is ignored, because Spark ignores case when it looks up
//!   columns.
//! - The metadata of a field is kept byte for byte, because other clients store information in it that this crate does
//!   not know.
//! - At most [`MAX_DEPTH`] levels can be parsed and converted. Deeper nesting is an error, not a stack overflow.
//! - A type that the protocol does not define is an error, which names the column and the type.

mod arrow;
mod arrow_metadata;
pub(crate) mod column_rules;
mod json;
mod mapping;
mod metadata;
mod name_index;
mod new_mapping;
mod part_ids;
mod primitive;
mod type_name;
mod widening;

#[cfg(test)]
mod arrow_metadata_tests;
#[cfg(test)]
mod mapping_tests;
#[cfg(test)]
mod part_ids_tests;
#[cfg(test)]
mod tests;

pub(crate) use arrow::is_variant;
pub use mapping::{ColumnMappingMode, MappedSchema};
pub use metadata::FieldMetadata;
pub use new_mapping::NewMapping;
pub(crate) use part_ids::{PART_IDS, greatest_id, with_part_ids, with_part_ids_by_physical_name};
pub use primitive::PrimitiveType;
pub(crate) use type_name::type_name;
pub use widening::TypeChange;
pub(crate) use widening::{TYPE_CHANGES, is_iceberg_widening, is_widening};

use crate::error::{Error, Result};

use name_index::NameIndex;

/// The maximum nesting depth of structs, arrays and maps.
pub const MAX_DEPTH: usize = crate::limits::SCHEMA_LEVELS;

/// The type of a column, an element, a key or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataType {
    /// A type without parts.
    Primitive(PrimitiveType),
    /// A struct of named fields.
    Struct(StructType),
    /// A list of values of one type.
    Array(Box<ArrayType>),
    /// A map from keys to values.
    Map(Box<MapType>),
    /// A value that contains its own type. It needs the table feature `variantType`.
    Variant,
}

impl From<PrimitiveType> for DataType {
    fn from(primitive: PrimitiveType) -> Self {
        Self::Primitive(primitive)
    }
}

impl From<ArrayType> for DataType {
    fn from(array: ArrayType) -> Self {
        Self::Array(Box::new(array))
    }
}

impl From<MapType> for DataType {
    fn from(map: MapType) -> Self {
        Self::Map(Box::new(map))
    }
}

impl From<StructType> for DataType {
    fn from(fields: StructType) -> Self {
        Self::Struct(fields)
    }
}

/// A list of values of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrayType {
    /// Type of the elements.
    pub element_type: DataType,
    /// Whether elements may be null.
    pub contains_null: bool,
}

impl ArrayType {
    /// Creates the type of lists of `element_type`.
    pub fn new(element_type: impl Into<DataType>, contains_null: bool) -> Self {
        Self { element_type: element_type.into(), contains_null }
    }
}

/// A map from keys to values; keys are never null.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapType {
    /// Type of the keys.
    pub key_type: DataType,
    /// Type of the values.
    pub value_type: DataType,
    /// Whether values may be null.
    pub value_contains_null: bool,
}

impl MapType {
    /// Creates the type of maps from `key_type` to `value_type`.
    pub fn new(
        key_type: impl Into<DataType>,
        value_type: impl Into<DataType>,
        value_contains_null: bool,
    ) -> Self {
        Self { key_type: key_type.into(), value_type: value_type.into(), value_contains_null }
    }
}

/// A column or a nested field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StructField {
    /// Logical name.
    pub name: String,
    /// Type of the values.
    pub data_type: DataType,
    /// Whether values may be null.
    pub nullable: bool,
    /// Other metadata of the column.
    pub metadata: FieldMetadata,
}

impl StructField {
    /// Creates a field without metadata.
    pub fn new(name: impl Into<String>, data_type: impl Into<DataType>, nullable: bool) -> Self {
        Self { name: name.into(), data_type: data_type.into(), nullable, metadata: FieldMetadata::default() }
    }
}

/// A list of named fields: the schema of a table, or the type of a column with nested fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StructType {
    fields: Vec<StructField>,
    names: NameIndex,
}

impl StructType {
    /// Creates a struct of `fields`.
    ///
    /// # Errors
    /// [`SchemaMismatch`](crate::error::ErrorKind::SchemaMismatch) if two names are equal ignoring case.
    pub fn try_new(fields: Vec<StructField>) -> Result<Self> {
        let mut seen = std::collections::HashSet::with_capacity(fields.len());
        match fields.iter().find(|field| !seen.insert(field.name.to_lowercase())) {
            Some(twice) => Err(Error::schema_mismatch(format!(
                "column '{}' appears twice (names are compared ignoring case)",
                twice.name
            ))),
            None => Ok(Self::of_distinct(fields)),
        }
    }

    /// Creates a struct of fields whose names are known to be unique.
    fn of_distinct(fields: Vec<StructField>) -> Self {
        Self { fields, names: NameIndex::default() }
    }

    /// Returns the fields in order.
    pub fn fields(&self) -> &[StructField] {
        &self.fields
    }

    /// Returns the position of the field `name`, ignoring case.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.names.find(&self.fields, name)
    }

    /// Returns the position of the field with exactly this name.
    pub(crate) fn exact_index_of(&self, name: &str) -> Option<usize> {
        self.names.find_exact(&self.fields, name)
    }

    /// Returns the field `name`, ignoring case.
    pub fn field(&self, name: &str) -> Option<&StructField> {
        self.fields.get(self.index_of(name)?)
    }

    /// Returns whether `matches` holds for any field at any depth.
    pub fn any_field(&self, matches: &mut dyn FnMut(&StructField) -> bool) -> bool {
        self.fields.iter().any(|field| matches(field) || field.data_type.any_field(matches))
    }

    /// Returns the struct with the metadata of all its fields, at every depth, replaced with the result of `change`.
    #[must_use]
    pub(crate) fn with_metadata(&self, change: &dyn Fn(&FieldMetadata) -> FieldMetadata) -> Self {
        let field = |field: &StructField| StructField {
            name: field.name.clone(),
            data_type: field.data_type.with_metadata(change),
            nullable: field.nullable,
            metadata: change(&field.metadata),
        };
        Self::of_distinct(self.fields.iter().map(field).collect())
    }
}

impl DataType {
    /// Returns whether `matches` holds for any field in this type, at any depth.
    pub fn any_field(&self, matches: &mut dyn FnMut(&StructField) -> bool) -> bool {
        match self {
            Self::Primitive(_) | Self::Variant => false,
            Self::Struct(fields) => fields.any_field(matches),
            Self::Array(array) => array.element_type.any_field(matches),
            Self::Map(map) => map.key_type.any_field(matches) || map.value_type.any_field(matches),
        }
    }

    /// Returns the type with the metadata of all fields inside it, at every depth, replaced with the result of
    /// `change`.
    fn with_metadata(&self, change: &dyn Fn(&FieldMetadata) -> FieldMetadata) -> Self {
        match self {
            Self::Primitive(_) | Self::Variant => self.clone(),
            Self::Struct(fields) => fields.with_metadata(change).into(),
            Self::Array(array) => {
                ArrayType::new(array.element_type.with_metadata(change), array.contains_null).into()
            }
            Self::Map(map) => {
                let value_type = map.value_type.with_metadata(change);
                MapType::new(map.key_type.with_metadata(change), value_type, map.value_contains_null).into()
            }
        }
    }

    /// Returns the primitive type, if this is one.
    pub fn as_primitive(&self) -> Option<&PrimitiveType> {
        match self {
            Self::Primitive(primitive) => Some(primitive),
            _ => None,
        }
    }
}

/// A position in a schema. It is used for messages and to limit the nesting depth.
#[derive(Clone, Copy)]
struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    name: &'a str,
    depth: usize,
}

impl<'a> Place<'a> {
    const ROOT: Place<'static> = Place { parent: None, name: "", depth: 0 };

    fn child(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), name, depth: self.depth + 1 }
    }

    /// Returns the position of the same column, one level deeper.
    fn deeper(&self) -> Self {
        Self { depth: self.depth + 1, ..*self }
    }

    /// Returns the type at the same position in `table`, if there is one.
    fn type_in<'t>(&self, table: &'t StructType) -> Option<&'t DataType> {
        let parent = self.parent?;
        if parent.parent.is_none() {
            return Some(&table.field(self.name)?.data_type);
        }
        match (parent.type_in(table)?, self.name) {
            (DataType::Struct(fields), name) => Some(&fields.field(name)?.data_type),
            (DataType::Array(array), "element") => Some(&array.element_type),
            (DataType::Map(map), "key") => Some(&map.key_type),
            (DataType::Map(map), "value") => Some(&map.value_type),
            _ => None,
        }
    }

    fn check_depth(&self) -> Result<()> {
        match self.depth <= MAX_DEPTH {
            true => Ok(()),
            false => Err(Error::unsupported(format!("schema is nested deeper than {MAX_DEPTH} levels"))),
        }
    }
}

/// Formats the dotted path of the column.
impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.parent {
            Some(parent) if parent.parent.is_some() => write!(f, "{parent}.{}", self.name),
            _ => f.write_str(self.name),
        }
    }
}
