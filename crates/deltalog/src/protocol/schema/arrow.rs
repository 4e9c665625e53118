//! Converts schemas to and from Arrow. (PROTOCOL, "Delta Data Type to Parquet Type Mappings", for the names of the
//! parts of lists and maps.)
//!
//! Each Delta type becomes one Arrow type. In the other direction, every Arrow encoding of the same values is accepted:
//!
//! | Arrow | Delta |
//! | --- | --- |
//! | large, view, dictionary and run-end encoded arrays | the type of their values |
//! | `UInt8`, `UInt16`, `UInt32`, `Float16` | the next wider type: `short`, `integer`, `long`, `float` |
//! | `UInt64` | `decimal(20,0)`, as Spark reads it |
//! | `Timestamp` in s, ms, µs, ns, with any zone, or none | `timestamp`, or `timestamp_ntz` |
//! | `Date64` | `date` |
//! | decimals of every width with at most 38 digits | `decimal`; with a negative scale, it has that many more digits |
//!
//! - A variant is a struct of the binary fields `metadata` and `value`. Its field has Arrow's extension type
//!   `arrow.parquet.variant`.
//! - Every Arrow integer type becomes a type that holds all its values. For some other types, such as timestamps in ns,
//!   not every value fits: this is checked when a value is converted.
//! - The schemas of rows have no metadata. Schemas that are exchanged with other programs also have the metadata of
//!   fields (`arrow_metadata`).

use std::sync::Arc;

use std::collections::HashMap;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType as ArrowType, Field, Fields, Schema};

use super::arrow_metadata;
use super::{ArrayType, DataType, MapType, Place, PrimitiveType, StructField, StructType};
use crate::error::{Error, Result};

/// The metadata keys of an Arrow field's extension type. (Arrow columnar format, "Extension Types".)
const EXTENSION: &str = "ARROW:extension:name";
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";
/// The name of Arrow's extension type for variants.
const VARIANT_EXTENSION: &str = "arrow.parquet.variant";

/// Returns whether an Arrow field contains variants.
pub(crate) fn is_variant(field: &Field) -> bool {
    field.metadata().get(EXTENSION).is_some_and(|name| name == VARIANT_EXTENSION)
}

impl StructType {
    /// Returns the Arrow schema for rows of this schema.
    ///
    /// # Errors
    /// [`Unsupported`](crate::error::ErrorKind::Unsupported), naming the column, for a type that cannot be converted to
    /// Arrow.
    pub fn to_arrow(&self) -> Result<Schema> {
        Ok(Schema::new(fields_to_arrow(self, &Place::ROOT, Metadata::Left)?))
    }

    /// Returns the Arrow schema with the metadata of all fields. [`StructType::from_arrow`] converts it back to an
    /// equal schema.
    ///
    /// # Errors
    /// Returns the same errors as [`StructType::to_arrow`].
    pub fn to_arrow_with_metadata(&self) -> Result<Schema> {
        Ok(Schema::new(fields_to_arrow(self, &Place::ROOT, Metadata::Kept)?))
    }

    /// Returns the schema of a table that can hold rows of the Arrow `schema`. It has the metadata of the Arrow fields,
    /// except Arrow's own (`ARROW:…` and `PARQUET:…`).
    ///
    /// # Errors
    /// [`Unsupported`](crate::error::ErrorKind::Unsupported) for a type that no Delta type can hold,
    /// [`SchemaMismatch`](crate::error::ErrorKind::SchemaMismatch) for a duplicate name, and
    /// [`InvalidArgument`](crate::error::ErrorKind::InvalidArgument) for malformed metadata; all name the column.
    pub fn from_arrow(schema: &Schema) -> Result<Self> {
        fields_from_arrow(schema.fields(), &Place::ROOT, Reading { metadata: Metadata::Kept, table: None })
    }

    /// Returns the schema of rows that are written to the columns of `table`. A decimal with more than 38 digits has
    /// the type of its column in the table: whether a value fits there is checked when it is written.
    ///
    /// # Errors
    /// Returns the same errors as [`StructType::from_arrow`].
    #[doc(hidden)]
    pub fn from_arrow_into(schema: &Schema, table: &Self) -> Result<Self> {
        let reading = Reading { metadata: Metadata::Kept, table: Some(table) };
        fields_from_arrow(schema.fields(), &Place::ROOT, reading)
    }

