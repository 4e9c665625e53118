//! Converts the log's partition values to typed columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int8Builder, Int16Builder, Int32Builder, Int64Builder, NullBuilder, StringBuilder,
    TimestampMicrosecondBuilder,
};

use super::parse;
use crate::error::{Error, Result};
use crate::protocol::schema::PrimitiveType;
use crate::protocol::text::{parse_date, parse_decimal};

/// A builder for the Arrow array of one partition column, with one value per file.
#[derive(Debug)]
pub struct PartitionColumnBuilder {
    column: String,
    data_type: PrimitiveType,
    values: Values,
}

#[derive(Debug)]
enum Values {
    String(StringBuilder),
    Long(Int64Builder),
    Integer(Int32Builder),
    Short(Int16Builder),
    Byte(Int8Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, u8, u8),
    Boolean(BooleanBuilder),
    Binary(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    TimestampNtz(TimestampMicrosecondBuilder),
    Void(NullBuilder),
}

impl PartitionColumnBuilder {
    /// Creates an empty column of type `data_type`. Errors use `column` as its name.
    pub fn new(column: &str, data_type: &PrimitiveType) -> Self {
        let values = match *data_type {
            PrimitiveType::String => Values::String(StringBuilder::new()),
            PrimitiveType::Long => Values::Long(Int64Builder::new()),
            PrimitiveType::Integer => Values::Integer(Int32Builder::new()),
            PrimitiveType::Short => Values::Short(Int16Builder::new()),
            PrimitiveType::Byte => Values::Byte(Int8Builder::new()),
            PrimitiveType::Float => Values::Float(Float32Builder::new()),
            PrimitiveType::Double => Values::Double(Float64Builder::new()),
            PrimitiveType::Decimal { precision, scale } => Values::Decimal(
                Decimal128Builder::new().with_data_type(data_type.to_arrow()),
                precision,
                scale,
            ),
            PrimitiveType::Boolean => Values::Boolean(BooleanBuilder::new()),
            PrimitiveType::Binary => Values::Binary(BinaryBuilder::new()),
            PrimitiveType::Date => Values::Date(Date32Builder::new()),
            PrimitiveType::Timestamp => {
                Values::Timestamp(TimestampMicrosecondBuilder::new().with_timezone("UTC"))
            }
            PrimitiveType::TimestampNtz => Values::TimestampNtz(TimestampMicrosecondBuilder::new()),
            PrimitiveType::Void => Values::Void(NullBuilder::new()),
        };
        Self { column: column.to_owned(), data_type: *data_type, values }
    }

    /// Appends a partition value, spelled as in the log. Missing and empty values are null.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::error::ErrorKind::CorruptLog) if the value does not have the column's type. The message
    /// names the value and the type.
    pub fn append(&mut self, value: Option<&str>) -> Result<()> {
        let value = value.filter(|value| !value.is_empty());
        self.values.append(value).ok_or_else(|| {
            let (value, column, data_type) = (value.unwrap_or_default(), &self.column, &self.data_type);
            Error::corrupt_log(format!(
                "partition value {value:?} of column '{column}' is not a valid '{data_type}'"
            ))
        })
    }

    /// Returns the array of all values appended so far, and empties the builder.
    pub fn finish(&mut self) -> ArrayRef {
        match &mut self.values {
            Values::String(builder) => Arc::new(builder.finish()),
            Values::Long(builder) => Arc::new(builder.finish()),
            Values::Integer(builder) => Arc::new(builder.finish()),
            Values::Short(builder) => Arc::new(builder.finish()),
            Values::Byte(builder) => Arc::new(builder.finish()),
            Values::Float(builder) => Arc::new(builder.finish()),
            Values::Double(builder) => Arc::new(builder.finish()),
            Values::Decimal(builder, ..) => Arc::new(builder.finish()),
            Values::Boolean(builder) => Arc::new(builder.finish()),
            Values::Binary(builder) => Arc::new(builder.finish()),
            Values::Date(builder) => Arc::new(builder.finish()),
            Values::Timestamp(builder) | Values::TimestampNtz(builder) => Arc::new(builder.finish()),
            Values::Void(builder) => Arc::new(builder.finish()),
        }
    }
}

impl Values {
    /// Appends a value or a null. If `value` does not have the type, appends nothing and returns `None`.
    fn append(&mut self, value: Option<&str>) -> Option<()> {
        /// Parses a value. The result distinguishes null from a string that is not a value of the type.
        fn parsed<T>(value: Option<&str>, parse: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
            match value {
                None => Some(None),
                Some(value) => parse(value).map(Some),
            }
        }
        match self {
            Self::String(builder) => builder.append_option(value),
            Self::Long(builder) => builder.append_option(parsed(value, |value| value.parse().ok())?),
            Self::Integer(builder) => builder.append_option(parsed(value, |value| value.parse().ok())?),
            Self::Short(builder) => builder.append_option(parsed(value, |value| value.parse().ok())?),
            Self::Byte(builder) => builder.append_option(parsed(value, |value| value.parse().ok())?),
            Self::Float(builder) => builder.append_option(parsed(value, |value| value.parse().ok())?),
            Self::Double(builder) => builder.append_option(parsed(value, |value| value.parse().ok())?),
            Self::Decimal(builder, precision, scale) => {
                builder.append_option(parsed(value, |value| parse_decimal(value, *precision, *scale))?);
            }
            Self::Boolean(builder) => builder.append_option(parsed(value, parse::boolean)?),
            Self::Binary(builder) => builder.append_option(value.map(str::as_bytes)),
            Self::Date(builder) => builder.append_option(parsed(value, parse_date)?),
            Self::Timestamp(builder) => builder.append_option(parsed(value, parse::timestamp)?),
            Self::TimestampNtz(builder) => builder.append_option(parsed(value, parse::timestamp_ntz)?),
            Self::Void(builder) => match value {
                None => builder.append_null(),
                Some(_) => return None,
            },
        }
        Some(())
    }
}
