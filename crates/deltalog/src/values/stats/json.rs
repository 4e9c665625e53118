//! Writes statistics as JSON text. The written value is still a bound, even if it was rounded.
//!
//! - Numbers are written with all their digits, and are never converted to a floating-point number of lower precision.
//! - Strings are truncated to 32 characters, and timestamps to milliseconds. A minimum is rounded down; a maximum is
//!   rounded up or left out.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::protocol::Add;
use crate::protocol::text::{date_text, decimal_text, json_string, timestamp_text};

/// The maximum length of a string that is not truncated, in characters.
const MAX_CHARACTERS: usize = 32;

/// Returns `numRecords` from statistics in JSON, or `None` if it is missing.
pub(crate) fn num_records(stats: &str) -> Option<u64> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Count {
        num_records: u64,
    }
    serde_json::from_str::<Count>(stats).ok().map(|count| count.num_records)
}

/// Returns the action with its number of rows set in the statistics. Rows can only be deleted from a file whose number
/// of rows is known.
///
/// # Errors
/// `CorruptData` if the statistics and the file have different numbers of rows. If the number in the statistics were
/// used, the file might be removed although it has more rows, which would be lost.
pub(crate) fn with_num_records(mut add: Add, rows: u64) -> Result<Add> {
    match add.stats.as_deref().and_then(num_records) {
        Some(known) if known != rows => Err(Error::corrupt_data(format!(
            "the statistics of the file have {known} rows, but the file has {rows}"
        ))
        .at_path(&add.path)),
        Some(_) => Ok(add),
        None => {
            add.stats = Some(format!("{{\"numRecords\":{rows}}}"));
            Ok(add)
        }
    }
}

/// Returns statistics as JSON with `tightBounds: false`, because the deleted rows may have had the least or the
/// greatest value. Protocol: "Per-file Statistics".
///
/// # Errors
/// `InvalidArgument` for statistics that are not a JSON object.
pub(crate) fn with_wide_bounds(stats: &str) -> Result<String> {
    let invalid = |error: serde_json::Error| {
        Error::invalid_argument("the statistics of a file are not a JSON object").with_source(error)
    };
    // The values are copied as text, because numbers must not lose digits.
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(stats).map_err(invalid)?;
    fields.insert("tightBounds".to_owned(), serde_json::from_str("false").map_err(invalid)?);
    serde_json::to_string(&fields).map_err(invalid)
}

/// Whether a value is a minimum, which may be rounded down, or a maximum, which may be rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Min,
    Max,
}

/// The least or the greatest value of a column, as the footer has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Extreme {
    Integer(i64),
    /// The unscaled value of a decimal.
    Decimal(i128),
    Float(f64),
    Text(String),
}

/// Returns `value`, of a column of type `data_type`, as JSON. Returns `None` if it cannot be written as a bound.
pub(super) fn value_json(value: &Extreme, data_type: &DataType, side: Side) -> Option<String> {
    match (value, data_type) {
        (Extreme::Integer(v), DataType::Date32) => {
            let date = date_text(i32::try_from(*v).ok()?);
            // Readers expect `yyyy-MM-dd`, which has no place for a sign or for years of five digits.
            (date.len() == 10).then(|| format!("\"{date}\""))
        }
        (Extreme::Integer(v), DataType::Timestamp(_, zone)) => {
            let millis = match side {
                Side::Min => v.div_euclid(1000),
                Side::Max => v.checked_add(999)?.div_euclid(1000),
            };
            let text = timestamp_text(millis.checked_mul(1000)?);
            let (date, time) = text.split_once(' ').filter(|(date, _)| date.len() == 10)?;
            let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
            let zone = if zone.is_some() { "Z" } else { "" };
            Some(format!("\"{date}T{time}.{fraction:0<3}{zone}\""))
        }
        (Extreme::Integer(v), _) => Some(v.to_string()),
        (Extreme::Decimal(v), DataType::Decimal128(_, scale)) => decimal_text(*v, *scale),
        // All digits are written, so that readers with a higher precision get the same number.
        (Extreme::Float(v), _) => v.is_finite().then(|| format!("{v:?}")),
        (Extreme::Text(v), _) => {
            let truncated = match side {
                Side::Min => v.chars().take(MAX_CHARACTERS).collect(),
                Side::Max => truncate_upwards(v)?,
            };
            Some(json_string(&truncated))
        }
        _ => None,
    }
}

/// Truncates `text` to a string that is not less than it. Returns `None` if no such string is short enough.
///
/// As in the JVM connector, the first dropped character is replaced with a greater one. If it is the greatest character
/// itself, it is kept, and the next one is replaced. A string with too many of these in a row has no bound.
fn truncate_upwards(text: &str) -> Option<String> {
    let mut characters = text.chars();
    let mut truncated: String = characters.by_ref().take(MAX_CHARACTERS).collect();
    for kept in 0.. {
        match characters.next() {
            None => return Some(truncated),
            Some(c) if c < '\u{7f}' => truncated.push('\u{7f}'),
            Some(c) if c < char::MAX => truncated.push(char::MAX),
            Some(c) if kept < MAX_CHARACTERS => {
                truncated.push(c);
                continue;
            }
            Some(_) => return None,
        }
        break;
    }
    Some(truncated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_with_many_digits_keep_them() {
        let text = r#"{"numRecords":3,"maxValues":{"d":123456789012345678.90},"tightBounds":true}"#;
        let expected = r#"{"maxValues":{"d":123456789012345678.90},"numRecords":3,"tightBounds":false}"#;
        assert_eq!(with_wide_bounds(text).unwrap(), expected);
        assert!(with_wide_bounds("[]").is_err());
    }

    proptest! {
        #[test]
        fn a_truncated_maximum_is_an_upper_bound(text in "[a\u{7e}\u{7f}\u{e9}\u{10fffe}\u{10ffff}]{0,70}") {
            if let Some(truncated) = truncate_upwards(&text) {
                prop_assert!(truncated.as_bytes() >= text.as_bytes());
                prop_assert!(text.chars().count() > MAX_CHARACTERS || truncated == text);
            }
        }
    }
}
