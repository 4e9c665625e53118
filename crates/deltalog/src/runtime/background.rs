//! Does the work that follows a commit in the background, on separate threads.
//!
//! ```text
//!   commit ── submit ──► waiting: [table A, checkpoint 20] [table B, compaction 19] …
//!                                       │ at most one thread per table
//!                                       ▼
//!                                    running
//! ```
//!
//! - Tasks have a lane (their table) and a duty (the kind of work). In each lane, only the newest task of each duty
//!   waits: once a checkpoint of version 20 is due, the checkpoint of version 10 is useless. The number of tasks
//!   therefore does not grow with the number of commits.
//! - Threads start when there is work and end when there is none. If a task cannot be queued, because too many tables
//!   have work or the system cannot start more threads, `submit` returns it to the caller, which then runs it itself.
//! - Background refreshes of tables use at most half of the threads. So if one store does not answer, checkpoints in
//!   other stores are not delayed.
//! - A forked child process has none of the threads. It ignores the tasks that were queued before the fork, because its
//!   parent runs them. It never queues tasks, because it may end without waiting for them: callers do the work
//!   themselves.
//! - A task must catch its own panics. If it panics nevertheless, only its result is lost.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of waiting tasks.
const MAX_WAITING: usize = 256;

/// The maximum number of threads. If more tables than this have work, they have to wait.
const MAX_THREADS: usize = 4;

/// The maximum number of threads for optional tasks, for which the process does not wait when it ends.
const MAX_OPTIONAL: usize = MAX_THREADS / 2;

/// The maximum time that [`Background::wait`] waits. A longer time would overflow a clock.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Threads for the work that follows commits: checkpoints, log compactions and the clean-up of logs.
///
/// If an [`Environment`](crate::Environment) has a `Background`, a commit returns as soon as it is durable. Otherwise,
/// a commit does this work before it returns. When a `Background` is dropped, it waits for its tasks.
///
/// ```
/// use deltalog::{Background, Environment};
///
/// let background = Background::new();
/// let environment = Environment::system().with_background(&background);
/// // … commits with this environment …
/// background.wait(std::time::Duration::from_secs(60));
/// ```
#[derive(Debug, Default)]
pub struct Background(Arc<Queue>);

/// The queue, which all environments with this `Background` share.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The id of the process to which the threads belong.
    process: u32,
    tasks: Mutex<Tasks>,
    changed: Condvar,
    is_ending: AtomicBool,
    /// Whether tasks only run in [`Background::step`], as a simulation requires, instead of on threads of the queue.
    is_stepped: bool,
}

#[derive(Debug, Default)]
struct Tasks {
    waiting: VecDeque<Task>,
    /// The lanes in which a task is running.
    busy: Vec<String>,
    /// The number of running tasks for which the process must wait before it ends.
    needed: usize,
    threads: usize,
}

/// The work of a task. The argument tells the work when to stop for other tasks. The argument is `None` if a caller
/// waits for the work.
type Work = Box<dyn FnOnce(Option<&Turn<'_>>) + Send>;

/// A piece of work for a table.
pub(crate) struct Task {
    /// The tasks of a lane run one after another. For the work after commits, the lane is the table's location.
    pub(crate) lane: String,
    /// The kind of work. A new task replaces a waiting task of the same lane and duty.
    pub(crate) duty: &'static str,
    /// The work. Its argument is its turn, or `None` if it runs on the thread of a waiting caller.
    pub(crate) work: Work,
    /// Whether the process may end without waiting for the task.
    pub(crate) is_optional: bool,
}

/// The time during which a task has its lane to itself. When the turn is over, long work should stop at a point from
/// which it can continue later.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    queue: &'a Queue,
    lane: &'a str,
}

impl Turn<'_> {
    /// Returns whether the process is about to end.
    pub(crate) fn is_last(&self) -> bool {
        self.queue.is_ending.load(Ordering::Relaxed)
    }

    /// Returns whether the process is about to end, or another task of the same lane is waiting.
    pub(crate) fn is_over(&self) -> bool {
        let waits = |tasks: MutexGuard<'_, Tasks>| tasks.waiting.iter().any(|task| task.lane == self.lane);
        self.is_last() || self.queue.lock().is_some_and(waits)
    }
}

impl Background {
    /// Creates a queue. Its threads start when there is work to do.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a queue without threads. Its tasks only run when [`Background::step`] is called, so that a simulation
    /// can determine their order, and they are lost when the queue is dropped.
    #[doc(hidden)]
    pub fn stepped() -> Self {
        Self(Arc::new(Queue { is_stepped: true, ..Queue::default() }))
    }

