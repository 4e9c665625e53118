//! `SparkChanges`: lists the files of a change data feed for Spark's scan.

use deltalog::engine::changes::ChangePlan;
use pyo3::prelude::*;

use crate::call::call;
use crate::snapshot::Snapshot;
use crate::spark_plan::{SparkPlan, pack_changes};

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct SparkChanges(pub(crate) ChangePlan);

#[pymethods]
impl SparkChanges {
    #[getter]
    fn snapshot(&self) -> Snapshot {
        Snapshot(self.0.snapshot().clone())
    }

    #[getter]
    fn versions(&self) -> Option<(u64, u64)> {
        self.0.versions().map(|versions| versions.into_inner())
    }

    fn size_in_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        call(py, || {
            self.0.files()?.map(|file| file.map(|file| file.file.size)).sum::<deltalog::Result<u64>>()
        })
    }

    fn plan_spark(&self, py: Python<'_>, filter_sql: &str, time_zone: &str) -> PyResult<SparkPlan> {
        call(py, || pack_changes(&self.0, filter_sql, time_zone)).map(SparkPlan)
    }
}
