//! RESTORE: returns a table to an earlier version.

use deltalog::engine::commit::Operation;
use deltalog::{RestoreMetrics, RestoreRequest, restore as core_restore};
use pyo3::prelude::*;

use crate::call::call_that_commits;
use crate::commit_arguments::CommitArguments;
use crate::snapshot::Snapshot;
use crate::upkeep;

/// The metrics of a RESTORE, under the names of the JVM implementation.
#[derive(IntoPyObject)]
pub(crate) struct Metrics {
    #[pyo3(item("tableSizeAfterRestore"))]
    table_bytes: u64,
    #[pyo3(item("numOfFilesAfterRestore"))]
    table_files: u64,
    #[pyo3(item("numRemovedFiles"))]
    removed_files: u64,
    #[pyo3(item("numRestoredFiles"))]
    restored_files: u64,
    #[pyo3(item("removedFilesSize"))]
    removed_bytes: u64,
    #[pyo3(item("restoredFilesSize"))]
    restored_bytes: u64,
    #[pyo3(item("numMissingFiles"))]
    missing_files: u64,
}

impl From<RestoreMetrics> for Metrics {
    fn from(metrics: RestoreMetrics) -> Self {
        Self {
            table_bytes: metrics.table_bytes,
            table_files: metrics.table_files,
            removed_files: metrics.removed_files,
            restored_files: metrics.restored_files,
            removed_bytes: metrics.removed_bytes,
            restored_bytes: metrics.restored_bytes,
            missing_files: metrics.missing_files,
        }
    }
}

/// Restores the version of `earlier` as the newest version of the table. `snapshot` is the newest version that the
/// caller has seen. Returns the metrics, and the version of the commit if anything was committed.
#[pyfunction]
#[pyo3(signature = (snapshot, earlier, timestamp, ignore_missing_files, allow_protocol_downgrade, dry_run, commit))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
pub(crate) fn restore(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    earlier: &Bound<'_, Snapshot>,
    timestamp: Option<String>,
    ignore_missing_files: bool,
    allow_protocol_downgrade: bool,
    dry_run: bool,
    commit: CommitArguments,
) -> PyResult<(Metrics, Option<u64>)> {
    let (snapshot, earlier) = (snapshot.get().0.clone(), earlier.get().0.clone());
    call_that_commits(py, || {
        let mut request = RestoreRequest::default();
        request.timestamp = timestamp;
        request.ignore_missing_files = ignore_missing_files;
        request.allow_protocol_downgrade = allow_protocol_downgrade;
        request.dry_run = dry_run;
        request.operation = Operation::default().custom_metadata(commit.only_fields()?)?;
        let done = core_restore(&snapshot, &earlier, request, &upkeep::environment())?;
        Ok((Metrics::from(done.metrics), done.committed.map(|committed| committed.version)))
    })
}
