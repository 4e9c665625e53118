//! Sorts files in the order in which a stream reads them: by modification time, and then by their path in the log.
//!
//! ```text
//! listing ──► rows in memory ──(beyond the bound)──► sorted runs in temporary files ──merge──► one sorted file
//!                  └─ sorted, if that was all                                             read in blocks, by position
//! ```
//!
//! - Offsets contain the positions of files in this order, so it must be total and must be the same in every process.
//! - Temporary files have no name, so they disappear when they are closed, even after a crash.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{concat_batches, interleave_record_batch, take_record_batch};
use arrow::datatypes::{Int64Type, SchemaRef};
use arrow::error::ArrowError;
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;

use crate::error::{Error, ErrorKind, Result};
use crate::log::replay::FileColumn;

/// The maximum size in bytes of a list of files that is sorted in memory. Longer lists are sorted on disk.
pub(super) const MOST_MEMORY: usize = 64 << 20;

/// The number of files in a block on disk.
const BLOCK: usize = 4096;

/// Collects files, which are rows with the columns of the log, and sorts them.
pub(super) struct Sorter {
    schema: SchemaRef,
    most_memory: usize,
    held: Vec<RecordBatch>,
    memory: usize,
    runs: Vec<Blocks>,
}

/// Sorted files, with their sizes in bytes.
#[derive(Debug)]
pub(super) struct SortedFiles {
    sizes: Arc<[u64]>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Memory(RecordBatch),
    Disk(Blocks),
}

/// A file of blocks with [`BLOCK`] rows each. The last block may have fewer rows.
#[derive(Debug)]
struct Blocks(FileReader<BufReader<File>>);

impl Sorter {
    pub(super) fn new(schema: SchemaRef, most_memory: usize) -> Self {
        Self { schema, most_memory, held: Vec::new(), memory: 0, runs: Vec::new() }
    }

    pub(super) fn push(&mut self, files: RecordBatch) -> Result<()> {
        self.memory += files.get_array_memory_size();
        self.held.push(files);
        if self.memory > self.most_memory {
            let run = self.take_sorted()?;
            let mut blocks = Writer::create(&self.schema)?;
            blocks.write(&run)?;
            self.runs.push(blocks.finish()?);
        }
        Ok(())
    }

    fn take_sorted(&mut self) -> Result<RecordBatch> {
        self.memory = 0;
        let held = std::mem::take(&mut self.held);
        let files = concat_batches(&self.schema, &held).map_err(invalid)?;
        drop(held);
        let keys = Keys::of(&files)?;
        let mut order: Vec<u32> = (0..u32::try_from(files.num_rows()).map_err(|_| too_many())?).collect();
        order.sort_unstable_by(|a, b| keys.compare(*a as usize, &keys, *b as usize));
        take_record_batch(&files, &UInt32Array::from(order)).map_err(invalid)
    }

    pub(super) fn finish(mut self) -> Result<SortedFiles> {
        let rest = self.take_sorted()?;
        if self.runs.is_empty() {
            let sizes = sizes(&rest)?.into();
            return Ok(SortedFiles { sizes, place: Place::Memory(rest) });
        }
        let mut last = Writer::create(&self.schema)?;
        last.write(&rest)?;
        drop(rest);
        self.runs.push(last.finish()?);
        let mut sorted = Writer::create(&self.schema)?;
        let mut found = Vec::new();
        let mut merge = Merge::of(std::mem::take(&mut self.runs))?;
        while let Some(files) = merge.next()? {
            found.append(&mut sizes(&files)?);
            sorted.write(&files)?;
        }
        Ok(SortedFiles { sizes: found.into(), place: Place::Disk(sorted.finish()?) })
    }
}

impl SortedFiles {
    /// Returns the sizes of the files in bytes, in their order.
    pub(super) fn sizes(&self) -> &Arc<[u64]> {
        &self.sizes
    }

    /// Returns the files at these positions.
    ///
    /// # Errors
    /// `Unavailable` if the temporary file cannot be read.
    pub(super) fn files(&mut self, range: Range<usize>) -> Result<Vec<RecordBatch>> {
        match &mut self.place {
            Place::Memory(files) => Ok(vec![files.slice(range.start, range.len())]),
            Place::Disk(blocks) => {
                let mut found = Vec::new();
                let mut at = range.start;
                while at < range.end {
                    let files = blocks.read(at / BLOCK)?;
                    let (start, end) = (at % BLOCK, files.num_rows().min(range.end - at + at % BLOCK));
                    if end <= start {
                        return Err(Error::corrupt_data("a temporary file has fewer rows than were written"));
                    }
                    found.push(files.slice(start, end - start));
                    at += end - start;
                }
                Ok(found)
            }
        }
    }
}

impl Blocks {
    fn count(&self) -> usize {
        self.0.num_batches()
    }

    fn read(&mut self, block: usize) -> Result<RecordBatch> {
        self.0.set_index(block).map_err(unavailable)?;
        let files = self.0.next().ok_or_else(|| Error::corrupt_data("a temporary file has lost a block"))?;
        files.map_err(unavailable)
    }
}

struct Writer {
    schema: SchemaRef,
    blocks: FileWriter<BufWriter<File>>,
    /// Rows that do not fill a block yet and wait for more.
    rest: RecordBatch,
}

impl Writer {
    fn create(schema: &SchemaRef) -> Result<Self> {
        let file = tempfile::tempfile().map_err(ArrowError::from).map_err(unavailable)?;
        let blocks = FileWriter::try_new(BufWriter::new(file), schema).map_err(unavailable)?;
        Ok(Self { schema: schema.clone(), blocks, rest: RecordBatch::new_empty(schema.clone()) })
    }

