//! Computes statistics for files whose statistics are missing or incomplete.

use deltalog::engine::commit::Operation;
use deltalog::{RecomputeMetrics, RecomputeRequest, recompute_statistics as core_recompute};
use pyo3::prelude::*;

use crate::call::call_that_commits;
use crate::commit_arguments::CommitArguments;
use crate::snapshot::Snapshot;
use crate::upkeep;

/// The metrics of a computation of statistics.
#[derive(IntoPyObject)]
pub(crate) struct Metrics {
    #[pyo3(item("numFilesConsidered"))]
    considered_files: u64,
    #[pyo3(item("numFilesChosen"))]
    chosen_files: u64,
    #[pyo3(item("numUpdatedFiles"))]
    updated_files: u64,
    #[pyo3(item("numFilesByFooter"))]
    files_by_footer: u64,
    #[pyo3(item("numFilesByRows"))]
    files_by_rows: u64,
    #[pyo3(item("numFilesGivenUp"))]
    given_up_files: u64,
}

impl From<RecomputeMetrics> for Metrics {
    fn from(metrics: RecomputeMetrics) -> Self {
        Self {
            considered_files: metrics.considered_files,
            chosen_files: metrics.chosen_files,
            updated_files: metrics.updated_files,
            files_by_footer: metrics.files_by_footer,
            files_by_rows: metrics.files_by_rows,
            given_up_files: metrics.given_up_files,
        }
    }
}

/// Computes statistics. Returns the metrics, and the version of the last commit if anything was committed.
#[pyfunction]
#[pyo3(signature = (snapshot, predicate, all_files, dry_run, commit))]
pub(crate) fn recompute_statistics(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    predicate: Option<String>,
    all_files: bool,
    dry_run: bool,
    commit: CommitArguments,
) -> PyResult<(Metrics, Option<u64>)> {
    let snapshot = snapshot.get().0.clone();
    call_that_commits(py, || {
        let mut request = RecomputeRequest::default();
        request.predicate = predicate;
        request.all_files = all_files;
        request.dry_run = dry_run;
        request.operation = Operation::default().custom_metadata(commit.only_fields()?)?;
        let done = core_recompute(&snapshot, request, &upkeep::environment())?;
        Ok((Metrics::from(done.metrics), done.commits.last().map(|committed| committed.version)))
    })
}
