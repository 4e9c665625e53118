//! Lets a call be interrupted, for example when a user presses Ctrl-C.
//!
//! ```text
//! caller's thread   watched(look, …) ── check ── check ── wait ──► look(): shall it stop?
//!                        │ inherited                                  │
//! its threads            └──────────── check ── wait ◄────────── the call is interrupted
//! ```
//!
//! - Only the thread that began the call checks for interrupts, because other threads may not see them: Python, for
//!   example, handles signals only on its main thread. The thread checks at most once per [`INTERVAL`] while it works,
//!   and just as often while it waits for other threads or for a store. A call that takes less time only checks before
//!   a commit.
//! - An interrupted call stops between two batches, files or requests, with an error of the kind `Interrupted`. The
//!   files that it has written are deleted, as after any other error.
//! - The call checks once more right before it puts a commit. Putting the commit and deleting files are [`shielded`]
//!   from interrupts: these steps are completed, but they wait at most [`GRACE`] for a store that does not answer.
//! - A call that is made inside another call, for example by a callback, is interrupted together with the outer call.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};

/// The time between two checks for an interrupt.
const INTERVAL: Duration = Duration::from_millis(200);

/// How long an interrupted call still waits for the response to a request that should not be abandoned.
const GRACE: Duration = Duration::from_secs(5);

/// A function that returns whether the call should stop. It is called on the thread that began the call.
pub type Look = fn() -> bool;

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// The call for which a thread works.
#[derive(Debug, Clone)]
struct Current {
    call: Arc<Call>,
    /// `None` on the threads that the call has started.
    look: Option<Look>,
    next_look: Instant,
    is_shielded: bool,
}

#[derive(Debug, Default)]
struct Call {
    is_interrupted: AtomicBool,
    /// Whether the call must stop waiting, because it was interrupted again or because the store does not answer.
    is_hurried: AtomicBool,
    commits: Mutex<Vec<Commit>>,
    outer: Option<Arc<Call>>,
}

/// A commit that a call has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The location of the table.
    pub table: String,
    /// The version.
    pub version: u64,
}

/// The outcome of a watched call.
#[derive(Debug, Default)]
pub struct Watched {
    /// Whether the call was interrupted.
    pub is_interrupted: bool,
    /// The commits that the call has made, in order.
    pub commits: Vec<Commit>,
}

/// The error of a call that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call was interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Self {
        Self::new(ErrorKind::Interrupted, interrupted.to_string())
    }
}

impl Call {
    fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::Relaxed)
            || self.outer.as_ref().is_some_and(|outer| outer.is_interrupted())
    }

    fn is_hurried(&self) -> bool {
        self.is_hurried.load(Ordering::Relaxed) || self.outer.as_ref().is_some_and(|outer| outer.is_hurried())
    }

    fn interrupt(&self) {
        if self.is_interrupted.swap(true, Ordering::Relaxed) {
            self.is_hurried.store(true, Ordering::Relaxed);
        }
    }
}

/// When this is dropped, the thread's previous call becomes the current one again.
struct Restore(Option<Current>);

impl Restore {
    fn after(current: Option<Current>) -> Self {
        Self(CURRENT.replace(current))
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Returns whether this thread works for a call.
pub fn is_within_call() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

fn current_call() -> Option<Arc<Call>> {
    CURRENT.with_borrow(|current| current.as_ref().map(|current| Arc::clone(&current.call)))
}

/// Interrupts the call for which this thread works.
pub fn interrupt() {
    if let Some(call) = current_call() {
        call.interrupt();
    }
}

/// Calls `work` and, from time to time on the same thread, `look`, which returns whether the work should stop. If
/// `look` is `None`, `work` becomes part of the call for which this thread already works, if there is one.
pub fn watched<T>(look: Option<Look>, work: impl FnOnce() -> T) -> (T, Watched) {
    if look.is_none() {
        let output = work();
        return (output, Watched { is_interrupted: is_interrupted(), commits: Vec::new() });
    }
    let outer = current_call();
    let call = Arc::new(Call { outer, ..Call::default() });
    let next_look = Instant::now() + INTERVAL;
    let current = Current { call: Arc::clone(&call), look, next_look, is_shielded: false };
    let restore = Restore::after(Some(current));
    let output = work();
    drop(restore);
    let commits = std::mem::take(&mut *call.commits.lock().unwrap_or_else(PoisonError::into_inner));
    (output, Watched { is_interrupted: call.is_interrupted(), commits })
}

/// If a check is due, checks whether the call should stop.
pub(crate) fn poll() {
    look(false);
}

fn look(is_time: bool) {
    let due = CURRENT.with_borrow_mut(|current| {
        let current = current.as_mut()?;
        let look = current.look?;
        let now = Instant::now();
        if !is_time && now < current.next_look {
            return None;
        }
        current.next_look = now + INTERVAL;
        Some((look, Arc::clone(&current.call)))
    });
    // `look` may call any function, including functions of this crate, so no borrow is held here.
    if let Some((look, call)) = due
        && look()
    {
        call.interrupt();
    }
}

/// Returns whether the call is interrupted and this thread is not shielded.
fn is_stopped() -> bool {
    CURRENT.with_borrow(|current| {
        current.as_ref().is_some_and(|current| !current.is_shielded && current.call.is_interrupted())
    })
}

/// Returns whether the call is interrupted, even if this thread is shielded.
pub(crate) fn is_interrupted() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|current| current.call.is_interrupted()))
}

