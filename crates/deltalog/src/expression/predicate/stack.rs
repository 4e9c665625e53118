//! Provides enough stack for deeply nested expressions.

/// How many bytes of stack must be left for a level of the tree, and how many are allocated if fewer are left. A
/// level needs much less. Rust's default of 2 MiB per thread is too small for all levels in a debug build.
const LEAST: usize = 128 * 1024;
const MORE: usize = 1024 * 1024;

/// Calls `level` with enough stack. `level` calls this function again for the next level.
pub(super) fn on_stack<T>(level: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(LEAST, MORE, level)
}
