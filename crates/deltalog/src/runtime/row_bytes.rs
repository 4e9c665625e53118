//! Determines how many rows form a batch. The size of a batch in bytes is limited.
//!
//! ```text
//!   narrow rows    as many as the caller asks for, such as 8,192
//!   wide rows      as many as take 32 MiB, at least one
//! ```
//!
//! - Code that reads, converts, joins or computes rows handles at most one batch at a time ([`BatchBytes`]). This
//!   bounds the memory it needs, and keeps arrays far below 2 GiB, the limit of 32-bit offsets.
//! - The weight of rows is the total size of their values. Unlike the memory of an array, it does not depend on the
//!   batch that contains the rows.
//! - If an estimate, from a footer or from an average, turns out to be too small, the rows are passed on in several
//!   pieces, and fewer rows are read next time.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, GenericByteArray, GenericByteViewArray, OffsetSizeTrait, RecordBatch,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{ArrowDictionaryKeyType, ByteArrayType, ByteViewType, DataType, RunEndIndexType};
use arrow::datatypes::{
    BinaryViewType, Int8Type, Int16Type, Int32Type, Int64Type, StringViewType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;

use crate::error::{Error, Result};
use crate::runtime::panics::catch;

/// The approximate maximum size in bytes of a batch of wide rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchBytes {
    /// The number of bytes at which a batch is full.
    target: usize,
    /// The maximum size in bytes of an array of strings or binary values, whose offsets have 32 bits.
    offsets: usize,
}

impl Default for BatchBytes {
    fn default() -> Self {
        Self { target: 32 << 20, offsets: i32::MAX as usize }
    }
}

impl BatchBytes {
    /// Creates limits with another batch size. The maximum size of an array is 64 batches, as in the default.
    pub(crate) fn of(target: usize) -> Self {
        Self { target, offsets: target.saturating_mul(64) }
    }

    /// Returns the size in bytes of a full batch.
    pub(crate) fn target(self) -> usize {
        self.target
    }

    /// Returns how many rows of this size form a batch, but at most `most`.
    pub(crate) fn rows(self, bytes_per_row: f64, most: usize) -> usize {
        // A cast from a float saturates, and NaN becomes 0.
        ((self.target as f64 / bytes_per_row.max(1.0)) as usize).clamp(1, most.max(1))
    }

    /// Returns whether a batch of this size is much larger than the limit.
    pub(crate) fn is_exceeded(self, bytes: usize) -> bool {
        bytes > self.target.saturating_mul(2)
    }

    /// Returns whether a column of `batch` exceeds the maximum size of an array. This can only be true in tests, which
    /// lower that maximum.
    pub(crate) fn ends_offsets(self, batch: &RecordBatch) -> bool {
        self.offsets < i32::MAX as usize
            && batch.columns().iter().any(|column| weight(column, 0, column.len()) > self.offsets)
    }

    /// Divides the rows of `batch` into ranges that do not exceed the size of a batch. A single row that exceeds the
    /// limit gets a range of its own.
    pub(crate) fn ranges(self, batch: &RecordBatch) -> Vec<Range<usize>> {
        let rows = batch.num_rows();
        if weight_of(batch, 0, rows) <= self.target {
            return std::iter::once(0..rows).filter(|range| !range.is_empty()).collect();
        }
        let mut ranges = Vec::new();
        let mut start = 0;
        while start < rows {
            let fits = self.fitting(batch, start);
            ranges.push(start..start + fits);
            start += fits;
        }
        ranges
    }

    /// Returns how many rows from `start` on form a batch. No more rows than necessary are examined, because weighing
    /// encoded values takes time for each row.
    fn fitting(self, batch: &RecordBatch, start: usize) -> usize {
        let left = batch.num_rows() - start;
        let mut rows = usize::from(left > 0);
        let mut bytes = weight_of(batch, start, rows);
        let (mut step, mut grows) = (1_usize, true);
        while step > 0 {
            let more = step.min(left - rows);
            let of_more = weight_of(batch, start + rows, more);
            if more > 0 && bytes.saturating_add(of_more) <= self.target {
                rows += more;
                bytes += of_more;
            } else {
                grows = false;
            }
            step = if grows { step * 2 } else { step / 2 };
        }
        rows
    }

