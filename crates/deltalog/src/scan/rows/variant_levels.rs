//! Limits the nesting depth of shredded variants, because their decoder is recursive. (Parquet's
//! `VariantEncoding.md`, "Value encoding".)

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use crate::limits::VARIANT_LEVELS;

/// The minimum number of bytes that each nesting level of a value takes: a header, the number of elements and an
/// offset.
const BYTES_PER_LEVEL: usize = 3;

/// Refuses variants whose typed parts contain a value that is nested too deeply.
pub(super) fn check(stored: &StructArray) -> Result<(), ArrowError> {
    for (field, column) in stored.fields().iter().zip(stored.columns()) {
        let is_value = field.name() == super::variant::VALUE;
        match column.data_type() {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView if is_value => {
                check_values(column)?
            }
            _ => check_parts(column)?,
        }
    }
    Ok(())
}

fn check_parts(column: &ArrayRef) -> Result<(), ArrowError> {
    match column.data_type() {
        DataType::Struct(_) => check(column.as_struct()),
        DataType::List(_) => check_parts(column.as_list::<i32>().values()),
        DataType::LargeList(_) => check_parts(column.as_list::<i64>().values()),
        DataType::ListView(_) => check_parts(column.as_list_view::<i32>().values()),
        DataType::LargeListView(_) => check_parts(column.as_list_view::<i64>().values()),
        DataType::FixedSizeList(..) => check_parts(column.as_fixed_size_list().values()),
        _ => Ok(()),
    }
}

fn check_values(column: &ArrayRef) -> Result<(), ArrowError> {
    let values = cast(column, &DataType::BinaryView)?;
    let long = |value: &&[u8]| value.len() > BYTES_PER_LEVEL * VARIANT_LEVELS;
    values.as_binary_view().iter().flatten().filter(long).try_for_each(check_value)
}

/// Checks the elements of a value without recursion. Damaged values are ignored here, because the decoder reports
/// them.
fn check_value(value: &[u8]) -> Result<(), ArrowError> {
    let (mut waiting, mut seen) = (vec![(0, 0)], 0);
    while let Some((start, level)) = waiting.pop() {
        let Some(elements) = value.get(start..).and_then(Elements::of) else { continue };
        if level == VARIANT_LEVELS {
            return Err(ArrowError::ParseError(format!(
                "a variant has more than {VARIANT_LEVELS} levels of objects and arrays"
            )));
        }
        // Elements that do not overlap take at least one byte each, so there cannot be more elements than bytes.
        seen += elements.count;
        if seen > value.len() {
            return Err(ArrowError::ParseError("a variant has more elements than bytes".to_owned()));
        }
        waiting.extend(elements.starts().map(|element| (start.saturating_add(element), level + 1)));
    }
    Ok(())
}

/// The elements of a variant object or array.
struct Elements<'a> {
    count: usize,
    offsets: &'a [u8],
    offset_size: usize,
    /// The offset at which the first element begins.
    first: usize,
}

impl<'a> Elements<'a> {
    fn of(value: &'a [u8]) -> Option<Self> {
        let header = *value.first()?;
        let (is_large, id_size) = match header & 0b11 {
            2 => (header & 0b100_0000 != 0, usize::from(header >> 4 & 0b11) + 1),
            3 => (header & 0b1_0000 != 0, 0),
            _ => return None,
        };
        let offset_size = usize::from(header >> 2 & 0b11) + 1;
        let count_size = if is_large { 4 } else { 1 };
        let count = number(value.get(1..1 + count_size)?);
        let ids = 1 + count_size;
        let offsets = ids.checked_add(count.checked_mul(id_size)?)?;
        let first = offsets.checked_add(count.checked_add(1)?.checked_mul(offset_size)?)?;
        Some(Self { count, offsets: value.get(offsets..first)?, offset_size, first })
    }

    fn starts(&self) -> impl Iterator<Item = usize> {
        let offsets = self.offsets.chunks_exact(self.offset_size).take(self.count);
        offsets.map(|offset| self.first.saturating_add(number(offset)))
    }
}

/// Reads a number of up to four bytes, with the lowest byte first.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::BinaryArray;
    use arrow::datatypes::Field;

    use super::*;

    fn nested(levels: usize) -> Vec<u8> {
        let mut value = vec![0];
        for level in 0..levels {
            let length = u32::try_from(value.len()).unwrap().to_le_bytes();
            // An array, or an object whose only field has the id 0. Both have offsets of four bytes.
            let mut outer = if level % 2 == 0 { vec![0b1111, 1] } else { vec![0b1110, 1, 0] };
            outer.extend([[0; 4], length].concat());
            outer.extend(value);
            value = outer;
        }
        value
    }

    fn variants(value: &[u8]) -> StructArray {
        let values: ArrayRef = Arc::new(BinaryArray::from_vec(vec![value]));
        let part = StructArray::from(vec![(Arc::new(Field::new("value", DataType::Binary, true)), values)]);
        StructArray::from(vec![(
            Arc::new(Field::new("typed_value", part.data_type().clone(), true)),
            Arc::new(part) as ArrayRef,
        )])
    }

    #[test]
    fn levels_are_counted_in_arrays_and_objects() {
        check(&variants(&nested(VARIANT_LEVELS))).unwrap();
        for levels in [VARIANT_LEVELS + 1, 12_000] {
            let error = check(&variants(&nested(levels))).unwrap_err();
            assert!(error.to_string().contains("levels"), "{error}");
        }
    }

    #[test]
    fn overlapping_elements_are_refused() {
        // Each array has two elements, and both of them are the next array.
        let mut value = vec![0];
        for _ in 0..VARIANT_LEVELS - 1 {
            let length = u32::try_from(value.len()).unwrap().to_le_bytes();
            let mut outer = vec![0b1111, 2];
            outer.extend([[0; 4], [0; 4], length].concat());
            outer.extend(value);
            value = outer;
        }
        let error = check(&variants(&value)).unwrap_err();
        assert!(error.to_string().contains("more elements"), "{error}");
    }

    #[test]
    fn damaged_values_are_left_to_the_decoder() {
        let value = nested(VARIANT_LEVELS);
        for length in (0..value.len()).step_by(97) {
            check_value(&value[..length]).unwrap();
        }
        check_value(&[0b1_1111, 255, 255, 255, 255]).unwrap();
    }
}
