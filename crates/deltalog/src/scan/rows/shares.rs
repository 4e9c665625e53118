//! Reads the columns of a file batch by batch, on the caller's thread or shared among several threads. Sharing keeps
//! the order of the rows and needs little memory.
//!
//! ```text
//! thread ──(batches of columns a, d)──┐
//! thread ──(batches of columns b, c)──┴──> the caller combines them
//! ```
//!
//! The threads are plain threads, like those that read whole files. They end when their columns end, or at their next
//! batch after the caller was dropped.
//!
//! A batch has as many rows as the footer suggests ([`crate::runtime::row_bytes`]). The footer may understate the
//! size, for example of values that are stored once and repeated. A batch that turns out to be too large is then
//! passed on in pieces, a batch that no array can hold is read again, and reading continues with fewer rows at once.
//! After narrow rows, the number of rows grows again, up to the number that the footer suggests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReaderBuilder, RowSelection, RowSelectionPolicy, RowSelector,
};

use super::batches::{malformed, uneven};
use super::faults::{ReadFailure, read_batch};
use super::file::{OpenFile, Opener};
use super::gaps::{Apart, GapReader, most_at_once};
use super::waiting::WAITING_BYTES;
use super::{BATCH_ROWS, RowScan};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::interrupt;
use crate::runtime::row_bytes::weight_of;
use crate::storage::column_ranges;

/// The number of batches per thread that may wait for the caller, unless they are large.
const WAITING_BATCHES: usize = 4;
/// The minimum number of bytes for which starting a thread is worthwhile.
pub(super) const BYTES_WORTH_A_THREAD: u64 = 4 << 20;
/// The cost of decoding a value, in addition to the cost of its bytes, expressed in bytes. It matters for dictionary
/// keys, for example, whose few bytes become many values.
const BYTES_PER_VALUE: u64 = 4;

/// The factor by which the number of rows per read shrinks after a batch that an array cannot hold, and the maximum
/// factor by which it grows after a small batch.
const FEWER: usize = 8;

/// The columns to read from a file.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    pub(super) opener: Arc<Opener>,
    pub(super) file: Arc<OpenFile>,
    pub(super) groups: Vec<usize>,
    pub(super) leaves: Vec<usize>,
    /// The selected rows of the row groups; `None` for all rows.
    pub(super) selection: Option<RowSelection>,
}

/// Reads some columns of a file, batch by batch.
#[derive(Debug)]
pub(super) struct ColumnReader {
    columns: Columns,
    threads: usize,
    /// The number of rows to read at once.
    rows: usize,
    /// The maximum of `rows`, which the footer suggests.
    most: usize,
    /// The smallest number of rows that were read at once.
    fewest: usize,
    /// The number of rows that have been read so far.
    done: usize,
    source: Source,
    /// The remaining pieces of a batch that was too large.
    pieces: VecDeque<RecordBatch>,
}

#[derive(Debug)]
enum Source {
    Alone(GapReader),
    Shared(Shares),
}

/// The caller's side of the threads that share the columns.
#[derive(Debug)]
struct Shares {
    process: u32,
    threads: Vec<Receiver<Message>>,
    schema: SchemaRef,
}

/// A batch, or `None` after the last batch.
type Message = Option<Result<RecordBatch, ReadFailure>>;

impl Columns {
    /// Starts reading on at most `threads` threads. Reads `rows` rows at once, and later up to `most` rows if they
    /// are narrow.
    ///
    /// # Errors
    /// `CorruptData`, `Unavailable`.
    pub(super) fn read(self, threads: usize, rows: usize, most: usize) -> Result<ColumnReader> {
        let source = self.source(threads, rows, 0)?;
        Ok(ColumnReader {
            columns: self,
            threads,
            rows,
            most,
            fewest: rows,
            done: 0,
            source,
            pieces: VecDeque::new(),
        })
    }

    fn scan(&self) -> &RowScan {
        &self.opener.scan
    }

    /// Starts reading after the first `done` rows, for example to read them again with fewer rows at once.
    fn source(&self, threads: usize, rows: usize, done: usize) -> Result<Source> {
        if threads > 1
            && let Some(shares) = self.shares(threads)
            && let Some(shared) = self.start(&shares, rows, done)?
        {
            return Ok(Source::Shared(shared));
        }
        Ok(Source::Alone(self.reader(&self.leaves, rows, done)?))
    }