    /// Does the same as [`StructType::from_arrow`], but leaves out the metadata.
    ///
    /// # Errors
    /// Returns the same errors as [`StructType::from_arrow`].
    pub(crate) fn types_from_arrow(schema: &Schema) -> Result<Self> {
        fields_from_arrow(schema.fields(), &Place::ROOT, Reading { metadata: Metadata::Left, table: None })
    }
}

/// Whether the metadata of fields is converted too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metadata {
    Kept,
    Left,
}

/// How a schema is converted from Arrow.
#[derive(Clone, Copy)]
struct Reading<'a> {
    metadata: Metadata,
    /// The table to which the rows are written. If it is given, a decimal with too many digits gets the type of its
    /// column in this table.
    table: Option<&'a StructType>,
}

impl StructField {
    /// Returns the Arrow field for values of this field.
    ///
    /// # Errors
    /// Returns the same errors as [`StructType::to_arrow`].
    pub fn to_arrow(&self) -> Result<Field> {
        field_to_arrow(self, &Place::ROOT, Metadata::Left)
    }
}

fn fields_to_arrow(fields: &StructType, place: &Place<'_>, metadata: Metadata) -> Result<Fields> {
    fields.fields().iter().map(|field| field_to_arrow(field, place, metadata)).collect()
}

fn field_to_arrow(field: &StructField, parent: &Place<'_>, metadata: Metadata) -> Result<Field> {
    // A void column contains only nulls, even if the schema says that the column is not nullable.
    let nullable = field.nullable || field.data_type == PrimitiveType::Void.into();
    let place = parent.child(&field.name);
    let mut arrow = named_to_arrow(&field.name, &field.data_type, nullable, &place, metadata)?;
    if metadata == Metadata::Kept {
        arrow.metadata_mut().extend(arrow_metadata::to_arrow(&field.metadata));
    }
    Ok(arrow)
}

fn named_to_arrow(
    name: &str,
    data_type: &DataType,
    nullable: bool,
    place: &Place<'_>,
    metadata: Metadata,
) -> Result<Field> {
    let field = Field::new(name, type_to_arrow(data_type, place, metadata)?, nullable);
    let marks = || {
        [(EXTENSION.to_owned(), VARIANT_EXTENSION.to_owned()), (EXTENSION_METADATA.to_owned(), String::new())]
    };
    Ok(match data_type {
        DataType::Variant => field.with_metadata(HashMap::from(marks())),
        _ => field,
    })
}

fn type_to_arrow(data_type: &DataType, place: &Place<'_>, metadata: Metadata) -> Result<ArrowType> {
    place.check_depth()?;
    let part = |name: &str, data_type: &DataType, nullable: bool| {
        named_to_arrow(name, data_type, nullable, &place.child(name), metadata)
    };
    Ok(match data_type {
        DataType::Primitive(primitive) => primitive.to_arrow(),
        DataType::Variant => {
            let part = |name: &str| Field::new(name, ArrowType::Binary, false);
            ArrowType::Struct(Fields::from(vec![part("metadata"), part("value")]))
        }
        DataType::Struct(fields) => ArrowType::Struct(fields_to_arrow(fields, place, metadata)?),
        DataType::Array(array) => {
            ArrowType::List(Arc::new(part("element", &array.element_type, array.contains_null)?))
        }
        DataType::Map(map) => {
            let key = part("key", &map.key_type, false)?;
            let value = part("value", &map.value_type, map.value_contains_null)?;
            let entries = ArrowType::Struct(Fields::from(vec![key, value]));
            ArrowType::Map(Arc::new(Field::new("key_value", entries, false)), false)
        }
    })
}

fn fields_from_arrow(fields: &Fields, place: &Place<'_>, reading: Reading<'_>) -> Result<StructType> {
    let fields = fields
        .iter()
        .map(|field| {
            let place = place.child(field.name());
            let data_type = type_of_field(field, &place, reading)?;
            let mut made = StructField::new(field.name(), data_type, field.is_nullable());
            if reading.metadata == Metadata::Kept {
                made.metadata = arrow_metadata::from_arrow(field.metadata(), &place)?;
            }
            Ok(made)
        })
        .collect::<Result<_>>()?;
    StructType::try_new(fields)
}

fn type_of_field(field: &Field, place: &Place<'_>, reading: Reading<'_>) -> Result<DataType> {
    match is_variant(field) {
        true => Ok(DataType::Variant),
        false => type_from_arrow(field.data_type(), place, reading),
    }
}

