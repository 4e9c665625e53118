//! Reads many files on several threads, in bounded memory.
//!
//! ```text
//! in any order    files ──lock──> worker ──┐
//!                           └───> worker ──┴──(2 batches for each worker)──> the caller
//!
//! in order        tasks ──lock──> worker ──(its task's channel)──┐
//!                           └───> worker ──(its task's channel)──┴──> the caller drains the channels, in order
//!                   the channels of tasks are queued, in order, in a channel with one slot per worker
//! ```
//!
//! - If the order is kept, a worker can be ahead of the caller only by the batches that its task's channel holds, so
//!   usually one worker is busy while the others wait. If any order is allowed, no worker waits for another.
//! - If there are fewer files than threads, the tasks are row groups. Their order is always kept, and the channels hold
//!   more batches. If the row groups are too large for the channels, the tasks are whole files, and several threads
//!   share the columns of a file.
//! - The caller's thread reads a few small files itself, in order, which is faster than starting threads.
//! - The workers are plain threads that start at the first batch, so a process created by `fork` can read.
//! - The end of the rows is signaled explicitly, so a thread that dies causes an error and does not look like the
//!   end.
//! - After an error or the end, the stream returns nothing more. When a stream is dropped, its threads stop at their
//!   next batch; the drop does not wait for them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::batches::FileBatches;
use super::faults::guarded;
use super::file::{OpenFile, Opener};
use super::waiting::{WAITING_BATCHES, WAITING_BYTES, Waiting};
use super::{DataFile, RowScan};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::interrupt;
use crate::runtime::row_bytes::weight_of;

/// The limits on the number of files, and on their total size in bytes, up to which starting threads is not
/// worthwhile.
pub(super) const SMALL_READ: (usize, u64) = (16, 1 << 20);
/// The same limits for remote stores, where reading several files at once takes no longer than reading one.
pub(super) const SMALL_REMOTE_READ: (usize, u64) = (1, 64 << 10);

type Files = Box<dyn Iterator<Item = Result<DataFile>> + Send>;
type Tasks = Box<dyn Iterator<Item = Result<Task>> + Send>;

/// The rows of data files, which [`RowScan::read`] returns. No batch is empty.
pub struct RowStream {
    schema: SchemaRef,
    /// The number of rows that may still be returned, if the scan has a limit.
    left: Option<u64>,
    state: State,
}

enum State {
    New(Box<RowScan>, Files),
    /// The caller's thread reads.
    Alone(Box<Alone>),
    Crew(Crew),
    Done,
}

/// A unit of work for a worker.
enum Task {
    File(DataFile),
    /// Some row groups of a file, and the number of threads that share their columns.
    Groups(Arc<OpenFile>, Vec<usize>, usize),
}

impl RowStream {
    pub(super) fn new(scan: RowScan, files: Files) -> Self {
        let scan = scan.for_few_rows();
        let state = match scan.limit {
            Some(0) => State::Done,
            _ => State::New(Box::new(scan.clone()), files),
        };
        Self { schema: scan.schema(), left: scan.limit, state }
    }

    /// Returns the schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Returns the size in bytes of the current task's batches that wait for the caller.
    #[cfg(test)]
    pub(super) fn waiting_bytes(&self) -> usize {
        match &self.state {
            State::Crew(Crew { batches: Batches::InOrder { current: Some(task), .. }, .. }) => {
                task.waiting.bytes()
            }
            _ => 0,
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let state = std::mem::replace(&mut self.state, State::Done);
            interrupt::check()?;
            match state {
                State::New(scan, files) => self.state = start(*scan, files)?,
                State::Alone(mut alone) => {
                    let next = alone.next_batch()?;
                    if next.is_some() {
                        self.state = State::Alone(alone);
                    }
                    return Ok(next);
                }
                State::Crew(mut crew) => {
                    let next = crew.next_batch()?;
                    if next.is_some() {
                        self.state = State::Crew(crew);
                    }
                    return Ok(next);
                }
                State::Done => return Ok(None),
            }
        }
    }
}

impl Iterator for RowStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch();
        match (batch.transpose()?, &mut self.left) {
            (Ok(batch), Some(left)) => {
                let rows = usize::try_from(*left).unwrap_or(usize::MAX).min(batch.num_rows());
                *left -= rows as u64;
                if *left == 0 {
                    self.state = State::Done;
                }
                Some(Ok(batch.slice(0, rows)))
            }
            (batch, _) => Some(batch),
        }
    }
}

