//! Reads the file actions of a checkpoint in order. Several threads decode row groups, or pieces of them, ahead of the
//! caller.
//!
//! ```text
//! pieces ──queue──> worker ──(2 batches)──┐
//!             └───> worker ──(2 batches)──┴──> the caller drains the channels in order
//! ```
//!
//! - If damage is found before any rows were returned, the rows come from the replacement: the state of the same
//!   version, computed from other files of the log. If damage is found later, it is an error, and only the next reader
//!   uses the replacement.
//! - At most two batches of each piece wait for the caller. A thread that has decoded more pauses until the caller
//!   takes one of them. Threads get another piece only when the caller has finished one, so that the batches of many
//!   small pieces do not fill the memory while the caller is slower than the threads.
//! - The end of the rows is signaled explicitly, so that a thread that dies causes an error and is not mistaken for the
//!   end.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;

use super::parquet_file::{ParquetFile, Piece, guarded};
use super::rows::{AddRequest, RowBatches, RowRequest};
use super::{Checkpoint, open_all};
use crate::error::{Error, ErrorKind, Result};
use crate::log::CheckpointFiles;
use crate::log::replay::columns::{FileColumn, FileColumns, remove_fields};
use crate::log::replay::filter::apply;
use crate::log::replay::tail::with_columns;
use crate::protocol::PathResolver;
use crate::runtime::{interrupt, parallel};
use crate::storage::Storage;

/// The number of batches of a piece that may wait for the caller.
const WAITING_BATCHES: usize = 2;
/// The number of pieces per thread that are being decoded or wait for the caller. With two, a thread can begin another
/// piece while the caller takes the batches of the first one.
pub(super) const PIECES_PER_THREAD: usize = 2;
/// The maximum number of threads for local files, and the minimum for files in a store. More threads for local files
/// would only cost memory, because the consumer processes the batches one by one.
pub(super) const MOST_THREADS: usize = 4;

/// An iterator over batches of file actions.
pub(crate) type Rows = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// A reader for the rows of one kind of file action.
pub struct CheckpointReader {
    checkpoint: Arc<Checkpoint>,
    kind: Kind,
    state: Source,
    has_returned_rows: bool,
}

#[derive(Clone)]
enum Kind {
    Adds(AddRequest),
    Removes,
}

enum Source {
    New,
    Own(Groups),
    /// The rows of the replacement, if the checkpoint was replaced.
    Replacement(Rows),
    Done,
}

impl CheckpointReader {
    /// Creates a reader of the `add` rows with `columns`.
    ///
    /// # Errors
    /// `InvalidArgument` if the table's location is invalid.
    pub fn adds(storage: &Storage, checkpoint: &CheckpointFiles, columns: FileColumns) -> Result<Self> {
        Ok(Self::of(&Arc::new(irreplaceable(storage, checkpoint)?), Kind::Adds(AddRequest::new(columns))))
    }

    /// Creates a reader of the `remove` rows.
    ///
    /// # Errors
    /// `InvalidArgument` if the table's location is invalid.
    pub fn removes(storage: &Storage, checkpoint: &CheckpointFiles) -> Result<Self> {
        Ok(Self::of(&Arc::new(irreplaceable(storage, checkpoint)?), Kind::Removes))
    }

    pub(crate) fn adds_of(checkpoint: &Arc<Checkpoint>, request: AddRequest) -> Self {
        Self::of(checkpoint, Kind::Adds(request))
    }

    pub(crate) fn removes_of(checkpoint: &Arc<Checkpoint>) -> Self {
        Self::of(checkpoint, Kind::Removes)
    }

