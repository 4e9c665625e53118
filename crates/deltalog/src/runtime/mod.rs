//! Basics that all higher layers use: clock, ids, threads, progress, interrupts, and the parsing of names and sizes.

#![allow(clippy::disallowed_methods, reason = "this is the place for the clock and for waiting")]

pub(crate) mod background;
pub(crate) mod by_name;
pub(crate) mod byte_size;
pub(crate) mod clock;
pub(crate) mod environment;
pub(crate) mod interrupt;
pub(crate) mod panics;
pub(crate) mod parallel;
pub(crate) mod passed_text;
pub(crate) mod per_process;
pub(crate) mod progress;
pub(crate) mod row_bytes;
pub(crate) mod spelling;
