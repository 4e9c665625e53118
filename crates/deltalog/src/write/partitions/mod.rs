//! Distributes the rows of a write to the files of their partitions, in bounded memory.
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
//!   file sizes slightly.
//! - Only a few files are open at once, because each needs memory for a row group that is large enough to be read
//!   efficiently. The rows of other partitions wait, and no file is started for a few rows.
//! - Memory is used first for waiting rows, and then for the row groups of open files. When it is used up, all waiting
//!   rows are moved to the temporary file ([`super::overflow`]). If they take little memory, the largest row group is
//!   ended instead.
//! - If a partition needs a file while the maximum number of files is open, a file that has not received rows for a
//!   while is completed. If the data is sorted by partition, this is the last file of its partition. If its partition
//!   gets more rows nevertheless, they wait until the end of the write; then the file is read back and rewritten with
//!   them. This happens at most once per partition, so no row is encoded more than twice.

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

/// The memory for each open file, in bytes.
const MEMORY_PER_FILE: usize = 8 << 20;

/// The minimum size in bytes of a row group that is ended because the memory is used up.
const LEAST_ROW_GROUP: usize = MEMORY_PER_FILE / 2;

/// The partitions of one write.
pub(super) struct Partitions {
    output: Output,
    /// Whether there is only one partition, whose rows never wait.
    is_single: bool,
    target_file_size: u64,
    memory_budget: usize,
    partitions: Vec<Partition>,
    /// The partitions that have an open file.
    direct: Vec<PartitionId>,
    /// The memory of the open files, in bytes.
    file_memory: usize,
    /// The partitions that have waiting rows in memory. The list may contain duplicates, and partitions that no
    /// longer have such rows.
    waiting: Vec<PartitionId>,
    /// The number of pieces that the waiting rows in memory consist of.
    pieces: usize,
    held: HeldMemory,
    overflow: Overflow,
    /// The weight of all rows that were added so far.
    pushed: usize,
}

#[derive(Default)]
struct Partition {
    values: Vec<Option<String>>,
    file: Option<Open>,
    /// The locations of waiting rows in the temporary file. They come before the waiting rows in memory.
    places: Vec<Place>,
    pieces: Vec<Piece>,
    /// The weight of all waiting rows.
    waiting: usize,
    /// The weight of the waiting rows in memory.
    in_memory: usize,
    /// The partition's last file, if it was completed early because another partition needed a file.
    early: Option<WrittenFile>,
}

struct Open {
    file: DataFile,
    memory: usize,
    /// The weight of all rows of the write when this file last received rows.
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

    /// Returns the memory of rows and encoders, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.file_memory + self.waiting_memory() + self.overflow.memory()
    }

    fn waiting_memory(&self) -> usize {
        // A vector may have allocated room for twice as many elements as it contains.
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

    /// Returns the size of the temporary file in bytes.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflow.written()
    }

    /// Returns whether the next rows of the partition are written directly to an open file.
    pub(super) fn is_direct(&self, id: PartitionId) -> bool {
        self.partitions.get(id).is_some_and(|partition| partition.file.is_some())
    }

    /// Prepares a batch from which [`Partitions::push`] can take rows.
    pub(super) fn source(&self, rows: RecordBatch) -> Source {
        Source::new(rows, self.held.clone())
    }

    /// Adds the next partition, which has these partition values.
    pub(super) fn add(&mut self, values: Vec<Option<String>>) {
        self.partitions.push(Partition { values, ..Partition::default() });
    }

    /// Adds rows to a partition. The caller must call [`Partitions::keep_within_budget`] after dropping the source.
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

    /// Returns whether a partition with waiting rows should get a file when rows of this weight are added: it has
    /// enough rows in memory to encode, or enough rows in total to fill a file.
    fn is_worth_a_file(&self, id: PartitionId, weight: usize) -> bool {
        let Some(partition) = self.partitions.get(id) else { return false };
        partition.file.is_none()
            && partition.early.is_none()
            && (self.is_single
                || partition.in_memory + weight >= chunk::WEIGHT
                || (partition.waiting + weight) as u64 >= self.target_file_size)
    }

    /// Opens a file for the partition and writes its waiting rows to it. Does nothing if the maximum number of files
    /// is open.
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

    /// Returns the partition whose file has not received rows for the longest time. Returns `None` if that time is
    /// short: fewer rows have arrived since than the open files together can hold.
    fn idle(&self) -> Option<PartitionId> {
        let last_use = |id: &PartitionId| Some((self.partitions.get(*id)?.file.as_ref()?.last_use, *id));
        let (last_use, oldest) = self.direct.iter().filter_map(last_use).min()?;
        (self.pushed - last_use >= self.most_open() * chunk::WEIGHT).then_some(oldest)
    }

    /// Starts a file for the partition.
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
        // About one chunk of rows is written at a time, so that the batches of these pieces can be freed early.
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

    /// Writes rows that were waiting in memory.
    fn write_pieces(&mut self, id: PartitionId, pieces: Vec<Piece>) -> Result<()> {
        if pieces.is_empty() {
            return Ok(());
        }
        let rows = detached(gather(&pieces)?)?;
        drop(pieces);
        self.write(id, &rows)
    }

    /// Writes rows to the file of the partition, and to additional files when it is full.
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
            // The last rows may stay in memory for a long time, and must not keep the rest of their batch alive.
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

    /// Frees memory until the memory in use is within the budget.
    pub(super) fn keep_within_budget(&mut self) -> Result<()> {
        while self.memory() > self.memory_budget {
            if self.overflow.memory() > 0 {
                self.overflow.forget();
                continue;
            }
            let is_mostly_waiting = self.waiting_memory() >= self.memory_budget / 4;
            if !(is_mostly_waiting && self.set_aside()? || self.end_largest_row_group()?) {
                // The remaining row groups are too small to end. Together, they use only a fraction of the budget.
                break;
            }
        }
        Ok(())
    }

    /// Ends the largest row group in memory, if it is large enough to be read efficiently. Returns whether a row group
    /// was ended.
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

    /// Removes and returns the partition's waiting rows that are in memory.
    fn take_pieces(&mut self, id: PartitionId) -> Result<Vec<Piece>> {
        let partition = at(&mut self.partitions, id)?;
        partition.in_memory = 0;
        self.pieces -= partition.pieces.len();
        Ok(std::mem::take(&mut partition.pieces))
    }

    /// Drops all rows and deletes all files.
    ///
    /// # Errors
    /// Returns the error of the first file that could not be deleted. It still deletes the other files.
    pub(super) fn abort(&mut self) -> Result<()> {
        // Some systems cannot delete open files, so the encoders, which keep files open, are dropped first.
        self.partitions.clear();
        self.direct.clear();
        self.output.delete()
    }
}

fn at(partitions: &mut [Partition], id: PartitionId) -> Result<&mut Partition> {
    partitions.get_mut(id).ok_or_else(|| unknown(id))
}

fn unknown(id: PartitionId) -> Error {
    Error::invalid_argument(format!("the write has no partition {id}"))
}
