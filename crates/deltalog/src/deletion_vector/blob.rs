//! The bytes of a vector, in the log as in files. (PROTOCOL, "Deletion Vector Format".)
//!
//! ```text
//! portable   u32 magic 1681511377 │ u64 buckets │ u32 key, 32-bit Roaring bitmap │ u32 key, 32-bit Roaring bitmap │ …
//! native     u32 magic 1681511376 │ u32 buckets │ u32 size, 32-bit Roaring bitmap │ u32 size, 32-bit Roaring bitmap │ …
//! ```
//!
//! - The protocol describes the portable format, which is little endian. Its example of a vector within the
//!   log ("JSON Example 3 — Inline") is in the native one, which is older, big endian there, and has no keys:
//!   they count from zero.
//! - Keys, the upper halves of row numbers, ascend and have no sign bit; some writers have a bucket for every
//!   key, empty ones too.
//! - The bytes are used up to the last.
//! - Memory is bounded by the bytes: a bitmap is taken container by container, each of which is in the bytes
//!   in full or as runs.

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::error::{Error, Result};

/// "Indicates that the following bytes are serialized in this exact format."
const PORTABLE: u32 = 1_681_511_377;
const NATIVE: u32 = 1_681_511_376;
/// A key, and a bitmap without containers.
const LEAST_BUCKET: usize = 4 + 8;

/// The rows that `bytes` stand for, of which there must be `cardinality`.
///
/// # Errors
/// `CorruptData`.
pub(super) fn decode(mut bytes: &[u8], cardinality: i64) -> Result<RoaringTreemap> {
    let magic = take(&mut bytes)?;
    let buckets = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
        (PORTABLE, _) => portable(bytes)?,
        (NATIVE, _) => native(bytes, u32::from_le_bytes)?,
        (_, NATIVE) => native(bytes, u32::from_be_bytes)?,
        (magic, _) => {
            return Err(Error::corrupt_data(format!(
                "the deletion vector begins with {magic} instead of {PORTABLE}"
            )));
        }
    };
    let rows = RoaringTreemap::from_bitmaps(buckets.into_iter().filter(|(_, bitmap)| !bitmap.is_empty()));
    match u64::try_from(cardinality) {
        Ok(expected) if expected == rows.len() => Ok(rows),
        _ => Err(Error::corrupt_data(format!(
            "the deletion vector holds {} rows, its descriptor says {cardinality}",
            rows.len()
        ))),
    }
}

fn portable(mut bytes: &[u8]) -> Result<Vec<(u32, RoaringBitmap)>> {
    let count = plausible(u64::from_le_bytes(take(&mut bytes)?), bytes)?;
    let mut buckets: Vec<(u32, RoaringBitmap)> = Vec::new();
    for _ in 0..count {
        let key = u32::from_le_bytes(take(&mut bytes)?);
        if buckets.last().is_some_and(|(last, _)| key <= *last) || i32::try_from(key).is_err() {
            return Err(Error::corrupt_data(format!("the deletion vector's bucket {key} is out of order")));
        }
        buckets.push((key, bitmap(&mut bytes)?));
    }
    at_end(bytes).map(|()| buckets)
}

fn native(mut bytes: &[u8], number: fn([u8; 4]) -> u32) -> Result<Vec<(u32, RoaringBitmap)>> {
    let count = plausible(number(take(&mut bytes)?).into(), bytes)?;
    let mut buckets = Vec::new();
    for key in 0..count {
        let size = usize::try_from(number(take(&mut bytes)?)).unwrap_or(usize::MAX);
        let (mut bucket, rest) = bytes.split_at_checked(size).ok_or_else(breaks_off)?;
        buckets.push((key, bitmap(&mut bucket)?));
        at_end(bucket)?;
        bytes = rest;
    }
    at_end(bytes).map(|()| buckets)
}

/// `count`, if so many buckets can be in `bytes`.
fn plausible(count: u64, bytes: &[u8]) -> Result<u32> {
    u32::try_from(count).ok().filter(|_| count <= (bytes.len() / LEAST_BUCKET) as u64).ok_or_else(|| {
        Error::corrupt_data(format!("the deletion vector claims {count} buckets in {} bytes", bytes.len()))
    })
}

fn bitmap(bytes: &mut &[u8]) -> Result<RoaringBitmap> {
    RoaringBitmap::deserialize_from(bytes).map_err(|error| {
        Error::corrupt_data("the deletion vector holds a malformed Roaring bitmap").with_source(error)
    })
}

fn at_end(bytes: &[u8]) -> Result<()> {
    match bytes {
        [] => Ok(()),
        _ => Err(Error::corrupt_data(format!("the deletion vector has {} bytes too many", bytes.len()))),
    }
}

/// The next `N` bytes.
fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk().ok_or_else(breaks_off)?;
    *bytes = rest;
    Ok(*taken)
}

fn breaks_off() -> Error {
    Error::corrupt_data("the deletion vector breaks off")
}
