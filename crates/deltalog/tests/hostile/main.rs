//! What others wrote may be damaged, or meant to do harm: an error, never a panic, an abort, memory without
//! bounds, or a read outside of the table.
//!
//! - [`bytes`] mutates real files, one test for each parser of bytes, for `DELTALOG_HOSTILE_SECONDS` each (2
//!   if not set). The tables of other writers are the corpus where they are there (`DELTALOG_GOLDEN`), else,
//!   and in any case, a few of our own.
//! - [`tables`] are whole tables made to do harm.
//! - The first numbers are the same in every run. `DELTALOG_HOSTILE_SEED` is where the random ones start, so
//!   that a failure can be had again: its message names the seed, and the input is left in `target/tmp`.

#![allow(
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
mod fuzz;
#[allow(dead_code, reason = "shared with the tests of reliability")]
#[path = "../reliability/common/store.rs"]
mod store;
mod tables;

#[global_allocator]
static METER: deltalog_testkit::Meter = deltalog_testkit::Meter;
