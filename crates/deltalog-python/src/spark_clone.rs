//! `SparkClone`: a CLONE whose data files are copied by Spark's tasks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use deltalog::engine::clone::{ClonePlan, CopiedFile, plan_clone};
use deltalog::{Error, Result};
use pyo3::prelude::*;

use crate::call::{call, call_that_commits};
use crate::clone::{CloneArguments, Done, done};
use crate::commit_arguments::CommitArguments;
use crate::snapshot::Snapshot;
use crate::spark_plan::{SparkPlan, pack_copies};
use crate::upkeep;

/// The number of bytes that describe a copy in a report: the number of the file, the unique part of its name, and its
/// size.
const COPIED: usize = 4 + 8 + 8;

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct SparkClone {
    plan: Mutex<Option<ClonePlan>>,
    files: usize,
    bytes: u64,
}

impl SparkClone {
    fn plan(&self) -> MutexGuard<'_, Option<ClonePlan>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<ClonePlan> {
        self.plan().take().ok_or_else(ended)
    }
}

fn ended() -> Error {
    Error::invalid_argument("the CLONE has ended")
}

/// Parses the reports of tasks about the copies that they have made.
fn copied(told: &[u8]) -> Result<Vec<CopiedFile>> {
    let (files, rest) = told.as_chunks::<COPIED>();
    if !rest.is_empty() {
        return Err(Error::corrupt_data("the list of copied files that Spark returned cannot be read"));
    }
    let file = |told: &[u8; COPIED]| {
        let (number, told) = told.split_first_chunk::<4>()?;
        let (unique, size) = told.split_first_chunk::<8>()?;
        Some(CopiedFile {
            number: u32::from_be_bytes(*number) as usize,
            unique: u64::from_be_bytes(*unique),
            size: u64::from_be_bytes(size.try_into().ok()?),
        })
    };
    Ok(files.iter().filter_map(file).collect())
}

#[pymethods]
impl SparkClone {
    #[staticmethod]
    fn begin(
        py: Python<'_>,
        snapshot: &Bound<'_, Snapshot>,
        uri: &str,
        arguments: CloneArguments,
        commit: CommitArguments,
    ) -> PyResult<Self> {
        let snapshot = snapshot.get().0.clone();
        call(py, || {
            let (request, target) = arguments.request(uri, commit)?;
            let plan = plan_clone(&snapshot, &target, request, &upkeep::environment())?;
            let (files, bytes) = (plan.copies().len(), plan.bytes());
            Ok(Self { plan: Mutex::new(Some(plan)), files, bytes })
        })
    }

    /// The number of data files to copy.
    #[getter]
    fn files(&self) -> usize {
        self.files
    }

    /// The total size in bytes of the data files to copy.
    #[getter]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn tasks(&self, py: Python<'_>, parallelism: u64) -> PyResult<SparkPlan> {
        call(py, || {
            let plan = self.plan();
            pack_copies(plan.as_ref().ok_or_else(ended)?, parallelism).map(SparkPlan)
        })
    }

    fn commit(&self, py: Python<'_>, told: &[u8]) -> PyResult<Done> {
        call_that_commits(py, || self.take()?.commit_copied(&copied(told)?).map(done))
    }

    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || {
            self.take()?.abandon();
            Ok(())
        })
    }

    /// Copies all files and commits the clone in this process.
    fn execute(&self, py: Python<'_>) -> PyResult<Done> {
        call_that_commits(py, || self.take()?.execute().map(done))
    }
}
