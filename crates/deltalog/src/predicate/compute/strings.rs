//! Functions that make strings of parts, of numbers and of bytes.

use super::operation::Operation;
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int32Array, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum length of the result of `repeat`, in bytes, so that no row takes all memory.
const LONGEST_REPEAT: usize = 1 << 24;

/// Computes the function. A result that does not exist is NULL.
pub(super) fn strings(operation: Operation, arguments: &[ArrayRef]) -> Result<ArrayRef> {
    use Operation as O;
    let text = |at: usize, row: usize| {
        let texts = arguments.get(at)?.as_string_opt::<i32>()?;
        texts.is_valid(row).then(|| texts.value(row))
    };
    let rows = arguments.first().map_or(0, |first| first.len());
    Ok(match (operation, arguments) {
        (O::ConcatWith, [_, parts @ ..]) => {
            let joined = |row: usize| {
                let parts = (1..=parts.len()).filter_map(|at| text(at, row));
                Some(parts.collect::<Vec<_>>().join(text(0, row)?))
            };
            Arc::new((0..rows).map(joined).collect::<StringArray>())
        }
        (O::Repeat, [of, times]) => {
            let pairs = of.as_string::<i32>().iter().zip(times.as_primitive::<Int32Type>());
            let repeated = pairs.map(|(text, times)| {
                let (text, times) = (text?, usize::try_from(times?).unwrap_or_default());
                (text.len().checked_mul(times)? <= LONGEST_REPEAT).then(|| text.repeat(times))
            });
            Arc::new(repeated.collect::<StringArray>())
        }
        (O::Hex, [of]) => match of.data_type() {
            DataType::Binary => {
                Arc::new(of.as_binary::<i32>().iter().map(|v| v.map(hexadecimal)).collect::<StringArray>())
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
            Arc::new((0..rows).map(translated).collect::<StringArray>())
        }
        _ => return Err(Error::invalid_argument(format!("{operation:?} makes no strings"))),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Returns the bytes of hexadecimal digits, of which the first may stand alone.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.chars().map(|c| Some(c.to_digit(16)? as u8)).collect::<Option<Vec<u8>>>()?;
    let (alone, pairs) = digits.split_at(digits.len() % 2);
    let pairs = pairs.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit));
    Some(alone.iter().copied().chain(pairs).collect())
}

/// Replaces the characters in `from` by those at the same place in `to`, or by nothing.
fn translate(text: &str, from: &str, to: &str) -> String {
    let mut by = HashMap::new();
    let mut to = to.chars();
    for c in from.chars() {
        let next = to.next();
        by.entry(c).or_insert(next);
    }
    text.chars().filter_map(|c| by.get(&c).copied().unwrap_or(Some(c))).collect()
}