    /// Divides `batch` into pieces, as [`Self::ranges`] does. No rows are copied.
    pub(crate) fn pieces(self, batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> + use<> {
        let batch = batch.clone();
        self.ranges(&batch).into_iter().map(move |range| batch.slice(range.start, range.len()))
    }

    /// Divides `items` into consecutive slices that do not exceed the size of a batch. A larger item gets a slice of
    /// its own. `bytes` returns the size of an item in bytes, and `most` is the size of the largest item.
    pub(crate) fn parts<'a, T>(
        self,
        items: &'a [T],
        most: usize,
        bytes: impl Fn(&T) -> usize + 'a,
    ) -> impl Iterator<Item = &'a [T]> {
        let mut rest = items;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let mut count = rest.len();
            if most.saturating_mul(count) > self.target {
                let mut sum = 0_usize;
                let exceeds = rest.iter().position(|item| {
                    sum = sum.saturating_add(bytes(item));
                    sum > self.target
                });
                count = exceeds.map_or(count, |first| first.max(1));
            }
            let (part, others) = rest.split_at(count);
            rest = others;
            Some(part)
        })
    }
}

/// The number of rows in the sample from which the size of computed rows is estimated.
const SAMPLE: usize = 16;

/// A computation for many rows, divided into steps so that each result has about the size of a batch. A sample of the
/// first rows shows how wide the results are. Its rows are then computed again, together with other rows. If the
/// results are narrow, one step computes all rows.
#[derive(Debug)]
pub(crate) struct Steps {
    limits: BatchBytes,
    rows: usize,
    done: usize,
    at_once: Option<usize>,
}

impl Steps {
    pub(crate) fn new(limits: BatchBytes, rows: usize) -> Self {
        Self { limits, rows, done: 0, at_once: (rows <= SAMPLE).then_some(rows) }
    }

    /// Returns the result of `compute` for the next rows, or `None` after the last row. `bytes` returns the size of a
    /// result. If a result does not fit in an array, it is computed again for fewer rows.
    pub(crate) fn next<T>(
        &mut self,
        mut compute: impl FnMut(Range<usize>) -> Result<T>,
        bytes: impl Fn(&T) -> usize,
    ) -> Option<Result<T>> {
        while self.done < self.rows {
            let Some(at_once) = self.at_once else {
                self.at_once = Some(match compute(0..SAMPLE) {
                    Ok(sample) => self.limits.rows(bytes(&sample) as f64 / SAMPLE as f64, self.rows),
                    Err(error) if is_too_large(&error) => SAMPLE / 2,
                    Err(error) => return Some(Err(self.failed(error))),
                });
                continue;
            };
            let range = self.done..self.rows.min(self.done + at_once);
            match compute(range.clone()) {
                Ok(result) => {
                    self.done = range.end;
                    let size = bytes(&result);
                    if self.limits.is_exceeded(size) {
                        self.at_once = Some(self.limits.rows(size as f64 / range.len() as f64, at_once));
                    }
                    return Some(Ok(result));
                }
                Err(error) if is_too_large(&error) && range.len() > 1 => self.at_once = Some(range.len() / 2),
                Err(error) => return Some(Err(self.failed(error))),
            }
        }
        None
    }

    /// Ends the computation after `error`, and returns the error.
    fn failed(&mut self, error: Error) -> Error {
        self.done = self.rows;
        error
    }
}

/// Messages of Arrow, in errors or panics, about strings or binary values that exceed the 32-bit offsets of their
/// array.
const OVERFLOWS: [&str; 2] = ["index overflow decoding byte array", "offset overflow"];

/// Returns whether `text`, from an error or a panic of Arrow or Parquet, says that values exceed the offsets of their
/// array.
pub(crate) fn is_overflow(text: &str) -> bool {
    OVERFLOWS.iter().any(|overflow| text.contains(overflow))
}

/// The source of an error about values that do not fit in an Arrow array.
#[derive(Debug)]
struct TooLarge(String);

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooLarge {}

