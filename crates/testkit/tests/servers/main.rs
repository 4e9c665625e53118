//! Tests of the behavior of other projects' object-store servers on which deltalog's tests depend.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests"
)]

mod contract;
mod objects;
mod process;
mod racers;
mod stores;