    fn of(checkpoint: &Arc<Checkpoint>, kind: Kind) -> Self {
        Self { checkpoint: Arc::clone(checkpoint), kind, state: Source::New, has_returned_rows: false }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let next = match &mut self.state {
                Source::Done => return Ok(None),
                Source::Replacement(rows) => return rows.next().transpose(),
                Source::New => {
                    if let Some(state) = self.checkpoint.replacement() {
                        self.state = Source::Replacement(self.kind.of(&state)?);
                        continue;
                    }
                    self.start().map(|groups| self.state = Source::Own(groups)).map(|()| None)
                }
                Source::Own(groups) => match groups.next_batch() {
                    Ok(None) => {
                        self.state = Source::Done;
                        return Ok(None);
                    }
                    next => next,
                },
            };
            match next {
                Ok(Some(batch)) => {
                    self.has_returned_rows = true;
                    return Ok(Some(batch));
                }
                Ok(None) => {}
                Err(error) => self.recover(self.checkpoint.located(error))?,
            }
        }
    }

    /// Continues with the replacement of the checkpoint if no rows were returned yet. Otherwise, returns `error`.
    fn recover(&mut self, error: Error) -> Result<()> {
        self.state = Source::Done;
        if !self.has_returned_rows {
            let state = self.checkpoint.replace(error)?;
            self.state = Source::Replacement(self.kind.of(&state)?);
            return Ok(());
        }
        if matches!(error.kind(), ErrorKind::CorruptLog | ErrorKind::FileNotFound) {
            self.checkpoint.mark_damaged();
        }
        Err(error.with_hint(
            "list the files again: some files of the checkpoint were already returned, and only a new listing \
             can start from an older checkpoint or from the commits",
        ))
    }

    /// Opens all files of the checkpoint, so that missing or truncated files are found before any rows are returned.
    fn start(&self) -> Result<Groups> {
        let top = self.checkpoint.top()?;
        let sidecars = open_all(&self.checkpoint.storage, self.checkpoint.sidecars(&top)?)?;
        let request = self.kind.rows();
        let mut groups = Vec::new();
        let top_files = top.parquet.iter().map(ParquetFile::opened).collect::<Result<Vec<_>>>()?;
        for file in top_files.iter().chain(&sidecars) {
            groups.extend(request.groups(file).into_iter().map(|group| (file.clone(), Piece::from(group))));
        }
        let lines = top.json.as_ref().map(|json| self.kind.project(json)).transpose()?;
        Ok(Groups::new(request, groups, lines))
    }
}

impl Iterator for CheckpointReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

/// Returns the checkpoint that consists of `files`. If it cannot be read, only published commits and other checkpoints
/// can replace it.
fn irreplaceable(storage: &Storage, files: &CheckpointFiles) -> Result<Checkpoint> {
    Ok(Checkpoint::new(storage, &PathResolver::new(storage.root())?, files.clone(), &[], &Arc::from([])))
}

impl Kind {
    fn rows(&self) -> RowRequest {
        match self {
            Self::Adds(request) => RowRequest::adds(request),
            Self::Removes => RowRequest::removes(),
        }
    }

    /// Returns the requested rows from the state that replaces a checkpoint.
    fn of(&self, state: &Arc<super::State>) -> Result<Rows> {
        match self {
            Self::Adds(request) => Ok(Box::new(state.files(request.clone())?)),
            Self::Removes => state.removes(),
        }
    }

    /// Returns the requested rows from a checkpoint of JSON lines that were already parsed.
    fn project(&self, lines: &crate::log::replay::Commit) -> Result<RecordBatch> {
        match self {
            Self::Removes => with_columns(&lines.removes, remove_fields()),
            Self::Adds(request) => {
                request.looked_at.fetch_add(lines.adds.num_rows() as u64, Ordering::Relaxed);
                let kept = apply(
                    &request.filters,
                    with_columns(&lines.adds, FileColumns::all().iter().map(FileColumn::field).collect())?,
                )?;
                with_columns(&kept, request.columns.iter().map(FileColumn::field).collect())
            }
        }
    }
}

/// The requested rows of a checkpoint: first the rows from JSON lines, then the rows of all pieces in order.
struct Groups {
    lines: Option<RecordBatch>,
    workers: Workers,
}

enum Workers {
    /// Decodes on the calling thread.
    Caller(Box<Sequential>),
    Threads(Threads),
}

impl Workers {
    fn caller(request: RowRequest, pieces: Vec<Work>) -> Self {
        Self::Caller(Box::new(Sequential { request, pieces: pieces.into(), current: None }))
    }
}

type Message = Result<Option<RecordBatch>>;
type Work = (ParquetFile, Piece);

struct Sequential {
    request: RowRequest,
    pieces: VecDeque<Work>,
    current: Option<RowBatches>,
}

