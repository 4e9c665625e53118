//! CLONE: creates a new table, at another location, from a version of a table. (Protocol: "Add File and Remove File"
//! (paths), "Deletion Vector Descriptor Schema" (absolute paths), "Change Metadata".)
//!
//! ```text
//!   files of the source ──┬─ shallow: named by absolute paths ──────────┐
//!                         └─ deep: copied, unless the target has them ──┴──► difference to the target ──► one commit
//!   protocol, metadata, domains ──────────────── as `table` says ───────┘
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `plan` | plans a clone, makes the copies (unless an engine does), and commits |
//! | `table` | determines the protocol, metadata and other properties of the clone |
//! | `files` | computes the file actions of the clone |
//! | `places` | checks the location of the clone |
//! | `origin` | records in a tag where a copied file comes from |
//! | `copy` | copies files from one store to another |
//! | `marked` | deletes the files that an engine has copied for a failed clone |
//!
//! - A shallow clone needs the files of its source. Its readers must allow their location
//!   (`SnapshotBuilder::allow_root`). A VACUUM of the source may delete files that the clone needs, because the
//!   source has no record of its clones. A VACUUM of the clone only deletes files in the clone's own directory.
//! - A deep clone does not depend on its source. If it is repeated, it only copies new files; if it is repeated for
//!   the same version, nothing changes.
//! - The commit depends on all files of the target, as an overwrite does: if another writer has changed them since,
//!   there is a conflict.
//! - Files that were copied for a commit that has failed are deleted.
//! - With row tracking, rows get new ids, as in the JVM implementation, because the source's ids are only unique
//!   within the source.

mod copy;
mod files;
mod marked;
mod origin;
mod places;
mod plan;
mod table;

use std::collections::BTreeMap;

pub use self::plan::{ClonePlan, CopiedFile, FileCopy, plan_clone};
use crate::commit::{Committed, Operation};
use crate::error::Result;
use crate::operations::define::CreationMode;
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// A request to clone a version of a table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CloneRequest {
    /// Whether the clone refers to the files of its source instead of copying them.
    pub is_shallow: bool,
    /// What to do if a table exists at the clone's location.
    pub mode: CreationMode,
    /// Properties of the clone, which override the properties of the source.
    pub properties: BTreeMap<String, String>,
    /// Whether to return only the metrics of the clone, without copying files or making a commit.
    pub dry_run: bool,
    /// The name of the source that the commit records. If it is `None`, the commit records the location of the source.
    pub source_name: Option<String>,
    /// Additional fields of the commit, such as user metadata.
    pub operation: Operation,
}

impl CloneRequest {
    /// Requests a shallow or a deep clone at a location where no table exists yet.
    pub fn new(is_shallow: bool) -> Self {
        Self {
            is_shallow,
            mode: CreationMode::ErrorIfExists,
            properties: BTreeMap::new(),
            dry_run: false,
            source_name: None,
            operation: Operation::default(),
        }
    }
}

/// The result of a CLONE.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cloned {
    /// The commit; `None` if the table already equals the clone, or if a table exists and the mode is `Ignore`.
    pub committed: Option<Committed>,
    /// The metrics of the clone.
    pub metrics: CloneMetrics,
    /// The roots that readers of a shallow clone must allow, as URLs.
    pub roots: Vec<String>,
}

/// The metrics of a clone: file counts, and total sizes in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloneMetrics {
    /// The total size of the files of the source.
    pub source_bytes: u64,
    /// The number of files of the source.
    pub source_files: u64,
    /// The number of files that were removed from the table that the clone replaces.
    pub removed_files: u64,
    /// The total size of the removed files.
    pub removed_bytes: u64,
    /// The number of data files that were copied.
    pub copied_files: u64,
    /// The total size of the copied files.
    pub copied_bytes: u64,
}

/// Creates a clone of `source` at `target`.
///
/// ```
/// use deltalog::{CloneRequest, Environment, Snapshot, Storage, clone_table};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (directory, storage) = example_table()?;
/// # let other = tempfile::tempdir().unwrap();
/// # let location = other.path().to_str().unwrap();
/// let source = Snapshot::open(&storage, None)?;
/// let target = Storage::open(location, [])?;
/// let cloned = clone_table(&source, &target, CloneRequest::new(false), &Environment::system())?;
/// assert_eq!(cloned.metrics.copied_files, source.totals()?.files);
/// assert_eq!(Snapshot::open(&target, None)?.totals()?.files, source.totals()?.files);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns `TableAlreadyExists` if there is a table at the location; `InvalidArgument` for a clone onto or inside of
/// its source, for properties that no table can have, and if the table to be replaced is append-only; `Unsupported`
/// if the clone could not be written, and for a shallow clone in another store than its source; `FileNotFound` for a
/// missing file of the source; `CommitConflict`, `CommitStateUnknown`, `CorruptLog`, and errors of both stores.
pub fn clone_table(
    source: &Snapshot,
    target: &Storage,
    request: CloneRequest,
    environment: &Environment,
) -> Result<Cloned> {
    plan_clone(source, target, request, environment)?.execute()
}
