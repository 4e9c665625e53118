//! Sorts rows, even if they do not all fit in memory.
//!
//! ```text
//!   rows, batch by batch ──► as many as fit in memory, sorted: a run ──► temporary file
//!   all runs ──► merged, batch by batch
//! ```
//!
//! - Rows with equal keys keep the order in which they were added.
//! - If all rows fit in half of the memory, no file is written. Otherwise, one block of each run is in memory while
//!   runs are merged. A block has 128 KiB, so with runs of 64 MiB, all blocks together take 1/512 of the size of all
//!   rows.
//! - Each row is returned with its number, counted from 0 in the order in which rows were added.
//! - A separate thread sorts and writes a run while the rows of the next run are collected. Each of the two may use
//!   half of the memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, FixedSizeBinaryArray, RecordBatch, UInt64Array};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::{Field, Schema, UInt64Type};
use arrow::error::ArrowError;

use crate::error::{Error, Result};
use crate::runtime::parallel::Task;
use crate::runtime::row_bytes::{BatchBytes, weight_of, widest};
use crate::write::{Overflow, Place, bytes_of_rows};

/// The maximum number of rows in a returned batch, and in a block of the file.
const MOST_ROWS: usize = 8192;

/// The size in bytes at which a returned batch ends, even if it has fewer rows than the maximum.
const MOST_BYTES: usize = 1 << 20;

/// The size in bytes at which a block of the file ends, even if it has fewer rows than the maximum.
const BLOCK_BYTES: usize = 128 << 10;

/// If no row is wider than this multiple of the average, batches are limited by their number of rows, without
/// computing the size of each row.
const MOST_UNEVEN: usize = 4;

/// The memory in bytes that sorting needs for each row: for its key, its number and its position.
const BYTES_PER_ROW: usize = 56;

/// Sorts rows by their keys.
pub(super) struct Sorter {
    /// The memory for rows, in bytes.
    budget: usize,
    held: HeldRows,
    /// The number of rows that have been added.
    rows: u64,
    /// The temporary file and its runs; `None` while another thread writes a run.
    file: RunFile,
    writing: Option<Task<(RunFile, Result<()>)>>,
}

/// Rows in memory that will be sorted together as one run.
#[derive(Default)]
struct HeldRows {
    batches: Vec<Held>,
    rows: usize,
    bytes: usize,
}

/// Sorted runs in a temporary file.
struct RunFile {
    overflow: Overflow,
    runs: Vec<Vec<Place>>,
}

/// Rows of one batch, with their keys.
struct Held {
    rows: RecordBatch,
    keys: Vec<u128>,
    first: u64,
}

/// A row's key, the index of its batch among the batches in memory, and its position in that batch. Sorting entries
/// sorts the rows.
type Entry = (u128, u32, u32);

impl Sorter {
    /// Creates a sorter that keeps up to `budget` bytes of rows in memory, and writes all others to a temporary file
    /// in `directory`.
    pub(super) fn new(budget: usize, directory: PathBuf) -> Self {
        Self {
            budget,
            held: HeldRows::default(),
            rows: 0,
            file: RunFile { overflow: Overflow::new(directory), runs: Vec::new() },
            writing: None,
        }
    }

    /// Returns the number of rows that have been added.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds rows, with one key for each row.
    ///
    /// # Errors
    /// `Unavailable` or `PermissionDenied` if the temporary file cannot be written.
    pub(super) fn add(&mut self, rows: RecordBatch, keys: Vec<u128>) -> Result<()> {
        let bytes = bytes_of_rows(&rows) + BYTES_PER_ROW * keys.len();
        if self.held.bytes + bytes > self.budget / 2 && self.held.rows > 0 {
            self.spill()?;
        }
        self.held.bytes += bytes;
        self.held.rows += keys.len();
        let first = self.rows;
        self.rows += keys.len() as u64;
        self.held.batches.push(Held { rows, keys, first });
        Ok(())
    }

