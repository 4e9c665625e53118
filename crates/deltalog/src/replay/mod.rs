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
//! - Newest first: the first action seen for a logical file `(path, deletion vector)` decides; older ones are
//!   dropped.
//! - Memory for reconciliation is proportional to the commits after the checkpoint, not to the table.
//! - File actions are Arrow record batches in the form of the log ([`columns`]); nothing is a struct per
//!   file, and what no row has takes no room.
//! - The keys are not copied: the table of what was named refers to the commits' own paths ([`seen`]).
//! - A column of a checkpoint that nobody asked for is not decoded.

mod builder;
mod checkpoint;
mod columns;
mod commit;
mod deletion_vectors;
mod filter;
mod key;
mod line;
mod quick;
mod seen;
mod state;
mod tail;

pub use checkpoint::{AddRequest, CheckpointReader, RowGroupFilter};
pub use columns::{FileColumn, FileColumns};
pub use commit::Commit;
pub use deletion_vectors::DeletionVectorColumn;
pub use filter::{FileFilter, Keep};
pub use tail::{FileReplay, Tail};

pub(crate) use checkpoint::STATS_PARSED;
pub(crate) use checkpoint::TableAction;
pub(crate) use columns::{deletion_vector_fields, remove_fields, string_map};
#[cfg(test)]
pub(crate) use filter::apply;
pub(crate) use key::are_plain;
pub(crate) use state::State;
pub(crate) use tail::with_columns;
