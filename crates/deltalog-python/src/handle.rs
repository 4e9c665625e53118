//! Handles of a table that follow its newest snapshot, or iterate over its commits.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deltalog::engine::commit_actions::commit_actions_schema;
use deltalog::{CacheStatistics, CommitEntry, Commits as CoreCommits, Table};
use pyo3::prelude::*;

use crate::call::call;
use crate::error::IntoPython;
use crate::snapshot::Snapshot;
use crate::store_options::{StoreOptions, open_storage};
use crate::stream::ArrowStream;
use crate::upkeep;

/// Returns whether there is a table at this location, even if it cannot be read.
#[pyfunction]
#[pyo3(signature = (uri, storage_options = None))]
pub(crate) fn table_exists(
    py: Python<'_>,
    uri: &str,
    storage_options: Option<StoreOptions>,
) -> PyResult<bool> {
    call(py, || Table::exists(&open_storage(uri, storage_options)?))
}

/// Returns the URL of the location, which is the same for all spellings of `uri`. Sends no requests to the store.
#[pyfunction]
#[pyo3(signature = (uri, storage_options = None))]
pub(crate) fn canonical_uri(
    py: Python<'_>,
    uri: &str,
    storage_options: Option<StoreOptions>,
) -> PyResult<String> {
    call(py, || Ok(open_storage(uri, storage_options)?.url()))
}

/// Checks that the store of `uri` refuses to create a file that already exists, which safe commits require.
#[pyfunction]
#[pyo3(signature = (uri, storage_options = None))]
pub(crate) fn check_store(py: Python<'_>, uri: &str, storage_options: Option<StoreOptions>) -> PyResult<()> {
    call(py, || open_storage(uri, storage_options)?.check())
}

/// Returns the number of hits, the number of misses, the bytes of all hits, and the bytes of all misses, for all caches
/// that this process has on the local disk.
#[pyfunction]
pub(crate) fn cache_statistics() -> (u64, u64, u64, u64) {
    let CacheStatistics { hits, misses, hit_bytes, miss_bytes, .. } = CacheStatistics::of_process();
    (hits, misses, hit_bytes, miss_bytes)
}

/// The newest snapshot of a table, which is refreshed in the background.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct Recent(Table);

#[pymethods]
impl Recent {
    #[new]
    fn new(snapshot: &Bound<'_, Snapshot>) -> Self {
        Self(Table::of(&snapshot.get().0, &upkeep::environment()))
    }

    /// Returns a snapshot that was the newest one at most `max_age` ago.
    fn snapshot(&self, py: Python<'_>, max_age: Duration) -> PyResult<Snapshot> {
        call(py, || self.0.recent_snapshot(max_age)).map(Snapshot)
    }
}

/// An iterator over the commits of a table.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct Commits(Mutex<CoreCommits>);

impl Commits {
    pub(crate) fn new(commits: CoreCommits) -> Self {
        Self(Mutex::new(commits))
    }
}

#[pymethods]
impl Commits {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Commit>> {
        let next = || self.0.lock().unwrap_or_else(PoisonError::into_inner).next().transpose();
        Ok(call(py, next)?.map(Commit))
    }
}

/// A commit of a table.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct Commit(CommitEntry);

#[pymethods]
impl Commit {
    #[getter]
    fn version(&self) -> u64 {
        self.0.version
    }

    #[getter]
    fn timestamp_ms(&self) -> i64 {
        self.0.timestamp_ms
    }

    #[getter]
    fn info_json(&self) -> PyResult<Option<String>> {
        let json = |info| {
            serde_json::to_string(info).map_err(|error| {
                deltalog::Error::invalid_argument("the commitInfo cannot be written as JSON")
                    .with_source(error)
            })
        };
        self.0.info.as_ref().map(json).transpose().into_python()
    }

    fn actions(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        ArrowStream::start(py, commit_actions_schema(), std::iter::once(Ok(self.0.actions.clone())))
    }
}