    fn reader(&self, leaves: &[usize], rows: usize, done: usize) -> Result<GapReader> {
        let file = &self.file;
        let mut selection = self.selection_after(done);
        let is_wide = rows < self.scan().batch_rows.min(BATCH_ROWS);
        let apart = selection.as_ref().filter(|_| !is_wide).and_then(|wanted| {
            // All threads must read the same batches, so the size of all their columns matters.
            let row = file.bytes_of_leaves(&self.groups, &self.leaves);
            Apart::of(wanted, rows, most_at_once(self.scan().batch_bytes, row, rows))
        });
        let kept = apart.map(|apart| {
            selection = Some(apart.decoded);
            apart.kept
        });
        let planned = file
            .file
            .planned(|| column_ranges(file.metadata.metadata(), &self.groups, leaves, selection.clone()));
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(planned, file.metadata.clone())
            .with_batch_size(rows)
            .with_projection(ProjectionMask::leaves(file.metadata.parquet_schema(), leaves.iter().copied()))
            .with_row_groups(self.groups.clone());
        if let Some(selection) = selection {
            reader = reader.with_row_selection(selection);
        }
        if is_wide || kept.is_some() {
            // The other policy, a mask, would decode rows that are not selected as well.
            reader = reader.with_row_selection_policy(RowSelectionPolicy::Selectors);
        }
        Ok(GapReader::new(reader.build().map_err(|error| file.file.error(error))?, kept))
    }

    /// Returns the selection without its first `done` rows.
    fn selection_after(&self, done: usize) -> Option<RowSelection> {
        if done == 0 {
            return self.selection.clone();
        }
        let groups = self.file.metadata.metadata().row_groups();
        let all = || {
            let rows =
                self.groups.iter().filter_map(|group| groups.get(*group)).map(|group| group.num_rows());
            rows.filter_map(|rows| usize::try_from(rows).ok()).sum()
        };
        let rows: usize = self.selection.as_ref().map_or_else(all, RowSelection::row_count);
        let rest = vec![RowSelector::skip(done), RowSelector::select(rows.saturating_sub(done))].into();
        Some(
            self.selection
                .as_ref()
                .map_or_else(|| RowSelection::clone(&rest), |wanted| wanted.and_then(&rest)),
        )
    }

    /// Distributes the leaf columns among threads so that each has about the same amount of work. Returns `None` if
    /// there is too little work, or only one column.
    fn shares(&self, threads: usize) -> Option<Vec<Vec<usize>>> {
        let metadata = self.file.metadata.metadata();
        let mut columns: Vec<(usize, u64, Vec<usize>)> = Vec::new();
        for leaf in &self.leaves {
            let chunks = self
                .groups
                .iter()
                .filter_map(|group| metadata.row_groups().get(*group)?.columns().get(*leaf));
            let work = |size: i64| u64::try_from(size).unwrap_or_default();
            let work = chunks
                .map(|chunk| work(chunk.uncompressed_size()) + BYTES_PER_VALUE * work(chunk.num_values()))
                .sum();
            let root = metadata.file_metadata().schema_descr().get_column_root_idx(*leaf);
            // The leaf columns of a top-level column are consecutive.
            match columns.last_mut().filter(|(of, ..)| *of == root) {
                Some((_, of_column, leaves)) => {
                    *of_column += work;
                    leaves.push(*leaf);
                }
                None => columns.push((root, work, vec![*leaf])),
            }
        }
        if columns.len() < 2
            || columns.iter().map(|(_, work, _)| work).sum::<u64>() < self.scan().bytes_worth_a_thread
        {
            return None;
        }
        columns.sort_by_key(|(_, work, _)| std::cmp::Reverse(*work));
        let mut shares = vec![(0, Vec::new()); threads.min(columns.len())];
        for (_, work, leaves) in columns {
            let (of_share, share) = shares.iter_mut().min_by_key(|(work, _)| *work)?;
            *of_share += work;
            share.extend(leaves);
        }
        Some(shares.into_iter().map(|(_, leaves)| leaves).collect())
    }

