//! FSCK: checks the files of a table, and removes unreadable files from the table.

use deltalog::engine::commit::Operation;
use deltalog::{
    CheckLevel, Error, FileCheck, RepairMetrics, RepairRequest, RepairedFile, check_files as core_check,
    repair as core_repair,
};
use pyo3::prelude::*;

use crate::call::{call, call_that_commits};
use crate::commit_arguments::CommitArguments;
use crate::snapshot::Snapshot;
use crate::stream::ArrowStream;
use crate::upkeep;

/// The metrics of a repair, under the names that the commit uses.
#[derive(IntoPyObject)]
pub(crate) struct Metrics {
    #[pyo3(item("numFilesScanned"))]
    scanned_files: u64,
    #[pyo3(item("numRemovedFiles"))]
    removed_files: u64,
    #[pyo3(item("numRemovedBytes"))]
    removed_bytes: u64,
    #[pyo3(item("numRemovedRows"))]
    removed_rows: u64,
    #[pyo3(item("numMissingFiles"))]
    missing_files: u64,
    #[pyo3(item("numFilesWithoutVectors"))]
    files_without_vectors: u64,
}

impl From<RepairMetrics> for Metrics {
    fn from(metrics: RepairMetrics) -> Self {
        Self {
            scanned_files: metrics.scanned_files,
            removed_files: metrics.removed_files,
            removed_bytes: metrics.removed_bytes,
            removed_rows: metrics.removed_rows,
            missing_files: metrics.missing_files,
            files_without_vectors: metrics.files_without_vectors,
        }
    }
}

/// A file that is removed from the table.
#[derive(IntoPyObject)]
pub(crate) struct RemovedFile {
    #[pyo3(item("dataFilePath"))]
    path: String,
    #[pyo3(item("dataFileMissing"))]
    is_missing: bool,
    #[pyo3(item("dataFileDamaged"))]
    is_damaged: bool,
    #[pyo3(item("deletionVectorPath"))]
    vector_path: Option<String>,
    #[pyo3(item("deletionVectorFileMissing"))]
    is_vector_missing: bool,
}

impl From<RepairedFile> for RemovedFile {
    fn from(file: RepairedFile) -> Self {
        Self {
            path: file.path,
            is_missing: file.is_missing,
            is_damaged: file.is_damaged,
            vector_path: file.vector_path,
            is_vector_missing: file.is_vector_missing,
        }
    }
}

/// Checks the files of a version. `level` is `files`, `footers` or `rows`.
#[pyfunction]
pub(crate) fn check_files(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    level: &str,
) -> PyResult<ArrowStream> {
    let snapshot = snapshot.get().0.clone();
    let batch = call(py, || {
        let level = match level {
            "files" => CheckLevel::Files,
            "footers" => CheckLevel::Footers,
            "rows" => CheckLevel::Rows,
            other => {
                return Err(Error::invalid_argument(format!("'{other}' is not a level of a check"))
                    .with_hint("use files, footers or rows"));
            }
        };
        core_check(&snapshot, level)?.batch()
    })?;
    ArrowStream::start(py, FileCheck::schema(), std::iter::once(Ok(batch)))
}

/// Removes from the table the files that no longer exist in the store and, with `removes_damaged`, damaged files.
/// Returns the metrics, the removed files, and the version of the commit if anything was committed.
#[pyfunction]
#[pyo3(signature = (snapshot, removes_damaged, drops_files_without_vectors, dry_run, commit))]
pub(crate) fn repair(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    removes_damaged: bool,
    drops_files_without_vectors: bool,
    dry_run: bool,
    commit: CommitArguments,
) -> PyResult<(Metrics, Vec<RemovedFile>, Option<u64>)> {
    let snapshot = snapshot.get().0.clone();
    call_that_commits(py, || {
        let mut request = RepairRequest::default();
        request.removes_damaged = removes_damaged;
        request.drops_files_without_vectors = drops_files_without_vectors;
        request.dry_run = dry_run;
        request.operation = Operation::default().custom_metadata(commit.only_fields()?)?;
        let done = core_repair(&snapshot, request, &upkeep::environment())?;
        let removed = done.removed.into_iter().map(RemovedFile::from).collect();
        Ok((Metrics::from(done.metrics), removed, done.committed.map(|committed| committed.version)))
    })
}
