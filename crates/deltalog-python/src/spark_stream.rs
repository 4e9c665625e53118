//! `SparkStream`: a table as a source of a stream in Spark.

use std::sync::atomic::{AtomicBool, Ordering};

use deltalog::{
    ChangeHandling, Environment, Error, Result, StreamBatch, StreamLimits, StreamOffset, StreamOptions, StreamStart,
    TableStream,
};
use pyo3::prelude::*;

use crate::call::call;
use crate::snapshot::Snapshot;
use crate::spark_plan::{SparkPlan, pack_batch};

/// What a stream reads: `deltalog.arguments.StreamContent` in Python.
#[derive(FromPyObject)]
pub(crate) struct StreamContent {
    start_version: Option<u64>,
    start_timestamp_ms: Option<i64>,
    starts_with_next: bool,
    changes: String,
    excluded: Option<String>,
    tolerates_loss: bool,
}

impl StreamContent {
    fn options(&self) -> Result<StreamOptions> {
        let options = StreamOptions::new()
            .start(self.start()?)
            .changes(self.changes()?)
            .tolerate_loss(self.tolerates_loss);
        match &self.excluded {
            None => Ok(options),
            Some(excluded) => options.exclude(excluded),
        }
    }

    fn start(&self) -> Result<StreamStart> {
        match (self.start_version, self.start_timestamp_ms, self.starts_with_next) {
            (None, None, false) => Ok(StreamStart::Snapshot),
            (Some(version), None, false) => Ok(StreamStart::Version(version)),
            (None, Some(timestamp_ms), false) => Ok(StreamStart::Timestamp(timestamp_ms)),
            (None, None, true) => Ok(StreamStart::Latest),
            _ => Err(Error::invalid_argument("a stream can only have one start")),
        }
    }

    fn changes(&self) -> Result<ChangeHandling> {
        match self.changes.as_str() {
            "refuse" => Ok(ChangeHandling::Refuse),
            "ignoreDeletes" => Ok(ChangeHandling::IgnoreDeletes),
            "ignore" => Ok(ChangeHandling::Ignore),
            "skip" => Ok(ChangeHandling::Skip),
            other => Err(Error::invalid_argument(format!("a stream cannot treat changes as {other:?}"))),
        }
    }
}

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct SparkStream {
    stream: TableStream,
    ends: AtomicBool,
}

impl SparkStream {
    pub(crate) fn new(snapshot: &deltalog::Snapshot, content: &StreamContent) -> Result<Self> {
        let stream = TableStream::new(snapshot, content.options()?, &Environment::system());
        Ok(Self { stream, ends: AtomicBool::new(false) })
    }

    fn offset(&self, text: &str) -> Result<StreamOffset> {
        StreamOffset::parse(text).map_err(|error| error.in_table(self.stream.snapshot().storage().url()))
    }

    fn offset_or_start(&self, text: Option<&str>) -> Result<Option<StreamOffset>> {
        text.map(|text| self.offset(text)).transpose()
    }

    fn batch(&self, start: Option<&str>, end: &str) -> Result<StreamBatch> {
        self.stream.batch(self.offset_or_start(start)?.as_ref(), &self.offset(end)?)
    }
}

#[pymethods]
impl SparkStream {
    #[getter]
    fn snapshot(&self) -> Snapshot {
        Snapshot(self.stream.snapshot().clone())
    }

    fn end_at_newest(&self) {
        if !self.ends.swap(true, Ordering::Relaxed) {
            self.stream.end_at_newest();
        }
    }

    #[pyo3(signature = (start, max_files = None, max_bytes = None, *, is_unlimited = false))]
    fn latest(
        &self,
        py: Python<'_>,
        start: Option<&str>,
        max_files: Option<u64>,
        max_bytes: Option<u64>,
        is_unlimited: bool,
    ) -> PyResult<Option<String>> {
        let limits = match is_unlimited {
            true => StreamLimits::unlimited(),
            false => StreamLimits::new(max_files, max_bytes),
        };
        call(py, || {
            let found = self.stream.latest(self.offset_or_start(start)?.as_ref(), limits)?;
            Ok(found.map(|offset| offset.to_string()))
        })
    }

    fn newest(&self) -> String {
        self.stream.newest().to_string()
    }

    fn check(&self, py: Python<'_>, start: Option<&str>, end: &str) -> PyResult<()> {
        // Where a stream begins is looked up when that is needed.
        call(py, || self.batch(Some(start.unwrap_or(end)), end).map(drop))
    }

    fn size_in_bytes(&self, py: Python<'_>, start: Option<&str>, end: &str) -> PyResult<u64> {
        call(py, || self.batch(start, end)?.size_in_bytes())
    }

    fn plan_spark(
        &self,
        py: Python<'_>,
        start: Option<&str>,
        end: &str,
        filter_sql: &str,
        time_zone: &str,
    ) -> PyResult<SparkPlan> {
        call(py, || pack_batch(&self.batch(start, end)?, filter_sql, time_zone)).map(SparkPlan)
    }

    fn outstanding(&self, py: Python<'_>, start: Option<&str>) -> PyResult<(u64, u64, u64)> {
        let found = call(py, || self.stream.outstanding(self.offset_or_start(start)?.as_ref()))?;
        Ok((found.versions, found.files, found.bytes))
    }

    fn release(&self, py: Python<'_>, end: &str) -> PyResult<()> {
        call(py, || Ok(self.stream.release(&self.offset(end)?)))
    }
}
