//! Tracks calls of Python code from other libraries that happen within a call of this crate.
//!
//! PyO3 assumes that a thread stays attached to the interpreter from the beginning of a call to its end. But the code
//! from which a call reads rows may detach the thread without PyO3, as DuckDB does while it computes, and then read a
//! stream of this crate in the same thread. If Python were used there, which PyO3 would allow, the process would
//! crash. Streams, checks for signals and log records therefore ask [`is_within`] before they use Python.

use std::cell::Cell;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Restores the nesting depth when it is dropped.
struct Restore(usize);

impl Drop for Restore {
    fn drop(&mut self) {
        DEPTH.set(self.0);
    }
}

/// Runs `work`, which calls Python code from another library.
pub(crate) fn calling<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore(DEPTH.replace(DEPTH.get() + 1));
    work()
}

/// Runs `work` as part of a call from Python code, which may belong to another library. PyO3 has detached this thread
/// for the call, so the thread can be attached again.
pub(crate) fn called<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore(DEPTH.replace(0));
    work()
}

/// Returns whether this thread is calling Python code from another library. It may then be detached from the
/// interpreter although PyO3 assumes that it is attached.
pub(crate) fn is_within() -> bool {
    DEPTH.get() > 0
}
