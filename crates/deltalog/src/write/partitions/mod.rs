//! Passes the rows of one write to files, partition by partition, in bounded memory.
//!
//! ```text
//!            ┌─ direct: its file is being written ──────────────────────────────► file
//! rows ──────┤
//!            └─ waiting: pieces in memory ──► runs in the temporary file ──► later, whole ──► file
//!                              │
//!                              └─ 1 MiB of them, and a file may be opened: direct
//! ```
//!
//! - The files of a partition depend only on its rows: these are encoded in order and in the same chunks
//!   ([`super::chunk`]), whether they are written directly or have waited. The number of files therefore depends
//!   neither on batches nor on the order of the partitions. If memory is short, row groups end earlier, which changes
//!   sizes slightly.
//! - Few files are open at once, because each needs memory for a row group that is large enough to be read efficiently.
//!   Other partitions wait, and no file is begun for a few rows.
//! - Memory is used first for waiting rows, and then for the row groups of open files. When it is used up, all waiting
//!   rows are moved to the temporary file ([`super::overflow`]). If they take little memory, the largest row group is
//!   ended instead.
//! - If another partition needs a file while the maximum number is open, a file that has had no rows for a while is
//!   completed. If the data is sorted by partition, this is the last file of its partition. If more rows arrive
//!   nevertheless, they wait until the end of the write; then the file is read back and rewritten with them. This
//!   happens at most once per partition, so no row is encoded more than twice.

mod aside;
mod finish;

use std::ops::Range;

use arrow::record_batch::RecordBatch;

use super::chunk;
use super::data_file::DataFile;
use super::held::{HeldMemory, Piece, Source, detached, gather};
use super::output::{Output, WrittenFile};
use super::overflow::{Overflow, Place};
use super::split::PartitionId;
use crate::error::{Error, Result};
use crate::runtime::row_bytes::weight_of;

/// The memory per open file, in bytes.
const MEMORY_PER_FILE: usize = 8 << 20;

/// Only row groups of at least this size, in bytes, are ended because memory is used up.
const LEAST_ROW_GROUP: usize = MEMORY_PER_FILE / 2;

/// The partitions of one write.
pub(super) struct Partitions {
    output: Output,
    /// Whether there is only one partition, whose rows never wait.
    is_single: bool,
    target_file_size: u64,
    memory_budget: usize,
    partitions: Vec<Partition>,
    /// The partitions whose files are open.
    direct: Vec<PartitionId>,
    /// The memory of open files, in bytes.
    file_memory: usize,
    /// The partitions with waiting rows in memory. It may contain duplicates, and partitions without such rows.
    waiting: Vec<PartitionId>,
    /// The number of these pieces.
    pieces: usize,
    held: HeldMemory,
    overflow: Overflow,
    /// The weight of all rows so far.
    pushed: usize,
}

#[derive(Default)]
struct Partition {
    values: Vec<Option<String>>,
    file: Option<Open>,
    /// The waiting rows: first those in the temporary file, then those in memory.
    places: Vec<Place>,
    pieces: Vec<Piece>,
    /// The size of the waiting rows.
    waiting: usize,
    /// The weight of the waiting rows in memory.
    in_memory: usize,
    /// The last file, if it was completed early because another partition needed a file.
    early: Option<WrittenFile>,
}

struct Open {
    file: DataFile,
    memory: usize,
    /// The weight of all rows of the write at the time this file last got rows.
    last_use: usize,
}

impl Partitions {
    pub(super) fn new(
        output: Output,
        overflow: Overflow,
        is_single: bool,
        target_file_size: u64,
        memory_budget: usize,
    ) -> Self {
        Self {
            output,
            is_single,
            target_file_size,
            memory_budget,
            partitions: Vec::new(),
            direct: Vec::new(),
            file_memory: 0,
            waiting: Vec::new(),
            pieces: 0,
            held: HeldMemory::default(),
            overflow,
            pushed: 0,
        }
    }

    pub(super) fn output(&self) -> &Output {
        &self.output
    }

    pub(super) fn output_mut(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Returns the memory that rows and encoders hold, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.file_memory + self.waiting_memory() + self.overflow.memory()
    }

    fn waiting_memory(&self) -> usize {
        // A vector may have room for twice as many elements as it has.
        self.held.bytes() + 2 * self.pieces * size_of::<Piece>()
    }

    /// Returns the number of open files.
    pub(super) fn open_files(&self) -> usize {
        let is_open = |id: &&PartitionId| {
            let open = self.partitions.get(**id).and_then(|partition| partition.file.as_ref());
            open.is_some_and(|open| open.file.is_open())
        };
        self.direct.iter().filter(is_open).count()
    }