/// Returns an error for values that fit in an array but are too large nevertheless. [`is_too_large`] is true for it.
pub(crate) fn too_large(message: String, limit: String, hint: &str) -> Error {
    Error::invalid_argument(message).with_hint(hint).with_source(TooLarge(limit))
}

/// Returns whether the error says that the call may succeed with fewer rows at once.
pub(crate) fn is_too_large(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if error.is::<TooLarge>() || matches!(error.downcast_ref(), Some(ArrowError::OffsetOverflowError(_)))
        {
            return true;
        }
        source = error.source();
    }
    false
}

/// Calls `work`, which computes values. If they do not fit in an Arrow array, returns an error for which
/// [`is_too_large`] is true, even if Arrow has panicked.
///
/// # Errors
/// The errors of `work`; `InvalidArgument` for values that do not fit in an array.
pub(crate) fn within_arrays<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let overflow = |text: String| {
        Error::invalid_argument("values of an expression have 2 GiB or more, which no Arrow array can hold")
            .with_hint("compute them for fewer rows at once, or make them shorter")
            .with_source(TooLarge(text))
    };
    let is_refused =
        |error: &Error| std::error::Error::source(error).is_some_and(|source| source.is::<TooLarge>());
    match catch(work) {
        Ok(Err(error)) if is_too_large(&error) && !is_refused(&error) => Err(overflow(error.to_string())),
        Ok(result) => result,
        Err(panic) if is_overflow(&panic) => Err(overflow(panic)),
        Err(panic) => resume_unwind(Box::new(panic)),
    }
}

/// If the offsets of strings or binary values exceed 32 bits, returns the same values with offsets that begin at 0. A
/// slice of a few rows can then be cast to an array with 32-bit offsets. Other arrays are returned unchanged.
///
/// # Errors
/// Never fails for valid arrays.
pub(crate) fn with_small_offsets(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::LargeUtf8 => from_zero(array.as_string::<i64>(), array),
        DataType::LargeBinary => from_zero(array.as_binary::<i64>(), array),
        _ => Ok(Arc::clone(array)),
    }
}

fn from_zero<T: ByteArrayType<Offset = i64>>(
    large: &GenericByteArray<T>,
    array: &ArrayRef,
) -> Result<ArrayRef, ArrowError> {
    let offsets = large.value_offsets();
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Ok(Arc::clone(array)) };
    if i32::try_from(*last).is_ok() {
        return Ok(Arc::clone(array));
    }
    let from_zero: Vec<i64> = offsets.iter().map(|offset| offset - first).collect();
    let values = large.values().slice_with_length(*first as usize, (last - first) as usize);
    let offsets = OffsetBuffer::new(from_zero.into());
    Ok(Arc::new(GenericByteArray::<T>::try_new(offsets, values, large.nulls().cloned())?))
}

/// Returns the weight of `rows` rows from row `start` on.
pub(crate) fn weight_of(batch: &RecordBatch, start: usize, rows: usize) -> usize {
    batch.columns().iter().map(|column| weight(column, start, rows)).sum()
}

/// Returns the weight of the widest row of `columns`, or slightly more.
pub(crate) fn widest<'a>(columns: impl IntoIterator<Item = &'a ArrayRef>) -> usize {
    let widest = |column: &ArrayRef| {
        let longest = |offsets: &[i32]| {
            offsets.windows(2).map(|pair| if let [a, b] = pair { b - a } else { 0 }).max().unwrap_or(0)
        };
        match column.data_type() {
            DataType::Utf8 => size_of::<i32>() + longest(column.as_string::<i32>().value_offsets()) as usize,
            DataType::Binary => {
                size_of::<i32>() + longest(column.as_binary::<i32>().value_offsets()) as usize
            }
            other => match other.primitive_width() {
                Some(width) => width,
                None => (0..column.len()).map(|row| weight(column, row, 1)).max().unwrap_or(0),
            },
        }
    };
    columns.into_iter().map(widest).sum()
}

