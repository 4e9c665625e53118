//! Values that differ from row to row: `uuid()` and `rand()`.

use super::operation::Operation;
use crate::error::{Error, Result};
use arrow::array::{ArrayRef, Float64Array, StringArray};
use std::sync::Arc;
use uuid::Uuid;

/// Returns values for `rows` rows.
pub(super) fn random(operation: Operation, rows: usize) -> Result<ArrayRef> {
    Ok(match operation {
        Operation::Uuid => {
            Arc::new(StringArray::from_iter_values((0..rows).map(|_| Uuid::new_v4().to_string())))
        }
        Operation::Random => Arc::new(Float64Array::from_iter_values((0..rows).map(|_| random_number()))),
        _ => return Err(Error::invalid_argument(format!("{operation:?} is not random"))),
    })
}

/// Returns a number from 0 up to, but not including, 1.
fn random_number() -> f64 {
    // A random UUID ends in random bits, so its last bits serve as the random number.
    const BITS: u32 = 53;
    let bits = Uuid::new_v4().as_u128() & ((1 << BITS) - 1);
    bits as f64 / (1u64 << BITS) as f64
}