    /// Calls `visit` with all rows in the order of their keys, batch by batch, and with the rows' numbers.
    ///
    /// # Errors
    /// Returns the errors of `visit`, and `Unavailable` or `PermissionDenied` if the temporary file cannot be written
    /// or read.
    pub(super) fn finish(mut self, mut visit: impl FnMut(RecordBatch, Vec<u64>) -> Result<()>) -> Result<()> {
        if self.writing.is_none() {
            return self.held.sorted(MOST_BYTES, |rows, _, numbers| visit(rows, numbers));
        }
        self.spill()?;
        self.wait()?;
        Merge::new(self.file.overflow, self.file.runs).visit(visit)
    }

    /// Starts a thread that writes the rows in memory as a run.
    fn spill(&mut self) -> Result<()> {
        self.wait()?;
        let held = std::mem::take(&mut self.held);
        let nothing = RunFile { overflow: Overflow::new(PathBuf::new()), runs: Vec::new() };
        let mut file = std::mem::replace(&mut self.file, nothing);
        self.writing = Some(Task::begin(move || {
            let written = file.write(held);
            (file, written)
        }));
        Ok(())
    }

    /// Waits until the previous run has been written.
    fn wait(&mut self) -> Result<()> {
        match self.writing.as_mut().and_then(Task::end) {
            Some((file, written)) => {
                self.file = file;
                written
            }
            None => Ok(()),
        }
    }
}

impl RunFile {
    /// Sorts rows and writes them as a run.
    fn write(&mut self, held: HeldRows) -> Result<()> {
        self.overflow.begin_run();
        let mut run = Vec::new();
        held.sorted(BLOCK_BYTES, |rows, keys, numbers| {
            let block = self.overflow.write(&with_keys(&rows, &keys, numbers)?)?;
            run.push(Place::new(block, 0, rows.num_rows()));
            Ok(())
        })?;
        self.runs.push(run);
        Ok(())
    }
}

impl HeldRows {
    /// Calls `visit` with the rows in the order of their keys, in batches of about `bytes` bytes, with their keys and
    /// numbers.
    fn sorted(
        &self,
        bytes: usize,
        mut visit: impl FnMut(RecordBatch, Vec<u128>, Vec<u64>) -> Result<()>,
    ) -> Result<()> {
        let mut order: Vec<Entry> = Vec::with_capacity(self.rows);
        for (batch, held) in self.batches.iter().enumerate() {
            let entries = held.keys.iter().enumerate();
            order.extend(entries.map(|(row, key)| (*key, batch as u32, row as u32)));
        }
        order.sort_unstable();
        let batches: Vec<&RecordBatch> = self.batches.iter().map(|held| &held.rows).collect();
        let bytes_per_row = (self.bytes / self.rows.max(1)).max(1);
        let most = batches.iter().map(|batch| widest(batch.columns())).max().unwrap_or_default();
        let limits = BatchBytes::of(bytes);
        // If all rows have about the same size, only their number matters. Otherwise their sizes are computed,
        // because many wide rows may be next to each other.
        let (rows, weighed) = match most <= MOST_UNEVEN * bytes_per_row {
            true => ((bytes / bytes_per_row).clamp(1, MOST_ROWS), 0),
            false => (MOST_ROWS, most),
        };
        let weight_of_row = |(_, batch, row): &Entry| {
            batches.get(*batch as usize).map_or(0, |batch| weight_of(batch, *row as usize, 1))
        };
        for entries in order.chunks(rows).flat_map(|some| limits.parts(some, weighed, weight_of_row)) {
            let rows: Vec<(usize, usize)> =
                entries.iter().map(|(_, batch, row)| (*batch as usize, *row as usize)).collect();
            let number = |(_, batch, row): &Entry| {
                self.batches.get(*batch as usize).map_or(0, |held| held.first) + u64::from(*row)
            };
            let numbers = entries.iter().map(number).collect();
            let keys = entries.iter().map(|(key, _, _)| *key).collect();
            visit(interleave_record_batch(&batches, &rows).map_err(unsorted)?, keys, numbers)?;
        }
        Ok(())
    }
}

