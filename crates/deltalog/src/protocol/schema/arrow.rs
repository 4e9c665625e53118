//! The schema's Arrow form.
//!
//! | protocol | Arrow | and read from Arrow also |
//! | --- | --- | --- |
//! | string | Utf8 | LargeUtf8, Utf8View |
//! | binary | Binary | LargeBinary, BinaryView, FixedSizeBinary |
//! | long, integer, short, byte | Int64, Int32, Int16, Int8 | UInt32, UInt16, UInt8: the next wider |
//! | date | Date32 | Date64 |
//! | timestamp | Timestamp(us, UTC) | any unit, any zone: the instant is the same |
//! | timestamp_ntz | Timestamp(us) | any unit without zone |
//! | decimal(p,s) | Decimal128(p,s) | Decimal32, Decimal64, Decimal256 of precision up to 38 |
//! | array | List, item `element` | LargeList, FixedSizeList, ListView |
//! | map | Map `key_value` of `key`, `value` | |
//! | void | Null | |
//!
//! Dictionary and run-end encoded columns count as their values. Whether a *value* fits is for whoever converts it to say.

use std::sync::Arc;

use ::arrow::datatypes::{DataType as ArrowType, Field, Fields, Schema, TimeUnit};

use super::MAX_DEPTH;
use super::types::{ArrayType, DataType, MapType, PrimitiveType, StructField, StructType};
use crate::error::{Error, Result};

impl StructType {
    /// The Arrow schema.
    ///
    /// # Errors
    /// `Unsupported` for a type that has no Arrow form here yet, with its column.
    pub fn to_arrow(&self) -> Result<Schema> {
        Ok(Schema::new(fields_to_arrow(self)?))
    }

    /// The schema of Arrow data.
    ///
    /// # Errors
    /// `SchemaMismatch` for a type that no table can have, with its column.
    pub fn from_arrow(schema: &Schema) -> Result<Self> {
        fields_from_arrow(schema.fields(), 0)
    }
}

fn fields_to_arrow(schema: &StructType) -> Result<Fields> {
    let field = |field: &StructField| {
        let data_type = to_arrow(field.data_type()).map_err(|error| error.with_hint(format!("in the column '{}'", field.name())))?;
        Ok(Field::new(field.name(), data_type, field.is_nullable()))
    };
    schema.fields().iter().map(field).collect::<Result<Fields>>()
}

fn to_arrow(data_type: &DataType) -> Result<ArrowType> {
    Ok(match data_type {
        DataType::Struct(schema) => ArrowType::Struct(fields_to_arrow(schema)?),
        DataType::Array(array) => ArrowType::List(Arc::new(Field::new("element", to_arrow(&array.element_type)?, array.contains_null))),
        DataType::Map(map) => {
            let key = Field::new("key", to_arrow(&map.key_type)?, false);
            let value = Field::new("value", to_arrow(&map.value_type)?, map.value_contains_null);
            ArrowType::Map(Arc::new(Field::new("key_value", ArrowType::Struct(vec![key, value].into()), false)), false)
        }
        DataType::Primitive(primitive) => primitive.to_arrow()?,
    })
}

impl PrimitiveType {
    /// The Arrow type.
    ///
    /// # Errors
    /// `Unsupported` for `variant`.
    pub fn to_arrow(&self) -> Result<ArrowType> {
        Ok(match self {
            Self::String => ArrowType::Utf8,
            Self::Long => ArrowType::Int64,
            Self::Integer => ArrowType::Int32,
            Self::Short => ArrowType::Int16,
            Self::Byte => ArrowType::Int8,
            Self::Float => ArrowType::Float32,
            Self::Double => ArrowType::Float64,
            Self::Boolean => ArrowType::Boolean,
            Self::Binary => ArrowType::Binary,
            Self::Date => ArrowType::Date32,
            Self::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::TimestampNtz => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            Self::Decimal { precision, scale } => ArrowType::Decimal128(*precision, scale.cast_signed()),
            Self::Void => ArrowType::Null,
            Self::Variant => return Err(Error::unsupported("the type variant of the feature variantType is not supported yet")),
        })
    }
}

fn fields_from_arrow(fields: &Fields, depth: usize) -> Result<StructType> {
    let field = |field: &Arc<Field>| {
        let data_type =
            from_arrow(field.data_type(), depth).map_err(|error| error.with_hint(format!("in the column '{}'", field.name())))?;
        Ok(StructField::new(field.name(), data_type, field.is_nullable()))
    };
    StructType::new(fields.iter().map(field).collect::<Result<_>>()?)
}