impl fmt::Debug for RowStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::New(..) => "not started",
            State::Alone(_) => "reading on the caller's thread",
            State::Crew(_) => "reading on threads",
            State::Done => "done",
        };
        f.debug_struct("RowStream").field("schema", &self.schema).field("state", &state).finish()
    }
}

/// Decides which threads read which files.
fn start(scan: RowScan, mut files: Files) -> Result<State> {
    let (threads, in_any_order, (most_files, most_bytes)) =
        (scan.threads, scan.in_any_order, scan.small_read);
    let opener = Arc::new(Opener::new(scan));
    if threads == 1 {
        return Ok(State::Alone(Alone::new(opener, Box::new(files.map(|file| file.map(Task::File))))));
    }
    let (mut first, mut bytes) = (Vec::new(), 0u64);
    let is_small = loop {
        if first.len() >= threads && (first.len() > most_files || bytes > most_bytes) {
            break false;
        }
        match guarded(|| files.next().transpose()).transpose() {
            Some(file) => {
                bytes = bytes.saturating_add(file.as_ref().map_or(0, |file| file.size));
                first.push(file);
            }
            None => break first.len() <= most_files && bytes <= most_bytes,
        }
    };
    let (count, is_few) = (first.len(), first.len() < threads);
    let all: Files = Box::new(first.into_iter().chain(files));
    match (is_small, is_few) {
        (true, _) => Ok(State::Alone(Alone::new(opener, Box::new(all.map(|file| file.map(Task::File)))))),
        (false, true) => few_files(opener, all, threads, count),
        (false, false) => {
            Ok(start_reading(opener, Box::new(all.map(|file| file.map(Task::File))), threads, in_any_order))
        }
    }
}

/// Starts to read `count` files, which are fewer than the threads. The tasks are row groups, and the remaining threads
/// share their columns. If row groups are too large to read ahead, the file is one task: its row groups are read one
/// after another, and the file's share of the threads reads their columns.
fn few_files(opener: Arc<Opener>, files: Files, threads: usize, count: usize) -> Result<State> {
    let for_each = (threads / count.max(1)).max(1);
    let split = {
        let opener = Arc::clone(&opener);
        move |file: Result<DataFile>| match file.and_then(|file| open_file(&opener, &file)) {
            Ok(Some(file)) => {
                let file = Arc::new(file);
                // If there is a predicate, its columns are decoded for the whole row group before any rows can be
                // returned.
                let are_large = file.first.is_empty()
                    && file.bytes_of_largest_group() > WAITING_BYTES
                    && file.has_several_columns();
                if are_large {
                    return vec![Ok(Task::Groups(Arc::clone(&file), file.groups.clone(), for_each))];
                }
                let for_each = (for_each / file.groups.len().max(1)).max(1);
                file.groups
                    .iter()
                    .map(|group| Ok(Task::Groups(Arc::clone(&file), vec![*group], for_each)))
                    .collect()
            }
            Ok(None) => Vec::new(),
            Err(error) => vec![Err(error)],
        }
    };
    Ok(start_reading(opener, Box::new(files.flat_map(split)), threads, false))
}

fn start_reading(opener: Arc<Opener>, tasks: Tasks, threads: usize, in_any_order: bool) -> State {
    match threads {
        0 | 1 => State::Alone(Alone::new(opener, tasks)),
        _ => Crew::start(opener, tasks, threads, in_any_order),
    }
}

/// Returns a reader for the rows of `task`; `None` if its file cannot contain matching rows.
fn open_task(opener: &Arc<Opener>, task: Task) -> Result<Option<FileBatches>> {
    let (groups, file, threads) = match task {
        Task::File(file) => match open_file(opener, &file)? {
            Some(file) => (file.groups.clone(), Arc::new(file), 1),
            None => return Ok(None),
        },
        Task::Groups(file, groups, threads) => (groups, file, threads),
    };
    let opened = guarded(|| opener.batches(Arc::clone(&file), groups, threads));
    opened.map(Some).map_err(|error| opener.located(error, &file.name))
}

fn open_file(opener: &Opener, file: &DataFile) -> Result<Option<OpenFile>> {
    guarded(|| opener.open(file)).map_err(|error| opener.located(error, &file.path.to_string()))
}

/// Returns the next batch of `batches`. The batch may be empty.
fn decode(opener: &Opener, batches: &mut FileBatches) -> Result<Option<RecordBatch>> {
    guarded(|| batches.next_batch()).map_err(|error| opener.located(error, batches.name()))
}