/// Returns rows with two additional columns at the end: their keys and their numbers.
fn with_keys(rows: &RecordBatch, keys: &[u128], numbers: Vec<u64>) -> Result<RecordBatch> {
    let bytes = keys.iter().flat_map(|key| key.to_be_bytes()).collect::<Vec<u8>>();
    let keys = FixedSizeBinaryArray::try_new(16, bytes.into(), None).map_err(unsorted)?;
    let added: [(&str, ArrayRef); 2] =
        [("key", Arc::new(keys)), ("number", Arc::new(UInt64Array::from(numbers)))];
    let fields = rows.schema_ref().fields().iter().cloned();
    let new = added.iter().map(|(name, array)| Arc::new(Field::new(*name, array.data_type().clone(), false)));
    let schema = Arc::new(Schema::new(fields.chain(new).collect::<Vec<_>>()));
    let columns = rows.columns().iter().cloned().chain(added.iter().map(|(_, array)| Arc::clone(array)));
    RecordBatch::try_new(schema, columns.collect()).map_err(unsorted)
}

fn unsorted(error: ArrowError) -> Error {
    Error::corrupt_data("rows could not be sorted").with_source(error)
}

/// The state of merging the runs of a sorter.
struct Merge {
    overflow: Overflow,
    runs: Vec<Run>,
    /// The blocks from which rows of the next batch come.
    blocks: Vec<RecordBatch>,
    rows: Vec<(usize, usize)>,
    numbers: Vec<u64>,
    bytes: usize,
}

struct Run {
    places: std::vec::IntoIter<Place>,
    /// The index of this block among the blocks of the next batch.
    block: usize,
    keys: FixedSizeBinaryArray,
    numbers: UInt64Array,
    bytes_per_row: usize,
    row: usize,
}

impl Merge {
    fn new(overflow: Overflow, runs: Vec<Vec<Place>>) -> Self {
        let run = |places: Vec<Place>| Run {
            places: places.into_iter(),
            block: 0,
            keys: FixedSizeBinaryArray::new_null(16, 0),
            numbers: UInt64Array::from(Vec::<u64>::new()),
            bytes_per_row: 0,
            row: 0,
        };
        let runs = runs.into_iter().map(run).collect();
        Self { overflow, runs, blocks: Vec::new(), rows: Vec::new(), numbers: Vec::new(), bytes: 0 }
    }

    fn visit(mut self, mut visit: impl FnMut(RecordBatch, Vec<u64>) -> Result<()>) -> Result<()> {
        let mut next = BinaryHeap::new();
        for run in 0..self.runs.len() {
            if let Some((key, number)) = self.next_block(run)? {
                next.push(Reverse((key, number, run)));
            }
        }
        while let Some(Reverse((_, number, run))) = next.pop() {
            let Some(from) = self.runs.get_mut(run) else { continue };
            self.rows.push((from.block, from.row));
            self.numbers.push(number);
            self.bytes += from.bytes_per_row;
            from.row += 1;
            let following = match from.entry() {
                None => self.next_block(run)?,
                found => found,
            };
            if let Some((key, number)) = following {
                next.push(Reverse((key, number, run)));
            }
            if self.rows.len() >= MOST_ROWS || self.bytes >= MOST_BYTES {
                self.emit(&mut visit)?;
            }
        }
        self.emit(&mut visit)
    }

    /// Reads the next block of a run. Returns the key and the number of its first row.
    fn next_block(&mut self, run: usize) -> Result<Option<(u128, u64)>> {
        let Some(run) = self.runs.get_mut(run) else { return Ok(None) };
        let Some(place) = run.places.next() else { return Ok(None) };
        let block = self.overflow.read(place)?;
        let malformed = || Error::corrupt_data("rows that were read back have no keys");
        let columns = block.num_columns().checked_sub(2).ok_or_else(malformed)?;
        run.keys = block.column(columns).as_fixed_size_binary_opt().ok_or_else(malformed)?.clone();
        run.numbers =
            block.column(columns + 1).as_primitive_opt::<UInt64Type>().ok_or_else(malformed)?.clone();
        let block = block.project(&(0..columns).collect::<Vec<_>>()).map_err(unsorted)?;
        (run.row, run.bytes_per_row) = (0, bytes_of_rows(&block) / block.num_rows().max(1));
        run.block = self.blocks.len();
        self.blocks.push(block);
        Ok(run.entry())
    }