fn from_arrow(data_type: &ArrowType, depth: usize) -> Result<DataType> {
    if depth > MAX_DEPTH {
        return Err(Error::schema_mismatch(format!("the type nests deeper than {MAX_DEPTH} levels")));
    }
    let primitive = match data_type {
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => PrimitiveType::String,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => PrimitiveType::Binary,
        ArrowType::Int64 | ArrowType::UInt32 => PrimitiveType::Long,
        ArrowType::Int32 | ArrowType::UInt16 => PrimitiveType::Integer,
        ArrowType::Int16 | ArrowType::UInt8 => PrimitiveType::Short,
        ArrowType::Int8 => PrimitiveType::Byte,
        ArrowType::Float16 | ArrowType::Float32 => PrimitiveType::Float,
        ArrowType::Float64 => PrimitiveType::Double,
        ArrowType::Boolean => PrimitiveType::Boolean,
        ArrowType::Date32 | ArrowType::Date64 => PrimitiveType::Date,
        ArrowType::Timestamp(_, Some(_)) => PrimitiveType::Timestamp,
        ArrowType::Timestamp(_, None) => PrimitiveType::TimestampNtz,
        ArrowType::Null => PrimitiveType::Void,
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
        | ArrowType::Decimal256(precision, scale) => match u8::try_from(*scale) {
            Ok(scale) if (1..=38).contains(precision) && scale <= *precision => PrimitiveType::Decimal { precision: *precision, scale },
            _ => return Err(Error::schema_mismatch(format!("a table cannot have a decimal of precision {precision} and scale {scale}"))),
        },
        ArrowType::Dictionary(_, values) => return from_arrow(values, depth + 1),
        ArrowType::RunEndEncoded(_, values) => return from_arrow(values.data_type(), depth + 1),
        ArrowType::Struct(fields) => return fields_from_arrow(fields, depth + 1).map(DataType::Struct),
        ArrowType::List(element)
        | ArrowType::LargeList(element)
        | ArrowType::FixedSizeList(element, _)
        | ArrowType::ListView(element)
        | ArrowType::LargeListView(element) => {
            let element_type = from_arrow(element.data_type(), depth + 1)?;
            return Ok(DataType::Array(Box::new(ArrayType { element_type, contains_null: element.is_nullable() })));
        }
        ArrowType::Map(entries, _) => {
            let ArrowType::Struct(fields) = entries.data_type() else { return Err(Error::schema_mismatch("a map without key and value")) };
            let [key, value] = fields.iter().as_slice() else { return Err(Error::schema_mismatch("a map without key and value")) };
            return Ok(DataType::Map(Box::new(MapType {
                key_type: from_arrow(key.data_type(), depth + 1)?,
                value_type: from_arrow(value.data_type(), depth + 1)?,
                value_contains_null: value.is_nullable(),
            })));
        }
        other => return Err(Error::schema_mismatch(format!("a table cannot have a column of the Arrow type {other}"))),
    };
    Ok(DataType::Primitive(primitive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_goes_to_arrow_and_back() {
        let types = [
            "string",
            "long",
            "integer",
            "short",
            "byte",
            "float",
            "double",
            "boolean",
            "binary",
            "date",
            "timestamp",
            "timestamp_ntz",
            "decimal(38,10)",
            "void",
        ];
        let mut fields: Vec<_> =
            types.iter().map(|name| StructField::new(*name, DataType::Primitive(PrimitiveType::parse(name).unwrap()), true)).collect();
        let inner = DataType::Struct(StructType::new(fields.clone()).unwrap());
        fields.push(StructField::new(
            "list",
            DataType::Array(Box::new(ArrayType { element_type: inner.clone(), contains_null: false })),
            false,
        ));
        let map = MapType { key_type: DataType::Primitive(PrimitiveType::Date), value_type: inner, value_contains_null: true };
        fields.push(StructField::new("map", DataType::Map(Box::new(map)), true));
        let schema = StructType::new(fields).unwrap();
        assert_eq!(StructType::from_arrow(&schema.to_arrow().unwrap()).unwrap(), schema);
    }

    #[test]
    fn what_no_table_can_have_is_refused_with_its_column() {
        for data_type in [
            ArrowType::UInt64,
            ArrowType::Time64(TimeUnit::Nanosecond),
            ArrowType::Decimal256(76, 2),
            ArrowType::Duration(TimeUnit::Second),
        ] {
            let error = StructType::from_arrow(&Schema::new(vec![Field::new("odd", data_type.clone(), true)])).unwrap_err();
            assert!(error.to_string().contains("'odd'"), "{error}");
        }
    }
}
