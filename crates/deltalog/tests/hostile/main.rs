//! Damaged or malicious tables cause an error, never a panic, an abort, unbounded memory, or a read outside of the
//! table.
//!
//! - [`bytes`] mutates real files, one test per parser of bytes, for `DELTALOG_HOSTILE_SECONDS` each (default 2). The
//!   corpus is a few tables of our own, and tables of other writers if they are available (`DELTALOG_GOLDEN`).
//! - [`tables`] has whole malicious tables.
//! - The seeds of the mutations count up from `DELTALOG_HOSTILE_SEED` (default 0). The message of a failure names the
//!   seed that repeats it, and the input is kept in `target/tmp`. If `DELTALOG_HOSTILE_INPUT` names a file, only that
//!   file is read.
//! - If the code was compiled with coverage counters (`make fuzz-guided`), inputs that reach new code are mutated
//!   further.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

mod bytes;
mod corpus;
mod expressions;
mod footers;
mod fuzz;
mod gaps;
mod guide;
mod partitions;
mod tables;

#[global_allocator]
static METER: deltalog_testkit::Meter = deltalog_testkit::Meter;