/// Returns whether the call is interrupted and must stop waiting, because the store does not answer or the interrupt
/// was repeated.
pub(crate) fn is_hurried() -> bool {
    CURRENT.with_borrow(|current| {
        current.as_ref().is_some_and(|current| current.call.is_interrupted() && current.call.is_hurried())
    })
}

/// Returns an error if the call is interrupted. Must be called at least a few times per second.
///
/// # Errors
/// `Interrupted` if the call is interrupted.
pub(crate) fn check() -> Result<(), Interrupted> {
    poll();
    if is_stopped() { Err(Interrupted) } else { Ok(()) }
}

/// Does the same as [`check`], but always looks for an interrupt. Must be called before a step that cannot be undone.
///
/// # Errors
/// `Interrupted` if the call is interrupted.
pub(crate) fn check_now() -> Result<(), Interrupted> {
    look(true);
    if is_stopped() { Err(Interrupted) } else { Ok(()) }
}

/// Calls `work`, which is shielded from interrupts.
pub(crate) fn shielded<T>(work: impl FnOnce() -> T) -> T {
    let current = CURRENT.with_borrow(Clone::clone);
    let _restore = Restore::after(current.map(|current| Current { is_shielded: true, ..current }));
    work()
}

/// Records a commit that the call has made.
pub(crate) fn note_commit(table: impl FnOnce() -> String, version: u64) {
    if let Some(call) = current_call() {
        let commit = Commit { table: table(), version };
        call.commits.lock().unwrap_or_else(PoisonError::into_inner).push(commit);
    }
}

/// The data about a call that its other threads need.
#[derive(Debug, Clone)]
pub struct Inherited(Option<Current>);

/// Returns the data that another thread needs to work for the same call.
pub fn inherited() -> Inherited {
    let current = CURRENT.with_borrow(Clone::clone);
    Inherited(current.map(|current| Current { look: None, ..current }))
}

impl Inherited {
    /// Runs `work` as part of the call for which the thread that created this was working.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _restore = Restore::after(self.0.clone());
        work()
    }
}

/// Waits for a message from a channel.
///
/// # Errors
/// `Interrupted` if the call is interrupted. On a shielded thread, this happens only if the interrupt was repeated, or
/// if no message arrives for [`GRACE`] after it, here or in an earlier wait of the call.
pub(crate) fn receive<T>(messages: &Receiver<T>) -> Result<Result<T, RecvError>, Interrupted> {
    // Messages may arrive so quickly that the thread never waits, so check here as well.
    check()?;
    let mut stopped_at = None;
    loop {
        let stop = match receive_for_a_while(messages) {
            Some(message) => return Ok(message),
            None => CURRENT.with_borrow(|current| {
                let current = current.as_ref().filter(|current| current.call.is_interrupted())?;
                Some(!current.is_shielded || current.call.is_hurried())
            }),
        };
        let Some(is_urgent) = stop else { continue };
        let since: &Instant = stopped_at.get_or_insert_with(Instant::now);
        if is_urgent {
            return Err(Interrupted);
        }
        if since.elapsed() >= GRACE {
            // The store does not answer. Later requests of this call would probably get no response either, so they do
            // not wait.
            hurry();
            return Err(Interrupted);
        }
    }
}

fn hurry() {
    CURRENT.with_borrow(|current| {
        if let Some(current) = current {
            current.call.is_hurried.store(true, Ordering::Relaxed);
        }
    });
}