/// Returns the size in bytes of the values of `length` rows from row `start` on. Sizes are additive: the size of a
/// range is the sum of the sizes of its parts.
///
/// Encoded values count with the size that they would have without the encoding.
pub(crate) fn weight(array: &dyn Array, start: usize, length: usize) -> usize {
    if length == 0 {
        return 0;
    }
    match array.data_type() {
        DataType::Utf8 => of_bytes(array.as_string::<i32>().value_offsets(), start, length),
        DataType::Binary => of_bytes(array.as_binary::<i32>().value_offsets(), start, length),
        DataType::LargeUtf8 => of_bytes(array.as_string::<i64>().value_offsets(), start, length),
        DataType::LargeBinary => of_bytes(array.as_binary::<i64>().value_offsets(), start, length),
        DataType::Utf8View => of_views::<StringViewType>(array.as_byte_view(), start, length),
        DataType::BinaryView => of_views::<BinaryViewType>(array.as_byte_view(), start, length),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(|column| weight(column, start, length)).sum()
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            of_lists(lists.values(), lists.value_offsets(), start, length)
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            of_lists(lists.values(), lists.value_offsets(), start, length)
        }
        DataType::ListView(_) => {
            let lists = array.as_list_view::<i32>();
            of_list_views(lists.values(), lists.value_offsets(), lists.value_sizes(), start, length)
        }
        DataType::LargeListView(_) => {
            let lists = array.as_list_view::<i64>();
            of_list_views(lists.values(), lists.value_offsets(), lists.value_sizes(), start, length)
        }
        DataType::FixedSizeList(_, size) => {
            let lists = array.as_fixed_size_list();
            let size = usize::try_from(*size).unwrap_or_default();
            weight(lists.values(), lists.value_offset(start) as usize, size * length)
        }
        DataType::FixedSizeBinary(size) => usize::try_from(*size).unwrap_or_default() * length,
        DataType::Map(..) => {
            let maps = array.as_map();
            of_lists(maps.entries(), maps.value_offsets(), start, length)
        }
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => of_dictionary::<Int8Type>(array, start, length),
            DataType::Int16 => of_dictionary::<Int16Type>(array, start, length),
            DataType::Int32 => of_dictionary::<Int32Type>(array, start, length),
            DataType::Int64 => of_dictionary::<Int64Type>(array, start, length),
            DataType::UInt8 => of_dictionary::<UInt8Type>(array, start, length),
            DataType::UInt16 => of_dictionary::<UInt16Type>(array, start, length),
            DataType::UInt32 => of_dictionary::<UInt32Type>(array, start, length),
            _ => of_dictionary::<UInt64Type>(array, start, length),
        },
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => of_runs::<Int16Type>(array, start, length),
            DataType::Int32 => of_runs::<Int32Type>(array, start, length),
            _ => of_runs::<Int64Type>(array, start, length),
        },
        other => other.primitive_width().unwrap_or(1) * length,
    }
}

fn at<O: OffsetSizeTrait>(offsets: &[O], place: usize) -> usize {
    offsets.get(place).map_or(0, |offset| offset.as_usize())
}

fn of_bytes<O: OffsetSizeTrait>(offsets: &[O], start: usize, length: usize) -> usize {
    size_of::<i32>() * length + (at(offsets, start + length) - at(offsets, start))
}

fn of_views<T: ByteViewType>(array: &GenericByteViewArray<T>, start: usize, length: usize) -> usize {
    let lengths = array.views().iter().skip(start).take(length).map(|view| *view as u32 as usize);
    size_of::<i32>() * length + lengths.sum::<usize>()
}

fn of_lists<O: OffsetSizeTrait>(values: &dyn Array, offsets: &[O], start: usize, length: usize) -> usize {
    let first = at(offsets, start);
    size_of::<i32>() * length + weight(values, first, at(offsets, start + length) - first)
}

fn of_list_views<O: OffsetSizeTrait>(
    values: &dyn Array,
    offsets: &[O],
    sizes: &[O],
    start: usize,
    length: usize,
) -> usize {
    let inside = (start..start + length).map(|row| weight(values, at(offsets, row), at(sizes, row)));
    size_of::<i32>() * length + inside.sum::<usize>()
}

