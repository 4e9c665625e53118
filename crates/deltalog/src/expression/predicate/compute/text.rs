//! Functions of strings. Positions and lengths count characters, and the first character is number 1.

use super::operation::Operation;
use super::room::Room;
use super::words::init_cap;
use crate::error::{Error, Result};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int32Array, PrimitiveArray, StringArray,
};
use arrow::datatypes::{DataType, Int32Type};
use std::sync::Arc;

/// Computes a function of strings and lengths. A result that does not exist is NULL.
pub(super) fn text(operation: Operation, arguments: &[ArrayRef], room: &Room<'_>) -> Result<ArrayRef> {
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
        (O::Upper, [of]) => each(of, room, |text| text.to_uppercase())?,
        (O::Lower, [of]) => each(of, room, |text| text.to_lowercase())?,
        (O::InitCap, [of]) => each(of, room, init_cap)?,
        (O::Trim, [of]) => each(of, room, |text| text.trim_matches(' ').to_owned())?,
        (O::TrimStart, [of]) => each(of, room, |text| text.trim_start_matches(' ').to_owned())?,
        (O::TrimEnd, [of]) => each(of, room, |text| text.trim_end_matches(' ').to_owned())?,
        (O::Reverse, [of]) => each(of, room, |text| text.chars().rev().collect())?,
        (O::Contains, [of, part]) => pairs(of, part, |text, part| text.contains(part)),
        (O::StartsWith, [of, part]) => pairs(of, part, |text, part| text.starts_with(part)),
        (O::EndsWith, [of, part]) => pairs(of, part, |text, part| text.ends_with(part)),
        (O::Position, [of, part]) => {
            let of = of.as_string::<i32>().iter().zip(part.as_string::<i32>());
            Arc::new(of.map(|(text, part)| position(text?, part?)).collect::<Int32Array>())
        }
        (O::Concat, parts) => {
            let parts: Vec<&StringArray> = parts.iter().map(|part| part.as_string::<i32>()).collect();
            room.texts(|row| {
                if parts.iter().any(|part| part.is_null(row)) {
                    return Ok(None);
                }
                let all = || parts.iter().map(|part| part.value(row));
                room.ensure(all().map(str::len).sum())?;
                Ok(Some(all().collect::<String>()))
            })?
        }
        (O::Replace, [of, search, by @ ..]) => {
            let by = by.first();
            rows(of, room, |row, text| {
                let by = by.map_or(Some(""), |by| valid(by, row));
                let (Some(search), Some(by)) = (valid(search, row), by) else { return Ok(None) };
                if search.is_empty() {
                    return Ok(Some(text.to_owned()));
                }
                if by.len() > search.len() {
                    let longer = text.matches(search).count().saturating_mul(by.len() - search.len());
                    room.ensure(text.len().saturating_add(longer))?;
                }
                Ok(Some(text.replace(search, by)))
            })?
        }
        (O::Substring, [of, _, ..]) => {
            let (from, length) = (number(1), number(2));
            rows(of, room, |row, text| {
                let from = from.and_then(|from| at(from, row));
                let length = length.map_or(Some(i32::MAX), |lengths| at(lengths, row));
                Ok(from.zip(length).map(|(from, length)| substring(text, from, length)))
            })?
        }
        (O::Right, [of, _]) => {
            let lengths = number(1);
            rows(of, room, |row, text| {
                let length = lengths.and_then(|lengths| at(lengths, row));
                Ok(length.map(|length| match length {
                    1.. => substring(text, -length, i32::MAX),
                    _ => String::new(),
                }))
            })?
        }
        (O::PadStart | O::PadEnd, [of, _, pad @ ..]) => {
            let (lengths, pad) = (number(1), pad.first());
            rows(of, room, |row, text| {
                let pad = pad.map_or(Some(" "), |pad| valid(pad, row));
                let length = lengths.and_then(|lengths| at(lengths, row));
                let Some((pad, length)) = pad.zip(length) else { return Ok(None) };
                let length = usize::try_from(length).unwrap_or_default();
                let missing = length.saturating_sub(text.chars().count());
                let widest = pad.chars().map(char::len_utf8).max().unwrap_or_default();
                room.ensure(text.len().saturating_add(missing.saturating_mul(widest)))?;
                let padding: String = pad.chars().cycle().take(missing).collect();
                let text: String = text.chars().take(length).collect();
                Ok(Some(if operation == O::PadStart { padding + &text } else { text + &padding }))
            })?
        }
        _ => return Err(Error::invalid_argument(format!("{operation:?} is not a function of strings"))),
    })
}

fn each(of: &ArrayRef, room: &Room<'_>, change: impl Fn(&str) -> String) -> Result<ArrayRef> {
    rows(of, room, |_, text| Ok(Some(change(text))))
}

fn rows(
    of: &ArrayRef,
    room: &Room<'_>,
    result: impl Fn(usize, &str) -> Result<Option<String>>,
) -> Result<ArrayRef> {
    room.texts(|row| valid(of, row).map_or(Ok(None), |text| result(row, text)))
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

/// Returns `length` characters from the character number `from` on. -1 is the last character, and 0 means the first.
fn substring(text: &str, from: i32, length: i32) -> String {
    let start = match from {
        1.. => i64::from(from) - 1,
        0 => 0,
        _ => i64::try_from(text.chars().count()).unwrap_or(i64::MAX) + i64::from(from),
    };
    // Positions before the first character count toward the length: the result for ('abc', -5, 3) is 'a'.
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
