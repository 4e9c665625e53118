//! Runs jobs on several threads, and passes the files that they find to the caller. A job may create further jobs.
//!
//! - The consumer runs on the calling thread. If it fails, or if a job fails, no further job is started.
//! - The newest job is taken first, so that only a few jobs wait.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::runtime::interrupt;
use crate::storage::FileMeta;

/// The number of batches per thread that may wait for the consumer.
const WAITING: usize = 2;

/// The signal that the consumer accepts no more batches.
#[derive(Debug)]
pub(super) struct Stopped;

/// Receives a batch of files.
pub(super) type Found<'a> = &'a mut dyn FnMut(Vec<FileMeta>) -> Result<(), Stopped>;

/// Lists files by means of jobs.
pub(super) trait Lister: Sync {
    /// One job, such as a listing.
    type Job: Send;

    /// Returns the first job.
    fn first(&self) -> Self::Job;

    /// Does a job, and passes the files that it finds to `found`. Returns the further jobs that result from it.
    ///
    /// # Errors
    /// Errors from the store. After `found` has returned [`Stopped`], the result of a job does not matter.
    fn run(&self, job: Self::Job, found: Found<'_>) -> Result<Vec<Self::Job>>;

    /// Does all jobs on at most `threads` threads, and calls `visit` with the files that they find.
    ///
    /// # Errors
    /// The first error of a job or of `visit`.
    fn walk(&self, threads: usize, mut visit: impl FnMut(Vec<FileMeta>) -> Result<()>) -> Result<()>
    where
        Self: Sized,
    {
        if threads > 1 && self.walk_in_parallel(threads, &mut visit)? {
            return Ok(());
        }
        let mut jobs = vec![self.first()];
        while let Some(job) = jobs.pop() {
            interrupt::check()?;
            let mut failed = None;
            let mut found = |batch| {
                visit(batch).map_err(|error| {
                    failed = Some(error);
                    Stopped
                })
            };
            let more = self.run(job, &mut found);
            if let Some(error) = failed {
                return Err(error);
            }
            jobs.extend(more?);
        }
        Ok(())
    }

    /// Does all jobs on `threads` threads, or on fewer if the system cannot start more. Returns false if the system
    /// cannot start any thread. In that case, no job was done.
    fn walk_in_parallel(
        &self,
        threads: usize,
        visit: &mut dyn FnMut(Vec<FileMeta>) -> Result<()>,
    ) -> Result<bool>
    where
        Self: Sized,
    {
        let queue = Queue::new(self.first());
        let call = interrupt::inherited();
        std::thread::scope(|scope| {
            let (sender, batches) = sync_channel(threads * WAITING);
            let mut started = 0;
            for _ in 0..threads {
                let (queue, call, sender) = (&queue, &call, sender.clone());
                let worker = move || {
                    call.run(|| {
                        queue.work(|job| {
                            let mut found = |batch| sender.send(Ok(batch)).map_err(|_| Stopped);
                            let ran = interrupt::check().map_err(Error::from);
                            ran.and_then(|()| self.run(job, &mut found)).map_err(|error| {
                                // If the consumer has already failed, the channel is closed.
                                let _ = sender.send(Err(error));
                            })
                        });
                    });
                };
                if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                    break;
                }
                started += 1;
            }
            drop(sender);
            let consumed = if started > 0 { consume(batches, visit) } else { Ok(()) };
            queue.stop();
            consumed.map(|()| started > 0)
        })
    }
}

/// Passes all batches to `visit`, and closes the channel, so that senders do not wait forever.
fn consume(
    batches: Receiver<Result<Vec<FileMeta>>>,
    visit: &mut dyn FnMut(Vec<FileMeta>) -> Result<()>,
) -> Result<()> {
    while let Ok(batch) = interrupt::receive(&batches)? {
        visit(batch?)?;
    }
    Ok(())
}

/// The waiting jobs, and the number of running jobs.
struct Queue<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    waiting: Vec<J>,
    running: usize,
    is_stopped: bool,
}

impl<J> Queue<J> {
    fn new(first: J) -> Self {
        let state = State { waiting: vec![first], running: 0, is_stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prevents further jobs from starting.
    fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }

    /// Does jobs until no job is waiting or running. If `run` returns `Err`, no thread starts another job.
    fn work(&self, run: impl Fn(J) -> Result<Vec<J>, ()>) {
        while let Some(job) = self.next() {
            // If a job panics, the other threads must not wait for it forever.
            let ended = Ended(self);
            match run(job) {
                Ok(more) => self.state().waiting.extend(more),
                Err(()) => self.stop(),
            }
            drop(ended);
        }
    }

    fn next(&self) -> Option<J> {
        let mut state = self.state();
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(job) = state.waiting.pop() {
                state.running += 1;
                return Some(job);
            }
            if state.running == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A running job. Once this is dropped, the job no longer counts as running.
struct Ended<'a, J>(&'a Queue<J>);

impl<J> Drop for Ended<'_, J> {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.changed.notify_all();
    }
}
