//! `SparkOptimize`: an OPTIMIZE or REORG whose files Spark writes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use deltalog::engine::commit::Operation;
use deltalog::engine::optimize::{BinOutput, OptimizePlan, OrderedByEngine, plan_optimize};
use deltalog::{Curve, Error, ErrorKind, OptimizeRequest, Optimized, Result, Snapshot};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::{call, call_that_commits};
use crate::commit_arguments::CommitArguments;
use crate::optimize::{Metrics, ZOrder, along};
use crate::snapshot::Snapshot as PySnapshot;
use crate::spark_plan::{NumberedFile, SparkPlan, file_number, pack_numbered};
use crate::spark_write::SparkWrite;
use crate::upkeep;

/// How the rows of a bin are written: the numbers of old and of new files, whether rows are ordered, the number of
/// rows, the directory, and the partition values.
type Output = (usize, usize, bool, Option<u64>, String, Vec<Option<String>>);

/// How rows are ordered: the paths of the columns, whether the curve is a Hilbert curve, and the number of bits of a
/// rank.
type Ordering = (Vec<Vec<String>>, bool, u32);

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

/// Asks Spark for the new positions of rows. In the question, each row is given as 12 bytes: the number of its old
/// file, and its position in that file. In the answer, they are the number of the task that wrote its new file, and its
/// position in that file.
fn located(function: &Py<PyAny>, rows: &[(u32, u64)]) -> Result<Option<Vec<(u32, u64)>>> {
    let mut asked = Vec::with_capacity(rows.len() * 12);
    for (file, row) in rows {
        asked.extend(file.to_be_bytes());
        asked.extend(row.to_be_bytes());
    }
    let answer: Option<Vec<u8>> = Python::attach(|py| {
        let called = function.bind(py).call1((PyBytes::new(py, &asked),));
        called.and_then(|answer| answer.extract()).map_err(|exception| {
            let message = "Spark could not find the new positions of rows that other writers have deleted";
            Error::new(ErrorKind::Unavailable, message).with_source(exception)
        })
    })?;
    let place = |bytes: &[u8]| {
        let (task, position) = bytes.split_first_chunk::<4>()?;
        Some((u32::from_be_bytes(*task), u64::from_be_bytes(position.try_into().ok()?)))
    };
    answer
        .map(|answer| {
            let places: Option<Vec<_>> = answer.chunks(12).map(place).collect();
            places.ok_or_else(|| {
                Error::corrupt_data("the positions of rows that Spark returned cannot be read")
            })
        })
        .transpose()
}

#[pymethods]
impl SparkOptimize {
    #[staticmethod]
    #[pyo3(signature = (snapshot, predicate, purges, commit, target_size = None, z_order = None, full = false))]
    #[expect(clippy::too_many_arguments, reason = "arguments of Python")]
    fn begin(
        py: Python<'_>,
        snapshot: &Bound<'_, PySnapshot>,
        predicate: Option<String>,
        purges: bool,
        commit: CommitArguments,
        target_size: Option<u64>,
        z_order: Option<ZOrder>,
        full: bool,
    ) -> PyResult<Self> {
        let base = snapshot.get().0.clone();
        call(py, || {
            let mut request = OptimizeRequest::default();
            request.predicate = predicate;
            (request.purges, request.target_size, request.full) = (purges, target_size, full);
            if let Some(z_order) = &z_order {
                along(&mut request, z_order)?;
            }
            request.operation = Operation::default().custom_metadata(commit.only_fields()?)?;
            let plan = plan_optimize(&base, request, &upkeep::environment())?;
            Ok(Self { base, plan: Mutex::new(Some(plan)) })
        })
    }

    /// The order of rows in bins whose rows are ordered; None if the request does not order rows.
    #[getter]
    fn ordering(&self, py: Python<'_>) -> PyResult<Option<Ordering>> {
        call(py, || {
            self.with(|plan| {
                Ok(plan.ordering().map(|ordering| {
                    let columns = ordering.columns.iter().map(|column| column.parts().to_vec()).collect();
                    (columns, ordering.curve == Curve::Hilbert, ordering.bits)
                }))
            })
        })
    }

    /// The number of new files in all batches. Each file is written by one task.
    #[getter]
    fn tasks(&self, py: Python<'_>) -> PyResult<usize> {
        call(py, || self.with(|plan| Ok(plan.tasks())))
    }

    /// The number of batches. Each batch is one commit.
    #[getter]
    fn batches(&self, py: Python<'_>) -> PyResult<usize> {
        call(py, || self.with(|plan| Ok(plan.batches())))
    }

    /// The total number of bins in all batches.
    #[getter]
    fn bins(&self, py: Python<'_>) -> PyResult<usize> {
        call(py, || self.with(|plan| Ok(plan.bins())))
    }

    /// The total size in bytes of all files that are rewritten.
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
                let outputs = plan.outputs(batch).into_iter().map(|output| {
                    let BinOutput { files, new_files, is_ordered, rows, directory, partition_values } =
                        output;
                    (files, new_files, is_ordered, rows, directory, partition_values)
                });
                Ok(outputs.collect())
            })
        })
    }

    fn write(&self, py: Python<'_>) -> PyResult<SparkWrite> {
        call(py, || SparkWrite::of_statement(&self.base, None))
    }

    #[pyo3(signature = (batch, write, ordered = None))]
    fn commit(
        &self,
        py: Python<'_>,
        batch: usize,
        write: &Bound<'_, SparkWrite>,
        ordered: Option<(Vec<u64>, Py<PyAny>)>,
    ) -> PyResult<Option<u64>> {
        let write = write.get();
        call_that_commits(py, || {
            // Values of identity columns are copied, and no new values are generated.
            write.copies_identity_values();
            let (reported, _) = write.take_reported()?;
            self.with(|plan| match &ordered {
                None => plan.commit_reported(batch, reported, None),
                Some((counted, function)) => {
                    let mut locate = |rows: &[(u32, u64)]| located(function, rows);
                    let told = OrderedByEngine { counted, locate: &mut locate };
                    plan.commit_reported(batch, reported, Some(told))
                }
            })
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<(Metrics, Option<u64>)> {
        call(py, || Ok(done(&self.take()?.finish())))
    }

    /// Writes all files and commits them in this process.
    fn execute(&self, py: Python<'_>) -> PyResult<(Metrics, Option<u64>)> {
        call_that_commits(py, || Ok(done(&self.take()?.execute()?)))
    }
}
