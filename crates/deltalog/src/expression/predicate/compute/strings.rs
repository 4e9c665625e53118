//! Functions that make strings from other strings, numbers and bytes.

use super::operation::Operation;
use super::room::Room;
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int32Array, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use std::collections::HashMap;
use std::sync::Arc;

/// Computes a function that returns strings or bytes. A result that does not exist is NULL.
pub(super) fn strings(operation: Operation, arguments: &[ArrayRef], room: &Room<'_>) -> Result<ArrayRef> {
    use Operation as O;
    let text = |at: usize, row: usize| {
        let texts = arguments.get(at)?.as_string_opt::<i32>()?;
        texts.is_valid(row).then(|| texts.value(row))
    };
    Ok(match (operation, arguments) {
        (O::ConcatWith, [_, parts @ ..]) => room.texts(|row| {
            let Some(between) = text(0, row) else { return Ok(None) };
            let parts: Vec<&str> = (1..=parts.len()).filter_map(|at| text(at, row)).collect();
            let between_all = between.len().saturating_mul(parts.len());
            room.ensure(parts.iter().map(|part| part.len()).sum::<usize>().saturating_add(between_all))?;
            Ok(Some(parts.join(between)))
        })?,
        (O::Repeat, [_, times]) => {
            let times = times.as_primitive::<Int32Type>();
            room.texts(|row| {
                let Some(text) = text(0, row).filter(|_| times.is_valid(row)) else { return Ok(None) };
                let times = usize::try_from(times.value(row)).unwrap_or_default();
                room.ensure(text.len().saturating_mul(times))?;
                Ok(Some(text.repeat(times)))
            })?
        }
        (O::Hex, [of]) => match of.data_type() {
            DataType::Binary => {
                let of = of.as_binary::<i32>();
                room.texts(|row| {
                    let bytes = if of.is_valid(row) { of.value(row) } else { return Ok(None) };
                    room.ensure(bytes.len().saturating_mul(2))?;
                    Ok(Some(hexadecimal(bytes)))
                })?
            }
            _ => {
                let numbers = of.as_primitive::<Int64Type>().iter();
                Arc::new(numbers.map(|number| Some(format!("{:X}", number?))).collect::<StringArray>())
            }
        },
        (O::Unhex, [of]) => {
            Arc::new(of.as_string::<i32>().iter().map(|text| bytes_of(text?)).collect::<BinaryArray>())
        }
        (O::Ascii, [of]) => {
            let first = |text: &str| text.chars().next().map_or(0, |c| u32::from(c) as i32);
            Arc::new(of.as_string::<i32>().iter().map(|text| text.map(first)).collect::<Int32Array>())
        }
        (O::Character, [of]) => {
            let character = |number: i64| match number {
                ..0 => String::new(),
                number => char::from((number & 0xff) as u8).to_string(),
            };
            let numbers = of.as_primitive::<Int64Type>().iter();
            Arc::new(numbers.map(|number| number.map(character)).collect::<StringArray>())
        }
        (O::Translate, [_, _, _]) => {
            let translated = |row: usize| Some(translate(text(0, row)?, text(1, row)?, text(2, row)?));
            room.texts(|row| Ok(translated(row)))?
        }
        _ => return Err(Error::invalid_argument(format!("{operation:?} makes no strings"))),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0').to_ascii_uppercase();
        text.extend([digit(byte >> 4), digit(byte & 0xf)]);
    }
    text
}

/// Returns the bytes for hexadecimal digits. If the number of digits is odd, the first digit is a byte of its own.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.chars().map(|c| Some(c.to_digit(16)? as u8)).collect::<Option<Vec<u8>>>()?;
    let (alone, pairs) = digits.split_at(digits.len() % 2);
    let pairs = pairs.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit));
    Some(alone.iter().copied().chain(pairs).collect())
}

/// Replaces each character that occurs in `from` with the character at the same index in `to`. Removes it if `to` has
/// no character at that index.
fn translate(text: &str, from: &str, to: &str) -> String {
    let mut by = HashMap::new();
    let mut to = to.chars();
    for c in from.chars() {
        let next = to.next();
        by.entry(c).or_insert(next);
    }
    text.chars().filter_map(|c| by.get(&c).copied().unwrap_or(Some(c))).collect()
}
