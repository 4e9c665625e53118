//! Provides enough stack for deeply nested expressions.

/// How many bytes of stack must be left for a level of the tree. If fewer are left, [`MORE`] bytes are allocated. A
/// level needs much less than this, but all levels together may need more than the 2 MiB that Rust gives to a thread
/// by default, at least in a debug build.
const LEAST: usize = 128 * 1024;
const MORE: usize = 1024 * 1024;

/// Calls `level` with enough stack. `level` calls this function again for the next level.
pub(super) fn on_stack<T>(level: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(LEAST, MORE, level)
}