fn type_from_arrow(arrow: &ArrowType, place: &Place<'_>, reading: Reading<'_>) -> Result<DataType> {
    place.check_depth()?;
    let primitive = match arrow {
        ArrowType::Null => PrimitiveType::Void,
        ArrowType::Boolean => PrimitiveType::Boolean,
        ArrowType::Int8 => PrimitiveType::Byte,
        ArrowType::Int16 | ArrowType::UInt8 => PrimitiveType::Short,
        ArrowType::Int32 | ArrowType::UInt16 => PrimitiveType::Integer,
        ArrowType::Int64 | ArrowType::UInt32 => PrimitiveType::Long,
        ArrowType::UInt64 => PrimitiveType::Decimal { precision: 20, scale: 0 },
        ArrowType::Float16 | ArrowType::Float32 => PrimitiveType::Float,
        ArrowType::Float64 => PrimitiveType::Double,
        ArrowType::Timestamp(_, zone) => match zone {
            Some(_) => PrimitiveType::Timestamp,
            None => PrimitiveType::TimestampNtz,
        },
        ArrowType::Date32 | ArrowType::Date64 => PrimitiveType::Date,
        ArrowType::Binary
        | ArrowType::LargeBinary
        | ArrowType::BinaryView
        | ArrowType::FixedSizeBinary(_) => PrimitiveType::Binary,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => PrimitiveType::String,
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
        | ArrowType::Decimal256(precision, scale) => {
            let Some(decimal) = decimal_from_arrow(*precision, *scale) else {
                let column = reading.table.and_then(|table| place.type_in(table));
                let error = if i16::from(*scale) > i16::from(*precision) { refused } else { too_many_digits };
                return column.cloned().ok_or_else(|| error(arrow, place));
            };
            decimal
        }
        ArrowType::Struct(fields) => {
            return Ok(DataType::Struct(fields_from_arrow(fields, place, reading)?));
        }
        ArrowType::List(element)
        | ArrowType::LargeList(element)
        | ArrowType::ListView(element)
        | ArrowType::LargeListView(element)
        | ArrowType::FixedSizeList(element, _) => {
            let element_type = type_of_field(element, &place.child("element"), reading)?;
            return Ok(DataType::Array(Box::new(ArrayType {
                element_type,
                contains_null: element.is_nullable(),
            })));
        }
        ArrowType::Map(entries, _) => return map_from_arrow(entries, arrow, place, reading),
        ArrowType::Dictionary(_, values) => return type_from_arrow(values, &place.deeper(), reading),
        ArrowType::RunEndEncoded(_, values) => {
            return type_from_arrow(values.data_type(), &place.deeper(), reading);
        }
        _ => return Err(refused(arrow, place)),
    };
    Ok(primitive.into())
}

fn map_from_arrow(
    entries: &Field,
    arrow: &ArrowType,
    place: &Place<'_>,
    reading: Reading<'_>,
) -> Result<DataType> {
    let ArrowType::Struct(parts) = entries.data_type() else { return Err(refused(arrow, place)) };
    let [key, value] = parts.iter().as_slice() else { return Err(refused(arrow, place)) };
    Ok(DataType::Map(Box::new(MapType {
        key_type: type_of_field(key, &place.child("key"), reading)?,
        value_type: type_of_field(value, &place.child("value"), reading)?,
        value_contains_null: value.is_nullable(),
    })))
}

/// Returns the decimal type for an Arrow decimal with this precision and scale; `None` if there is none. A negative
/// scale becomes scale 0 and a larger precision.
fn decimal_from_arrow(precision: u8, scale: i8) -> Option<PrimitiveType> {
    match u8::try_from(scale) {
        Ok(scale) => PrimitiveType::decimal(precision, scale),
        Err(_) => PrimitiveType::decimal(precision.checked_add(scale.unsigned_abs())?, 0),
    }
}

fn too_many_digits(arrow: &ArrowType, place: &Place<'_>) -> Error {
    Error::unsupported(format!(
        "column '{place}' has the Arrow type {arrow}, but decimals of a table have at most \
         {DECIMAL128_MAX_PRECISION} digits"
    ))
    .with_hint(
        "cast it to a decimal with fewer digits, or create the column with such a type first: then each value is \
         checked",
    )
}

fn refused(arrow: &ArrowType, place: &Place<'_>) -> Error {
    Error::unsupported(format!("column '{place}' has the Arrow type {arrow}, which no Delta type can hold"))
        .with_hint("cast it to another type")
}
