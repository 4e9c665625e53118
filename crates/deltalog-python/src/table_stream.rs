//! The Python class `TableStream`: the rows of a table as a sequence of batches.
//!
//! Offsets are strings, in the format of the JVM connector. Spark's planner uses [`TableStream::batch_between`],
//! which returns a batch of the core:
//!
//! - For a stream of rows, `StreamBatch::listing(predicate)` lists the files, and `columns(…).read()` reads the list,
//!   as for a snapshot.
//! - For a change feed, `StreamBatch::changes(predicate)` returns a `ChangePlan`, and `spark_plan::pack_changes` packs
//!   it. The filter passed to that function is empty, because another filter would plan whole versions again. Rows have
//!   the table's columns, followed by the feed's additional columns.

use std::sync::Arc;
use std::time::Duration;

use deltalog::engine::constraints::describe_rows;
use deltalog::{
    ChangeHandling, Environment, Error, Result, SchemaChange, SchemaTracking, StreamBatch, StreamLimits,
    StreamOffset, StreamOptions, StreamStart, TableStream as CoreStream,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::call;
use crate::fragment::batch_partitions;
use crate::snapshot::Snapshot;
use crate::store_options::{StoreOptions, open_storage};
use crate::stream::ArrowStream;

/// What a stream reads: `deltalog.table.stream.StreamArguments` in Python.
#[derive(FromPyObject)]
pub(crate) struct StreamArguments {
    start_version: Option<u64>,
    start_timestamp_ms: Option<i64>,
    starts_with_next: bool,
    is_pinned: bool,
    change_commits: String,
    change_feed: bool,
    exclude: Option<String>,
    tolerate_loss: bool,
    pause: Option<Duration>,
    tracking: Option<Tracking>,
}

/// The schema log of a stream, and the allowed schema changes: `deltalog.table.stream.Tracking` in Python.
#[derive(FromPyObject)]
pub(crate) struct Tracking {
    location: String,
    store: Option<StoreOptions>,
    id: Option<String>,
    source: Option<String>,
    /// Pairs of a kind of schema change and the version that may make it, or `always`.
    allowed: Vec<(String, String)>,
}

impl Tracking {
    fn into_core(self) -> Result<SchemaTracking> {
        let mut tracking = SchemaTracking::new(&open_storage(&self.location, self.store)?);
        tracking = self.id.iter().fold(tracking, |tracking, id| tracking.id(id));
        tracking = self.source.iter().fold(tracking, |tracking, source| tracking.source(source));
        for (change, version) in &self.allowed {
            let change = match change.as_str() {
                "rename" => SchemaChange::Rename,
                "drop" => SchemaChange::Drop,
                "type_change" => SchemaChange::TypeChange,
                _ => {
                    return Err(Error::invalid_argument(format!(
                        "'{change}' is not a kind of schema change"
                    ))
                    .with_hint("allow 'rename', 'drop' or 'type_change'"));
                }
            };
            tracking = tracking.allow(change, version.parse()?);
        }
        Ok(tracking)
    }
}

impl StreamArguments {
    fn options(self) -> Result<StreamOptions> {
        let mut options = StreamOptions::new()
            .start(self.start()?)
            .changes(handling(&self.change_commits)?)
            .change_feed(self.change_feed)
            .tolerate_loss(self.tolerate_loss);
        if let Some(pattern) = &self.exclude {
            options = options.exclude(pattern)?;
        }
        if let Some(tracking) = self.tracking {
            options = options.track_schema(tracking.into_core()?);
        }
        Ok(self.pause.into_iter().fold(options, StreamOptions::pause))
    }

    fn start(&self) -> Result<StreamStart> {
        match (self.start_version, self.start_timestamp_ms, self.starts_with_next) {
            (None, None, false) => Ok(StreamStart::Snapshot),
            (Some(version), None, false) if self.is_pinned => Ok(StreamStart::Pinned(version)),
            (Some(version), None, false) => Ok(StreamStart::Version(version)),
            (None, Some(timestamp_ms), false) => Ok(StreamStart::Timestamp(timestamp_ms)),
            (None, None, true) => Ok(StreamStart::Latest),
            _ => Err(Error::invalid_argument(
                "a stream starts at a version, at a time or with the next commit: choose only one of them",
            )),
        }
    }
}

/// The limits of a batch: `deltalog.table.stream.StreamLimits` in Python.
#[derive(FromPyObject)]
pub(crate) struct Limits {
    files: Option<u64>,
    bytes: Option<u64>,
    is_unlimited: bool,
}

impl Limits {
    fn to_core(&self) -> StreamLimits {
        match self.is_unlimited {
            true => StreamLimits::unlimited(),
            false => StreamLimits::new(self.files, self.bytes),
        }
    }
}

fn handling(name: &str) -> Result<ChangeHandling> {
    match name {
        "refuse" => Ok(ChangeHandling::Refuse),
        "ignore_deletes" => Ok(ChangeHandling::IgnoreDeletes),
        "ignore" => Ok(ChangeHandling::Ignore),
        "skip" => Ok(ChangeHandling::Skip),
        _ => Err(Error::invalid_argument(format!("'{name}' is not a way to handle changes in a stream"))
            .with_hint("choose 'refuse', 'ignore_deletes', 'ignore' or 'skip'")),
    }
}

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct TableStream(CoreStream);

impl TableStream {
    /// Returns the batch between two offsets. If `start` is `None`, the batch begins where the stream begins.
    pub(crate) fn batch_between(&self, start: Option<&str>, end: &str) -> Result<StreamBatch> {
        self.0.batch(self.offset(start)?.as_ref(), &self.parsed(end)?)
    }

    fn offset(&self, text: Option<&str>) -> Result<Option<StreamOffset>> {
        text.map(|text| self.parsed(text)).transpose()
    }

    fn parsed(&self, text: &str) -> Result<StreamOffset> {
        StreamOffset::parse(text).map_err(|error| error.in_table(self.0.snapshot().storage().url()))
    }
}

#[pymethods]
impl TableStream {
    #[new]
    fn new(py: Python<'_>, snapshot: &Bound<'_, Snapshot>, arguments: StreamArguments) -> PyResult<Self> {
        let snapshot = snapshot.get().0.clone();
        call(py, || {
            let options = arguments.options().map_err(|error| error.in_table(snapshot.storage().url()))?;
            CoreStream::open(&snapshot, options, &Environment::system()).map(Self)
        })
    }

    #[getter]
    fn snapshot(&self) -> Snapshot {
        Snapshot(self.0.snapshot().clone())
    }

    fn start(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        call(py, || self.0.start())
    }

    fn latest(&self, py: Python<'_>, start: Option<&str>, limits: Limits) -> PyResult<Option<String>> {
        call(py, || {
            let next = self.0.latest(self.offset(start)?.as_ref(), limits.to_core())?;
            Ok(next.map(|next| next.to_string()))
        })
    }

    fn wait(
        &self,
        py: Python<'_>,
        start: Option<&str>,
        limits: Limits,
        patience: Option<Duration>,
    ) -> PyResult<Option<String>> {
        call(py, || {
            let next = self.0.wait(self.offset(start)?.as_ref(), limits.to_core(), patience)?;
            Ok(next.map(|next| next.to_string()))
        })
    }

    fn read(
        &self,
        py: Python<'_>,
        start: Option<&str>,
        end: &str,
        columns: Option<Vec<String>>,
    ) -> PyResult<ArrowStream> {
        let (schema, rows) = call(py, || {
            let rows = self.batch_between(start, end)?.read(columns.as_deref())?;
            Ok((describe_rows(self.0.snapshot().schema(), &rows.schema()), rows))
        })?;
        ArrowStream::start(py, Arc::new(schema), rows)
    }

    /// Divides the files of a batch of rows into at most `n` fragments, which other processes can read.
    fn partitions<'py>(
        &self,
        py: Python<'py>,
        start: Option<&str>,
        end: &str,
        n: usize,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let fragments = call(py, || batch_partitions(&self.batch_between(start, end)?, n))?;
        Ok(fragments.iter().map(|fragment| PyBytes::new(py, fragment)).collect())
    }

    fn end_at_newest(&self, py: Python<'_>) {
        py.detach(|| self.0.end_at_newest());
    }

    fn release(&self, py: Python<'_>, end: &str) -> PyResult<()> {
        call(py, || self.0.release(&self.parsed(end)?))
    }

    fn close(&self) {
        self.0.close();
    }

    fn backlog(&self, py: Python<'_>, offset: &str) -> PyResult<(u64, u64, u64)> {
        let backlog = call(py, || Ok(self.0.backlog(&self.parsed(offset)?)))?;
        Ok((backlog.versions, backlog.files, backlog.bytes))
    }

    fn newest(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.newest()).to_string()
    }

    fn __repr__(&self) -> String {
        let snapshot = self.0.snapshot();
        format!("TableStream('{}', version={})", snapshot.storage().url(), snapshot.version())
    }
}
