//! Simulated processes on a store that fails: in the end, every result that a process got agrees with the log.
//!
//! One seed is one run: who does what, in which order, what fails, and what the clocks say. `DELTALOG_SEEDS` is the
//! number of seeds to play, and `DELTALOG_SEED` is a single one.

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
