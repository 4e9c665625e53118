//! Statistics as JSON text, each value a bound after it was written.
//!
//! - Numbers are written digit by digit, never by way of a floating-point number of less precision.
//! - Strings are cut off after 32 characters, timestamps at the millisecond: a minimum downwards, a maximum
//!   upwards, or left out.

use crate::protocol::text::{date_text, decimal_text, json_string, timestamp_text};
use arrow::datatypes::DataType;

/// The longest string that is not cut off, in characters.
const MAX_CHARACTERS: usize = 32;

/// Which way a value may be rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Min,
    Max,
}

/// The least or greatest value of a column, as the footer has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Extreme {
    Integer(i64),
    /// Unscaled.
    Decimal(i128),
    Float(f64),
    Text(String),
}

/// `value` of a column of type `data_type` as JSON; `None` if no bound can be written.
pub(super) fn value_json(value: &Extreme, data_type: &DataType, side: Side) -> Option<String> {
    match (value, data_type) {
        (Extreme::Integer(v), DataType::Date32) => {
            let date = date_text(i32::try_from(*v).ok()?);
            // A year that needs a sign is not what readers expect of `yyyy-MM-dd`.
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
        // All digits of the binary number, so that it is the same to whoever reads it with more precision.
        (Extreme::Float(v), _) => v.is_finite().then(|| format!("{v:?}")),
        (Extreme::Text(v), _) => {
            let cut = match side {
                Side::Min => v.chars().take(MAX_CHARACTERS).collect(),
                Side::Max => cut_upwards(v)?,
            };
            Some(json_string(&cut))
        }
        _ => None,
    }
}

/// A string that no string is greater than that starts as `text` does, and that is not longer than needed.
///
/// As the JVM writer does, the cut is followed by one character above the one cut off. Only after the
/// greatest character there is none above, so those are kept; a string with too many of them has no bound.
fn cut_upwards(text: &str) -> Option<String> {
    let mut characters = text.chars();
    let mut cut: String = characters.by_ref().take(MAX_CHARACTERS).collect();
    for kept in 0.. {
        match characters.next() {
            None => return Some(cut),
            Some(c) if c < '\u{7f}' => cut.push('\u{7f}'),
            Some(c) if c < char::MAX => cut.push(char::MAX),
            Some(c) if kept < MAX_CHARACTERS => {
                cut.push(c);
                continue;
            }
            Some(_) => return None,
        }
        break;
    }
    Some(cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cut_string_is_a_bound(text in "[a\u{7e}\u{7f}\u{e9}\u{10fffe}\u{10ffff}]{0,70}") {
            if let Some(cut) = cut_upwards(&text) {
                prop_assert!(cut.as_bytes() >= text.as_bytes());
                prop_assert!(text.chars().count() > MAX_CHARACTERS || cut == text);
            }
        }
    }
}