/// Tasks that the caller's thread reads one after another.
struct Alone {
    opener: Arc<Opener>,
    tasks: Tasks,
    current: Option<FileBatches>,
}

impl Alone {
    fn new(opener: Arc<Opener>, tasks: Tasks) -> Box<Self> {
        Box::new(Self { opener, tasks, current: None })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match &mut self.current {
                Some(batches) => match decode(&self.opener, batches)? {
                    Some(batch) if batch.num_rows() > 0 => return Ok(Some(batch)),
                    Some(_) => {}
                    None => self.current = None,
                },
                None => match guarded(|| self.tasks.next().transpose())? {
                    Some(task) => self.current = open_task(&self.opener, task)?,
                    None => return Ok(None),
                },
            }
        }
    }
}

/// A message from a worker to the caller.
enum Message {
    Batch(Result<RecordBatch>),
    /// The end of the worker's task or, if the order does not matter, of all its work.
    End,
}

/// The caller's side of the worker threads.
struct Crew {
    process: u32,
    batches: Batches,
    is_stopped: Arc<AtomicBool>,
}

/// Where the caller receives batches.
enum Batches {
    InOrder { tasks: Receiver<Option<Results>>, current: Option<Results> },
    InAnyOrder { all: Receiver<Message>, workers: usize },
}

/// The batches of a task.
struct Results {
    messages: Receiver<Message>,
    waiting: Arc<Waiting>,
}

/// The channel to which a worker sends the batches of a task.
struct Target {
    messages: SyncSender<Message>,
    /// The batches that wait for the caller, if each task has its own channel.
    waiting: Option<Arc<Waiting>>,
}

/// The source of the workers' tasks.
struct Queue {
    /// The remaining tasks; `None` after the last task or an error.
    tasks: Option<Tasks>,
    targets: Targets,
}

/// The channels to which workers send batches.
enum Targets {
    /// One channel per task. This sender announces the channel of each task, in order, and finally sends `None`.
    InOrder(SyncSender<Option<Results>>),
    InAnyOrder(SyncSender<Message>),
}

