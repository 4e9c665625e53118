//! A naive replay of the log, and checks of the results that processes have received.
//!
//! ```text
//!   the log as it lies in the store ──► replay ──► the state of each version ─┐
//!   what each process asked for, and what it was told ──► history ────────────┴──► checks ──► what is wrong
//! ```
//!
//! The replay reads plain JSON, and shares no code with deltalog. It supports only what the histories in the tests
//! need: files and their deletion vectors, applications, row ids, times, columns, properties and the high water mark
//! of an identity column.

mod checks;
mod commit;
mod history;
mod replay;
mod vectors;

pub use checks::{Case, check};
pub use commit::{Commit, IDENTITY, RowIds, TableMetadata};
pub use history::{
    CLASSES, Found, History, Intent, MINE, Operation, Outcome, Streamed, View, Write, class_of,
};
pub use replay::{Log, State};
