//! CLONE: a version of a table becomes a table of its own, elsewhere. Protocol: "Add File and Remove File" (paths),
//! "Deletion Vector Descriptor Schema" (absolute paths), "Change Metadata".
//!
//! ```text
//!   files of the source ──┬─ shallow: named by absolute paths ──────────┐
//!                         └─ deep: copied, unless the target has them ──┴──► difference to the target ──► one commit
//!   protocol, metadata, domains ──────────────── as `table` says ───────┘
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `table` | what the clone says of itself apart from its files |
//! | `files` | the file actions of the clone |
//! | `origin` | what a copied file notes about where it comes from |
//! | `copy` | copies files from one store to another |
//!
//! - A shallow clone needs the files of its source. Its readers must allow them (`SnapshotBuilder::allow_root`), and a
//!   VACUUM of the source, whose log does not know of the clone, breaks it. VACUUM of the clone only deletes files
//!   below its own root.
//! - A deep clone needs nothing of its source. If it is repeated, only what is new is copied, and a clone of the same
//!   version changes nothing.
//! - The commit depends on all files of the target, as an overwrite does: a commit of somebody else since is a
//!   conflict.
//! - Files that were copied for a commit that has failed are deleted.
//! - Rows get new ids with row tracking, as in the JVM implementation: those of the source count in the source.

mod copy;
mod files;
mod origin;
mod table;

use std::collections::BTreeMap;

use self::files::{ClonedFiles, Way};
use self::table::ClonedTable;
use crate::definition::{CreationMode, TableHeader};
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::pending_write::newest;
use crate::protocol::{PathResolver, TableFeature};
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::transaction::{Committed, IsolationLevel, Operation, Outcome, Transaction};
use crate::unused_files::delete_unused;

/// The request to clone a version of a table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CloneRequest {
    /// Whether the clone refers to the files of its source, instead of having copies of them.
    pub is_shallow: bool,
    /// What to do if there is a table in the place of the clone.
    pub mode: CreationMode,
    /// Properties that the clone has instead of those of its source.
    pub properties: BTreeMap<String, String>,
    /// Whether nothing is copied and committed: the metrics then say what would be done.
    pub dry_run: bool,
    /// The name of the source, which the commit records; its location if `None`.
    pub source_name: Option<String>,
    /// Further fields of the commit, such as those of users.
    pub operation: Operation,
}

impl CloneRequest {
    /// Requests a shallow or a deep clone where there is no table yet.
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

/// What a CLONE has done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cloned {
    /// The commit; `None` if the table is as the clone would be already, or there is a table and the request ignores
    /// that.
    pub committed: Option<Committed>,
    /// What was done.
    pub metrics: CloneMetrics,
    /// The roots that readers of a shallow clone must allow, as URLs.
    pub roots: Vec<String>,
}

/// How many files a CLONE concerns, and their sizes in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloneMetrics {
    /// The size of the source.
    pub source_bytes: u64,
    /// The number of its files.
    pub source_files: u64,
    /// The number of files that were removed from the table that the clone replaces.
    pub removed_files: u64,
    /// Their size.
    pub removed_bytes: u64,
    /// The number of data files that were copied.
    pub copied_files: u64,
    /// Their size.
    pub copied_bytes: u64,
}

/// Makes a clone of `source` at `target`.
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
/// `TableAlreadyExists`. `InvalidArgument` for a clone onto or into its source, for properties that no table can have,
/// and if the table that is to be replaced is append-only. `Unsupported` if the clone could not be written, and for a
/// shallow clone in another store than its source. `FileNotFound` for a file of the source that is not there.
/// `CommitConflict`, `CommitStateUnknown`, `CorruptLog`, and errors of both stores.
pub fn clone_table(
    source: &Snapshot,
    target: &Storage,
    request: CloneRequest,
    environment: &Environment,
) -> Result<Cloned> {
    let located = |error: Error| error.in_table(target.url());
    let base = newest(target)?;
    let mut cloned = Cloned { committed: None, metrics: CloneMetrics::default(), roots: Vec::new() };
    match (&base, request.mode) {
        (Some(_), CreationMode::Ignore) => return Ok(cloned),
        (Some(base), CreationMode::ErrorIfExists) => {
            return Err(located(
                Error::new(
                    ErrorKind::TableAlreadyExists,
                    "there is a table already in the place of the clone",
                )
                .at_version(base.version())
                .with_hint("choose another place, or replace the table"),
            ));
        }
        _ => {}
    }
    check_places(source, target, request.is_shallow).map_err(located)?;
    let table = ClonedTable::of(source, base.as_ref(), &request.properties, environment).map_err(located)?;
    let way = if request.is_shallow { Way::Shallow } else { Way::Deep };
    let tracks_rows = table.protocol.supports(&TableFeature::RowTracking);
    let files = ClonedFiles::of(source, target, base.as_ref(), way, tracks_rows, environment)
        .map_err(|error| source.located(error))?;
    if let Some(base) = base.as_ref().filter(|_| !files.removes.is_empty()) {
        base.ensure_removable()?;
    }
    cloned.metrics = files.metrics;
    if request.is_shallow {
        let own = source.storage().url();
        cloned.roots = std::iter::once(own).chain(source.resolver().allowed_roots()).collect();
    }
    let is_unchanged = files.is_empty()
        && match &base {
            Some(base) => table.is_unchanged(base),
            None => false,
        };
    if request.dry_run || is_unchanged {
        return Ok(cloned);
    }
    let CloneRequest { is_shallow, source_name, operation, mode, .. } = request;
    let name = source_name.unwrap_or_else(|| format!("delta.`{}`", source.storage().url()));
    let operation = described(operation, name, source.version(), is_shallow, &cloned.metrics);
    let copied = files.copied_paths();
    let committed = files
        .copy(source, target)
        .and_then(|()| commit(files, table, target, base.as_ref(), mode, operation, environment));
    match committed {
        Ok(Some(committed)) => cloned.committed = Some(committed),
        Ok(None) => delete_unused(target, copied),
        Err(error) => {
            if !error.is_commit_state_unknown() {
                delete_unused(target, copied);
            }
            return Err(located(error));
        }
    }
    Ok(cloned)
}

