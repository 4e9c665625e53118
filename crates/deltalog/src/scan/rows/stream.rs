//! Many files on several threads, in order and in bounded memory.
//!
//! ```text
//! tasks ──lock──> worker ──(2 batches)──┐
//!            ├──> worker ──(2 batches)──┼──> the caller drains one task's channel after the other
//!            └──> worker ──(2 batches)──┘
//!   each task's channel is queued, in the order of the tasks, in a channel that holds as many as there are workers
//! ```
//!
//! - A task is a file; if there are fewer files than threads, a row group.
//! - Plain threads, started at the first batch: a process made by `fork` can read.
//! - The end is said, never inferred: a thread that is lost is an error and not the end of the rows.
//! - After an error or the end there is nothing more. A dropped stream stops its threads at their next batch, and does not wait for them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::faults::guarded;
use super::batches::FileBatches;
use super::file::{OpenFile, Opener};
use super::{DataFile, RowScan};
use crate::error::{Error, ErrorKind, Result};

/// How many batches of a task may wait for the caller.
const WAITING_BATCHES: usize = 2;

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
    Alone(Alone),
    Crew(Crew),
    Done,
}

/// A piece of work.
enum Task {
    File(DataFile),
    Groups(Arc<OpenFile>, Vec<usize>),
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
    let threads = scan.threads;
    let opener = Arc::new(Opener::new(scan));
    if threads == 1 {
        return Ok(State::Alone(Alone::new(opener, Box::new(files.map(|file| file.map(Task::File))))));
    }
    let mut first = Vec::with_capacity(threads);
    while first.len() < threads {
        match guarded(|| files.next().transpose()).transpose() {
            Some(file) => first.push(file),
            None => return few_files(opener, first, threads),
        }
    }
    let all = first.into_iter().chain(files);
    Ok(crew_or_alone(opener, Box::new(all.map(|file| file.map(Task::File))), threads))
}

/// Fewer files than threads: the row groups are the tasks.
fn few_files(opener: Arc<Opener>, files: Vec<Result<DataFile>>, threads: usize) -> Result<State> {
    let split = {
        let opener = Arc::clone(&opener);
        move |file: Result<DataFile>| match file.and_then(|file| open_file(&opener, &file)) {
            Ok(Some(file)) => {
                let file = Arc::new(file);
                file.groups.iter().map(|group| Ok(Task::Groups(Arc::clone(&file), vec![*group]))).collect()
            }
            Ok(None) => Vec::new(),
            Err(error) => vec![Err(error)],
        }
    };
    if files.len() > 1 {
        return Ok(crew_or_alone(opener, Box::new(files.into_iter().flat_map(split)), threads));
    }
    let tasks: Vec<_> = files.into_iter().flat_map(split).collect();
    let threads = threads.min(tasks.len());
    Ok(crew_or_alone(opener, Box::new(tasks.into_iter()), threads))
}

fn crew_or_alone(opener: Arc<Opener>, tasks: Tasks, threads: usize) -> State {
    match threads {
        0 | 1 => State::Alone(Alone::new(opener, tasks)),
        _ => Crew::start(opener, tasks, threads),
    }
}

/// The rows of `task`; nothing if its file cannot have matching ones.
fn open_task(opener: &Arc<Opener>, task: Task) -> Result<Option<FileBatches>> {
    let (groups, file) = match task {
        Task::File(file) => match open_file(opener, &file)? {
            Some(file) => (file.groups.clone(), Arc::new(file)),
            None => return Ok(None),
        },
        Task::Groups(file, groups) => (groups, file),
    };
    let opened = guarded(|| opener.batches(Arc::clone(&file), groups));
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
    fn new(opener: Arc<Opener>, tasks: Tasks) -> Self {
        Self { opener, tasks, current: None }
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

/// What a worker says about its task.
enum Message {
    Batch(Result<RecordBatch>),
    End,
}

/// What the caller's side of the threads holds.
struct Crew {
    process: u32,
    order: Receiver<Option<Receiver<Message>>>,
    current: Option<Receiver<Message>>,
    is_stopped: Arc<AtomicBool>,
}

/// What the workers take their tasks from.
struct Queue {
    /// Nothing after the end or an error.
    tasks: Option<Tasks>,
    /// The channel of each task, in order; at last `None`.
    order: SyncSender<Option<Receiver<Message>>>,
}

impl Crew {
    /// Starts `threads` workers, or fewer if the system has no more.
    fn start(opener: Arc<Opener>, tasks: Tasks, threads: usize) -> State {
        let (sender, order) = sync_channel(threads);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let queue = Arc::new(Mutex::new(Queue { tasks: Some(tasks), order: sender }));
        let mut started = 0;
        for _ in 0..threads {
            let (opener, queue, is_stopped) = (Arc::clone(&opener), Arc::clone(&queue), Arc::clone(&is_stopped));
            let worker = std::thread::Builder::new().name("deltalog-read".to_owned());
            match worker.spawn(move || work(&opener, &queue, &is_stopped)) {
                Ok(_) => started += 1,
                Err(error) => {
                    tracing::warn!(%error, started, "no more threads to read with");
                    break;
                }
            }
        }
        let left = if started == 0 { queue.lock().unwrap_or_else(PoisonError::into_inner).tasks.take() } else { None };
        match left {
            Some(tasks) => State::Alone(Alone::new(opener, tasks)),
            None => State::Crew(Self { process: std::process::id(), order, current: None, is_stopped }),
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let lost = |_| Error::new(ErrorKind::Unavailable, "a thread that read data files was lost");
        if self.process != std::process::id() {
            return Err(Error::invalid_argument("the rows are being read by the process that this one was forked from")
                .with_hint("start the scan in the process that reads it"));
        }
        loop {
            match &self.current {
                Some(task) => match task.recv().map_err(lost)? {
                    Message::Batch(batch) => return batch.map(Some),
                    Message::End => self.current = None,
                },
                None => match self.order.recv().map_err(lost)? {
                    Some(task) => self.current = Some(task),
                    None => return Ok(None),
                },
            }
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
    while let Some((task, sender)) = take_task(queue) {
        let outcome = task.and_then(|task| open_task(opener, task)).and_then(|batches| match batches {
            Some(batches) => send_batches(opener, batches, &sender, is_stopped),
            None => Ok(()),
        });
        let last = match outcome {
            Ok(()) => Message::End,
            Err(error) => Message::Batch(Err(error)),
        };
        if is_stopped.load(Ordering::Relaxed) || sender.send(last).is_err() {
            return;
        }
    }
}

/// The next task and the channel for its batches, whose other end is queued for the caller. A failure to find the next task is the last task.
fn take_task(queue: &Mutex<Queue>) -> Option<(Result<Task>, SyncSender<Message>)> {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tasks = queue.tasks.take()?;
    match guarded(|| tasks.next().transpose()).transpose() {
        None => {
            // If nobody listens any more, nobody needs to know.
            let _ = queue.order.send(None);
            None
        }
        Some(task) => {
            let (sender, receiver) = sync_channel(WAITING_BATCHES);
            queue.order.send(Some(receiver)).ok()?;
            if task.is_ok() {
                queue.tasks = Some(tasks);
            }
            Some((task, sender))
        }
    }
}

fn send_batches(opener: &Opener, mut batches: FileBatches, sender: &SyncSender<Message>, is_stopped: &AtomicBool) -> Result<()> {
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
