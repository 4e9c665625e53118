//! The metrics that a statement records in its commit, under the names of the JVM implementation. Only this module
//! contains these names.
//!
//! - A deletion vector that replaces another one counts as updated, as added and as removed.
//! - A file, and its bytes, count as removed only if the file loses all rows. A file that gets a deletion vector does
//!   not count.

use serde_json::{Map, Value};

use super::statement::Statement;
use crate::write::{Reported, StatementCounts};

/// The numbers of rows that a statement has processed, and the time that it took. Values that are unknown, or do not
/// apply to the statement, keep their defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// The number of rows in the source of a MERGE.
    pub source: u64,
    /// The number of deleted rows; `None` if it is not known, because files were removed without reading them.
    pub deleted: Option<u64>,
    /// The number of rows that clauses `WHEN NOT MATCHED BY SOURCE` have deleted.
    pub deleted_by_source: u64,
    /// The number of changed rows.
    pub updated: u64,
    /// The number of rows that clauses `WHEN NOT MATCHED BY SOURCE` have changed.
    pub updated_by_source: u64,
    /// The number of inserted rows.
    pub inserted: u64,
    /// The number of rows that were copied unchanged to a new file.
    pub copied: u64,
    /// The time spent on finding rows, in milliseconds.
    pub scan_ms: u64,
    /// The time spent on writing files, in milliseconds.
    pub rewrite_ms: u64,
}

impl RowCounts {
    /// Adds up the numbers of rows that the tasks of an engine have reported. `source` is the number of rows in the
    /// source of a MERGE.
    ///
    /// If several tasks delete the same row, which can happen in a MERGE, each of them reports it, but it counts only
    /// once.
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

/// The numbers of files that a statement has added, removed or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileCounts {
    pub(super) added: u64,
    pub(super) added_bytes: u64,
    pub(super) removed: u64,
    pub(super) removed_bytes: u64,
    pub(super) change_files: u64,
    /// The number of files that get their first deletion vector.
    pub(super) new_vectors: u64,
    /// The number of files whose deletion vector is replaced.
    pub(super) updated_vectors: u64,
    /// The number of removed files that had a deletion vector.
    pub(super) removed_vectors: u64,
}

/// The metrics of a statement, with their names.
pub type StatementMetrics = Vec<(&'static str, u64)>;

/// Returns the metrics of a statement whose execution took `execution_ms` milliseconds.
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

/// Returns the metrics as a commit records them.
pub(super) fn as_json(metrics: &StatementMetrics) -> Map<String, Value> {
    metrics.iter().map(|(name, value)| ((*name).to_owned(), Value::String(value.to_string()))).collect()
}
