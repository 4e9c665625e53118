//! The metrics of a statement in its commit, under the names of the JVM implementation. Only this module knows these
//! names.
//!
//! - A deletion vector that replaces another one counts as updated, as added, and as removed.
//! - A file counts as removed, with its bytes, only if it loses all rows. A file that gets a deletion vector does not.

use serde_json::{Map, Value};

use super::statement::Statement;
use crate::write::{Reported, StatementCounts};

/// The rows that a statement has processed, and the time that it took. Values that are unknown, or do not apply to the
/// statement, keep their defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// The rows of the source of a MERGE.
    pub source: u64,
    /// The rows that were deleted; `None` if that is not known, because files were removed unread.
    pub deleted: Option<u64>,
    /// How many of the deleted rows were deleted by a clause `WHEN NOT MATCHED BY SOURCE`.
    pub deleted_by_source: u64,
    /// The rows that were changed.
    pub updated: u64,
    /// How many of the changed rows were changed by a clause `WHEN NOT MATCHED BY SOURCE`.
    pub updated_by_source: u64,
    /// The rows that were added.
    pub inserted: u64,
    /// The rows that were copied unchanged to a new file.
    pub copied: u64,
    /// The time to find rows, in milliseconds.
    pub scan_ms: u64,
    /// The time to write files, in milliseconds.
    pub rewrite_ms: u64,
}

impl RowCounts {
    /// Adds up the rows that the tasks of an engine have reported. `source` is the number of rows of the source of a
    /// MERGE.
    ///
    /// If several tasks delete the same row, as can happen in a MERGE, each of them has counted it, but it counts once.
    pub fn of_tasks(reported: &Reported, source: u64) -> Self {
        let StatementCounts { updated, deleted, updated_by_source, deleted_by_source, inserted, copied } =
            reported.counts;
        Self {
            source,
            deleted: Some(deleted.min(reported.num_removed().saturating_sub(updated))),
            deleted_by_source,
            updated,
            updated_by_source,
            inserted,
            copied,
            ..Self::default()
        }
    }
}

/// The files of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileCounts {
    pub(super) added: u64,
    pub(super) added_bytes: u64,
    pub(super) removed: u64,
    pub(super) removed_bytes: u64,
    pub(super) change_files: u64,
    /// Files that had no deletion vector and get one.
    pub(super) new_vectors: u64,
    /// Files that had a deletion vector and get another one.
    pub(super) updated_vectors: u64,
    /// Files with a vector that are removed.
    pub(super) removed_vectors: u64,
}

/// The metrics of a statement, by name.
pub type StatementMetrics = Vec<(&'static str, u64)>;

/// Returns the metrics of a statement that has taken `execution_ms` milliseconds.
pub(super) fn metrics(
    statement: &Statement,
    files: &FileCounts,
    rows: &RowCounts,
    execution_ms: u64,
) -> StatementMetrics {
    let times =
        [("executionTimeMs", execution_ms), ("scanTimeMs", rows.scan_ms), ("rewriteTimeMs", rows.rewrite_ms)];
    let vectors_added = files.new_vectors + files.updated_vectors;
    let vectors_removed = files.removed_vectors + files.updated_vectors;
    let mut metrics = match statement {
        Statement::Merge { .. } => {
            let deleted = rows.deleted.unwrap_or_default();
            vec![
                ("numSourceRows", rows.source),
                ("numTargetRowsInserted", rows.inserted),
                ("numTargetRowsUpdated", rows.updated),
                ("numTargetRowsMatchedUpdated", rows.updated.saturating_sub(rows.updated_by_source)),
                ("numTargetRowsNotMatchedBySourceUpdated", rows.updated_by_source),
                ("numTargetRowsDeleted", deleted),
                ("numTargetRowsMatchedDeleted", deleted.saturating_sub(rows.deleted_by_source)),
                ("numTargetRowsNotMatchedBySourceDeleted", rows.deleted_by_source),
                ("numTargetRowsCopied", rows.copied),
                ("numOutputRows", rows.inserted + rows.updated + rows.copied),
                ("numTargetFilesAdded", files.added),
                ("numTargetFilesRemoved", files.removed),
                ("numTargetBytesAdded", files.added_bytes),
                ("numTargetBytesRemoved", files.removed_bytes),
                ("numTargetChangeFilesAdded", files.change_files),
                ("numTargetDeletionVectorsAdded", vectors_added),
                ("numTargetDeletionVectorsRemoved", vectors_removed),
                ("numTargetDeletionVectorsUpdated", files.updated_vectors),
            ]
        }
        Statement::Delete { .. } | Statement::Update { .. } => {
            let mut metrics = vec![
                ("numAddedFiles", files.added),
                ("numRemovedFiles", files.removed),
                ("numAddedBytes", files.added_bytes),
                ("numRemovedBytes", files.removed_bytes),
                ("numAddedChangeFiles", files.change_files),
                ("numDeletionVectorsAdded", vectors_added),
                ("numDeletionVectorsRemoved", vectors_removed),
                ("numDeletionVectorsUpdated", files.updated_vectors),
                ("numCopiedRows", rows.copied),
            ];
            match statement {
                Statement::Update { .. } => metrics.push(("numUpdatedRows", rows.updated)),
                _ => metrics.extend(rows.deleted.map(|deleted| ("numDeletedRows", deleted))),
            }
            metrics
        }
    };
    metrics.extend(times);
    metrics
}

/// Returns the metrics in the form of a commit.
pub(super) fn as_json(metrics: &StatementMetrics) -> Map<String, Value> {
    metrics.iter().map(|(name, value)| ((*name).to_owned(), Value::String(value.to_string()))).collect()
}
