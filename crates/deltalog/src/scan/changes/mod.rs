//! The change data feed: the rows that each version inserted, updated and deleted. (PROTOCOL, "Add CDC File",
//! "Change Data Files".)
//!
//! ```text
//! from, to ──range──> versions ──commits──> actions of each ──files──> files, rows, change types ──> rows
//!                        └─ checks that the feed is on and that their schemas can be read as the last one
//! ```
//!
//! | actions of a version | its changes |
//! | --- | --- |
//! | `cdc` actions | only the contents of the `cdc` files |
//! | an `add` of a path | the rows of the file, inserted |
//! | a `remove` of a path | the remaining rows of the file, deleted |
//! | `add` and `remove` of one path | rows only in the new deletion vector, deleted; only in the old one, inserted |
//!
//! - File actions without `dataChange` move rows but do not change them. A MERGE whose metrics report no changed rows
//!   has no changes, even if it rewrote files. The JVM implementation treats both in the same way.
//! - The feed must be on at every version of the range, according to `delta.enableChangeDataFeed` in the
//!   metadata as of that version.
//! - Rows have the schema of the last version in the range, followed by [`CHANGE_TYPE`], [`COMMIT_VERSION`] and
//!   [`COMMIT_TIMESTAMP`]. As in the JVM implementation, a version whose rows cannot be read with that schema is an
//!   error: see [`ChangeFeed::plan`].
//! - Versions are returned in order. Within a version, deleted rows come before inserted rows.
//! - Planning reads the commits on all cores and keeps the paths, sizes, partition values and deletion
//!   vectors of their changes. It reads no data files.
//! - A file that cannot contain a change matching the predicate is not opened.

mod commits;
mod files;
mod plan;
mod pruner;
mod range;
mod schema;
mod sequence;
mod values;

pub(crate) use commits::FeedCommit;
pub use files::{ChangeFile, ChangeFiles, ChangeKind};
pub use plan::{ChangeFeed, ChangePlan};
pub(crate) use pruner::FeedPruner;
pub use range::ChangeBound;
pub(crate) use schema::Shape;
pub(crate) use sequence::ChangeSequence;

/// The name of the column `_change_type: Utf8`: `insert`, `delete`, `update_preimage` or `update_postimage`.
pub const CHANGE_TYPE: &str = "_change_type";
/// The name of the column `_commit_version: Int64`.
pub const COMMIT_VERSION: &str = "_commit_version";
/// The name of the column `_commit_timestamp: Timestamp(µs, UTC)`.
pub const COMMIT_TIMESTAMP: &str = "_commit_timestamp";

/// The table property that enables the feed.
pub(crate) const PROPERTY: &str = "delta.enableChangeDataFeed";

#[cfg(test)]
pub(crate) mod law_tests;
#[cfg(test)]
pub(crate) mod test_table;
#[cfg(test)]
mod tests;
