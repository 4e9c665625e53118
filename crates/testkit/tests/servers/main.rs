//! What the object-store servers of other projects do that deltalog depends on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod contract;
mod objects;
mod process;
mod racers;
mod stores;
