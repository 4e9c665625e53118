//! Simulates processes that work on one table in a store that fails. At the end, every result that a process received
//! must agree with the log.
//!
//! A seed determines a run: what each process does, in which order, which requests fail, and the times on the clocks.
//! `DELTALOG_SEEDS` sets the number of seeds to play, and `DELTALOG_SEED` selects a single seed.

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

mod behind;
mod bucket;
mod cast;
mod place;
mod play;
mod repeat;
mod rows;
mod seeds;
mod server;
mod session;
mod tally;
mod verbs;
