//! The types.

use std::fmt;

use serde_json::value::RawValue;

use crate::error::{Error, Result};

/// A type without structure. Protocol: "Primitive Types".
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named as in the protocol")]
pub enum PrimitiveType {
    String,
    Long,
    Integer,
    Short,
    Byte,
    Float,
    Double,
    Boolean,
    Binary,
    Date,
    Timestamp,
    TimestampNtz,
    /// Precision 1 to 38, scale 0 to precision.
    Decimal {
        precision: u8,
        scale: u8,
    },
    /// Protocol: "Variant Data Type".
    Variant,
    /// A column of nothing but nulls; Spark calls it void.
    Void,
}

impl PrimitiveType {
    /// The type of this name.
    ///
    /// # Errors
    /// `Unsupported` for a name that the protocol does not know, `CorruptLog` for an impossible decimal.
    pub fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "string" => Self::String,
            "long" => Self::Long,
            "integer" => Self::Integer,
            "short" => Self::Short,
            "byte" => Self::Byte,
            "float" => Self::Float,
            "double" => Self::Double,
            "boolean" => Self::Boolean,
            "binary" => Self::Binary,
            "date" => Self::Date,
            "timestamp" => Self::Timestamp,
            "timestamp_ntz" => Self::TimestampNtz,
            "variant" => Self::Variant,
            "void" | "null" => Self::Void,
            // Spark's name for decimal(10,0).
            "decimal" => Self::Decimal { precision: 10, scale: 0 },
            _ => match decimal(name) {
                Some(Some((precision, scale))) if (1..=38).contains(&precision) && scale <= precision => Self::Decimal { precision, scale },
                Some(_) => return Err(Error::corrupt_log(format!("the type '{name}' is no possible decimal"))),
                None => return Err(Error::unsupported(format!("the type '{name}' is not known to deltalog"))),
            },
        })
    }
}

/// `None` if it is no decimal at all, `Some(None)` if it is a bad one.
#[allow(clippy::option_option, reason = "two different answers")]
fn decimal(name: &str) -> Option<Option<(u8, u8)>> {
    let inner = name.strip_prefix("decimal(")?.strip_suffix(')')?;
    let numbers = inner.split_once(',').and_then(|(precision, scale)| Some((precision.trim().parse().ok()?, scale.trim().parse().ok()?)));
    Some(numbers)
}

impl fmt::Display for PrimitiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::String => "string",
            Self::Long => "long",
            Self::Integer => "integer",
            Self::Short => "short",
            Self::Byte => "byte",
            Self::Float => "float",
            Self::Double => "double",
            Self::Boolean => "boolean",
            Self::Binary => "binary",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::TimestampNtz => "timestamp_ntz",
            Self::Variant => "variant",
            Self::Void => "void",
            Self::Decimal { precision, scale } => return write!(f, "decimal({precision},{scale})"),
        };
        f.write_str(name)
    }
}

/// Any type.
#[derive(Debug, Clone, PartialEq)]
pub enum DataType {
    /// Without structure.
    Primitive(PrimitiveType),
    /// Named fields.
    Struct(StructType),
    /// A list.
    Array(Box<ArrayType>),
    /// A map.
    Map(Box<MapType>),
}

/// A list. Protocol: "Array Type".
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayType {
    /// Of the elements.
    pub element_type: DataType,
    /// Whether elements may be null.
    pub contains_null: bool,
}

/// A map. Protocol: "Map Type".
#[derive(Debug, Clone, PartialEq)]
pub struct MapType {
    /// Of the keys, which are never null.
    pub key_type: DataType,
    /// Of the values.
    pub value_type: DataType,
    /// Whether values may be null.
    pub value_contains_null: bool,
}

/// Named fields. Protocol: "Struct Type".
#[derive(Debug, Clone, PartialEq)]
pub struct StructType {
    fields: Vec<StructField>,
}

impl StructType {
    /// A struct of `fields`.
    ///
    /// # Errors
    /// `SchemaMismatch` if two names differ in nothing but case.
    pub fn new(fields: Vec<StructField>) -> Result<Self> {
        let mut names: Vec<_> = fields.iter().map(|field| field.name.to_lowercase()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::schema_mismatch(format!("the column '{}' is there twice (letter case does not count)", pair[0]))),
            None => Ok(Self { fields }),
        }
    }

    /// Without fields.
    pub fn empty() -> Self {
        Self { fields: Vec::new() }
    }

    /// The fields in order.
    pub fn fields(&self) -> &[StructField] {
        &self.fields
    }

    /// The field that Spark would resolve `name` to: letter case does not count.
    pub fn field(&self, name: &str) -> Option<&StructField> {
        self.fields.iter().find(|field| field.name == name).or_else(|| {
            let lower = name.to_lowercase();
            self.fields.iter().find(|field| field.name.to_lowercase() == lower)
        })
    }

    /// Whether any field, nested ones included, fulfils `condition`.
    pub fn any_field(&self, condition: &dyn Fn(&StructField) -> bool) -> bool {
        self.fields.iter().any(|field| condition(field) || field.data_type.any_struct(&|inner| inner.any_field(condition)))
    }

    /// Whether any primitive type, nested ones included, fulfils `condition`.
    pub fn any_type(&self, condition: &dyn Fn(&PrimitiveType) -> bool) -> bool {
        self.fields.iter().any(|field| field.data_type.any_primitive(condition))
    }
}

impl DataType {
    /// Whether it is or holds a void.
    pub fn has_void(&self) -> bool {
        self.any_primitive(&|primitive| *primitive == PrimitiveType::Void)
    }

    fn any_struct(&self, condition: &dyn Fn(&StructType) -> bool) -> bool {
        match self {
            Self::Primitive(_) => false,
            Self::Struct(inner) => condition(inner),
            Self::Array(array) => array.element_type.any_struct(condition),
            Self::Map(map) => map.key_type.any_struct(condition) || map.value_type.any_struct(condition),
        }
    }

    fn any_primitive(&self, condition: &dyn Fn(&PrimitiveType) -> bool) -> bool {
        match self {
            Self::Primitive(primitive) => condition(primitive),
            Self::Struct(inner) => inner.any_type(condition),
            Self::Array(array) => array.element_type.any_primitive(condition),
            Self::Map(map) => map.key_type.any_primitive(condition) || map.value_type.any_primitive(condition),
        }
    }
}

/// A field. Protocol: "Struct Field".
#[derive(Debug, Clone)]
pub struct StructField {
    pub(super) name: String,
    pub(super) data_type: DataType,
    pub(super) nullable: bool,
    pub(super) metadata: Box<RawValue>,
}

impl StructField {
    /// A field without metadata.
    pub fn new(name: impl Into<String>, data_type: DataType, nullable: bool) -> Self {
        Self { name: name.into(), data_type, nullable, metadata: RawValue::NULL.to_owned() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Whether it may be null.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Its metadata as JSON text, byte for byte as it was read.
    pub fn metadata_json(&self) -> &str {
        if self.metadata.get() == "null" { "{}" } else { self.metadata.get() }
    }

    /// Whether the metadata has the key `key`.
    pub fn has_metadata(&self, key: &str) -> bool {
        serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(self.metadata.get()).is_ok_and(|map| map.contains_key(key))
    }
}

impl PartialEq for StructField {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.data_type, self.nullable, self.metadata_json())
            == (&other.name, &other.data_type, other.nullable, other.metadata_json())
    }
}
