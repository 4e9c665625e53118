//! Many files on several threads, in bounded memory.
//!
//! ```text
//! in any order    files ──lock──> worker ──┐
//!                           └───> worker ──┴──(2 batches for each worker)──> the caller
//!
//! in order        tasks ──lock──> worker ──(its task's channel)──┐
//!                           └───> worker ──(its task's channel)──┴──> the caller drains one task's channel after the other
//!                   each task's channel is queued, in the order of the tasks, in a channel that holds as many as there are workers
//! ```
//!
//! - In order, a worker can only be ahead of the caller by what its task's channel holds, so most of the time
//!   one works and the others wait. In any order none does. If there are fewer files than threads, their row
//!   groups are the tasks, whose order is always kept, and the channels hold more; or if those are larger
//!   than the channels may hold, the files are the tasks and threads share their columns.
//! - A handful of small files is read by the caller, in order: it would be done before the threads are there.
//! - Plain threads, started at the first batch: a process made by `fork` can read.
//! - The end is said, never inferred: a thread that is lost is an error and not the end of the rows.
//! - After an error or the end there is nothing more. A dropped stream stops its threads at their next batch,
//!   and does not wait for them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::batches::FileBatches;
use super::faults::guarded;
use super::file::{OpenFile, Opener};
use super::{DataFile, RowScan};
use crate::error::{Error, ErrorKind, Result};

/// How many batches of a worker may wait for the caller.
const WAITING_BATCHES: usize = 2;
/// How many bytes of a row group may wait for the caller, about.
pub(super) const WAITING_BYTES: usize = 32 << 20;
/// So many files with so few bytes together are no work for threads.
pub(super) const SMALL: (usize, u64) = (16, 1 << 20);

type Files = Box<dyn Iterator<Item = Result<DataFile>> + Send>;
type Tasks = Box<dyn Iterator<Item = Result<Task>> + Send>;

/// The rows of data files, from [`RowScan::read`]. No batch is empty.
pub struct RowStream {
    schema: SchemaRef,
    state: State,
}

enum State {
    New(Box<RowScan>, Files),
    /// On the caller's thread.
    Alone(Box<Alone>),
    Crew(Crew),
    Done,
}

/// A piece of work.
enum Task {
    File(DataFile),
    /// Some row groups, whose columns are shared among so many threads.
    Groups(Arc<OpenFile>, Vec<usize>, usize),
}

impl RowStream {
    pub(super) fn new(scan: RowScan, files: Files) -> Self {
        Self { schema: scan.schema(), state: State::New(Box::new(scan), files) }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
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
        self.next_batch().transpose()
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

/// Decides who reads what.
fn start(scan: RowScan, mut files: Files) -> Result<State> {
    let (threads, in_any_order, (most_files, most_bytes)) = (scan.threads, scan.in_any_order, scan.small);
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
            Ok(crew_or_alone(opener, Box::new(all.map(|file| file.map(Task::File))), threads, in_any_order))
        }
    }
}