    /// Calls `visit` with the rows of the next batch.
    fn emit(&mut self, visit: &mut impl FnMut(RecordBatch, Vec<u64>) -> Result<()>) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let blocks: Vec<&RecordBatch> = self.blocks.iter().collect();
        let rows = interleave_record_batch(&blocks, &self.rows).map_err(unsorted)?;
        visit(rows, std::mem::take(&mut self.numbers))?;
        self.rows.clear();
        self.bytes = 0;
        // A block is only kept while it still contains rows that have not been returned.
        let mut kept = Vec::with_capacity(self.runs.len());
        for run in &mut self.runs {
            if let Some(block) = self.blocks.get(run.block).filter(|_| run.entry().is_some()) {
                kept.push(block.clone());
                run.block = kept.len() - 1;
            }
        }
        self.blocks = kept;
        Ok(())
    }
}

impl Run {
    /// Returns the key and the number of the next row in the block.
    fn entry(&self) -> Option<(u128, u64)> {
        if self.row >= self.numbers.len() {
            return None;
        }
        let key = <[u8; 16]>::try_from(self.keys.value(self.row)).ok()?;
        Some((u128::from_be_bytes(key), self.numbers.value(self.row)))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    fn rows(keys: &[u8], first: usize) -> RecordBatch {
        let texts = keys.iter().map(|key| (key % 3 > 0).then(|| format!("text of {key}")));
        let columns: [(&str, ArrayRef); 2] = [
            ("at", Arc::new(Int64Array::from_iter_values((first as i64..).take(keys.len())))),
            ("text", Arc::new(StringArray::from_iter(texts))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
    }

    /// While runs are merged, memory contains one block of each run. Blocks stay small even if many wide rows are
    /// next to each other on the curve.
    #[test]
    fn blocks_are_bounded_where_wide_rows_are_neighbors() {
        let narrow = rows(&[1; 3_000], 0);
        let texts = (0..60).map(|row| Some(format!("{row}").repeat(10_000)));
        let columns: [(&str, ArrayRef); 2] = [
            ("at", Arc::new(Int64Array::from_iter_values(3_000..3_060))),
            ("text", Arc::new(StringArray::from_iter(texts))),
        ];
        let wide = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
            .unwrap();
        let mut held = HeldRows::default();
        for (rows, key, first) in [(narrow, 1, 0), (wide, 2, 3_000)] {
            held.rows += rows.num_rows();
            held.bytes += bytes_of_rows(&rows);
            held.batches.push(Held { keys: vec![key; rows.num_rows()], rows, first });
        }
        let (mut numbers, mut blocks) = (Vec::new(), 0);
        held.sorted(40_000, |rows, _, own| {
            let bytes = bytes_of_rows(&rows);
            assert!(rows.num_rows() == 1 || bytes <= 4 * 40_000, "{bytes} bytes in {} rows", rows.num_rows());
            numbers.extend(own);
            blocks += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(numbers, (0..3_060).collect::<Vec<u64>>());
        assert!(blocks < 100, "{blocks}");
    }

    proptest! {
        /// Rows are returned in the order of a stable sort, with their numbers, whether they fit in memory or not.
        #[test]
        fn rows_are_sorted(
            batches in prop::collection::vec(prop::collection::vec(0..9_u8, 1..30), 0..12),
            budget in prop::sample::select(vec![1_usize, 2_000, 6_000, 1 << 20]),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::new(budget, directory.path().to_owned());
            let mut expected: Vec<(u8, usize)> = Vec::new();
            for keys in &batches {
                let first = expected.len();
                expected.extend(keys.iter().copied().zip(first..));
                let keys128 = keys.iter().map(|key| u128::MAX - u128::from(9 - key)).collect();
                sorter.add(rows(keys, first), keys128).unwrap();
            }
            expected.sort();
            prop_assert_eq!(sorter.rows(), expected.len() as u64);
            let mut found = Vec::new();
            sorter
                .finish(|rows, numbers| {
                    let at = rows.column(0).as_primitive::<arrow::datatypes::Int64Type>();
                    let texts = rows.column(1).as_string::<i32>();
                    assert_eq!(rows.num_rows(), numbers.len());
                    for (row, number) in numbers.iter().enumerate() {
                        assert_eq!(at.value(row) as u64, *number);
                        found.push((at.value(row) as usize, texts.iter().nth(row).unwrap().map(str::to_owned)));
                    }
                    Ok(())
                })
                .unwrap();
            let expected: Vec<_> =
                expected.into_iter().map(|(key, at)| (at, (key % 3 > 0).then(|| format!("text of {key}")))).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        }
    }
}
