//! Tables that use features of the protocol, crafted file by file and read through the public API.
//!
//! Each module is about one feature and names the sections that it tests.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod answers;
mod bloom_filters;
mod checkpoint_statistics;
mod clustering;
mod column_mapping;
mod crafted;
mod mapped_writes;
mod recomputed_statistics;
mod row_tracking;
mod type_widening;
mod variant;
mod written_statistics;
