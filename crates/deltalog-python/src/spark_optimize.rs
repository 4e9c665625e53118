//! `SparkOptimize`: an OPTIMIZE or REORG whose files Spark writes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use deltalog::engine::optimize::{OptimizePlan, plan_optimize};
use deltalog::engine::transaction::Operation;
use deltalog::{Error, OptimizeRequest, Optimized, Result, Snapshot};
use pyo3::prelude::*;

use crate::call::{call, call_that_commits};
use crate::commit_arguments::CommitArguments;
use crate::optimize::Metrics;
use crate::snapshot::Snapshot as PySnapshot;
use crate::spark_plan::{NumberedFile, SparkPlan, file_number, pack_numbered};
use crate::spark_write::SparkWrite;
use crate::upkeep;

/// Where the rows of a bin go: the number of old files, the directory, and the partition values.
type Output = (usize, String, Vec<Option<String>>);

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct SparkOptimize {
    base: Snapshot,
    plan: Mutex<Option<OptimizePlan>>,
}

impl SparkOptimize {
    fn plan(&self) -> MutexGuard<'_, Option<OptimizePlan>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> Error {
        self.base.located(Error::invalid_argument("the OPTIMIZE has ended"))
    }

    fn with<T>(&self, work: impl FnOnce(&mut OptimizePlan) -> Result<T>) -> Result<T> {
        self.plan().as_mut().map_or_else(|| Err(self.ended()), work)
    }

    fn take(&self) -> Result<OptimizePlan> {
        let taken = self.plan().take();
        taken.ok_or_else(|| self.ended())
    }
}

fn done(optimized: &Optimized) -> (Metrics, Option<u64>) {
    let last = optimized.commits.last().map(|committed| committed.version);
    (Metrics::from(&optimized.metrics), last)
}

#[pymethods]
impl SparkOptimize {
    #[staticmethod]
    #[pyo3(signature = (snapshot, predicate, purges, commit, target_size = None))]
    fn begin(
        py: Python<'_>,
        snapshot: &Bound<'_, PySnapshot>,
        predicate: Option<String>,
        purges: bool,
        commit: CommitArguments,
        target_size: Option<u64>,
    ) -> PyResult<Self> {
        let base = snapshot.get().0.clone();
        call(py, || {
            let mut request = OptimizeRequest::default();
            request.predicate = predicate;
            (request.purges, request.target_size) = (purges, target_size);
            request.operation = Operation::default().custom_metadata(commit.only_fields()?)?;
            let plan = plan_optimize(&base, request, &upkeep::environment())?;
            Ok(Self { base, plan: Mutex::new(Some(plan)) })
        })
    }

    /// Whether Spark can write the files: their rows keep their order.
    #[getter]
    fn keeps_order(&self, py: Python<'_>) -> PyResult<bool> {
        call(py, || self.with(|plan| Ok(plan.is_for_engines())))
    }

    /// The number of batches, which are one commit each.
    #[getter]
    fn batches(&self, py: Python<'_>) -> PyResult<usize> {
        call(py, || self.with(|plan| Ok(plan.batches())))
    }

    /// The number of bins of all batches.
    #[getter]
    fn bins(&self, py: Python<'_>) -> PyResult<usize> {
        call(py, || self.with(|plan| Ok(plan.bins())))
    }

    /// The size of all files that are written again, in bytes.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> PyResult<u64> {
        call(py, || self.with(|plan| Ok(plan.bytes())))
    }

    fn files(&self, py: Python<'_>, batch: usize) -> PyResult<SparkPlan> {
        call(py, || {
            self.with(|plan| {
                let numbered = |(index, file)| {
                    file_number(index).map(|number| NumberedFile { number, file, given: None })
                };
                let files = plan.files(batch).enumerate().map(numbered).collect::<Result<Vec<_>>>()?;
                pack_numbered(&self.base, &files).map(SparkPlan)
            })
        })
    }

    fn outputs(&self, py: Python<'_>, batch: usize) -> PyResult<Vec<Output>> {
        call(py, || {
            self.with(|plan| {
                let outputs = plan.outputs(batch).into_iter();
                Ok(outputs.map(|output| (output.files, output.directory, output.partition_values)).collect())
            })
        })
    }

    fn write(&self, py: Python<'_>) -> PyResult<SparkWrite> {
        call(py, || SparkWrite::of_statement(&self.base, None))
    }

    fn commit(&self, py: Python<'_>, batch: usize, write: &Bound<'_, SparkWrite>) -> PyResult<Option<u64>> {
        let write = write.get();
        call_that_commits(py, || {
            // The values of identity columns are copied, none is new.
            write.copies_identity_values();
            let (reported, _) = write.take_reported()?;
            self.with(|plan| plan.commit_reported(batch, reported))
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<(Metrics, Option<u64>)> {
        call(py, || Ok(done(&self.take()?.finish())))
    }

    /// Writes and commits all files in this process.
    fn execute(&self, py: Python<'_>) -> PyResult<(Metrics, Option<u64>)> {
        call_that_commits(py, || Ok(done(&self.take()?.execute()?)))
    }
}
