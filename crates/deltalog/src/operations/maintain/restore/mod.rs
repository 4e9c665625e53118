//! RESTORE: makes the contents of an earlier version the newest version of the table.
//!
//! ```text
//!   logical files of the newest version ──┬── not in the earlier one ──► removed
//!   logical files of the earlier version ─┴── not in the newest one ───► looked for in the store, and added again
//!   protocol, metadata and domains ──────────────────────────────────► see `table`
//! ```
//!
//! - Versions are compared by logical files: a data file together with its deletion vector (protocol, "Add File and
//!   Remove File"). If only the deletion vector differs, the logical file is replaced.
//! - If a file that must be restored no longer exists, perhaps because of a VACUUM, this is detected before anything
//!   is committed. Files that the newest version also contains are not checked, because that version needs them in
//!   any case.
//! - RESTORE is an ordinary commit. The versions in between remain readable, so it can be undone.
//! - It depends on all files, as an overwrite does: if another writer has committed since the version that the caller
//!   has seen, that is a conflict, because the other writer's rows would be lost. A commit of a VACUUM is also a
//!   conflict, because the VACUUM may delete files that were just found. If a VACUUM began before that version and
//!   may still be deleting files, the RESTORE is refused in advance ([`unfinished`]).

mod files;
mod table;
mod unfinished;

pub(crate) use files::counted;

use crate::commit::{Committed, IsolationLevel, Operation, Transaction};
use crate::error::{Error, Result};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;

/// A request to restore an earlier version.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RestoreRequest {
    /// Whether to leave out files that no longer exist, together with their rows. Otherwise such files are an error,
    /// and so are files that an unfinished VACUUM may be deleting.
    pub ignore_missing_files: bool,
    /// Whether to restore the protocol of the earlier version as well. Otherwise the table keeps all features that
    /// were added since. After a downgrade, versions that need these features can no longer be read correctly.
    pub allow_protocol_downgrade: bool,
    /// Whether to make no commit, and only return the metrics.
    pub dry_run: bool,
    /// Additional fields of the commit, such as user metadata.
    pub operation: Operation,
    /// The timestamp that the caller has passed instead of a version. The commit records it.
    pub timestamp: Option<String>,
}

/// The result of a RESTORE.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The commit; `None` if the table already has the contents of that version.
    pub committed: Option<Committed>,
    /// The metrics of the operation.
    pub metrics: RestoreMetrics,
}

/// The numbers of files in a RESTORE, and their sizes in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreMetrics {
    /// The total size of the table's files after the operation.
    pub table_bytes: u64,
    /// The number of the table's files after the operation.
    pub table_files: u64,
    /// The number of files that were removed.
    pub removed_files: u64,
    /// The total size of the removed files.
    pub removed_bytes: u64,
    /// The number of files that were added again.
    pub restored_files: u64,
    /// The total size of the files that were added again.
    pub restored_bytes: u64,
    /// The number of files that were left out because they no longer exist.
    pub missing_files: u64,
}

/// Makes the contents of the version `earlier` the newest version of the table. `base` is the newest version that the
/// caller knows. If they have the same contents, nothing is committed.
///
/// # Errors
/// Returns `InvalidArgument` if `earlier` is newer than `base`, if it is a version of another table, or if rows of an
/// append-only table would be removed. Returns `FileNotFound`, with the names of the files, if files no longer exist.
/// Returns `Unsupported` for a table that cannot be written, and if the rows of `earlier` have row ids but row tracking
/// was dropped since. Returns `CommitConflict` if another writer has committed since `base`, or if a VACUUM may still
/// be deleting files of `earlier`. Also returns `CommitStateUnknown`, `CorruptLog`, and errors from the store.
pub fn restore(
    base: &Snapshot,
    earlier: &Snapshot,
    request: RestoreRequest,
    environment: &Environment,
) -> Result<Restored> {
    let located = |error: Error| base.located(error);
    if earlier.storage().url() != base.storage().url() {
        return Err(located(Error::invalid_argument(format!(
            "the version to restore belongs to another table, {}",
            earlier.storage().url()
        ))));
    }
    if earlier.version() > base.version() {
        return Err(located(
            Error::invalid_argument(format!(
                "version {} cannot be restored: it is after the newest one, {}",
                earlier.version(),
                base.version()
            ))
            .with_hint("choose an earlier version; the history lists them"),
        ));
    }
    let RestoreRequest { ignore_missing_files, allow_protocol_downgrade, dry_run, operation, timestamp } =
        request;
    let table = table::RestoredTable::of(base, earlier, allow_protocol_downgrade).map_err(located)?;
    let changes = files::FileChanges::between(base, earlier)?;
    if !changes.removes.is_empty() {
        base.ensure_removable()?;
    }
    let changes = changes.without_missing(earlier, ignore_missing_files)?;
    if !ignore_missing_files {
        changes.ensure_none_is_vacuumed(base, earlier, environment.now_ms())?;
    }
    let metrics = changes.metrics(earlier)?;
    if dry_run || (changes.is_empty() && table.is_unchanged(base)?) {
        return Ok(Restored { committed: None, metrics });
    }
    let changes = match table.supports_row_ids() {
        true => changes.with_counted_rows(earlier).map_err(|error| earlier.located(error))?,
        false => changes,
    };
    let operation = described(operation, earlier.version(), timestamp, &metrics);
    let mut transaction =
        Transaction::new(base, operation, environment)?.with_isolation(IsolationLevel::Serializable);
    transaction.read_whole_table();
    transaction.read_domains();
    table.set(&mut transaction, base)?;
    changes.removes.iter().try_for_each(|batch| transaction.remove_files(batch))?;
    changes.adds.into_iter().for_each(|batch| transaction.bring_back(batch));
    let committed = transaction.commit_or_fail()?;
    Ok(Restored { committed: Some(committed), metrics })
}

/// Returns the description of the commit, with the names that the JVM implementation uses.
fn described(
    mut operation: Operation,
    version: u64,
    timestamp: Option<String>,
    metrics: &RestoreMetrics,
) -> Operation {
    "RESTORE".clone_into(&mut operation.name);
    // The commit records either the version or the timestamp, depending on which one the caller has passed.
    let version = timestamp.is_none().then_some(version);
    operation
        .parameter("version", version)
        .parameter("timestamp", timestamp)
        .metric("tableSizeAfterRestore", metrics.table_bytes)
        .metric("numOfFilesAfterRestore", metrics.table_files)
        .metric("numRemovedFiles", metrics.removed_files)
        .metric("numRestoredFiles", metrics.restored_files)
        .metric("removedFilesSize", metrics.removed_bytes)
        .metric("restoredFilesSize", metrics.restored_bytes)
}