/// Waits for a message from another thread of the call. That thread stops if the call is interrupted.
///
/// # Errors
/// If all senders were dropped.
pub fn receive_from_own<T>(messages: &Receiver<T>) -> Result<T, RecvError> {
    poll();
    loop {
        if let Some(message) = receive_for_a_while(messages) {
            return message;
        }
    }
}

fn receive_for_a_while<T>(messages: &Receiver<T>) -> Option<Result<T, RecvError>> {
    if !is_within_call() {
        return Some(messages.recv());
    }
    match messages.recv_timeout(INTERVAL) {
        Ok(message) => Some(Ok(message)),
        Err(RecvTimeoutError::Disconnected) => Some(Err(RecvError)),
        Err(RecvTimeoutError::Timeout) => {
            poll();
            None
        }
    }
}

/// Pauses the thread for `duration`, or until the call is interrupted.
pub(crate) fn sleep(duration: Duration) {
    let end = Instant::now() + duration;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        std::thread::sleep(left.min(INTERVAL));
        if left <= INTERVAL || check().is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    thread_local! {
        static LOOKS: Cell<u32> = const { Cell::new(0) };
        static PRESSED: Cell<bool> = const { Cell::new(false) };
    }

    fn pressed() -> bool {
        LOOKS.set(LOOKS.get() + 1);
        PRESSED.take()
    }

    fn press() -> bool {
        PRESSED.set(true);
        check_now().is_err()
    }

    #[test]
    fn a_short_call_only_looks_for_interrupts_when_it_must() {
        let ((), watched) = watched(Some(pressed), || {
            (0..100).for_each(|_| check().unwrap());
            assert_eq!(LOOKS.get(), 0);
            check_now().unwrap();
        });
        assert_eq!((LOOKS.get(), watched.is_interrupted), (1, false));
        assert_eq!(check(), Ok(()), "outside of a call, a check never stops anything");
    }

    #[test]
    fn an_interrupted_call_stops_on_all_its_threads() {
        let ((), watched) = watched(Some(pressed), || {
            note_commit(|| "file:///t".to_owned(), 7);
            let theirs = inherited();
            assert!(press());
            let checks = move || theirs.run(|| (check(), shielded(check), inherited().run(check)));
            let stopped = (Err(Interrupted), Ok(()), Err(Interrupted));
            assert_eq!(std::thread::spawn(checks).join().unwrap(), stopped);
        });
        assert!(watched.is_interrupted);
        assert_eq!(watched.commits, [Commit { table: "file:///t".to_owned(), version: 7 }]);
        assert_eq!(check(), Ok(()));
    }

    #[test]
    fn an_inner_call_is_interrupted_with_the_outer_one() {
        let (inner, outer) = watched(Some(pressed), || {
            assert!(press());
            watched(None, check)
        });
        assert_eq!((inner.0, inner.1.is_interrupted, outer.is_interrupted), (Err(Interrupted), true, true));
        let (inner, outer) = watched(Some(pressed), || watched(Some(pressed), press));
        assert_eq!((inner.1.is_interrupted, outer.is_interrupted), (true, false));
    }

    #[test]
    fn an_interrupt_ends_waiting_unless_it_is_shielded() {
        let (sender, messages): (Sender<u8>, _) = channel();
        let (received, _) = watched(Some(pressed), || {
            PRESSED.set(true);
            receive(&messages)
        });
        assert_eq!(received, Err(Interrupted));
        let (received, _) = watched(Some(pressed), || {
            PRESSED.set(true);
            shielded(|| {
                let answer = std::thread::spawn(move || {
                    std::thread::sleep(INTERVAL * 2);
                    sender.send(1).unwrap();
                });
                let received = receive(&messages);
                answer.join().unwrap();
                (received, is_interrupted())
            })
        });
        assert_eq!(received, (Ok(Ok(1)), true));
    }

    /// A user who presses Ctrl-C twice does not have to wait for a store that may never answer.
    #[test]
    fn a_second_interrupt_ends_shielded_waiting() {
        let (_sender, messages) = channel::<u8>();
        let (received, _) = watched(Some(pressed), || {
            assert!(press());
            assert!(!is_hurried());
            PRESSED.set(true);
            shielded(|| (receive(&messages), is_hurried()))
        });
        assert_eq!(received, (Err(Interrupted), true));
        assert!(!is_hurried());
    }
}
