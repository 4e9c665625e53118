//! The common type of values with different types, as in Spark with ANSI mode.
//!
//! | values | common type |
//! | --- | --- |
//! | whole numbers | the wider type |
//! | a whole number and FLOAT | DOUBLE |
//! | a number and DOUBLE | DOUBLE |
//! | a decimal and FLOAT | DOUBLE |
//! | a whole number and a decimal | a decimal; an INT column counts as DECIMAL(10,0), the literal 5 as DECIMAL(1,0) |
//! | decimals | a decimal with the larger number of digits before and after the point |
//! | dates and times | the first of TIMESTAMP, TIMESTAMP_NTZ, DATE that occurs |
//! | STRING and a date or time | the date or time |
//! | NULL and any other type | the other type |
//! | arrays, maps, structs with the same names | the same structure, with the common types of the parts |

use super::nested::{common_nested, parts_of, plain_nested};
use arrow::datatypes::{DataType, FieldRef, TimeUnit};

/// The maximum precision of a decimal.
pub(super) const MAX_PRECISION: i32 = 38;

/// The smallest scale to which a result is reduced if its precision exceeds the maximum.
const MIN_ADJUSTED_SCALE: i32 = 6;

/// Returns the type of timestamps with a time zone.
pub(in crate::expression::predicate) fn instants() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Returns the type of timestamps without a time zone.
pub(in crate::expression::predicate) fn clocks() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

/// Returns the type that expressions use for values of `data_type`.
pub(in crate::expression::predicate) fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Timestamp(_, Some(_)) => instants(),
        DataType::Timestamp(_, None) => clocks(),
        other => plain_nested(other).unwrap_or_else(|| other.clone()),
    }
}

/// Returns the name of the type in Spark's SQL.
pub(in crate::expression::predicate) fn sql_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "VOID".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Utf8 => "STRING".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Binary => "BINARY".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP_NTZ".to_owned(),
        DataType::Struct(fields) => {
            let field = |field: &FieldRef| {
                let required = if field.is_nullable() { "" } else { " NOT NULL" };
                format!("{}: {}{required}", field.name(), sql_name(field.data_type()))
            };
            format!("STRUCT<{}>", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        DataType::List(element) => format!("ARRAY<{}>", sql_name(element.data_type())),
        DataType::Map(entries, _) => match parts_of(entries) {
            Some((key, value)) => {
                format!("MAP<{}, {}>", sql_name(key.data_type()), sql_name(value.data_type()))
            }
            None => "MAP".to_owned(),
        },
        other => other.to_string(),
    }
}

pub(super) fn is_whole(data_type: &DataType) -> bool {
    data_type.is_signed_integer()
}

pub(super) fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

pub(super) fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(..))
}

/// Returns whether the type is a date or a timestamp.
pub(in crate::expression::predicate) fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(..))
}

pub(in crate::expression::predicate) fn is_number(data_type: &DataType) -> bool {
    is_whole(data_type) || is_float(data_type) || is_decimal(data_type)
}

/// Returns the precision and scale of the decimal to which a decimal or whole number is converted.
pub(super) fn decimal_digits(data_type: &DataType) -> Option<(i32, i32)> {
    Some(match data_type {
        DataType::Int8 => (3, 0),
        DataType::Int16 => (5, 0),
        DataType::Int32 => (10, 0),
        DataType::Int64 => (20, 0),
        DataType::Decimal128(precision, scale) => (i32::from(*precision), i32::from(*scale)),
        _ => return None,
    })
}

/// Returns a decimal type; `None` if a decimal cannot have this precision and scale.
pub(super) fn decimal(precision: i32, scale: i32) -> Option<DataType> {
    ((1..=MAX_PRECISION).contains(&precision) && (0..=precision).contains(&scale)).then_some(())?;
    Some(DataType::Decimal128(u8::try_from(precision).ok()?, i8::try_from(scale).ok()?))
}

/// Returns the decimal type of an arithmetic result. If its precision would be more than the maximum, it loses digits
/// after the point.
pub(super) fn adjusted(precision: i32, scale: i32) -> Option<DataType> {
    if precision <= MAX_PRECISION {
        return decimal(precision, scale);
    }
    let whole = precision - scale;
    decimal(MAX_PRECISION, (MAX_PRECISION - whole).max(scale.min(MIN_ADJUSTED_SCALE)))
}

/// Returns the type to which values of the two types are converted when they are combined.
pub(in crate::expression::predicate) fn common(a: &DataType, b: &DataType) -> Option<DataType> {
    let width = |t: &DataType| decimal_digits(t).map(|(precision, _)| precision);
    Some(match (a, b) {
        (a, b) if a == b => a.clone(),
        (DataType::Null, other) | (other, DataType::Null) => other.clone(),
        (a, b) if is_whole(a) && is_whole(b) => {
            if width(a) >= width(b) {
                a.clone()
            } else {
                b.clone()
            }
        }
        (a, b) if is_number(a) && is_number(b) && (is_float(a) || is_float(b)) => DataType::Float64,
        (a, b) if a.is_nested() => common_nested(a, b)?,
        (DataType::Utf8, time) | (time, DataType::Utf8) if is_time(time) => time.clone(),
        (a, b) if is_time(a) && is_time(b) => {
            let is_instant = |t: &DataType| matches!(t, DataType::Timestamp(_, Some(_)));
            if is_instant(a) || is_instant(b) { instants() } else { clocks() }
        }
        (a, b) => {
            let ((p, s), (q, t)) = (decimal_digits(a)?, decimal_digits(b)?);
            let (whole, scale) = ((p - s).max(q - t), s.max(t));
            decimal(whole + scale, scale)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::DataType as T;

    #[test]
    fn results_keep_six_digits_after_the_point() {
        assert_eq!(adjusted(38, 10), Some(T::Decimal128(38, 10)));
        assert_eq!(adjusted(39, 10), Some(T::Decimal128(38, 9)));
        assert_eq!(adjusted(77, 38), Some(T::Decimal128(38, 6)));
        assert_eq!(adjusted(60, 3), Some(T::Decimal128(38, 3)));
    }

    #[test]
    fn common_types_are_symmetric_and_can_hold_both_types() {
        let types = [
            T::Null,
            T::Int8,
            T::Int16,
            T::Int32,
            T::Int64,
            T::Float32,
            T::Float64,
            T::Decimal128(5, 2),
            T::Decimal128(38, 38),
            T::Utf8,
            T::Boolean,
            T::Date32,
            instants(),
            clocks(),
        ];
        for a in &types {
            for b in &types {
                assert_eq!(common(a, b), common(b, a), "{a} and {b}");
                if let Some(both) = common(a, b) {
                    assert_eq!(common(a, &both), Some(both.clone()), "{a} and {b}");
                }
            }
        }
        assert_eq!(common(&T::Int32, &T::Float32), Some(T::Float64));
        assert_eq!(common(&T::Int64, &T::Decimal128(5, 2)), Some(T::Decimal128(22, 2)));
        assert_eq!(common(&T::Decimal128(38, 38), &T::Int8), None);
        assert_eq!(common(&T::Utf8, &T::Int32), None);
        assert_eq!(common(&T::Date32, &T::Int32), None);
        assert_eq!(common(&clocks(), &instants()), Some(instants()));
        assert_eq!(common(&T::Date32, &clocks()), Some(clocks()));
        assert_eq!(common(&T::Utf8, &T::Date32), Some(T::Date32));
    }
}