    /// Returns the bytes in the temporary file.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflow.written()
    }

    /// Returns whether the next rows of the partition are written directly to its file.
    pub(super) fn is_direct(&self, id: PartitionId) -> bool {
        self.partitions.get(id).is_some_and(|partition| partition.file.is_some())
    }

    /// Returns a batch from which [`Partitions::push`] takes rows.
    pub(super) fn source(&self, rows: RecordBatch) -> Source {
        Source::new(rows, self.held.clone())
    }

    /// Adds the next partitions, whose values are `values`.
    pub(super) fn add(&mut self, values: Vec<Option<String>>) {
        self.partitions.push(Partition { values, ..Partition::default() });
    }

    /// Adds rows to a partition. Call [`Partitions::keep_within_budget`] after the source is dropped.
    pub(super) fn push(&mut self, id: PartitionId, source: &mut Source, rows: Range<usize>) -> Result<()> {
        let weight = weight_of(source.rows(), rows.start, rows.len());
        self.pushed += weight;
        if self.is_worth_a_file(id, weight) {
            self.open(id)?;
        }
        if self.is_direct(id) {
            let rows = source.rows().slice(rows.start, rows.len());
            return self.write(id, &if self.is_single { rows } else { detached(rows)? });
        }
        let partition = at(&mut self.partitions, id)?;
        if partition.pieces.is_empty() {
            self.waiting.push(id);
        }
        partition.pieces.push(source.piece(rows)?);
        self.pieces += 1;
        partition.waiting += weight;
        partition.in_memory += weight;
        Ok(())
    }

    /// Returns whether a waiting partition should get a file, when rows of this weight are added: it has enough rows in
    /// memory to encode, or enough rows in all to fill a file.
    fn is_worth_a_file(&self, id: PartitionId, weight: usize) -> bool {
        let Some(partition) = self.partitions.get(id) else { return false };
        partition.file.is_none()
            && partition.early.is_none()
            && (self.is_single
                || partition.in_memory + weight >= chunk::WEIGHT
                || (partition.waiting + weight) as u64 >= self.target_file_size)
    }

    /// Opens a file for the partition and writes its waiting rows, unless the maximum number of files is in use.
    fn open(&mut self, id: PartitionId) -> Result<()> {
        while self.direct.len() >= self.most_open() {
            let Some(idle) = self.idle() else { return Ok(()) };
            let early = self.close(idle)?;
            at(&mut self.partitions, idle)?.early = early;
        }
        self.begin(id)?;
        self.write_waiting(id)?;
        self.overflow.forget();
        Ok(())
    }

    fn most_open(&self) -> usize {
        (self.memory_budget / MEMORY_PER_FILE).max(1)
    }

    /// Returns the partition whose file has had no rows for the longest time, if that is long enough to assume that no
    /// more will come: enough rows for all open files have arrived since.
    fn idle(&self) -> Option<PartitionId> {
        let last_use = |id: &PartitionId| Some((self.partitions.get(*id)?.file.as_ref()?.last_use, *id));
        let (last_use, oldest) = self.direct.iter().filter_map(last_use).min()?;
        (self.pushed - last_use >= self.most_open() * chunk::WEIGHT).then_some(oldest)
    }

    /// Begins a file for the partition.
    fn begin(&mut self, id: PartitionId) -> Result<()> {
        let partition = at(&mut self.partitions, id)?;
        let file = self.output.begin(&partition.values);
        partition.file = Some(Open { file, memory: 0, last_use: self.pushed });
        self.direct.push(id);
        Ok(())
    }

    /// Writes the waiting rows of the partition.
    fn write_waiting(&mut self, id: PartitionId) -> Result<()> {
        let partition = at(&mut self.partitions, id)?;
        partition.waiting = 0;
        let places = std::mem::take(&mut partition.places);
        let pieces = self.take_pieces(id)?;
        for place in places {
            let rows = self.overflow.read(place)?;
            self.write(id, &rows)?;
        }
        // Pieces are written batch by batch, so that each batch is freed as early as possible.
        let (mut together, mut bytes) = (Vec::new(), 0);
        for piece in pieces {
            bytes += piece.bytes_per_row() * piece.num_rows();
            together.push(piece);
            if bytes >= chunk::WEIGHT {
                self.write_pieces(id, std::mem::take(&mut together))?;
                bytes = 0;
            }
        }
        self.write_pieces(id, together)
    }

    /// Writes rows that have waited in memory.
    fn write_pieces(&mut self, id: PartitionId, pieces: Vec<Piece>) -> Result<()> {
        if pieces.is_empty() {
            return Ok(());
        }
        let rows = detached(gather(&pieces)?)?;
        drop(pieces);
        self.write(id, &rows)
    }

    /// Writes rows to the file of the partition, and to further files when it is full.
    fn write(&mut self, id: PartitionId, rows: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < rows.num_rows() {
            if !self.is_direct(id) {
                self.begin(id)?;
            }
            let Some(open) = at(&mut self.partitions, id)?.file.as_mut() else { return Err(unknown(id)) };
            let rest = rows.slice(start, rows.num_rows() - start);
            let pushed = open.file.room(&rest);
            let next = rest.slice(0, pushed);
            // The last rows may have to stay in memory for a long time, and would keep the rest of their batch alive.
            let is_last = pushed == rest.num_rows() && !self.is_single;
            open.file.push(if is_last { detached(next)? } else { next })?;
            open.last_use = self.pushed;
            if open.file.should_encode() {
                self.output.change(&mut open.file, DataFile::encode)?;
            }
            self.account(id);
            self.keep_within_budget()?;
            if self.is_full(id) {
                self.close(id)?;
            }
            start += pushed;
        }
        Ok(())
    }

    fn is_full(&self, id: PartitionId) -> bool {
        let open = self.partitions.get(id).and_then(|partition| partition.file.as_ref());
        open.is_some_and(|open| open.file.expected_size() >= self.target_file_size)
    }

    fn account(&mut self, id: PartitionId) {
        if let Some(open) = self.partitions.get_mut(id).and_then(|partition| partition.file.as_mut()) {
            let memory = open.file.memory();
            self.file_memory = self.file_memory - open.memory + memory;
            open.memory = memory;
        }
    }

    fn close(&mut self, id: PartitionId) -> Result<Option<WrittenFile>> {
        let Some(Open { file, memory, .. }) = at(&mut self.partitions, id)?.file.take() else {
            return Ok(None);
        };
        self.direct.retain(|direct| *direct != id);
        self.file_memory -= memory;
        self.output.close(file)
    }

    /// Reduces the memory in use until it is within the budget.
    pub(super) fn keep_within_budget(&mut self) -> Result<()> {
        while self.memory() > self.memory_budget {
            if self.overflow.memory() > 0 {
                self.overflow.forget();
                continue;
            }
            let is_mostly_waiting = self.waiting_memory() >= self.memory_budget / 4;
            if !(is_mostly_waiting && self.set_aside()? || self.end_largest_row_group()?) {
                // Files whose row groups are too small to end use only a fraction of the budget together.
                break;
            }
        }
        Ok(())
    }

    /// Ends the largest row group in memory, if it is worth reading. Returns whether it did.
    fn end_largest_row_group(&mut self) -> Result<bool> {
        let size = |id: &PartitionId| Some((self.partitions.get(*id)?.file.as_ref()?.file.spillable(), *id));
        let largest = self.direct.iter().filter_map(size).max();
        let Some((_, id)) = largest.filter(|(size, _)| *size >= LEAST_ROW_GROUP) else { return Ok(false) };
        if let Some(open) = &mut at(&mut self.partitions, id)?.file {
            self.output.change(&mut open.file, DataFile::spill)?;
        }
        self.account(id);
        Ok(true)
    }

    /// Takes the waiting rows of the partition that are in memory.
    fn take_pieces(&mut self, id: PartitionId) -> Result<Vec<Piece>> {
        let partition = at(&mut self.partitions, id)?;
        partition.in_memory = 0;
        self.pieces -= partition.pieces.len();
        Ok(std::mem::take(&mut partition.pieces))
    }

    /// Drops all rows and deletes all files.
    ///
    /// # Errors
    /// The error of the first file that could not be deleted. The other files are deleted
    /// nevertheless.
    pub(super) fn abort(&mut self) -> Result<()> {
        // Some systems do not delete open files, so the encoders that hold them are dropped first.
        self.partitions.clear();
        self.direct.clear();
        self.output.delete()
    }
}

fn at(partitions: &mut [Partition], id: PartitionId) -> Result<&mut Partition> {
    partitions.get_mut(id).ok_or_else(|| unknown(id))
}

fn unknown(id: PartitionId) -> Error {
    Error::invalid_argument(format!("partition {id} is not one of the write"))
}