fn of_dictionary<K: ArrowDictionaryKeyType>(array: &dyn Array, start: usize, length: usize) -> usize {
    let Some(dictionary) = array.as_dictionary_opt::<K>() else { return length };
    let values = dictionary.values();
    if let Some(width) = values.data_type().primitive_width() {
        return width * length;
    }
    let keys = dictionary.keys();
    let of_key = |row: usize| if keys.is_valid(row) { dictionary.key(row) } else { None };
    (start..start + length)
        .map(|row| of_key(row).map_or(size_of::<i32>(), |key| weight(values, key, 1)))
        .sum()
}

fn of_runs<R: RunEndIndexType>(array: &dyn Array, start: usize, length: usize) -> usize {
    let Some(runs) = array.as_run_opt::<R>() else { return length };
    (start..start + length).map(|row| weight(runs.values(), runs.get_physical_index(row), 1)).sum()
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryArray, DictionaryArray, Int64Array, LargeStringArray, ListArray, RunArray, StringArray,
        StringViewArray, StructArray,
    };
    use arrow::compute::{cast, concat_batches};
    use arrow::datatypes::Field;
    use proptest::prelude::*;

    use super::*;

    /// Returns arrays of many types, with strings of these lengths.
    fn columns(lengths: &[usize]) -> Vec<ArrayRef> {
        let texts: Vec<Option<String>> =
            lengths.iter().map(|length| (length % 5 > 0).then(|| "x".repeat(*length))).collect();
        let plain: ArrayRef = Arc::new(StringArray::from_iter(texts.iter()));
        let list: ArrayRef = Arc::new(ListArray::new(
            Arc::new(Field::new("element", DataType::Utf8, true)),
            OffsetBuffer::from_lengths(vec![1; lengths.len()]),
            Arc::clone(&plain),
            None,
        ));
        let dictionary: DictionaryArray<Int32Type> = texts.iter().map(Option::as_deref).collect();
        let runs: RunArray<Int32Type> = texts.iter().map(Option::as_deref).collect();
        let field = Arc::new(Field::new("list", list.data_type().clone(), true));
        vec![
            Arc::new(Int64Array::from_iter_values(0..lengths.len() as i64)),
            Arc::new(LargeStringArray::from_iter(texts.iter())),
            Arc::new(StringViewArray::from_iter(texts.iter())),
            Arc::new(BinaryArray::from_iter(texts.iter())),
            Arc::new(StructArray::from(vec![(field, Arc::clone(&list))])),
            cast(&list, &DataType::LargeList(Arc::new(Field::new("element", DataType::Utf8, true)))).unwrap(),
            cast(&list, &DataType::ListView(Arc::new(Field::new("element", DataType::Utf8, true)))).unwrap(),
            list,
            Arc::new(dictionary),
            Arc::new(runs),
            plain,
        ]
    }

    proptest! {
        /// The pieces are bounded in size, and together have all rows in order.
        #[test]
        fn pieces_have_all_rows(lengths in prop::collection::vec(0_usize..400, 0..60), target in 1_usize..4000) {
            let limits = BatchBytes::of(target);
            for column in columns(&lengths) {
                let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
                let pieces: Vec<RecordBatch> = limits.pieces(&batch).collect();
                let whole = weight_of(&batch, 0, batch.num_rows());
                prop_assert_eq!(pieces.iter().map(|piece| weight_of(piece, 0, piece.num_rows())).sum::<usize>(), whole);
                for (number, piece) in pieces.iter().enumerate() {
                    let bytes = weight_of(piece, 0, piece.num_rows());
                    prop_assert!(piece.num_rows() == 1 || bytes <= target, "{} > {target}", bytes);
                    // Each piece is as large as possible: with one more row, it would exceed the limit.
                    if let Some(next) = pieces.get(number + 1) {
                        prop_assert!(bytes + weight_of(next, 0, 1) > target);
                    }
                }
                if !matches!(batch.column(0).data_type(), DataType::RunEndEncoded(..)) {
                    prop_assert_eq!(concat_batches(&batch.schema(), &pieces).unwrap(), batch);
                }
            }
        }

        /// The same holds for items that are not in a batch yet.
        #[test]
        fn parts_have_all_items(items in prop::collection::vec(0_usize..100, 0..60), target in 1_usize..500) {
            let limits = BatchBytes::of(target);
            let most = items.iter().copied().max().unwrap_or(0);
            let parts: Vec<&[usize]> = limits.parts(&items, most, |item| *item).collect();
            prop_assert!(parts.iter().all(|part| part.len() == 1 || part.iter().sum::<usize>() <= target));
            prop_assert_eq!(parts.concat(), items);
        }

        #[test]
        fn no_row_is_wider_than_the_widest(lengths in prop::collection::vec(0_usize..400, 1..40)) {
            for column in columns(&lengths) {
                let most = (0..column.len()).map(|row| weight(&column, row, 1)).max().unwrap();
                let found = widest([&column]);
                prop_assert!(found >= most && found <= most + 8, "{found} for {most}: {}", column.data_type());
            }
        }
    }

    /// Weighing encoded values and views takes time for each row, so it must not be repeated for each of many pieces.
    #[test]
    fn each_row_is_weighed_only_once() {
        let texts = (0..60_000).map(|row| if row % 2 == 0 { "even, and longer than a view" } else { "odd" });
        let dictionary: DictionaryArray<Int32Type> = texts.clone().collect();
        let views = StringViewArray::from_iter_values(texts);
        let batch = RecordBatch::try_from_iter([
            ("dictionary", Arc::new(dictionary) as ArrayRef),
            ("views", Arc::new(views) as ArrayRef),
        ])
        .unwrap();
        let began = std::time::Instant::now();
        let ranges = BatchBytes::of(100).ranges(&batch);
        assert!(ranges.len() > 20_000, "{}", ranges.len());
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }

    #[test]
    fn encoded_values_weigh_as_much_as_plain_ones() {
        for column in columns(&[1, 101, 101, 101, 7]) {
            if *column.data_type() != DataType::Int64 {
                let bytes = weight(&column, 1, 3);
                assert!((303..=330).contains(&bytes), "{bytes} for {}", column.data_type());
            }
        }
    }

    proptest! {
        /// Computed rows are bounded in size, too: a result that is too large is computed again in smaller parts.
        #[test]
        fn all_rows_are_computed_in_bounded_steps(
            sizes in prop::collection::vec(prop_oneof![9 => 0_usize..50, 1 => 500_usize..2_000], 0..200),
            target in 50_usize..1_000,
            end in 2_000_usize..4_000,
        ) {
            let limits = BatchBytes::of(target);
            let mut found: Vec<usize> = Vec::new();
            let compute = |range: Range<usize>| {
                let rows = sizes[range].to_vec();
                match rows.iter().sum::<usize>() > end {
                    true => within_arrays(|| {
                        let overflow = ArrowError::OffsetOverflowError(end);
                        Err(Error::invalid_argument("too much").with_source(overflow))
                    }),
                    false => Ok(rows),
                }
            };
            let bytes = |rows: &Vec<usize>| rows.iter().sum();
            let mut steps = Steps::new(limits, sizes.len());
            while let Some(rows) = steps.next(compute, bytes) {
                found.extend(rows.unwrap());
            }
            prop_assert_eq!(found, sizes);
        }
    }

    #[test]
    fn overflows_of_arrow_are_errors() {
        let texts = || vec![Some("x".repeat(1 << 20)); 2];
        assert!(within_arrays(|| Ok(StringArray::from(texts()))).is_ok());
        let error = within_arrays::<()>(|| panic!("byte array offset overflow"));
        let error = error.unwrap_err();
        assert!(is_too_large(&error) && error.hint().is_some(), "{error}");
        let wrapped = Error::corrupt_data("values").with_source(error);
        assert!(is_too_large(&wrapped));
        assert!(!is_too_large(&Error::corrupt_data("values")));
    }

    #[test]
    fn a_batch_of_narrow_rows_is_not_made_smaller() {
        let limits = BatchBytes::default();
        assert_eq!(limits.rows(100.0, 8192), 8192);
        assert_eq!(limits.rows(340_000.0, 8192), 98);
        assert_eq!(limits.rows(1e12, 8192), 1);
        assert_eq!(limits.rows(f64::NAN, 8192), 8192);
        assert_eq!(limits.rows(0.0, 0), 1);
    }
}
