//! Skips row groups by the Bloom filters in a file. (Parquet: "Bloom Filter".)
//!
//! ```text
//!   row groups that the statistics leave ── which values does the predicate ask for? ──► (group, column, values)
//!                                                                                             │ read the filters
//!   row groups that may have a match ◄── the predicate again, with the answers ◄──────────────┘
//! ```
//!
//! - A Bloom filter tells whether a column of a row group certainly lacks a value, or may contain it. Filters are
//!   used for `=`, `<=>` and `IN` with literals, also within AND, OR and NOT, unless the statistics already rule the
//!   value out.
//! - Only values with a single binary form are looked up: equal values must always be stored as the same bytes,
//!   because the file's writer has hashed the bytes. This is true for integers, dates, timestamps in microseconds,
//!   decimals with the scale of the file, strings and binary. It is not true for floating-point numbers, which have
//!   several zeros and NaNs, so they are never looked up.
//! - A filter that is larger than its column is not read, because reading the column itself is cheaper and exact.
//! - All filters of a row group are requested together.
//! - A malformed filter is ignored with a warning, and the rows are read. The bits of a filter cannot be checked,
//!   because Parquet has no checksum for them: a writer's wrong filter, or a single flipped bit, would hide rows. A
//!   filter without any set bit, as zeroed disk blocks leave behind, is ignored.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Int64Type, TimeUnit};
use bytes::Bytes;
use parquet::basic::Type;
use parquet::bloom_filter::{BITSET_MAX_LENGTH, Sbbf};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::ColumnDescriptor;

use super::faults::{WatchedFile, guarded};
use super::groups::GroupBounds;
use super::places::{Place, Places};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::{BoundPredicate, ColumnPath, FileBounds, prune};

/// The maximum size of a filter's header in bytes.
const HEADER: u64 = 32;

/// The fields that follow the size in a header: algorithm, hash and compression. Parquet defines only one value for
/// each.
const HEADER_END: [u8; 13] = [0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];

/// A value as the bytes that a file stores and hashes for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Stored {
    Int32(i32),
    Int64(i64),
    Bytes(Vec<u8>),
}

/// For each row group and leaf column, the sets of values that are looked up together, and whether the column may
/// contain one of them.
type Questions = BTreeMap<(usize, usize), BTreeMap<Vec<Stored>, bool>>;

/// Returns the row groups among `groups` that, according to the file's Bloom filters, may have a row for which
/// `predicate` is true. `name` is the file's name in messages.
///
/// # Errors
/// Returns errors from the store, and the errors of [`prune`].
pub(super) fn groups_by_filters(
    predicate: &BoundPredicate,
    places: &Places,
    metadata: &ParquetMetaData,
    (file, name): (&WatchedFile, &str),
    mut groups: Vec<usize>,
) -> Result<Vec<usize>> {
    let has_filter = |group: &usize, leaf: usize| chunk(metadata, *group, leaf).is_some_and(is_worth_reading);
    if !groups.iter().any(|group| places.leaves().any(|leaf| has_filter(group, leaf))) {
        return Ok(groups);
    }
    let question = |group: usize, column: &ColumnPath, values: &ArrayRef| {
        let Some((data_type, Place::Leaf(leaf, field))) = places.find(column) else { return None };
        let descriptor = metadata.file_metadata().schema_descr().columns().get(*leaf)?;
        let stored = stored(values, data_type, (field, descriptor))?;
        (groups.contains(&group) && has_filter(&group, *leaf)).then_some(((group, *leaf), stored))
    };
    let questions: RefCell<Questions> = RefCell::default();
    let bounds = GroupBounds { places, metadata };
    let ask = |group: usize, column: &ColumnPath, values: &ArrayRef| {
        if let Some((place, values)) = question(group, column, values) {
            questions.borrow_mut().entry(place).or_default().insert(values, true);
        }
        true
    };
    prune(predicate, &FilteredGroups { bounds: &bounds, may_have: &ask })?;
    let mut questions = questions.into_inner();
    if !answer(&mut questions, metadata, file, name)? {
        return Ok(groups);
    }
    let answered = |group: usize, column: &ColumnPath, values: &ArrayRef| {
        let Some((place, values)) = question(group, column, values) else { return true };
        questions.get(&place).and_then(|asked| asked.get(&values)).is_none_or(|may_be| *may_be)
    };
    let keep = prune(predicate, &FilteredGroups { bounds: &bounds, may_have: &answered })?;
    groups.retain(|group| keep.is_valid(*group) && keep.value(*group));
    Ok(groups)
}

