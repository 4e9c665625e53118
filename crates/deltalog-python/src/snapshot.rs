//! `Snapshot`.

use std::collections::{BTreeMap, HashMap};

use deltalog::log::history;
use deltalog::predicate::{ParseMode, Predicate, parse};
use deltalog::protocol::LogPath;
use deltalog::scan::{FileListing, ListColumn, TableScan};
use deltalog::{Snapshot as CoreSnapshot, Storage};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::IntoPython;
use crate::fragment;
use crate::spark_plan;
use crate::stream::ArrowStream;

/// The store of `uri` with the options that the user gave.
pub(crate) fn open_storage(uri: &str, options: Option<HashMap<String, String>>) -> deltalog::Result<Storage> {
    let options = options.unwrap_or_default();
    Storage::open(uri, options.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// A predicate that a user wrote. Timestamps without a zone are of UTC.
pub(crate) fn user_predicate(sql: Option<&str>) -> deltalog::Result<Option<Predicate>> {
    sql.map(|sql| parse(sql, "UTC", ParseMode::Strict)).transpose()
}

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct Snapshot(pub(crate) CoreSnapshot);

impl Snapshot {
    /// The URL of a file of the file list.
    fn uri_of(&self, path: &LogPath) -> String {
        match path {
            LogPath::Relative(path) => self.0.storage().file_url(path),
            LogPath::Absolute(path) => path.to_uri(),
        }
    }
}

#[pymethods]
impl Snapshot {
    #[staticmethod]
    #[pyo3(signature = (uri, version = None, timestamp_ms = None, storage_options = None))]
    fn open(
        py: Python<'_>,
        uri: &str,
        version: Option<u64>,
        timestamp_ms: Option<i64>,
        storage_options: Option<HashMap<String, String>>,
    ) -> PyResult<Self> {
        py.detach(|| {
            let storage = open_storage(uri, storage_options)?;
            match (version, timestamp_ms) {
                (Some(_), Some(_)) => Err(deltalog::Error::invalid_argument("a table is read at a version or at a time, not at both")),
                (version, None) => CoreSnapshot::open(&storage, version),
                (None, Some(timestamp)) => CoreSnapshot::open_at(&storage, timestamp),
            }
        })
        .map(Self)
        .into_python()
    }

    #[getter]
    fn uri(&self) -> String {
        self.0.storage().url()
    }

    #[getter]
    fn version(&self) -> u64 {
        self.0.version()
    }

    #[getter]
    fn timestamp_ms(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| self.0.timestamp_ms()).into_python()
    }

    #[getter]
    fn schema_json(&self) -> &str {
        &self.0.metadata().schema_string
    }

    #[getter]
    fn table_id(&self) -> &str {
        &self.0.metadata().id
    }

    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.metadata().name.as_deref()
    }

    #[getter]
    fn description(&self) -> Option<&str> {
        self.0.metadata().description.as_deref()
    }

    #[getter]
    fn created_time_ms(&self) -> Option<i64> {
        self.0.metadata().created_time
    }

    #[getter]
    fn partition_columns(&self) -> Vec<String> {
        self.0.metadata().partition_columns.clone()
    }

    #[getter]
    fn configuration(&self) -> BTreeMap<String, String> {
        self.0.metadata().configuration.clone()
    }

    #[getter]
    fn min_reader_version(&self) -> i32 {
        self.0.protocol().min_reader_version
    }

    #[getter]
    fn min_writer_version(&self) -> i32 {
        self.0.protocol().min_writer_version
    }

    #[getter]
    fn reader_features(&self) -> Option<Vec<String>> {
        self.0.protocol().reader_features.clone()
    }

    #[getter]
    fn writer_features(&self) -> Option<Vec<String>> {
        self.0.protocol().writer_features.clone()
    }

    fn refresh(slf: Bound<'_, Self>) -> PyResult<Py<Self>> {
        let core = slf.get().0.clone();
        let newest = slf.py().detach(|| core.refresh()).into_python()?;
        if newest.version() == slf.get().0.version() { Ok(slf.unbind()) } else { Py::new(slf.py(), Self(newest)) }
    }

    fn num_files(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.0.totals()).map(|totals| totals.files).into_python()
    }

    fn size_in_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.0.totals()).map(|totals| totals.bytes).into_python()
    }

    #[pyo3(signature = (limit = None))]
    fn history_json(&self, py: Python<'_>, limit: Option<usize>) -> PyResult<Vec<String>> {
        let entries = py.detach(|| history(self.0.storage(), self.0.version(), limit)).into_python()?;
        let text = |entry: deltalog::log::HistoryEntry| {
            let mut object = entry.commit_info;
            object.insert("version".to_owned(), entry.version.into());
            object.insert("timestamp".to_owned(), entry.timestamp_ms.into());
            serde_json::Value::Object(object).to_string()
        };
        Ok(entries.into_iter().map(text).collect())
    }

    #[pyo3(signature = (columns = None, predicate = None))]
    fn files(&self, py: Python<'_>, columns: Option<Vec<String>>, predicate: Option<&str>) -> PyResult<ArrowStream> {
        let list = py.detach(|| {
            let mut listing = FileListing::new(&self.0);
            if let Some(columns) = columns {
                listing = listing.columns(columns.iter().map(|name| ListColumn::parse(name)).collect::<deltalog::Result<Vec<_>>>()?);
            }
            if let Some(predicate) = user_predicate(predicate)? {
                listing = listing.predicate(&predicate)?;
            }
            listing.read()
        });
        let list = list.into_python()?;
        ArrowStream::start(py, list.schema().clone(), list)
    }

    #[pyo3(signature = (predicate = None))]
    fn file_uris(&self, py: Python<'_>, predicate: Option<&str>) -> PyResult<Vec<String>> {
        py.detach(|| {
            let mut listing = FileListing::new(&self.0);
            if let Some(predicate) = user_predicate(predicate)? {
                listing = listing.predicate(&predicate)?;
            }
            listing.paths()?.map(|path| path.map(|path| self.uri_of(&path))).collect::<deltalog::Result<Vec<_>>>()
        })
        .into_python()
    }

    #[pyo3(signature = (columns = None, predicate = None))]
    fn scan(&self, py: Python<'_>, columns: Option<Vec<String>>, predicate: Option<&str>) -> PyResult<ArrowStream> {
        let rows = py.detach(|| {
            let mut scan = TableScan::new(&self.0);
            if let Some(columns) = columns {
                scan = scan.columns(columns);
            }
            if let Some(predicate) = user_predicate(predicate)? {
                scan = scan.predicate(predicate);
            }
            scan.read()
        });
        let rows = rows.into_python()?;
        ArrowStream::start(py, rows.schema(), rows)
    }

    fn plan_spark<'py>(&self, py: Python<'py>, filter_sql: &str, time_zone: &str) -> PyResult<(Bound<'py, PyBytes>, u64, u64)> {
        let plan = py.detach(|| spark_plan::pack(&self.0, filter_sql, time_zone)).into_python()?;
        Ok((PyBytes::new(py, &plan.bytes), plan.kept, plan.total))
    }

    fn scan_partitions<'py>(&self, py: Python<'py>, filter_sql: &str, n: usize) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let pieces = py.detach(|| fragment::scan_partitions(&self.0, filter_sql, n)).into_python()?;
        Ok(pieces.iter().map(|piece| PyBytes::new(py, piece)).collect())
    }

    fn __repr__(&self) -> String {
        format!("Snapshot('{}', version={})", self.0.storage().url(), self.0.version())
    }
}