/// Commits the clone. Returns `None` if another writer has created a table, and the mode ignores that.
fn commit(
    files: ClonedFiles,
    table: ClonedTable,
    target: &Storage,
    base: Option<&Snapshot>,
    mode: CreationMode,
    operation: Operation,
    environment: &Environment,
) -> Result<Option<Committed>> {
    let mut transaction = match base {
        None => {
            let header = TableHeader::new(table.protocol, table.metadata);
            Transaction::create(target, header, operation, environment)?
        }
        Some(base) => {
            let mut transaction =
                Transaction::new(base, operation, environment)?.with_isolation(IsolationLevel::Serializable);
            transaction.read_whole_table();
            if table.protocol != *base.protocol() {
                transaction.set_protocol(table.protocol);
            }
            if table.metadata != *base.metadata() {
                transaction.set_metadata(table.metadata);
            }
            transaction
        }
    };
    table.domains.into_iter().for_each(|domain| transaction.set_system_domain(domain));
    files.removes.iter().try_for_each(|batch| transaction.remove_files(batch))?;
    files.adds.into_iter().for_each(|batch| transaction.add_batch(batch));
    match transaction.commit()? {
        Outcome::Committed(committed) => Ok(Some(committed)),
        Outcome::Conflict { .. } if base.is_none() && mode == CreationMode::Ignore => Ok(None),
        Outcome::Conflict { conflict, transaction } => Err(transaction.failed(conflict)),
        // The transaction records no progress.
        Outcome::AlreadyApplied(applied) => Err(applied.into_error(target.url())),
    }
}

/// Refuses a clone onto its source, and tables inside of each other: the files of one would be among those of the
/// other.
fn check_places(source: &Snapshot, target: &Storage, is_shallow: bool) -> Result<()> {
    if source.protocol().supports(&TableFeature::CatalogManaged) {
        return Err(Error::unsupported("a table that a catalog manages cannot be cloned")
            .with_hint("read it, and write its rows to another table"));
    }
    let resolver = PathResolver::new(target.root())?;
    let (from, to) = (source.resolver(), &resolver);
    if from.is_at(to) {
        return Err(Error::invalid_argument("a table cannot be cloned onto itself")
            .with_hint("choose another place; RESTORE makes an earlier version the newest one"));
    }
    if from.contains_table(to) || to.contains_table(from) {
        return Err(Error::invalid_argument(format!(
            "the clone and its source, {}, are inside of each other",
            source.storage().url()
        ))
        .with_hint("choose a place beside the source"));
    }
    if is_shallow && !from.is_in_store_of(to) {
        return Err(Error::unsupported(format!(
            "a shallow clone must be in the same store as its source, {}",
            source.storage().url()
        ))
        .with_hint("make a deep clone"));
    }
    Ok(())
}

/// Describes the commit by the names of the JVM implementation.
fn described(
    mut operation: Operation,
    source: String,
    version: u64,
    is_shallow: bool,
    metrics: &CloneMetrics,
) -> Operation {
    "CLONE".clone_into(&mut operation.name);
    operation
        .parameter("source", source)
        .parameter("sourceVersion", version)
        .parameter("isShallow", is_shallow)
        .metric("sourceTableSize", metrics.source_bytes)
        .metric("sourceNumOfFiles", metrics.source_files)
        .metric("numRemovedFiles", metrics.removed_files)
        .metric("removedFilesSize", metrics.removed_bytes)
        .metric("numCopiedFiles", metrics.copied_files)
        .metric("copiedFilesSize", metrics.copied_bytes)
}