    fn write(&mut self, files: &RecordBatch) -> Result<()> {
        let all = match self.rest.num_rows() {
            0 => files.clone(),
            _ => concat_batches(&self.schema, [&self.rest, files]).map_err(invalid)?,
        };
        let whole = all.num_rows() / BLOCK * BLOCK;
        for start in (0..whole).step_by(BLOCK) {
            self.blocks.write(&all.slice(start, BLOCK)).map_err(unavailable)?;
        }
        self.rest = all.slice(whole, all.num_rows() - whole);
        Ok(())
    }

    fn finish(mut self) -> Result<Blocks> {
        if self.rest.num_rows() > 0 {
            self.blocks.write(&self.rest).map_err(unavailable)?;
        }
        let written = self.blocks.into_inner().map_err(unavailable)?;
        let mut file = written.into_inner().map_err(|error| unavailable(error.into_error().into()))?;
        file.rewind().map_err(ArrowError::from).map_err(unavailable)?;
        Ok(Blocks(FileReader::try_new(BufReader::new(file), None).map_err(unavailable)?))
    }
}

/// A merge of sorted runs.
struct Merge {
    runs: Vec<Run>,
}

struct Run {
    blocks: Blocks,
    next_block: usize,
    files: RecordBatch,
    keys: Keys,
    row: usize,
    /// The index of `files` among the batches from which the current block is made.
    batch: Option<usize>,
}

impl Run {
    /// Reads the next block once all rows of this one have been merged.
    fn load(&mut self) -> Result<()> {
        while self.row == self.files.num_rows() && self.next_block < self.blocks.count() {
            self.files = self.blocks.read(self.next_block)?;
            self.keys = Keys::of(&self.files)?;
            (self.next_block, self.row, self.batch) = (self.next_block + 1, 0, None);
        }
        Ok(())
    }
}

impl Merge {
    fn of(runs: Vec<Blocks>) -> Result<Self> {
        let mut found = Vec::new();
        for mut blocks in runs {
            if blocks.count() > 0 {
                let files = blocks.read(0)?;
                let keys = Keys::of(&files)?;
                found.push(Run { blocks, next_block: 1, files, keys, row: 0, batch: None });
            }
        }
        Ok(Self { runs: found })
    }

    /// Returns the next [`BLOCK`] files, or fewer at the end. Returns `None` if all files have been returned.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let (mut batches, mut rows) = (Vec::new(), Vec::new());
        self.runs.iter_mut().for_each(|run| run.batch = None);
        while rows.len() < BLOCK {
            for run in &mut self.runs {
                run.load()?;
            }
            let runs = self.runs.iter_mut().filter(|run| run.row < run.files.num_rows());
            let Some(run) = runs.min_by(|a, b| a.keys.compare(a.row, &b.keys, b.row)) else { break };
            let batch = *run.batch.get_or_insert_with(|| {
                batches.push(run.files.clone());
                batches.len() - 1
            });
            rows.push((batch, run.row));
            run.row += 1;
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = batches.iter().collect();
        interleave_record_batch(&batches, &rows).map(Some).map_err(invalid)
    }
}

/// The keys by which files are sorted.
struct Keys {
    times: Int64Array,
    paths: StringArray,
}

impl Keys {
    fn of(files: &RecordBatch) -> Result<Self> {
        let column = |column: FileColumn| files.column_by_name(column.name());
        let times =
            column(FileColumn::ModificationTime).and_then(|times| times.as_primitive_opt::<Int64Type>());
        let paths = column(FileColumn::Path).and_then(|paths| paths.as_string_opt::<i32>());
        match (times, paths) {
            (Some(times), Some(paths)) => Ok(Self { times: times.clone(), paths: paths.clone() }),
            _ => Err(Error::corrupt_log("file actions have no times or paths")),
        }
    }

    fn compare(&self, row: usize, other: &Self, other_row: usize) -> Ordering {
        let time = |keys: &Self, row: usize| if keys.times.is_valid(row) { keys.times.value(row) } else { 0 };
        time(self, row)
            .cmp(&time(other, other_row))
            .then_with(|| self.paths.value(row).as_bytes().cmp(other.paths.value(other_row).as_bytes()))
    }
}

/// Returns the sizes in bytes of files, which are rows with the columns of the log.
///
/// # Errors
/// `CorruptLog` for a file without a size.
pub(super) fn sizes(files: &RecordBatch) -> Result<Vec<u64>> {
    let sizes =
        files.column_by_name(FileColumn::Size.name()).and_then(|sizes| sizes.as_primitive_opt::<Int64Type>());
    let sizes = sizes.ok_or_else(|| Error::corrupt_log("the column 'size' does not hold integers"))?;
    let size = |size: Option<i64>| size.and_then(|size| u64::try_from(size).ok());
    sizes.iter().map(|found| size(found).ok_or_else(|| Error::corrupt_log("a file has no size"))).collect()
}

fn too_many() -> Error {
    Error::unsupported("the table has too many files to sort them at once")
}

fn invalid(error: ArrowError) -> Error {
    Error::corrupt_log("file actions do not have the columns of the log").with_source(error)
}

fn unavailable(error: ArrowError) -> Error {
    Error::new(ErrorKind::Unavailable, "a temporary file for the order of a stream's files cannot be used")
        .with_source(error)
        .with_hint("free space in the directory for temporary files, or set TMPDIR to another one")
}
