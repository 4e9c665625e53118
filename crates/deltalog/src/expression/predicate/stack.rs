//! The stack that the levels of an expression take.

/// Bytes of stack that a level must have left, many times what it takes, and those that it gets otherwise. A thread
/// of 2 MiB, as Rust's are, is too small for all levels of a debug build.
const LEAST: usize = 128 * 1024;
const MORE: usize = 1024 * 1024;

/// Calls `level`, which calls this function for the level below it, with enough stack.
pub(super) fn on_stack<T>(level: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(LEAST, MORE, level)
}
