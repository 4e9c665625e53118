//! Functions of strings. Positions and lengths count characters, and the first character is number 1.

use super::operation::Operation;
use super::words::init_cap;
use crate::error::{Error, Result};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int32Array, PrimitiveArray, StringArray,
};
use arrow::datatypes::{DataType, Int32Type};
use std::sync::Arc;

/// The maximum length that `lpad` and `rpad` fill up to, so that no row takes all memory.
const LONGEST_PAD: i32 = 1 << 20;

/// Computes a function of strings and lengths. A result that does not exist is NULL.
pub(super) fn text(operation: Operation, arguments: &[ArrayRef]) -> Result<ArrayRef> {
    use Operation as O;
    let number = |at: usize| optional::<Int32Type>(arguments, at);
    Ok(match (operation, arguments) {
        (O::Length | O::OctetLength, [of]) if *of.data_type() == DataType::Binary => {
            let length = |bytes: &[u8]| i32::try_from(bytes.len()).ok();
            Arc::new(of.as_binary::<i32>().iter().map(|v| v.and_then(length)).collect::<Int32Array>())
        }
        (O::Length, [of]) => Arc::new(
            of.as_string::<i32>()
                .iter()
                .map(|v| v.and_then(|text| i32::try_from(text.chars().count()).ok()))
                .collect::<Int32Array>(),
        ),
        (O::OctetLength, [of]) => Arc::new(
            of.as_string::<i32>()
                .iter()
                .map(|v| v.and_then(|text| i32::try_from(text.len()).ok()))
                .collect::<Int32Array>(),
        ),
        (O::Upper, [of]) => each(of, |text| text.to_uppercase()),
        (O::Lower, [of]) => each(of, |text| text.to_lowercase()),
        (O::InitCap, [of]) => each(of, init_cap),
        (O::Trim, [of]) => each(of, |text| text.trim_matches(' ').to_owned()),
        (O::TrimStart, [of]) => each(of, |text| text.trim_start_matches(' ').to_owned()),
        (O::TrimEnd, [of]) => each(of, |text| text.trim_end_matches(' ').to_owned()),
        (O::Reverse, [of]) => each(of, |text| text.chars().rev().collect()),
        (O::Contains, [of, part]) => pairs(of, part, |text, part| text.contains(part)),
        (O::StartsWith, [of, part]) => pairs(of, part, |text, part| text.starts_with(part)),
        (O::EndsWith, [of, part]) => pairs(of, part, |text, part| text.ends_with(part)),
        (O::Position, [of, part]) => {
            let of = of.as_string::<i32>().iter().zip(part.as_string::<i32>());
            Arc::new(of.map(|(text, part)| position(text?, part?)).collect::<Int32Array>())
        }
        (O::Concat, [first, more @ ..]) => {
            let mut all: Vec<Option<String>> =
                first.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect();
            for next in more {
                for (whole, text) in all.iter_mut().zip(next.as_string::<i32>()) {
                    match (whole.as_mut(), text) {
                        (Some(whole), Some(text)) => whole.push_str(text),
                        _ => *whole = None,
                    }
                }
            }
            Arc::new(StringArray::from(all))
        }
        (O::Replace, [of, search, by @ ..]) => {
            let by = by.first().map(|by| by.as_string::<i32>());
            rows(of, |row, text| {
                let search = valid(search, row)?;
                let by = match by {
                    Some(by) if by.is_null(row) => return None,
                    Some(by) => by.value(row),
                    None => "",
                };
                Some(if search.is_empty() { text.to_owned() } else { text.replace(search, by) })
            })
        }
        (O::Substring, [of, _, ..]) => {
            let (from, length) = (number(1), number(2));
            rows(of, |row, text| {
                let from = at(from?, row)?;
                let length = match length {
                    Some(lengths) => at(lengths, row)?,
                    None => i32::MAX,
                };
                Some(substring(text, from, length))
            })
        }
        (O::Right, [of, _]) => {
            let lengths = number(1);
            rows(of, |row, text| {
                let length = at(lengths?, row)?;
                Some(if length <= 0 { String::new() } else { substring(text, -length, i32::MAX) })
            })
        }
        (O::PadStart | O::PadEnd, [of, _, pad @ ..]) => {
            let (lengths, pad) = (number(1), pad.first());
            rows(of, |row, text| {
                let length = at(lengths?, row).filter(|length| *length <= LONGEST_PAD)?;
                let pad = match pad {
                    Some(pad) => valid(pad, row)?,
                    None => " ",
                };
                let length = usize::try_from(length).unwrap_or_default();
                let missing = length.saturating_sub(text.chars().count());
                let padding: String = pad.chars().cycle().take(missing).collect();
                let text: String = text.chars().take(length).collect();
                Some(if operation == O::PadStart { padding + &text } else { text + &padding })
            })
        }
        _ => return Err(Error::invalid_argument(format!("{operation:?} is not a function of strings"))),
    })
}