/// Reads the filters and answers the questions. Returns whether the filters rule out any value.
fn answer(
    questions: &mut Questions,
    metadata: &ParquetMetaData,
    file: &WatchedFile,
    name: &str,
) -> Result<bool> {
    let file = file.planned(|| {
        let mut units: BTreeMap<usize, Vec<Range<u64>>> = BTreeMap::new();
        for (group, leaf) in questions.keys() {
            let range = chunk(metadata, *group, *leaf).and_then(range_of_filter);
            units.entry(*group).or_default().extend(range);
        }
        units.into_values().collect()
    });
    let mut is_some_absent = false;
    for ((group, leaf), asked) in questions {
        let Some(chunk) = chunk(metadata, *group, *leaf) else { continue };
        let filter = match guarded(|| read(chunk, &file)) {
            Ok(filter) => filter,
            Err(error) if error.kind() == ErrorKind::CorruptData => {
                let column = chunk.column_path().string();
                tracing::warn!(file = name, column, group, %error, "a Bloom filter is damaged and is not used");
                None
            }
            Err(error) => return Err(error),
        };
        let Some(filter) = filter else { continue };
        for (values, may_be) in asked {
            *may_be = values.iter().any(|value| match value {
                Stored::Int32(value) => filter.check(value),
                Stored::Int64(value) => filter.check(value),
                Stored::Bytes(value) => filter.check(value.as_slice()),
            });
            is_some_absent |= !*may_be;
        }
    }
    Ok(is_some_absent)
}

fn chunk(metadata: &ParquetMetaData, group: usize, leaf: usize) -> Option<&ColumnChunkMetaData> {
    metadata.row_groups().get(group)?.columns().get(leaf)
}

/// Returns whether a column has a filter and, as far as its size is known, the filter is not larger than the column.
fn is_worth_reading(chunk: &ColumnChunkMetaData) -> bool {
    let length = i64::from(chunk.bloom_filter_length().unwrap_or(0));
    chunk.bloom_filter_offset().is_some() && length <= chunk.compressed_size()
}

/// Returns the byte range of a filter, if the footer states the filter's length.
fn range_of_filter(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = u64::try_from(chunk.bloom_filter_offset()?).ok()?;
    let length = u64::try_from(chunk.bloom_filter_length()?).ok()?;
    Some(start..start.checked_add(length)?)
}

/// Reads the filter of a column; `None` if it turns out to be larger than the column.
///
/// # Errors
/// Returns `CorruptData` for bytes that are not a filter, and errors from the store.
fn read(chunk: &ColumnChunkMetaData, file: &WatchedFile) -> Result<Option<Sbbf>> {
    let outside = || Error::corrupt_data("the Bloom filter is not within the file");
    let get = |range: Range<u64>| {
        if range.start > range.end || range.end > file.len() {
            return Err(outside());
        }
        let length = usize::try_from(range.end - range.start).map_err(|_| outside())?;
        file.get_bytes(range.start, length).map_err(|error| file.error(error))
    };
    if chunk.bloom_filter_length().is_some() {
        let bytes = get(range_of_filter(chunk).ok_or_else(outside)?)?;
        let (bits, header) = header(&bytes)?;
        let rest = bytes.slice(header..);
        if rest.len() != bits {
            return Err(Error::corrupt_data(format!(
                "the Bloom filter has {bits} bytes according to its header, but {} according to the footer",
                rest.len()
            )));
        }
        return filter(&rest).map(Some);
    }
    let start = chunk.bloom_filter_offset().and_then(|at| u64::try_from(at).ok()).ok_or_else(outside)?;
    let (bits, header) = header(&get(start..start.saturating_add(HEADER).min(file.len()))?)?;
    if i64::try_from(bits).is_ok_and(|bits| bits > chunk.compressed_size()) {
        return Ok(None);
    }
    let start = start.checked_add(header as u64).ok_or_else(outside)?;
    filter(&get(start..start.checked_add(bits as u64).ok_or_else(outside)?)?).map(Some)
}

/// Returns the size of a filter's bits, and the size of its header, in bytes.
fn header(bytes: &Bytes) -> Result<(usize, usize)> {
    let damaged = || Error::corrupt_data("the Bloom filter does not begin with a valid header");
    // Field 1 in Thrift's compact protocol is a number with seven bits per byte, the lowest bits first.
    let (first, mut rest) = bytes.split_first().ok_or_else(damaged)?;
    let (mut number, mut shift) = (0u64, 0);
    loop {
        let (byte, after) = rest.split_first().ok_or_else(damaged)?;
        number |= u64::from(byte & 0x7f) << shift;
        (rest, shift) = (after, shift + 7);
        match byte & 0x80 {
            0 => break,
            _ if shift > 28 => return Err(damaged()),
            _ => {}
        }
    }
    // In zigzag encoding, even numbers stand for numbers that are not negative.
    let size = usize::try_from(number / 2).map_err(|_| damaged())?;
    let is_valid = *first == 0x15
        && number.is_multiple_of(2)
        && (1..=BITSET_MAX_LENGTH).contains(&size)
        && size.is_multiple_of(32)
        && rest.starts_with(&HEADER_END);
    is_valid.then_some((size, bytes.len() - rest.len() + HEADER_END.len())).ok_or_else(damaged)
}

