//! Deletion vectors: which rows of a data file are deleted. (PROTOCOL, "Deletion Vectors", "Deletion Vector
//! Format".)
//!
//! ```text
//! descriptor ──place──> file and offset ──file──> size, bytes, CRC-32 ──┐
//!     └───────inline──> Z85 text ──z85──────────────────────────────────┴──blob──> magic, 64-bit Roaring ──> rows
//! ```
//!
//! - Row numbers are positions in the data file, counted from zero and including deleted rows. A vector is
//!   therefore only valid for one data file.
//! - The position and the size of a vector are checked before memory is allocated for it. Then its checksum, the order
//!   of its keys and its cardinality are checked, and, if the number of rows in the data file is known, that all
//!   deleted rows exist. A vector that fails a check is an error, never an empty vector.
//! - Only the bytes of the requested vectors are read, even if their file contains many others.

mod blob;
mod place;
mod read;
mod write;
mod z85;

use std::ops::{Range, RangeInclusive};

use roaring::RoaringTreemap;
use roaring::bitmap::Iter;

use crate::error::{Error, Result};

pub use place::VectorPlace;
pub(crate) use place::vector_path;
pub use read::DeletionVectors;
pub(crate) use write::{relocated_vector, vector_file, write_vectors};

/// The deleted rows of a data file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeletionVector {
    rows: RoaringTreemap,
}

impl DeletionVector {
    /// Returns the number of deleted rows.
    pub fn cardinality(&self) -> u64 {
        self.rows.len()
    }

    /// Returns the vector as bytes, in the format that inline vectors and vector files share.
    #[doc(hidden)]
    pub fn to_bytes(&self) -> Vec<u8> {
        blob::encode(&self.rows)
    }

    /// Returns whether row `row` of the data file, counted from zero, is deleted.
    pub fn contains(&self, row: u64) -> bool {
        self.rows.contains(row)
    }

    /// Returns the deleted rows in ascending order.
    pub fn rows(&self) -> impl Iterator<Item = u64> {
        self.rows.iter()
    }

    /// Returns the deleted rows among `rows` as non-empty ranges in ascending order. A range may begin where the
    /// previous one ends.
    pub fn ranges(&self, rows: Range<u64>) -> impl Iterator<Item = RangeInclusive<u64>> {
        self.buckets(rows).flat_map(|(first, mut deleted)| {
            std::iter::from_fn(move || deleted.next_range())
                .map(move |range| first + u64::from(*range.start())..=first + u64::from(*range.end()))
        })
    }

    /// Returns the deleted rows among `rows` in ascending order. If few of them are adjacent, this is several times as
    /// fast as [`DeletionVector::ranges`].
    pub(crate) fn rows_within(&self, rows: Range<u64>) -> impl Iterator<Item = u64> {
        // This does not use `next_many`: in roaring 0.12, it omits a run that fills a container, from 0 to 65,535.
        self.buckets(rows).flat_map(|(first, deleted)| deleted.map(move |row| first + u64::from(row)))
    }

    /// Returns the buckets of the vector that may have rows among `rows`. Each item is the number of the bucket's first
    /// row, and the bucket's deleted rows among `rows`, counted from that first row.
    fn buckets(&self, rows: Range<u64>) -> impl Iterator<Item = (u64, Iter<'_>)> {
        self.rows.bitmaps().filter_map(move |(key, bucket)| {
            // A bucket covers 2^32 rows. This is the first row of the bucket.
            let first = u64::from(key) << u32::BITS;
            let start = u32::try_from(rows.start.saturating_sub(first)).ok()?;
            let last = rows.end.checked_sub(1)?.checked_sub(first)?;
            let last = u32::try_from(last).unwrap_or(u32::MAX);
            (start <= last).then(|| (first, bucket.range(start..=last)))
        })
    }

    /// Returns the number of deleted rows among `rows`.
    pub fn count(&self, rows: Range<u64>) -> u64 {
        match rows.is_empty() {
            true => 0,
            false => self.rows.range_cardinality(rows),
        }
    }

    /// Returns the deleted rows as a bitmap.
    pub fn bitmap(&self) -> &RoaringTreemap {
        &self.rows
    }

    /// Checks that all rows of the vector exist in a data file of `rows` rows.
    ///
    /// # Errors
    /// `CorruptData` if the vector has a row that does not exist.
    pub fn ensure_within(&self, rows: u64) -> Result<()> {
        match self.rows.max() {
            Some(largest) if largest >= rows => Err(Error::corrupt_data(format!(
                "the deletion vector names row {largest} of a data file that has {rows} rows"
            ))
            .with_hint("the vector belongs to another file, or one of the two was replaced")),
            _ => Ok(()),
        }
    }
}

impl From<RoaringTreemap> for DeletionVector {
    fn from(rows: RoaringTreemap) -> Self {
        Self { rows }
    }
}

impl FromIterator<u64> for DeletionVector {
    fn from_iter<I: IntoIterator<Item = u64>>(rows: I) -> Self {
        Self { rows: rows.into_iter().collect() }
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