impl Crew {
    /// Starts `threads` workers, or fewer if the system has no more threads.
    fn start(opener: Arc<Opener>, tasks: Tasks, threads: usize, in_any_order: bool) -> State {
        let (targets, mut batches) = match in_any_order {
            true => {
                let (sender, all) = sync_channel(threads.saturating_mul(WAITING_BATCHES));
                (Targets::InAnyOrder(sender), Batches::InAnyOrder { all, workers: 0 })
            }
            false => {
                let (sender, tasks) = sync_channel(threads);
                (Targets::InOrder(sender), Batches::InOrder { tasks, current: None })
            }
        };
        let is_stopped = Arc::new(AtomicBool::new(false));
        let queue = Arc::new(Mutex::new(Queue { tasks: Some(tasks), targets }));
        let mut started = 0;
        for _ in 0..threads {
            let (opener, queue, is_stopped) =
                (Arc::clone(&opener), Arc::clone(&queue), Arc::clone(&is_stopped));
            let worker = std::thread::Builder::new().name("deltalog-read".to_owned());
            match worker.spawn(move || work(&opener, &queue, &is_stopped)) {
                Ok(_) => started += 1,
                Err(error) => {
                    tracing::warn!(%error, started, "not all threads for reading could be started");
                    break;
                }
            }
        }
        let left = if started == 0 {
            queue.lock().unwrap_or_else(PoisonError::into_inner).tasks.take()
        } else {
            None
        };
        if let Batches::InAnyOrder { workers, .. } = &mut batches {
            *workers = started;
        }
        match left {
            Some(tasks) => State::Alone(Alone::new(opener, tasks)),
            None => State::Crew(Self { process: std::process::id(), batches, is_stopped }),
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let lost =
            |_| Error::new(ErrorKind::Unavailable, "a thread that read data files terminated unexpectedly");
        if self.process != std::process::id() {
            return Err(Error::invalid_argument(
                "the scan was started in another process, from which this one was forked",
            )
            .with_hint("start the scan in the process that reads it"));
        }
        loop {
            match &mut self.batches {
                Batches::InAnyOrder { workers: 0, .. } => return Ok(None),
                Batches::InAnyOrder { all, workers } => match interrupt::receive(all)?.map_err(lost)? {
                    Message::Batch(batch) => return batch.map(Some),
                    Message::End => *workers -= 1,
                },
                Batches::InOrder { current: Some(task), .. } => {
                    match interrupt::receive(&task.messages)?.map_err(lost)? {
                        Message::Batch(batch) => {
                            let batch = batch?;
                            task.waiting.leave(bytes_of(&batch));
                            return Ok(Some(batch));
                        }
                        Message::End => self.batches.next_task(None),
                    }
                }
                Batches::InOrder { tasks, .. } => match interrupt::receive(tasks)?.map_err(lost)? {
                    Some(task) => self.batches.next_task(Some(task)),
                    None => return Ok(None),
                },
            }
        }
    }
}

impl Batches {
    fn next_task(&mut self, task: Option<Results>) {
        if let Self::InOrder { current, .. } = self {
            *current = task;
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// Runs a worker: takes tasks until no tasks are left or the receiver is gone.
fn work(opener: &Arc<Opener>, queue: &Mutex<Queue>, is_stopped: &AtomicBool) {
    while let Some((task, target)) = take_task(opener, queue) {
        let outcome = task.and_then(|task| open_task(opener, task)).and_then(|batches| match batches {
            Some(batches) => send_batches(opener, batches, &target, is_stopped),
            None => Ok(()),
        });
        let is_heard = match outcome {
            // If each task has its own channel, the worker announces the end of each task.
            Ok(()) if target.waiting.is_some() => target.messages.send(Message::End).is_ok(),
            Ok(()) => true,
            Err(error) => target.messages.send(Message::Batch(Err(error))).is_ok(),
        };
        if is_stopped.load(Ordering::Relaxed) || !is_heard {
            return;
        }
    }
    let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    if let Targets::InAnyOrder(sender) = &queue.targets {
        let sender = sender.clone();
        drop(queue);
        // If the receiver is gone, it does not need to be told about the end.
        let _ = sender.send(Message::End);
    }
}

/// Takes the next task and the channel for its batches. If finding the next task fails, the error is returned as the
/// last task.
fn take_task(opener: &Opener, queue: &Mutex<Queue>) -> Option<(Result<Task>, Target)> {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tasks = queue.tasks.take()?;
    let task = guarded(|| tasks.next().transpose()).transpose();
    let taken = match (&queue.targets, task) {
        (Targets::InAnyOrder(_), None) => None,
        (Targets::InAnyOrder(sender), Some(task)) => {
            Some((task, Target { messages: sender.clone(), waiting: None }))
        }
        (Targets::InOrder(order), None) => {
            // If the receiver is gone, it does not need to be told about the end.
            let _ = order.send(None);
            None
        }
        (Targets::InOrder(order), Some(task)) => {
            let (sender, messages) = sync_channel(waiting_batches(opener, &task));
            let waiting = Arc::new(Waiting::default());
            order.send(Some(Results { messages, waiting: Arc::clone(&waiting) })).ok()?;
            Some((task, Target { messages: sender, waiting: Some(waiting) }))
        }
    };
    if taken.as_ref().is_some_and(|(task, ..)| task.is_ok()) {
        queue.tasks = Some(tasks);
    }
    taken
}

/// Returns how many batches of `task` may wait for the caller. For row groups, the number depends on their size in
/// the file.
fn waiting_batches(opener: &Opener, task: &Result<Task>) -> usize {
    match task {
        Ok(Task::Groups(file, groups, _)) => {
            let bytes = groups
                .iter()
                .map(|group| file.bytes_of_rows(*group, file.rows_at_once(&opener.scan, groups)))
                .max()
                .unwrap_or_default();
            (WAITING_BYTES / bytes.max(1)).clamp(WAITING_BATCHES, WAITING_BYTES >> 10)
        }
        _ => WAITING_BATCHES,
    }
}

fn send_batches(
    opener: &Opener,
    mut batches: FileBatches,
    target: &Target,
    is_stopped: &AtomicBool,
) -> Result<()> {
    while !is_stopped.load(Ordering::Relaxed) {
        match decode(opener, &mut batches)? {
            Some(batch) if batch.num_rows() == 0 => {}
            Some(batch) => {
                if let Some(waiting) = &target.waiting {
                    waiting.enter(bytes_of(&batch), is_stopped);
                }
                if target.messages.send(Message::Batch(Ok(batch))).is_err() {
                    return Ok(());
                }
            }
            None => return Ok(()),
        }
    }
    Ok(())
}

fn bytes_of(batch: &RecordBatch) -> usize {
    weight_of(batch, 0, batch.num_rows())
}
