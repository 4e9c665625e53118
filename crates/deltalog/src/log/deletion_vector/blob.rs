//! The serialized form of a deletion vector, in the log and in files. (PROTOCOL, "Deletion Vector Format".)
//!
//! ```text
//! portable   u32 magic 1681511377 │ u64 buckets │ u32 key,  32-bit Roaring bitmap │ …
//! native     u32 magic 1681511376 │ u32 buckets │ u32 size, 32-bit Roaring bitmap │ …
//! ```
//!
//! - The protocol describes the portable format, which is little endian. Its example of an inline vector ("JSON Example
//!   3 — Inline") uses the native format. The native format is older, is big endian in the example, and numbers its
//!   buckets implicitly from zero.
//! - Keys are the upper 32 bits of row numbers. They ascend, and their highest bit is never set. Some writers write a
//!   bucket for every key, even if it is empty.
//! - Trailing bytes are an error.
//! - The memory used is bounded by the number of bytes: a bitmap is read container by container, and each container is
//!   stored either in full or as runs.

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::error::{Error, Result};

/// The magic number of the portable format.
const PORTABLE: u32 = 1_681_511_377;
/// The magic number of the native format.
const NATIVE: u32 = 1_681_511_376;
/// The size of the smallest possible bucket in bytes: a key, and a bitmap without containers.
const MIN_BUCKET_BYTES: usize = 4 + 8;

/// Decodes `bytes` to a set of rows, which must have `cardinality` elements.
///
/// # Errors
/// `CorruptData` if the bytes are malformed or the cardinality differs.
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
            "the deletion vector holds {} rows, but its descriptor says {cardinality}",
            rows.len()
        ))),
    }
}

/// Encodes a set of rows in the portable format.
pub(super) fn encode(rows: &RoaringTreemap) -> Vec<u8> {
    let mut rows = rows.clone();
    rows.optimize();
    let mut bytes = PORTABLE.to_le_bytes().to_vec();
    bytes.reserve(rows.serialized_size());
    // Writing to memory does not fail.
    let _ = rows.serialize_into(&mut bytes);
    bytes
}

fn portable(mut bytes: &[u8]) -> Result<Vec<(u32, RoaringBitmap)>> {
    let count = checked_count(u64::from_le_bytes(take(&mut bytes)?), bytes)?;
    let mut buckets: Vec<(u32, RoaringBitmap)> = Vec::new();
    for _ in 0..count {
        let key = u32::from_le_bytes(take(&mut bytes)?);
        if buckets.last().is_some_and(|(last, _)| key <= *last) || i32::try_from(key).is_err() {
            return Err(Error::corrupt_data(format!("the deletion vector's bucket {key} is out of order")));
        }
        buckets.push((key, bitmap(&mut bytes)?));
    }
    ensure_empty(bytes).map(|()| buckets)
}

fn native(mut bytes: &[u8], number: fn([u8; 4]) -> u32) -> Result<Vec<(u32, RoaringBitmap)>> {
    let count = checked_count(number(take(&mut bytes)?).into(), bytes)?;
    let mut buckets = Vec::new();
    for key in 0..count {
        let size = usize::try_from(number(take(&mut bytes)?)).unwrap_or(usize::MAX);
        let (mut bucket, rest) = bytes.split_at_checked(size).ok_or_else(truncated)?;
        buckets.push((key, bitmap(&mut bucket)?));
        ensure_empty(bucket)?;
        bytes = rest;
    }
    ensure_empty(bytes).map(|()| buckets)
}

/// Returns `count` if `bytes` is long enough for that many buckets.
fn checked_count(count: u64, bytes: &[u8]) -> Result<u32> {
    u32::try_from(count).ok().filter(|_| count <= (bytes.len() / MIN_BUCKET_BYTES) as u64).ok_or_else(|| {
        Error::corrupt_data(format!("the deletion vector claims {count} buckets in {} bytes", bytes.len()))
    })
}

fn bitmap(bytes: &mut &[u8]) -> Result<RoaringBitmap> {
    RoaringBitmap::deserialize_from(bytes).map_err(|error| {
        Error::corrupt_data("the deletion vector holds a malformed Roaring bitmap").with_source(error)
    })
}

fn ensure_empty(bytes: &[u8]) -> Result<()> {
    match bytes {
        [] => Ok(()),
        _ => Err(Error::corrupt_data(format!("the deletion vector has {} trailing bytes", bytes.len()))),
    }
}

/// Removes the next `N` bytes from `bytes` and returns them.
fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk().ok_or_else(truncated)?;
    *bytes = rest;
    Ok(*taken)
}

fn truncated() -> Error {
    Error::corrupt_data("the deletion vector is truncated")
}