/// Fewer files than threads, `count`: the row groups are the tasks, and what threads are left share their
/// columns. Of row groups that are too large to be read ahead one comes after the other, the columns of each
/// shared.
fn few_files(opener: Arc<Opener>, files: Files, threads: usize, count: usize) -> Result<State> {
    let for_each = (threads / count.max(1)).max(1);
    let split = {
        let opener = Arc::clone(&opener);
        move |file: Result<DataFile>| match file.and_then(|file| open_file(&opener, &file)) {
            Ok(Some(file)) => {
                let file = Arc::new(file);
                // With a predicate, the groups' columns that it reads are decoded before there is anything to
                // hand out.
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
    Ok(crew_or_alone(opener, Box::new(files.flat_map(split)), threads, false))
}

fn crew_or_alone(opener: Arc<Opener>, tasks: Tasks, threads: usize, in_any_order: bool) -> State {
    match threads {
        0 | 1 => State::Alone(Alone::new(opener, tasks)),
        _ => Crew::start(opener, tasks, threads, in_any_order),
    }
}

/// The rows of `task`; nothing if its file cannot have matching ones.
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

/// The next batch of `batches`, perhaps without rows.
fn decode(opener: &Opener, batches: &mut FileBatches) -> Result<Option<RecordBatch>> {
    guarded(|| batches.next_batch()).map_err(|error| opener.located(error, batches.name()))
}

/// One task after the other.
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

/// What a worker says.
enum Message {
    Batch(Result<RecordBatch>),
    /// Of its task, or if the order is no matter, of all that it does.
    End,
}

/// What the caller's side of the threads holds.
struct Crew {
    process: u32,
    batches: Batches,
    is_stopped: Arc<AtomicBool>,
}

/// Where the caller gets its batches.
enum Batches {
    InOrder { tasks: Receiver<Option<Receiver<Message>>>, current: Option<Receiver<Message>> },
    InAnyOrder { all: Receiver<Message>, workers: usize },
}

/// What the workers take their tasks from.
struct Queue {
    /// Nothing after the end or an error.
    tasks: Option<Tasks>,
    results: Results,
}

/// Where batches are sent.
enum Results {
    /// The channel of each task is sent here, in order; at last `None`.
    InOrder(SyncSender<Option<Receiver<Message>>>),
    InAnyOrder(SyncSender<Message>),
}

impl Crew {
    /// Starts `threads` workers, or fewer if the system has no more.
    fn start(opener: Arc<Opener>, tasks: Tasks, threads: usize, in_any_order: bool) -> State {
        let (results, mut batches) = match in_any_order {
            true => {
                let (sender, all) = sync_channel(threads.saturating_mul(WAITING_BATCHES));
                (Results::InAnyOrder(sender), Batches::InAnyOrder { all, workers: 0 })
            }
            false => {
                let (sender, tasks) = sync_channel(threads);
                (Results::InOrder(sender), Batches::InOrder { tasks, current: None })
            }
        };
        let is_stopped = Arc::new(AtomicBool::new(false));
        let queue = Arc::new(Mutex::new(Queue { tasks: Some(tasks), results }));
        let mut started = 0;
        for _ in 0..threads {
            let (opener, queue, is_stopped) =
                (Arc::clone(&opener), Arc::clone(&queue), Arc::clone(&is_stopped));
            let worker = std::thread::Builder::new().name("deltalog-read".to_owned());
            match worker.spawn(move || work(&opener, &queue, &is_stopped)) {
                Ok(_) => started += 1,
                Err(error) => {
                    tracing::warn!(%error, started, "no more threads to read with");
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
        let lost = |_| Error::new(ErrorKind::Unavailable, "a thread that read data files was lost");
        if self.process != std::process::id() {
            return Err(Error::invalid_argument(
                "the rows are being read by the process that this one was forked from",
            )
            .with_hint("start the scan in the process that reads it"));
        }
        loop {
            match &mut self.batches {
                Batches::InAnyOrder { workers: 0, .. } => return Ok(None),
                Batches::InAnyOrder { all, workers } => match all.recv().map_err(lost)? {
                    Message::Batch(batch) => return batch.map(Some),
                    Message::End => *workers -= 1,
                },
                Batches::InOrder { current: Some(task), .. } => match task.recv().map_err(lost)? {
                    Message::Batch(batch) => return batch.map(Some),
                    Message::End => self.batches.next_task(None),
                },
                Batches::InOrder { tasks, .. } => match tasks.recv().map_err(lost)? {
                    Some(task) => self.batches.next_task(Some(task)),
                    None => return Ok(None),
                },
            }
        }
    }
}

impl Batches {
    fn next_task(&mut self, task: Option<Receiver<Message>>) {
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

/// A worker: takes tasks until there are none or nobody listens.
fn work(opener: &Arc<Opener>, queue: &Mutex<Queue>, is_stopped: &AtomicBool) {
    while let Some((task, sender, ends)) = take_task(opener, queue) {
        let outcome = task.and_then(|task| open_task(opener, task)).and_then(|batches| match batches {
            Some(batches) => send_batches(opener, batches, &sender, is_stopped),
            None => Ok(()),
        });
        let is_heard = match outcome {
            Ok(()) if ends => sender.send(Message::End).is_ok(),
            Ok(()) => true,
            Err(error) => sender.send(Message::Batch(Err(error))).is_ok(),
        };
        if is_stopped.load(Ordering::Relaxed) || !is_heard {
            return;
        }
    }
    let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    if let Results::InAnyOrder(sender) = &queue.results {
        let sender = sender.clone();
        drop(queue);
        // If nobody listens any more, nobody needs to know.
        let _ = sender.send(Message::End);
    }
}

/// The next task, the channel for its batches, and whether its end must be said there. A failure to find the
/// next task is the last task.
fn take_task(opener: &Opener, queue: &Mutex<Queue>) -> Option<(Result<Task>, SyncSender<Message>, bool)> {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tasks = queue.tasks.take()?;
    let task = guarded(|| tasks.next().transpose()).transpose();
    let taken = match (&queue.results, task) {
        (Results::InAnyOrder(_), None) => None,
        (Results::InAnyOrder(sender), Some(task)) => Some((task, sender.clone(), false)),
        (Results::InOrder(order), None) => {
            // If nobody listens any more, nobody needs to know.
            let _ = order.send(None);
            None
        }
        (Results::InOrder(order), Some(task)) => {
            let (sender, receiver) = sync_channel(waiting_batches(opener, &task));
            order.send(Some(receiver)).ok()?;
            Some((task, sender, true))
        }
    };
    if taken.as_ref().is_some_and(|(task, ..)| task.is_ok()) {
        queue.tasks = Some(tasks);
    }
    taken
}

/// How many batches of `task` may wait: of a row group, as its size in the file tells.
fn waiting_batches(opener: &Opener, task: &Result<Task>) -> usize {
    match task {
        Ok(Task::Groups(file, groups, _)) => {
            let bytes = groups
                .iter()
                .map(|group| file.bytes_of_rows(*group, opener.scan.batch_rows))
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
    sender: &SyncSender<Message>,
    is_stopped: &AtomicBool,
) -> Result<()> {
    while !is_stopped.load(Ordering::Relaxed) {
        match decode(opener, &mut batches)? {
            Some(batch) if batch.num_rows() == 0 => {}
            Some(batch) => {
                if sender.send(Message::Batch(Ok(batch))).is_err() {
                    return Ok(());
                }
            }
            None => return Ok(()),
        }
    }
    Ok(())
}
