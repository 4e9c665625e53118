//! VACUUM: plans which files are deleted, and deletes them.

use std::time::Duration;

use arrow::array::RecordBatch;
use deltalog::{VacuumPlan as CorePlan, VacuumRequest, VacuumSource};
use pyo3::prelude::*;

use crate::call::{call, call_that_commits};
use crate::commit_arguments::CommitArguments;
use crate::snapshot::Snapshot;
use crate::stream::{ArrowStream, reader_of};
use crate::upkeep;

/// The arguments of a VACUUM: `deltalog.table.vacuum.VacuumArguments` in Python.
#[derive(FromPyObject)]
pub(crate) struct VacuumArguments<'py> {
    retention: Option<Duration>,
    enforce_retention_duration: bool,
    /// Whether files are found by reading only the log.
    lite: bool,
    /// An Arrow stream.
    inventory: Option<Bound<'py, PyAny>>,
    keep_versions: Vec<u64>,
}

/// The files that a table no longer needs.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct VacuumPlan(CorePlan);

#[pymethods]
impl VacuumPlan {
    #[getter]
    fn num_files(&self) -> u64 {
        self.0.files()
    }

    #[getter]
    fn size_in_bytes(&self) -> u64 {
        self.0.bytes()
    }

    #[getter]
    fn version(&self) -> u64 {
        self.0.version()
    }

    #[getter]
    fn cutoff_ms(&self) -> i64 {
        self.0.cutoff_ms()
    }

    fn paths(&self) -> Vec<&str> {
        self.0.paths().collect()
    }

    fn files(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        // The batches share the memory of the plan.
        let batches: Vec<deltalog::Result<RecordBatch>> = self.0.batches().collect();
        ArrowStream::start(py, CorePlan::schema(), batches.into_iter())
    }

    /// Returns the number of deleted files, their total size in bytes, the number of removed directories, and the
    /// version of the commit `VACUUM END`.
    fn delete(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64)> {
        let vacuumed = call_that_commits(py, || self.0.delete())?;
        Ok((vacuumed.files, vacuumed.bytes, vacuumed.removed_directories, vacuumed.version))
    }
}

/// Finds the files that a table no longer needs.
#[pyfunction]
pub(crate) fn plan_vacuum(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    arguments: VacuumArguments<'_>,
    commit: CommitArguments,
) -> PyResult<VacuumPlan> {
    let source = match (arguments.inventory, arguments.lite) {
        (Some(inventory), _) => VacuumSource::Inventory(reader_of(&inventory)?),
        (None, true) => VacuumSource::Log,
        (None, false) => VacuumSource::Listing,
    };
    let request = VacuumRequest::new(source)
        .enforce_retention(arguments.enforce_retention_duration)
        .keep_versions(arguments.keep_versions);
    let request = match arguments.retention {
        Some(retention) => request.retention(retention),
        None => request,
    };
    let snapshot = snapshot.get().0.clone();
    let plan = call(py, || {
        let request = request.custom_metadata(commit.only_fields()?);
        deltalog::plan_vacuum(&snapshot, request, &upkeep::environment())
    })?;
    Ok(VacuumPlan(plan))
}
