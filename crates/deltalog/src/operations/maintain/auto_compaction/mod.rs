//! Auto-compaction: after a write, merges small files in the partitions that were written to into fewer, larger
//! files.
//!
//! ```text
//!   write ──► commit N ──► asked for? ──► partitions of its files ──► small files there, in the newest version
//!                │            no │                                          │ enough of them
//!                ▼               ▼                                          ▼
//!            the write has succeeded, whatever follows        OPTIMIZE of some of them ──► commit M, `auto: true`
//! ```
//!
//! - It follows each commit of a [`PendingWrite`](crate::PendingWrite), or of a statement, that adds files (appends,
//!   overwrites, DML), whether this process or an engine has written the files. It does not follow an OPTIMIZE, so a
//!   compaction never starts another compaction.
//! - It is completed before the call returns, and not in the background. Otherwise, the next overwrite or UPDATE in
//!   the same program could conflict with the compaction after the previous write. The JVM connector does the same. A
//!   statement on a handle that was opened before the write still conflicts if it rewrites the compacted files.
//! - It never makes the write fail: an error, even a conflict with another writer, is logged as a warning. The small
//!   files then remain, and the next write tries again.
//! - Its work is limited by the number of partitions and by the size of the files ([`AutoCompaction`]). Small files
//!   that remain are considered again after the next write.
//! - The rows of the table do not change. Concurrent writers are handled as in every OPTIMIZE: rows that they delete
//!   are also deleted in the new files, and files that they remove are left out.
//! - If neither the table's properties nor the settings request it, its only cost is looking up these settings in
//!   memory.

mod policy;

use crate::commit::{Committed, Operation};
use crate::error::{Error, ErrorKind, Result};
use crate::operations::maintain::optimize::{Optimized, compact_small_files};
use crate::protocol::{Add, Metadata};
use crate::runtime::environment::Environment;
use crate::runtime::panics::caught;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::write::TableWriteSpec;

#[cfg(doc)]
use crate::runtime::environment::AutoCompaction;

/// A write that has just been committed.
pub(crate) struct CommittedWrite<'a> {
    pub(crate) storage: &'a Storage,
    /// The version that the write was based on; `None` if the write has created the table.
    pub(crate) base: Option<&'a Snapshot>,
    pub(crate) committed: &'a Committed,
    /// The name of the engine that made the write.
    pub(crate) engine_info: Option<String>,
    /// The files that the write has added.
    pub(crate) files: &'a [Add],
    pub(crate) environment: &'a Environment,
}

/// Returns whether small files should be compacted after a write to a table with this metadata.
pub(crate) fn is_asked_for(metadata: &Metadata, environment: &Environment) -> bool {
    policy::is_asked_for(metadata, environment.auto_compaction())
}

/// Compacts small files after a write if the session or the table [requests it](is_asked_for). Failures are logged.
pub(crate) fn after_write(write: &CommittedWrite<'_>) {
    if write.files.is_empty() {
        return;
    }
    let done = caught(
        || compact(write),
        |panic| Error::new(ErrorKind::Unavailable, format!("it panicked with '{panic}'")),
    );
    let (table, version) = (write.storage.url(), write.committed.version);
    match done {
        Ok(Optimized { commits, metrics }) => {
            if let Some(commit) = commits.first() {
                let (removed, added) = (metrics.removed.count(), metrics.added.count());
                tracing::debug!(
                    table,
                    version = commit.version,
                    removed,
                    added,
                    "small files were compacted"
                );
            }
        }
        Err(error) => tracing::warn!(
            table,
            version,
            %error,
            "the write succeeded, but the compaction of small files after it failed; the next write tries again"
        ),
    }
}

fn compact(write: &CommittedWrite<'_>) -> Result<Optimized> {
    let newest = match write.base {
        Some(base) => base.refresh()?,
        None => Snapshot::open(write.storage, None)?,
    };
    let spec = TableWriteSpec::of(&newest).map_err(|error| newest.located(error))?;
    let small = policy::small_files(spec.target_file_size(), write.environment.auto_compaction());
    let mut operation = Operation::default();
    operation.engine_info.clone_from(&write.engine_info);
    compact_small_files(&newest, write.files, &small, operation, write.environment)
}
