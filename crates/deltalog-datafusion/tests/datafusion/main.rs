//! Compares queries of deltalog's tables in DataFusion with DataFusion's own results for the same rows in memory.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, and waits for threads"
)]

mod filters;
mod inserts;
mod rows;
mod scans;
mod session;
mod support;
mod table;