impl Groups {
    fn new(request: RowRequest, groups: Vec<Work>, lines: Option<RecordBatch>) -> Self {
        let threads = match groups.first() {
            // More threads than cores are useful here: while some wait for the network, others decode.
            Some((file, _)) if file.waits() => parallel::waiting(MOST_THREADS),
            _ => parallel::cores().min(MOST_THREADS),
        };
        let pieces = if request.has_filters() { split_remainder(groups, threads) } else { groups };
        let threads = threads.min(pieces.len());
        let workers = match threads {
            0 | 1 => Workers::caller(request, pieces),
            _ => Threads::start(request, pieces, threads),
        };
        Self { lines: lines.filter(|lines| lines.num_rows() > 0), workers }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        interrupt::check()?;
        if let Some(lines) = self.lines.take() {
            return Ok(Some(lines));
        }
        match &mut self.workers {
            Workers::Caller(reader) => reader.next_batch(),
            Workers::Threads(threads) => threads.next_batch(),
        }
    }
}

impl Sequential {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(current) = &mut self.current {
                match current.next_batch()? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.current = None,
                }
            }
            let Some((file, piece)) = self.pieces.pop_front() else { return Ok(None) };
            self.current = Some(self.request.open(&file, piece)?);
        }
    }
}

/// Splits the last row groups so that all threads share them: the groups that remain after every thread has received
/// the same number of whole groups.
///
/// Splitting is useful only with filters. Without filters, a thread that is ahead waits for the caller, and smaller
/// pieces would not change that.
fn split_remainder(groups: Vec<Work>, threads: usize) -> Vec<Work> {
    let whole = groups.len() - groups.len() % threads.max(1);
    let parted = |(at, (file, piece)): (usize, Work)| -> Vec<Work> {
        let pieces = if at < whole { vec![piece] } else { file.pieces(piece.group, threads) };
        pieces.into_iter().map(|piece| (file.clone(), piece)).collect()
    };
    groups.into_iter().enumerate().flat_map(parted).collect()
}

/// Threads that decode pieces. They end when this is dropped.
struct Threads {
    /// The channels of the pieces that the threads have got, in order.
    channels: VecDeque<Receiver<Message>>,
    queue: Sender<Task>,
    /// The pieces that are still to be passed on to the threads.
    rest: VecDeque<Work>,
}

/// A piece, and the channel for its batches.
type Task = (Work, SyncSender<Message>);

impl Threads {
    /// Starts up to `threads` threads. If the system cannot start any, the caller decodes the pieces.
    fn start(request: RowRequest, pieces: Vec<Work>, threads: usize) -> Workers {
        let (queue, tasks) = channel::<Task>();
        let shared = Arc::new((request.clone(), Mutex::new(tasks)));
        let start = || {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().spawn(move || {
                let (request, tasks) = &*shared;
                let next = || tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(((file, piece), sender)) = next() {
                    if !decode(request, &file, piece, &sender) {
                        return;
                    }
                }
            })
        };
        let threads = (0..threads).take_while(|_| start().is_ok()).count();
        if threads == 0 {
            return Workers::caller(request, pieces);
        }
        let mut started = Self { channels: VecDeque::new(), queue, rest: pieces.into() };
        for _ in 0..threads * PIECES_PER_THREAD {
            started.pass_on();
        }
        Workers::Threads(started)
    }

    /// Passes the next piece to the threads, if there is one.
    fn pass_on(&mut self) {
        if let Some(piece) = self.rest.pop_front() {
            let (sender, receiver) = sync_channel(WAITING_BATCHES);
            self.channels.push_back(receiver);
            // If all threads have terminated, the sender is dropped, and the receiver reports that.
            let _ = self.queue.send((piece, sender));
        }
    }

    fn next_batch(&mut self) -> Message {
        while let Some(channel) = self.channels.front() {
            let lost = |_| {
                Error::new(
                    ErrorKind::Unavailable,
                    "a thread that reads the checkpoint terminated unexpectedly",
                )
            };
            match interrupt::receive(channel)?.map_err(lost)?? {
                Some(batch) => return Ok(Some(batch)),
                None => {
                    self.channels.pop_front();
                    self.pass_on();
                }
            }
        }
        Ok(None)
    }
}

/// Decodes a piece and sends its batches to the channel. Returns false if the receiver no longer exists.
fn decode(request: &RowRequest, file: &ParquetFile, piece: Piece, sender: &SyncSender<Message>) -> bool {
    let mut batches = match guarded(|| request.open(file, piece)) {
        Ok(batches) => batches,
        Err(error) => return sender.send(Err(error)).is_ok(),
    };
    loop {
        let message = guarded(|| batches.next_batch());
        let is_last = !matches!(message, Ok(Some(_)));
        if sender.send(message).is_err() {
            return false;
        }
        if is_last {
            return true;
        }
    }
}