fn filter(bits: &Bytes) -> Result<Sbbf> {
    if bits.iter().all(|byte| *byte == 0) {
        return Err(Error::corrupt_data("the Bloom filter is empty, although the column has values"));
    }
    Ok(Sbbf::new(bits))
}

/// Returns `values` of a table column as a file with this type and descriptor stores them. Returns `None` if the file
/// may store a value in more than one way.
fn stored(
    values: &ArrayRef,
    table: &DataType,
    (field, descriptor): (&FieldRef, &ColumnDescriptor),
) -> Option<Vec<Stored>> {
    use DataType as D;
    let physical = descriptor.physical_type();
    let is_micros = |unit: &TimeUnit| *unit == TimeUnit::Microsecond;
    match (table, field.data_type()) {
        (table, file) if table.is_signed_integer() && file.is_signed_integer() => {}
        (D::Date32, D::Date32) => {}
        (D::Timestamp(table, _), D::Timestamp(file, _)) if is_micros(table) && is_micros(file) => {}
        (D::Decimal128(_, scale), D::Decimal128(_, file))
            if scale == file && descriptor.type_scale() == i32::from(*scale) =>
        {
            let unscaled = values.as_primitive_opt::<Decimal128Type>()?.values();
            return unscaled.iter().map(|value| stored_decimal(*value, descriptor)).collect();
        }
        (D::Utf8 | D::Binary, D::Utf8 | D::Binary) if physical == Type::BYTE_ARRAY => {
            let values = cast(values, &D::LargeBinary).ok()?;
            let values = values.as_binary::<i64>().iter();
            return values.map(|value| value.map(|bytes| Stored::Bytes(bytes.to_vec()))).collect();
        }
        _ => return None,
    }
    let numbers = match table {
        D::Date32 => cast(&cast(values, &D::Int32).ok()?, &D::Int64).ok()?,
        _ => cast(values, &D::Int64).ok()?,
    };
    let numbers: &Int64Array = numbers.as_primitive_opt::<Int64Type>()?;
    let number = |value: i64| match physical {
        Type::INT32 => i32::try_from(value).ok().map(Stored::Int32),
        Type::INT64 => Some(Stored::Int64(value)),
        _ => None,
    };
    numbers.iter().map(|value| value.and_then(number)).collect()
}

/// Returns an unscaled decimal as a column stores it. Returns `None` for byte arrays of variable length, because they
/// may store the same number in several ways.
fn stored_decimal(unscaled: i128, descriptor: &ColumnDescriptor) -> Option<Stored> {
    match descriptor.physical_type() {
        Type::INT32 => i32::try_from(unscaled).ok().map(Stored::Int32),
        Type::INT64 => i64::try_from(unscaled).ok().map(Stored::Int64),
        Type::FIXED_LEN_BYTE_ARRAY => {
            let length = usize::try_from(descriptor.type_length()).ok()?;
            let bytes = unscaled.to_be_bytes();
            let (sign, rest) = bytes.split_at(bytes.len().checked_sub(length)?);
            let fill = if unscaled < 0 { 0xff } else { 0 };
            let fits = sign.iter().all(|byte| *byte == fill)
                && rest.first().is_some_and(|first| (first & 0x80 != 0) == (unscaled < 0));
            fits.then(|| Stored::Bytes(rest.to_vec()))
        }
        _ => None,
    }
}

/// The bounds of row groups, together with the answers of their Bloom filters.
struct FilteredGroups<'a> {
    bounds: &'a GroupBounds<'a>,
    may_have: &'a dyn Fn(usize, &ColumnPath, &ArrayRef) -> bool,
}

impl FileBounds for FilteredGroups<'_> {
    fn num_files(&self) -> usize {
        self.bounds.num_files()
    }

    fn num_records(&self) -> Option<Int64Array> {
        self.bounds.num_records()
    }

    fn min(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.bounds.min(column)
    }

    fn max(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.bounds.max(column)
    }

    fn without_nan(&self, column: &ColumnPath) -> Option<BooleanArray> {
        self.bounds.without_nan(column)
    }

    fn null_count(&self, column: &ColumnPath) -> Option<Int64Array> {
        self.bounds.null_count(column)
    }

    fn may_have(&self, file: usize, column: &ColumnPath, values: &ArrayRef) -> bool {
        (self.may_have)(file, column, values)
    }
}
