//! Infers the types of partition columns from the names of directories, as Spark does
//! (`PartitioningUtils.inferPartitionColumnValue`).
//!
//! | values | type |
//! | --- | --- |
//! | whole numbers | integer, or long, or a decimal without fraction if they are too large |
//! | other numbers | double |
//! | `yyyy-MM-dd`, with or without a time | date, timestamp |
//! | anything else, including a mixture | string |
//!
//! NULL fits every type; a column that contains only NULL is a string. Java, and therefore Spark, reads strings such
//! as `1d` and `0x1p3` as numbers. Here they remain strings, so that the conversion does not change them.

use crate::protocol::PrimitiveType;
use crate::protocol::text::{parse_date, parse_exact_timestamp};

/// Returns the type of a column with these values.
pub(super) fn inferred<'a>(values: impl Iterator<Item = Option<&'a str>>) -> PrimitiveType {
    let types = values.flatten().map(type_of);
    types.reduce(wider).unwrap_or(PrimitiveType::String)
}

fn type_of(text: &str) -> PrimitiveType {
    if text.parse::<i32>().is_ok() {
        PrimitiveType::Integer
    } else if text.parse::<i64>().is_ok() {
        PrimitiveType::Long
    } else if let Some(decimal) = whole_decimal(text) {
        decimal
    } else if is_double(text) {
        PrimitiveType::Double
    } else if parse_date(text).is_some() {
        PrimitiveType::Date
    } else if parse_exact_timestamp(text).is_some() {
        PrimitiveType::Timestamp
    } else {
        PrimitiveType::String
    }
}

/// Returns the type of a whole number that is too large for a long.
fn whole_decimal(text: &str) -> Option<PrimitiveType> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    PrimitiveType::decimal(u8::try_from(digits.trim_start_matches('0').len()).ok()?, 0)
}

fn is_double(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, "NaN" | "Infinity")
        || (unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
            && text.parse::<f64>().is_ok())
}

/// Returns a type that can hold the values of both types (`PartitioningUtils.findWiderTypeForPartitionColumn`).
fn wider(a: PrimitiveType, b: PrimitiveType) -> PrimitiveType {
    use PrimitiveType as P;
    match (a, b) {
        _ if a == b => a,
        (P::Integer, P::Long) | (P::Long, P::Integer) => P::Long,
        (P::Integer, P::Double) | (P::Double, P::Integer) => P::Double,
        (P::Decimal { precision, .. }, P::Decimal { precision: other, .. }) => {
            P::decimal(precision.max(other), 0).unwrap_or(P::String)
        }
        (P::Decimal { precision, .. }, whole @ (P::Integer | P::Long))
        | (whole @ (P::Integer | P::Long), P::Decimal { precision, .. }) => {
            let digits = if whole == P::Long { 20 } else { 10 };
            P::decimal(precision.max(digits), 0).unwrap_or(P::String)
        }
        (P::Date, P::Timestamp) | (P::Timestamp, P::Date) => P::Timestamp,
        _ => P::String,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn types_are_inferred_as_in_spark() {
        for (values, expected) in [
            (vec!["1", "-2", "+3", "007"], "integer"),
            (vec!["1", "3000000000"], "long"),
            (vec!["1", "9223372036854775808"], "decimal(19,0)"),
            (vec!["3000000000", "9223372036854775808"], "decimal(20,0)"),
            (vec!["1.5", "2", "-.5", "1e3", "NaN", "Infinity"], "double"),
            (vec!["1.5", "3000000000"], "string"),
            (vec!["2024-01-31", "2024-02-29"], "date"),
            (vec!["2024-01-31", "2024-02-29 12:00:00.5"], "timestamp"),
            (vec!["2024-02-30"], "string"),
            (vec!["2024-01-31", "1"], "string"),
            (vec!["1", "one"], "string"),
            (vec!["1d", "0x1p3", "inf", "nan", "infinity", "true"], "string"),
            (vec!["12345678901234567890123456789012345678901"], "double"),
            (vec![], "string"),
        ] {
            let found = inferred(values.iter().map(|value| Some(*value)).chain([None]));
            assert_eq!(found.to_string(), expected, "{values:?}");
        }
    }

    proptest! {
        /// The result does not depend on the order of the files.
        #[test]
        fn the_wider_type_does_not_depend_on_the_order(
            values in prop::collection::vec("[0-9]{1,22}|[0-9]\\.[0-9]|20[0-9]{2}-0[1-9]-1[0-9]|[a-c]", 1..5)
        ) {
            let forwards = inferred(values.iter().map(|value| Some(value.as_str())));
            let backwards = inferred(values.iter().rev().map(|value| Some(value.as_str())));
            prop_assert_eq!(forwards, backwards);
        }
    }
}
