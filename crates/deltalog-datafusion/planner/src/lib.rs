//! Compares SQL queries of deltalog's tables, planned and executed by DataFusion, with queries of rows in memory.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, and waits for threads"
)]

mod filters;
mod inserts;
mod queries;
#[path = "../../tests/datafusion/rows.rs"]
mod rows;
mod support;
#[path = "../../tests/datafusion/table.rs"]
mod table;
