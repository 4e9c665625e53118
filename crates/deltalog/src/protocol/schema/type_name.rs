//! The names of Arrow types in messages: Delta's name for the same type, if Delta has it.

use arrow::datatypes::{DataType, TimeUnit};

/// Returns Delta's name for an Arrow type, or Arrow's own name if Delta has no such type.
pub(crate) fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Null => "void",
        DataType::Boolean => "boolean",
        DataType::Int8 => "byte",
        DataType::Int16 => "short",
        DataType::Int32 => "integer",
        DataType::Int64 => "long",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => return format!("decimal({precision},{scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary",
        DataType::Date32 => "date",
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz",
        DataType::List(element) => return format!("array<{}>", type_name(element.data_type())),
        DataType::Struct(fields) => {
            let fields =
                fields.iter().map(|field| format!("{}: {}", field.name(), type_name(field.data_type())));
            return format!("struct<{}>", fields.collect::<Vec<_>>().join(", "));
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(parts) if parts.len() == 2 => {
                let parts = parts.iter().map(|part| type_name(part.data_type()));
                return format!("map<{}>", parts.collect::<Vec<_>>().join(", "));
            }
            _ => "map",
        },
        other => return other.to_string(),
    };
    name.to_owned()
}
