//! The one replay of a log segment. Protocol: "Action Reconciliation".
//!
//! ```text
//!            newest ─────────────────────────────► oldest
//!   commit 13   commit 12   commit 11    checkpoint 10
//!      │            │           │             │
//!      ▼            ▼           ▼             ▼
//!   keep what no newer action has named;   rows only tested
//!   remember the keys                      against the keys
//! ```
//!
//! - Newest first: the first action seen for a logical file `(path, deletion vector)` decides; older ones are dropped.
//! - Memory for reconciliation is proportional to the commits after the checkpoint, not to the table.
//! - File actions are Arrow record batches in the form of the log ([`columns`]); nothing is a struct per file.
//! - A column of a checkpoint that nobody asked for is not decoded.

mod builder;
mod checkpoint;
mod columns;
mod commit;
mod key;
mod line;
mod tail;

pub use checkpoint::CheckpointReader;
pub use columns::{FileColumn, FileColumns};
pub use commit::Commit;
pub use tail::{FileReplay, Tail};

pub(crate) use checkpoint::{TableAction, read_table_actions};
pub(crate) use columns::{deletion_vector_fields, remove_fields, string_map};
pub(crate) use key::is_plain;