    /// Runs the next task on the calling thread. Returns whether there was one.
    #[doc(hidden)]
    pub fn step(&self) -> bool {
        let next = self.0.lock().and_then(|mut tasks| tasks.next());
        next.map(|task| self.0.run_one(task)).is_some()
    }

    /// Returns whether there is no task for which the process must wait.
    #[doc(hidden)]
    pub fn is_idle(&self) -> bool {
        !self.0.lock().is_some_and(|tasks| tasks.are_needed())
    }

    /// Waits until all work after commits is done, including the work for commits that other threads make during the
    /// wait. Returns whether it was done before `timeout`. Does not wait for refreshes of a [`Table`](crate::Table),
    /// because a store may take a long time to answer.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.0.wait(timeout, Tasks::are_needed)
    }

    /// Waits until there are no tasks and no threads any more.
    #[doc(hidden)]
    pub fn settle(&self, timeout: Duration) -> bool {
        self.0.wait(timeout, |tasks| tasks.threads > 0)
    }

    /// Stops accepting tasks: from now on, each commit does the work that follows it before it returns. Waiting tasks
    /// are still done, except refreshes of a [`Table`](crate::Table). Clean-ups of logs stop early, and a later
    /// clean-up continues them. Call [`Background::wait`] afterwards.
    pub fn close(&self) {
        self.0.is_ending.store(true, Ordering::Relaxed);
        // The values that belong to the tasks are freed after the lock is released.
        let optional: Option<VecDeque<_>> = self.0.lock().map(|mut tasks| {
            let (optional, needed) =
                std::mem::take(&mut tasks.waiting).into_iter().partition(|task| task.is_optional);
            tasks.waiting = needed;
            optional
        });
        drop(optional);
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.0
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.close();
        if !self.0.is_stepped {
            self.wait(LONGEST_WAIT);
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            process: std::process::id(),
            tasks: Mutex::default(),
            changed: Condvar::new(),
            is_ending: AtomicBool::default(),
            is_stepped: false,
        }
    }
}

impl Queue {
    /// Queues `task`. It replaces an older task of the same table and duty.
    ///
    /// # Errors
    /// Returns the task itself if it cannot be queued.
    pub(crate) fn submit(self: &Arc<Self>, task: Task) -> Result<(), Task> {
        if self.is_ending.load(Ordering::Relaxed) {
            return Err(task);
        }
        let Some(mut tasks) = self.lock() else { return Err(task) };
        let same = |other: &Task| other.lane == task.lane && other.duty == task.duty;
        let older = tasks.waiting.iter().position(same).and_then(|position| tasks.waiting.remove(position));
        if tasks.waiting.len() >= MAX_WAITING {
            return Err(task);
        }
        let may_run = tasks.may_run(&task);
        tasks.waiting.push_back(task);
        if may_run && tasks.threads < MAX_THREADS && !self.is_stepped {
            let queue = Arc::clone(self);
            let thread = std::thread::Builder::new().name("deltalog-upkeep".to_owned());
            match thread.spawn(move || queue.run()) {
                Ok(_) => tasks.threads += 1,
                Err(_) if tasks.threads == 0 => return tasks.waiting.pop_back().map_or(Ok(()), Err),
                Err(_) => {}
            }
        }
        // The values that belong to a task are freed after the lock is released.
        drop(tasks);
        drop(older);
        Ok(())
    }

    /// Runs tasks until none is left that may run now.
    fn run(&self) {
        loop {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(task) = tasks.next() else {
                tasks.threads -= 1;
                break;
            };
            drop(tasks);
            self.run_one(task);
        }
        self.changed.notify_all();
    }

    /// Runs a task that [`Tasks::next`] has returned.
    fn run_one(&self, task: Task) {
        let Task { lane, work, is_optional, .. } = task;
        let turn = Turn { queue: self, lane: &lane };
        if catch_unwind(AssertUnwindSafe(|| work(Some(&turn)))).is_err() {
            tracing::error!(lane, "a background task panicked");
        }
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.busy.retain(|busy| *busy != lane);
        tasks.needed -= usize::from(!is_optional);
        self.changed.notify_all();
    }

