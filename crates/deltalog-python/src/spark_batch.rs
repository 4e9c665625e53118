//! `SparkBatch`: lists the files of a batch of a stream for Spark's scan.

use deltalog::{Result, StreamBatch};
use pyo3::prelude::*;

use crate::call::call;
use crate::spark_plan::{SparkPlan, pack_batch};
use crate::table_stream::TableStream;

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct SparkBatch {
    stream: Py<TableStream>,
    start: Option<String>,
    end: String,
}

impl SparkBatch {
    /// Returns the batch. If it begins where the stream begins, this position is determined now, and not when the
    /// stream is defined.
    fn batch(&self) -> Result<StreamBatch> {
        self.stream.get().batch_between(self.start.as_deref(), &self.end)
    }
}

#[pymethods]
impl SparkBatch {
    #[new]
    fn new(py: Python<'_>, stream: Py<TableStream>, start: Option<String>, end: String) -> PyResult<Self> {
        call(py, || stream.get().batch_between(Some(start.as_ref().unwrap_or(&end)), &end).map(drop))?;
        Ok(Self { stream, start, end })
    }

    fn size_in_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        call(py, || self.batch()?.size_in_bytes())
    }

    fn plan_spark(&self, py: Python<'_>, filter_sql: &str, time_zone: &str) -> PyResult<SparkPlan> {
        call(py, || pack_batch(&self.batch()?, filter_sql, time_zone)).map(SparkPlan)
    }
}
