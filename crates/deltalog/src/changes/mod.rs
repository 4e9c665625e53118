//! The change data feed: which rows each version inserted, updated and deleted. (PROTOCOL, "Add CDC File",
//! "Change Data Files".)
//!
//! ```text
//! from, to ──range──> versions ──commits──> actions of each ──files──> files, which of their rows, and what became of those ──> rows
//!                        └─ is the feed on at each of them, and can their schemas be read as the last one?
//! ```
//!
//! | the version has | its changes are |
//! | --- | --- |
//! | `cdc` actions | what those files say, and nothing else |
//! | an `add` of a path | the rows of the file, inserted |
//! | a `remove` of a path | the rows that the file still had, deleted |
//! | both of one path | rows that only the new deletion vector names, deleted; rows that only the old one names, inserted |
//!
//! - File actions without `dataChange` move rows and change none. A MERGE whose metrics say that it changed
//!   no row has none either, though it may have rewritten files; so the JVM implementation has it.
//! - The feed must be on at every version of the range: `delta.enableChangeDataFeed` in the metadata as of
//!   that version.
//! - Rows have the schema of the range's last version, then [`CHANGE_TYPE`], [`COMMIT_VERSION`] and
//!   [`COMMIT_TIMESTAMP`]. A version whose schema cannot be read so is an error, as in the JVM
//!   implementation: see [`ChangeFeed::plan`].
//! - Versions come in order; of one version, deleted rows before inserted ones.
//! - Planning reads the commits on all cores, keeps of each the paths, sizes, partition values and deletion
//!   vectors of its changes, and reads no data file.
//! - A file that cannot hold a change that a predicate asks for is not opened.

mod commits;
mod files;
mod plan;
mod pruner;
mod range;
mod schema;
mod values;

pub use files::{ChangeFile, ChangeFiles, ChangeKind};
pub use plan::{ChangeFeed, ChangePlan};
pub use range::ChangeBound;

/// `_change_type: Utf8`: `insert`, `delete`, `update_preimage` or `update_postimage`.
pub const CHANGE_TYPE: &str = "_change_type";
/// `_commit_version: Int64`.
pub const COMMIT_VERSION: &str = "_commit_version";
/// `_commit_timestamp: Timestamp(µs, UTC)`.
pub const COMMIT_TIMESTAMP: &str = "_commit_timestamp";

/// The table property that has the feed recorded.
const PROPERTY: &str = "delta.enableChangeDataFeed";

#[cfg(test)]
mod law_tests;
#[cfg(test)]
mod test_table;
#[cfg(test)]
mod tests;