    /// Waits while `is_awaited` returns true. Returns false if `timeout` passes before that changes.
    fn wait(&self, timeout: Duration, is_awaited: impl Fn(&Tasks) -> bool) -> bool {
        let deadline = Instant::now() + timeout.min(LONGEST_WAIT);
        // A forked child process has no tasks to wait for.
        let Some(mut tasks) = self.lock() else { return true };
        while is_awaited(&tasks) {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            let woken = self.changed.wait_timeout(tasks, left);
            tasks = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Returns the tasks. Returns `None` in a forked child process, because the lock may never be released there.
    fn lock(&self) -> Option<MutexGuard<'_, Tasks>> {
        let is_own = self.process == std::process::id();
        is_own.then(|| self.tasks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tasks {
    /// Returns whether a task may start now.
    fn may_run(&self, task: &Task) -> bool {
        let is_share_used_up = self.busy.len() - self.needed >= MAX_OPTIONAL;
        !(self.busy.contains(&task.lane) || (task.is_optional && is_share_used_up))
    }

    /// Takes the first task that may run now, and counts it as running.
    fn next(&mut self) -> Option<Task> {
        let position = self.waiting.iter().position(|task| self.may_run(task))?;
        let task = self.waiting.remove(position)?;
        self.busy.push(task.lane.clone());
        self.needed += usize::from(!task.is_optional);
        Some(task)
    }

    /// Returns whether the process has to wait before it ends.
    fn are_needed(&self) -> bool {
        self.needed > 0 || self.waiting.iter().any(|task| !task.is_optional)
    }
}

impl Task {
    /// Runs the task on the thread of the caller.
    pub(crate) fn run(self) {
        (self.work)(None);
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("lane", &self.lane).field("duty", &self.duty).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Creates a task that sends `name` when it starts, and ends when `go` is dropped or sends a message.
    fn task(
        table: &str,
        duty: &'static str,
        name: &'static str,
        began: &Sender<&'static str>,
    ) -> (Task, Sender<()>) {
        let (began, (go, gone)) = (began.clone(), channel());
        let work = move |_: Option<&Turn<'_>>| {
            began.send(name).unwrap();
            let _ = gone.recv();
        };
        (Task { work: Box::new(work), ..quick(table, duty) }, go)
    }

    /// Creates a task that does nothing.
    fn quick(table: &str, duty: &'static str) -> Task {
        Task { lane: table.to_owned(), duty, work: Box::new(|_| {}), is_optional: false }
    }

    fn next(began: &Receiver<&'static str>) -> &'static str {
        began.recv_timeout(LONG).unwrap()
    }

    #[test]
    fn each_table_runs_one_task_at_a_time_and_keeps_the_newest_of_each_duty() {
        let (sender, began) = channel();
        let background = Background::new();
        let submit = |table, duty, name| {
            let (task, go) = task(table, duty, name, &sender);
            background.0.submit(task).unwrap();
            go
        };
        let first = submit("a", "checkpoint", "a10");
        assert_eq!(next(&began), "a10");
        let waiting = [
            submit("a", "checkpoint", "a20"),
            submit("a", "compaction", "a25"),
            submit("a", "checkpoint", "a30"),
        ];
        let other = submit("b", "checkpoint", "b10");
        assert_eq!(next(&began), "b10", "another table does not wait");
        assert!(!background.wait(Duration::from_millis(5)));
        assert!(began.try_recv().is_err());
        drop((first, waiting, other));
        assert_eq!([next(&began), next(&began)], ["a25", "a30"]);
        assert!(background.settle(LONG));
        assert!(began.try_recv().is_err(), "a newer checkpoint has replaced a20");
        assert_eq!(background.0.lock().unwrap().threads, 0);
    }

    #[test]
    fn a_task_that_does_not_fit_in_the_queue_is_returned() {
        let (sender, began) = channel();
        let background = Background::new();
        let (blocker, go) = task("0", "checkpoint", "blocker", &sender);
        background.0.submit(blocker).unwrap();
        assert_eq!(next(&began), "blocker");
        let duties: Vec<&'static str> =
            (0..=MAX_WAITING).map(|number| &*Box::leak(number.to_string().into_boxed_str())).collect();
        for duty in &duties[..MAX_WAITING] {
            background.0.submit(quick("0", duty)).unwrap();
        }
        let refused = background.0.submit(quick("0", duties[MAX_WAITING])).unwrap_err();
        assert_eq!(refused.duty, duties[MAX_WAITING]);
        background.0.submit(quick("0", duties[0])).unwrap();
        drop(go);
        assert!(background.wait(LONG));
    }

    #[test]
    fn threads_survive_a_panic_and_tasks_see_that_the_process_ends() {
        let background = Background::new();
        let panics = Task { work: Box::new(|_| panic!("as planned")), ..quick("a", "x") };
        background.0.submit(panics).unwrap();
        assert!(background.wait(LONG));
        let (sender, seen) = channel();
        let work = move |turn: Option<&Turn<'_>>| {
            while !turn.unwrap().is_last() {
                std::thread::yield_now();
            }
            sender.send(()).unwrap();
        };
        background.0.submit(Task { work: Box::new(work), ..quick("a", "x") }).unwrap();
        background.close();
        assert!(background.0.submit(quick("a", "x")).is_err(), "after the end, the caller does the work");
        assert!(background.wait(LONG));
        seen.try_recv().unwrap();
    }

    #[test]
    fn a_stepped_queue_runs_one_task_per_step() {
        let (sender, began) = channel();
        let background = Background::stepped();
        for duty in ["x", "y", "z"] {
            let (task, _) = task("a", duty, duty, &sender);
            background.0.submit(task).unwrap();
        }
        assert!(!background.is_idle() && began.try_recv().is_err());
        assert!(background.step() && began.try_recv() == Ok("x") && began.try_recv().is_err());
        assert!(background.step() && background.step());
        assert!(background.is_idle() && !background.step());
        let (lost, _) = task("a", "x", "lost", &sender);
        background.0.submit(lost).unwrap();
        drop(background);
        assert_eq!(began.try_iter().collect::<Vec<_>>(), ["y", "z"]);
    }

    /// A store that does not answer a refresh must not delay waiting callers or the end of the process.
    #[test]
    fn optional_tasks_are_not_waited_for() {
        let (sender, began) = channel();
        let background = Background::new();
        let submit = |table, name, is_optional| {
            let (task, go) = task(table, "x", name, &sender);
            background.0.submit(Task { is_optional, ..task }).unwrap();
            go
        };
        let hanging = submit("a", "hanging", true);
        assert_eq!(next(&began), "hanging");
        assert!(background.wait(Duration::ZERO) && !background.settle(Duration::ZERO));
        let needed = submit("b", "needed", false);
        assert_eq!(next(&began), "needed");
        let never = submit("b", "never", true);
        assert!(!background.wait(Duration::from_millis(5)));
        background.close();
        assert!(!background.wait(Duration::from_millis(5)), "a checkpoint is being written");
        drop(needed);
        assert!(background.wait(LONG));
        drop((hanging, never));
        assert!(background.settle(LONG));
        assert!(began.try_recv().is_err(), "it is not needed any more");
    }

    /// Tasks that wait for a store that does not answer use only part of the threads.
    #[test]
    fn optional_tasks_leave_threads_for_other_tasks() {
        let (sender, began) = channel();
        let background = Background::new();
        let mut gates: Vec<Sender<()>> = ["a", "b", "c", "d", "e"]
            .into_iter()
            .map(|table| {
                let (task, go) = task(table, "x", "hanging", &sender);
                background.0.submit(Task { is_optional: true, ..task }).unwrap();
                go
            })
            .collect();
        assert_eq!([next(&began), next(&began)], ["hanging"; MAX_OPTIONAL]);
        background.0.submit(quick("f", "x")).unwrap();
        assert!(background.wait(LONG));
        assert!(began.try_recv().is_err());
        drop(gates.remove(0));
        assert_eq!(next(&began), "hanging", "a hanging task has ended");
        drop(gates);
        assert!(background.settle(LONG));
        assert_eq!(began.try_iter().count(), 2);
    }

    #[test]
    fn a_turn_is_over_when_another_task_of_the_lane_waits() {
        let background = Background::new();
        let (sender, seen) = channel();
        let work = move |turn: Option<&Turn<'_>>| {
            sender.send(turn.unwrap().is_over()).unwrap();
            while !turn.unwrap().is_over() {
                std::thread::yield_now();
            }
            sender.send(turn.unwrap().is_last()).unwrap();
        };
        background.0.submit(Task { work: Box::new(work), ..quick("a", "x") }).unwrap();
        assert!(!seen.recv_timeout(LONG).unwrap());
        background.0.submit(quick("b", "x")).unwrap();
        background.0.submit(quick("a", "y")).unwrap();
        assert!(!seen.recv_timeout(LONG).unwrap());
        assert!(background.wait(LONG));
    }

    #[test]
    fn dropping_the_background_waits_for_all_tasks() {
        let (sender, began) = channel();
        let background = Background::new();
        let (running, go) = task("a", "x", "running", &sender);
        let (waiting, _) = task("a", "y", "waiting", &sender);
        background.0.submit(running).unwrap();
        background.0.submit(waiting).unwrap();
        let release = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            drop(go);
        });
        drop(background);
        assert_eq!([next(&began), next(&began)], ["running", "waiting"]);
        release.join().unwrap();
    }
}
