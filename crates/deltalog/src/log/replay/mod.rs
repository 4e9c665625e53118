//! Replay of a log segment. Protocol: "Action Reconciliation".
//!
//! ```text
//!            newest ─────────────────────────────► oldest
//!   commit 13   commit 12   commit 11    checkpoint 10
//!      │            │           │             │
//!      ▼            ▼           ▼             ▼
//!   keep files without a newer action;     rows only checked
//!   remember their keys                    against the keys
//! ```
//!
//! - Commits are read newest first: the first action for a logical file `(path, deletion vector)` decides,
//!   and older ones are dropped.
//! - Memory for reconciliation is proportional to the commits after the checkpoint, not to the table.
//! - File actions are Arrow record batches with the log's columns ([`columns`]), not one struct per file. Columns that
//!   are null in every row take no memory.
//! - Keys are not copied: the table of seen keys refers to the paths stored in the commits ([`seen`]).
//! - Checkpoint columns that were not requested are not decoded.

mod action_structs;
mod builder;
mod checkpoint;
mod columns;
mod commit;
mod deletion_vectors;
mod file_set;
mod filter;
mod key;
mod quick;
mod replayed;
mod seen;
mod state;
mod tail;
mod visit;

pub use checkpoint::{AddRequest, CheckpointReader, RowGroupFilter};
pub use columns::{FileColumn, FileColumns};
pub use commit::Commit;
pub use deletion_vectors::DeletionVectorColumn;
pub use filter::{FileFilter, Keep};
pub use tail::{FileReplay, Tail};

pub use action_structs::adds_of;
pub(crate) use action_structs::{add_at, removes_of};
pub(crate) use builder::batches_of_adds;
pub(crate) use checkpoint::STATS_PARSED;
pub(crate) use checkpoint::{
    FileAction, PLAIN_PATHS, SidecarFile, TableAction, check_checkpoint, sidecars_of,
};
pub(crate) use columns::{deletion_vector_fields, remove_fields, string_map};
pub(crate) use deletion_vectors::{has_vectors, with_vectors};
pub(crate) use file_set::{FileSet, path as path_of};
pub(crate) use filter::apply;
pub(crate) use key::{are_plain, file_key};
pub(crate) use state::State;
pub(crate) use tail::{changing, filtered, with_columns, without};
pub(crate) use visit::visit_commits;