fn each(of: &ArrayRef, change: impl Fn(&str) -> String) -> ArrayRef {
    Arc::new(of.as_string::<i32>().iter().map(|text| text.map(&change)).collect::<StringArray>())
}

fn rows(of: &ArrayRef, result: impl Fn(usize, &str) -> Option<String>) -> ArrayRef {
    let results = of.as_string::<i32>().iter().enumerate().map(|(row, text)| result(row, text?));
    Arc::new(results.collect::<StringArray>())
}

fn pairs(of: &ArrayRef, other: &ArrayRef, result: impl Fn(&str, &str) -> bool) -> ArrayRef {
    let pairs = of.as_string::<i32>().iter().zip(other.as_string::<i32>());
    Arc::new(pairs.map(|(a, b)| Some(result(a?, b?))).collect::<BooleanArray>())
}

fn optional<T: ArrowPrimitiveType>(arguments: &[ArrayRef], at: usize) -> Option<&PrimitiveArray<T>> {
    arguments.get(at)?.as_primitive_opt::<T>()
}

fn at(numbers: &Int32Array, row: usize) -> Option<i32> {
    numbers.is_valid(row).then(|| numbers.value(row))
}

fn valid(texts: &ArrayRef, row: usize) -> Option<&str> {
    let texts = texts.as_string::<i32>();
    texts.is_valid(row).then(|| texts.value(row))
}

fn position(text: &str, part: &str) -> Option<i32> {
    match text.find(part) {
        Some(bytes) => i32::try_from(text.get(..bytes)?.chars().count() + 1).ok(),
        None => Some(0),
    }
}

/// Returns the characters from number `from` on; -1 is the last one, and 0 means the first.
fn substring(text: &str, from: i32, length: i32) -> String {
    let start = match from {
        1.. => i64::from(from) - 1,
        0 => 0,
        _ => i64::try_from(text.chars().count()).unwrap_or(i64::MAX) + i64::from(from),
    };
    // Characters before the first count, too: ('abc', -5, 3) is 'a'.
    let end = start + i64::from(length);
    let skip = usize::try_from(start.max(0)).unwrap_or(usize::MAX);
    let take = usize::try_from(end - start.max(0)).unwrap_or_default();
    text.chars().skip(skip).take(take).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_from_one() {
        for (from, length, expected) in [
            (1, 2, "aé"),
            (0, 2, "aé"),
            (2, 1, "é"),
            (-1, 5, "c"),
            (-5, 3, "a"),
            (-5, 2, ""),
            (4, 1, ""),
            (2, -1, ""),
            (2, i32::MAX, "éc"),
            (i32::MIN, i32::MAX, "aé"),
        ] {
            assert_eq!(substring("aéc", from, length), expected, "{from}, {length}");
        }
        assert_eq!(position("aéc", "c"), Some(3));
        assert_eq!(position("aéc", ""), Some(1));
        assert_eq!(position("aéc", "x"), Some(0));
    }
}
