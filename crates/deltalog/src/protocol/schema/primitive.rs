//! Types that have no parts. (PROTOCOL, "Primitive Types".)

use std::fmt;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType as ArrowType, TimeUnit};

/// A type that has no parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PrimitiveType {
    /// UTF-8 text.
    String,
    /// 8-byte signed integer.
    Long,
    /// 4-byte signed integer.
    Integer,
    /// 2-byte signed integer.
    Short,
    /// 1-byte signed integer.
    Byte,
    /// 4-byte floating-point number.
    Float,
    /// 8-byte floating-point number.
    Double,
    /// Decimal number. [`PrimitiveType::decimal`] ensures that `1 <= precision <= 38` and `scale <=
    /// precision`.
    Decimal {
        /// Number of digits.
        precision: u8,
        /// Number of digits after the decimal point.
        scale: u8,
    },
    /// `true` or `false`.
    Boolean,
    /// Bytes.
    Binary,
    /// Calendar date.
    Date,
    /// An instant in microseconds since the epoch.
    Timestamp,
    /// A local date and time in microseconds since 1970-01-01 00:00:00. It needs the table feature `timestampNtz`.
    TimestampNtz,
    /// Null in every row.
    Void,
}

impl PrimitiveType {
    /// Returns `decimal(precision,scale)`, if precision and scale are valid.
    pub fn decimal(precision: u8, scale: u8) -> Option<Self> {
        ((1..=DECIMAL128_MAX_PRECISION).contains(&precision) && scale <= precision)
            .then_some(Self::Decimal { precision, scale })
    }

    /// Returns the type with this name in a schema.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            // If a statement mentions a collation, Spark writes the collation of every string type, even if it is the
            // default collation.
            "string" | "string collate UTF8_BINARY" => Self::String,
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
            // Spark versions up to 3.0 wrote "null".
            "void" | "null" => Self::Void,
            // A decimal without precision and scale has Spark's defaults.
            "decimal" => Self::Decimal { precision: 10, scale: 0 },
            _ => {
                let (precision, scale) = name.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
                Self::decimal(precision.trim().parse().ok()?, scale.trim().parse().ok()?)?
            }
        })
    }

    /// Returns the Arrow type for values of this type.
    pub fn to_arrow(self) -> ArrowType {
        match self {
            Self::String => ArrowType::Utf8,
            Self::Long => ArrowType::Int64,
            Self::Integer => ArrowType::Int32,
            Self::Short => ArrowType::Int16,
            Self::Byte => ArrowType::Int8,
            Self::Float => ArrowType::Float32,
            Self::Double => ArrowType::Float64,
            // The scale is at most 38, so the conversion cannot fail.
            Self::Decimal { precision, scale } => ArrowType::Decimal128(precision, scale as i8),
            Self::Boolean => ArrowType::Boolean,
            Self::Binary => ArrowType::Binary,
            Self::Date => ArrowType::Date32,
            Self::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::TimestampNtz => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            Self::Void => ArrowType::Null,
        }
    }
}

/// Formats the name of the type in a schema.
impl fmt::Display for PrimitiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::String => "string",
            Self::Long => "long",
            Self::Integer => "integer",
            Self::Short => "short",
            Self::Byte => "byte",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal { precision, scale } => return write!(f, "decimal({precision},{scale})"),
            Self::Boolean => "boolean",
            Self::Binary => "binary",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::TimestampNtz => "timestamp_ntz",
            Self::Void => "void",
        })
    }
}
