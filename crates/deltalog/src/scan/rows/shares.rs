//! Reading of a file's columns, batch by batch: by the caller, or shared among threads. Sharing keeps the
//! order of the rows and needs little memory.
//!
//! ```text
//! thread ──(batches of columns a, d)──┐
//! thread ──(batches of columns b, c)──┴──> the caller combines them
//! ```
//!
//! These are plain threads, as for whole files. They end with their columns, or at their next batch after the
//! caller is dropped.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection};

use super::RowScan;
use super::batches::{malformed, uneven};
use super::faults::{WatchedFile, guarded};
use super::file::OpenFile;
use super::stream::WAITING_BYTES;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::column_ranges;

/// The number of batches per thread that may wait for the caller, if they are not large.
const WAITING_BATCHES: usize = 4;
/// The number of bytes that justify starting a thread.
pub(super) const BYTES_WORTH_A_THREAD: u64 = 4 << 20;
/// The cost of decoding a value in addition to its bytes, expressed in bytes. The few bytes of a dictionary's
/// keys, for example, become many.
const BYTES_PER_VALUE: u64 = 4;

/// The columns to read from a file.
#[derive(Debug, Clone)]
pub(super) struct Columns<'a> {
    pub(super) file: &'a OpenFile,
    pub(super) groups: Vec<usize>,
    pub(super) leaves: &'a [usize],
    /// The rows of the groups to read; `None` for all.
    pub(super) selection: Option<RowSelection>,
    pub(super) scan: &'a RowScan,
}

/// A reader of columns.
#[derive(Debug)]
pub(super) enum ColumnReader {
    Alone(ParquetRecordBatchReader, WatchedFile),
    Shared(Shares),
}

/// The caller's side of the threads.
#[derive(Debug)]
pub(super) struct Shares {
    process: u32,
    threads: Vec<Receiver<Message>>,
    schema: SchemaRef,
}

/// A batch, or `None` at the end.
type Message = Option<Result<RecordBatch>>;

impl Columns<'_> {
    /// Starts reading on at most `threads` threads.
    ///
    /// # Errors
    /// `CorruptData`, `Unavailable`.
    pub(super) fn read(self, threads: usize) -> Result<ColumnReader> {
        if threads > 1
            && let Some(shares) = self.shares(threads)
            && let Some(shared) = self.start(&shares)?
        {
            return Ok(ColumnReader::Shared(shared));
        }
        Ok(ColumnReader::Alone(self.reader(self.leaves)?, self.file.file.clone()))
    }

    fn reader(&self, leaves: &[usize]) -> Result<ParquetRecordBatchReader> {
        let file = self.file;
        let planned = file.file.planned(|| {
            column_ranges(file.metadata.metadata(), &self.groups, leaves, self.selection.clone())
        });
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(planned, file.metadata.clone())
            .with_batch_size(self.scan.batch_rows)
            .with_projection(ProjectionMask::leaves(file.metadata.parquet_schema(), leaves.iter().copied()))
            .with_row_groups(self.groups.clone());
        if let Some(selection) = self.selection.clone() {
            reader = reader.with_row_selection(selection);
        }
        reader.build().map_err(|error| file.file.error(error))
    }

    /// Distributes the leaves among threads with about equal work; returns `None` if there is too little
    /// work, or only one column.
    fn shares(&self, threads: usize) -> Option<Vec<Vec<usize>>> {
        let metadata = self.file.metadata.metadata();
        let mut columns: Vec<(usize, u64, Vec<usize>)> = Vec::new();
        for leaf in self.leaves {
            let chunks = self
                .groups
                .iter()
                .filter_map(|group| metadata.row_groups().get(*group)?.columns().get(*leaf));
            let work = |size: i64| u64::try_from(size).unwrap_or_default();
            let work = chunks
                .map(|chunk| work(chunk.uncompressed_size()) + BYTES_PER_VALUE * work(chunk.num_values()))
                .sum();
            let root = metadata.file_metadata().schema_descr().get_column_root_idx(*leaf);
            // The leaves of a column follow one another.
            match columns.last_mut().filter(|(of, ..)| *of == root) {
                Some((_, of_column, leaves)) => {
                    *of_column += work;
                    leaves.push(*leaf);
                }
                None => columns.push((root, work, vec![*leaf])),
            }
        }
        if columns.len() < 2
            || columns.iter().map(|(_, work, _)| work).sum::<u64>() < self.scan.bytes_worth_a_thread
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

    /// Starts the threads; returns `None` if the system has no more threads.
    fn start(&self, shares: &[Vec<usize>]) -> Result<Option<Shares>> {
        let (mut threads, mut fields) = (Vec::with_capacity(shares.len()), Vec::<FieldRef>::new());
        let bytes = self
            .groups
            .iter()
            .map(|group| self.file.bytes_of_rows(*group, self.scan.batch_rows))
            .max()
            .unwrap_or_default();
        let waiting = (WAITING_BYTES / bytes.max(1)).clamp(1, WAITING_BATCHES);
        for leaves in shares {
            let mut reader = self.reader(leaves)?;
            fields.extend(arrow::array::RecordBatchReader::schema(&reader).fields().iter().cloned());
            let (sender, receiver) = sync_channel::<Message>(waiting);
            let file = self.file.file.clone();
            let work = move || {
                loop {
                    let next =
                        guarded(|| reader.next().transpose().map_err(|error| file.error(error))).transpose();
                    let is_last = !matches!(next, Some(Ok(_)));
                    if sender.send(next).is_err() || is_last {
                        return;
                    }
                }
            };
            if let Err(error) = std::thread::Builder::new().name("deltalog-columns".to_owned()).spawn(work) {
                tracing::warn!(%error, "no thread can be started for reading: using the caller's");
                return Ok(None);
            }
            threads.push(receiver);
        }
        Ok(Some(Shares { process: std::process::id(), threads, schema: Arc::new(Schema::new(fields)) }))
    }
}

impl ColumnReader {
    /// Returns the next batch; its columns may be in any order.
    ///
    /// # Errors
    /// `CorruptData`, `Unavailable`.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Alone(reader, file) => reader.next().transpose().map_err(|error| file.error(error)),
            Self::Shared(shares) => shares.next_batch(),
        }
    }
}

impl Shares {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.process != std::process::id() {
            return Err(Error::invalid_argument(
                "the scan was started in another process, from which this one was forked",
            )
            .with_hint("start the scan in the process that reads it"));
        }
        let mut batches = Vec::with_capacity(self.threads.len());
        for thread in &self.threads {
            let message = thread.recv().map_err(|_| {
                Error::new(ErrorKind::Unavailable, "a thread that read columns terminated unexpectedly")
            })?;
            batches.push(message.transpose()?);
        }
        let Some(batches) = batches.iter().cloned().collect::<Option<Vec<RecordBatch>>>() else {
            return if batches.iter().all(Option::is_none) { Ok(None) } else { Err(uneven()) };
        };
        let columns = batches.iter().flat_map(RecordBatch::columns).cloned().collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map(Some).map_err(malformed)
    }
}
