//! Calls of other people's Python code in the middle of a call of this crate.
//!
//! PyO3 takes a thread for attached to the interpreter from the beginning of a call to its end. But the code that the
//! call asks for rows may detach the thread without PyO3, as DuckDB does while it computes, and then read a stream of
//! this crate in the same thread. A use of Python there, which PyO3 allows, would crash the process. So streams, checks
//! for signals and log records ask [`is_within`] before they use Python.

use std::cell::Cell;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// When dropped, restores the depth.
struct Restore(usize);

impl Drop for Restore {
    fn drop(&mut self) {
        DEPTH.set(self.0);
    }
}

/// Runs `work`, which calls such code.
pub(crate) fn calling<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore(DEPTH.replace(DEPTH.get() + 1));
    work()
}

/// Runs `work` of a call that Python code has made, perhaps such code. PyO3 has detached this thread for it, so that it
/// can attach the thread again.
pub(crate) fn called<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore(DEPTH.replace(0));
    work()
}

/// Returns whether this thread calls such code, so that it may be detached from the interpreter although PyO3 takes it
/// for attached.
pub(crate) fn is_within() -> bool {
    DEPTH.get() > 0
}
