//! The stack that the levels of an expression take.

/// The bytes of stack that must be left for a level, which is many times what it needs, and the bytes that are
/// allocated if there are fewer. Rust's default of 2 MiB per thread is too small for all levels in a debug build.
const LEAST: usize = 128 * 1024;
const MORE: usize = 1024 * 1024;

/// Calls `level`, which calls this function for the level below it, with enough stack.
pub(super) fn on_stack<T>(level: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(LEAST, MORE, level)
}
