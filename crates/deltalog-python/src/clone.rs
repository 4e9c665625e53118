//! CLONE: creates a table from another table, with or without copying its data files.

use std::collections::BTreeMap;

use deltalog::engine::commit::Operation;
use deltalog::{CloneMetrics, CloneRequest, Cloned, Result, Storage, clone_table as core_clone};
use pyo3::prelude::*;

use crate::call::call_that_commits;
use crate::commit_arguments::CommitArguments;
use crate::create::parse_mode;
use crate::snapshot::Snapshot;
use crate::store_options::{StoreOptions, open_storage};
use crate::upkeep;

/// The arguments of a clone: `deltalog.clone.CloneArguments` in Python.
#[derive(FromPyObject)]
pub(crate) struct CloneArguments {
    shallow: bool,
    mode: String,
    configuration: BTreeMap<String, String>,
    dry_run: bool,
    source_name: Option<String>,
    storage_options: Option<StoreOptions>,
}

/// The metrics of a CLONE, under the names of the JVM implementation.
#[derive(IntoPyObject)]
pub(crate) struct Metrics {
    #[pyo3(item("sourceTableSize"))]
    source_bytes: u64,
    #[pyo3(item("sourceNumOfFiles"))]
    source_files: u64,
    #[pyo3(item("numRemovedFiles"))]
    removed_files: u64,
    #[pyo3(item("numCopiedFiles"))]
    copied_files: u64,
    #[pyo3(item("removedFilesSize"))]
    removed_bytes: u64,
    #[pyo3(item("copiedFilesSize"))]
    copied_bytes: u64,
}

impl From<CloneMetrics> for Metrics {
    fn from(metrics: CloneMetrics) -> Self {
        Self {
            source_bytes: metrics.source_bytes,
            source_files: metrics.source_files,
            removed_files: metrics.removed_files,
            copied_files: metrics.copied_files,
            removed_bytes: metrics.removed_bytes,
            copied_bytes: metrics.copied_bytes,
        }
    }
}

impl CloneArguments {
    /// Returns the request, and the location of the clone.
    pub(crate) fn request(self, uri: &str, commit: CommitArguments) -> Result<(CloneRequest, Storage)> {
        let mut request = CloneRequest::new(self.shallow);
        request.mode = parse_mode(&self.mode)?;
        request.properties = self.configuration;
        request.dry_run = self.dry_run;
        request.source_name = self.source_name;
        request.operation = Operation::default().custom_metadata(commit.only_fields()?)?;
        Ok((request, open_storage(uri, self.storage_options)?))
    }
}

/// The metrics, the version of the commit if anything was committed, and the roots that readers of the clone must
/// allow.
pub(crate) type Done = (Metrics, Option<u64>, Vec<String>);

pub(crate) fn done(cloned: Cloned) -> Done {
    (Metrics::from(cloned.metrics), cloned.committed.map(|committed| committed.version), cloned.roots)
}

/// Creates a clone of `snapshot` at `uri`.
#[pyfunction]
pub(crate) fn clone_table(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    uri: &str,
    arguments: CloneArguments,
    commit: CommitArguments,
) -> PyResult<Done> {
    let snapshot = snapshot.get().0.clone();
    call_that_commits(py, || {
        let (request, target) = arguments.request(uri, commit)?;
        core_clone(&snapshot, &target, request, &upkeep::environment()).map(done)
    })
}