    /// Starts the threads; returns `None` if the system cannot start more threads.
    fn start(&self, shares: &[Vec<usize>], rows: usize, done: usize) -> Result<Option<Shares>> {
        let (mut threads, mut fields) = (Vec::with_capacity(shares.len()), Vec::<FieldRef>::new());
        let bytes =
            self.groups.iter().map(|group| self.file.bytes_of_rows(*group, rows)).max().unwrap_or_default();
        let waiting = (WAITING_BYTES / bytes.max(1)).clamp(1, WAITING_BATCHES);
        for leaves in shares {
            let mut reader = self.reader(leaves, rows, done)?;
            fields.extend(reader.schema().fields().iter().cloned());
            let (sender, receiver) = sync_channel::<Message>(waiting);
            let file = self.file.file.clone();
            let work = move || {
                loop {
                    let next = read_batch(&mut reader, &file).transpose();
                    let is_last = !matches!(next, Some(Ok(_)));
                    if sender.send(next).is_err() || is_last {
                        return;
                    }
                }
            };
            if let Err(error) = std::thread::Builder::new().name("deltalog-columns".to_owned()).spawn(work) {
                tracing::warn!(%error, "no more threads can be started: reading on the caller's thread");
                return Ok(None);
            }
            threads.push(receiver);
        }
        Ok(Some(Shares { process: std::process::id(), threads, schema: Arc::new(Schema::new(fields)) }))
    }
}

impl ColumnReader {
    /// Returns the number of rows that are read at once, if it is less than the footer suggests.
    pub(super) fn rows(&self) -> Option<usize> {
        (self.rows < self.most).then_some(self.rows)
    }

    /// Returns the smallest number of rows that were read at once.
    pub(super) fn fewest_rows(&self) -> usize {
        self.fewest
    }

    /// Returns the next batch, whose columns may be in any order.
    ///
    /// # Errors
    /// Returns `CorruptData` or `Unavailable`, and `Unsupported` for a row that is too large for an Arrow array.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let limits = self.columns.scan().batch_bytes;
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Ok(Some(piece));
            }
            let read = match &mut self.source {
                Source::Alone(reader) => read_batch(reader, &self.columns.file.file),
                Source::Shared(shares) => shares.next_batch(),
            };
            match read {
                Ok(None) => return Ok(None),
                Ok(Some(batch)) if self.rows == 1 || !limits.ends_offsets(&batch) => {
                    let rows = batch.num_rows();
                    self.done += rows;
                    let bytes = weight_of(&batch, 0, rows);
                    if self.rows == 1 || !limits.is_exceeded(bytes) {
                        let is_narrow = bytes.saturating_mul(FEWER) <= limits.target();
                        if self.rows < self.most && rows == self.rows && is_narrow {
                            let most = self.most.min(self.rows.saturating_mul(FEWER));
                            self.go_on(limits.rows(bytes as f64 / rows.max(1) as f64, most))?;
                        }
                        return Ok(Some(batch));
                    }
                    self.pieces.extend(limits.pieces(&batch));
                    self.go_on(limits.rows(bytes as f64 / rows.max(1) as f64, self.rows / 2))?;
                }
                Ok(Some(_)) => self.go_on(self.rows / FEWER)?,
                Err(ReadFailure::TooLarge) if self.rows > 1 => self.go_on(self.rows / FEWER)?,
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Continues to read, with `rows` rows at once.
    fn go_on(&mut self, rows: usize) -> Result<()> {
        self.rows = rows.max(1);
        self.fewest = self.fewest.min(self.rows);
        self.source = self.columns.source(self.threads, self.rows, self.done)?;
        Ok(())
    }
}

impl Shares {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ReadFailure> {
        if self.process != std::process::id() {
            return Err(Error::invalid_argument(
                "the scan was started in another process, from which this one was forked",
            )
            .with_hint("start the scan in the process that reads it")
            .into());
        }
        let mut batches = Vec::with_capacity(self.threads.len());
        for thread in &self.threads {
            let message = interrupt::receive(thread).map_err(Error::from)?.map_err(|_| {
                Error::new(ErrorKind::Unavailable, "a thread that read columns terminated unexpectedly")
            })?;
            batches.push(message.transpose()?);
        }
        let Some(batches) = batches.iter().cloned().collect::<Option<Vec<RecordBatch>>>() else {
            return if batches.iter().all(Option::is_none) { Ok(None) } else { Err(uneven().into()) };
        };
        let columns = batches.iter().flat_map(RecordBatch::columns).cloned().collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(malformed)?;
        Ok(Some(batch))
    }
}
