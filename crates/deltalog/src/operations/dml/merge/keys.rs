//! An index of the source's rows by key. Keys are the values that the condition of a MERGE compares for equality.
//!
//! - Keys are compared as the bytes that `arrow::row` encodes them to. Only types for which this gives the exact
//!   result are used as keys; all other comparisons remain in the condition.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::error::{Error, Result};
use crate::expression::predicate::normal;

/// Marks the end of the list of rows that have the same key.
const END: u32 = u32::MAX;

/// Returns the type in which values of the two types can be compared as keys; `None` if they cannot.
pub(super) fn key_type(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        (a, b) if a == b && !is_float(a) => {
            let is_exact = a.is_signed_integer()
                || matches!(
                    a,
                    DataType::Utf8
                        | DataType::Binary
                        | DataType::Boolean
                        | DataType::Date32
                        | DataType::Timestamp(..)
                        | DataType::Decimal128(..)
                );
            is_exact.then(|| a.clone())
        }
        (a, b) if a.is_signed_integer() && b.is_signed_integer() => Some(DataType::Int64),
        (a, b) if is_float(a) && is_float(b) => Some(DataType::Float64),
        _ => None,
    }
}

fn is_float(kind: &DataType) -> bool {
    matches!(kind, DataType::Float32 | DataType::Float64)
}

/// Converts floating-point keys so that equal values have the same bytes: NaN equals itself, and -0.0 equals 0.0.
fn comparable(keys: ArrayRef) -> ArrayRef {
    match keys.as_primitive_opt::<Float64Type>() {
        None => keys,
        Some(numbers) => Arc::new(numbers.unary::<_, Float64Type>(normal)),
    }
}

/// The rows of the source, by their keys.
pub(super) struct KeyIndex {
    types: Vec<DataType>,
    null_safe: Vec<bool>,
    converter: RowConverter,
    rows: Rows,
    /// The first row with each key.
    first: HashTable<u32>,
    /// For each row, the next row with the same key.
    next: Vec<u32>,
    hasher: DefaultHashBuilder,
}

/// The keys of rows that are looked up in the index.
pub(super) struct LookedUp {
    rows: Rows,
    /// The rows that can match: none of their keys is NULL, except perhaps keys that are compared by `<=>`. `None`
    /// means all rows.
    valid: Option<NullBuffer>,
}

impl KeyIndex {
    /// Indexes the rows that have the keys in these batches.
    ///
    /// # Errors
    /// `InvalidArgument` for keys that need too much memory.
    pub(super) fn new(batches: &[Vec<ArrayRef>], types: Vec<DataType>, null_safe: Vec<bool>) -> Result<Self> {
        let fields = types.iter().map(|kind| SortField::new(kind.clone())).collect();
        let converter = RowConverter::new(fields).map_err(incomparable)?;
        let (mut rows, mut is_valid) = (converter.empty_rows(0, 0), Vec::new());
        for keys in batches {
            let (keys, valid) = comparable_keys(keys, &types, &null_safe)?;
            let before = rows.num_rows();
            converter.append(&mut rows, &keys).map_err(incomparable)?;
            let is_valid_in = |row| valid.as_ref().is_none_or(|valid| valid.is_valid(row));
            is_valid.extend((0..rows.num_rows() - before).map(is_valid_in));
        }
        let count = rows.num_rows();
        let mut index = Self {
            types,
            null_safe,
            converter,
            first: HashTable::with_capacity(count),
            next: vec![END; count],
            hasher: DefaultHashBuilder::default(),
            rows,
        };
        // Rows are added from the last to the first, so that each list of rows is in ascending order.
        for row in (0..u32::try_from(count).unwrap_or(END)).rev() {
            if is_valid.get(row as usize) != Some(&true) {
                continue;
            }
            let KeyIndex { rows, hasher, first, next, .. } = &mut index;
            let bytes = |row: u32| rows.row(row as usize);
            let hash = |row: u32| hasher.hash_one(bytes(row).as_ref());
            match first.find_mut(hash(row), |known| bytes(*known) == bytes(row)) {
                Some(known) => {
                    if let Some(place) = next.get_mut(row as usize) {
                        *place = *known;
                    }
                    *known = row;
                }
                None => {
                    first.insert_unique(hash(row), row, |known| hash(*known));
                }
            }
        }
        Ok(index)
    }

    /// Prepares the keys of the table's rows so that they can be looked up.
    ///
    /// # Errors
    /// `InvalidArgument` for keys that need too much memory.
    pub(super) fn look_up(&self, keys: &[ArrayRef]) -> Result<LookedUp> {
        let (keys, valid) = comparable_keys(keys, &self.types, &self.null_safe)?;
        Ok(LookedUp { rows: self.converter.convert_columns(&keys).map_err(incomparable)?, valid })
    }

    /// Returns the rows of the source that have the same keys as row `row`.
    pub(super) fn rows<'a>(&'a self, of: &LookedUp, row: usize) -> impl Iterator<Item = u32> + use<'a> {
        let is_null = of.valid.as_ref().is_some_and(|valid| valid.is_null(row));
        let first = if is_null {
            None
        } else {
            let key = of.rows.row(row);
            let hash = self.hasher.hash_one(key.as_ref());
            self.first.find(hash, |known| self.rows.row(*known as usize).as_ref() == key.as_ref()).copied()
        };
        std::iter::successors(first, |row| self.next.get(*row as usize).copied().filter(|next| *next != END))
    }
}

/// Converts keys to the types in which they are compared. Also returns the rows that can match: none of their keys is
/// NULL, except perhaps keys that are compared by `<=>`. `None` means all rows.
fn comparable_keys(
    keys: &[ArrayRef],
    types: &[DataType],
    null_safe: &[bool],
) -> Result<(Vec<ArrayRef>, Option<NullBuffer>)> {
    let cast = |(key, to): (&ArrayRef, &DataType)| cast(key, to).map(comparable).map_err(incomparable);
    let keys: Vec<ArrayRef> = keys.iter().zip(types).map(cast).collect::<Result<_>>()?;
    let strict = keys.iter().zip(null_safe).filter(|(_, null_safe)| !**null_safe);
    let valid =
        strict.fold(None, |valid, (key, _)| NullBuffer::union(valid.as_ref(), key.logical_nulls().as_ref()));
    Ok((keys, valid))
}

fn incomparable(error: arrow::error::ArrowError) -> Error {
    Error::invalid_argument("the keys of a MERGE cannot be compared").with_source(error)
}
