//! A naive replay of a log, and checks of what processes were told.
//!
//! ```text
//!   the log as it lies in the store ──► replay ──► the state of each version ─┐
//!   what each process asked for, and what it was told ──► history ────────────┴──► checks ──► what is wrong
//! ```
//!
//! The replay reads plain JSON and shares no code with deltalog. It knows what the histories of tests need: files with
//! their deletion vectors, applications, row ids, times, and whether protocol and metadata change.

mod checks;
mod history;
mod replay;

pub use checks::{Case, check};
pub use history::{Found, History, Intent, MINE, Operation, Outcome, View, Write};
pub use replay::{Commit, Log, RowIds, State};
