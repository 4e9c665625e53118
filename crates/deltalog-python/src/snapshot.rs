//! The Python class `Snapshot`: a version of a table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use deltalog::engine::changes::ChangeFeed;
use deltalog::engine::commit::{Conflict, ConflictReason, find_commit};
use deltalog::engine::commit_actions::commit_actions_schema;
use deltalog::engine::constraints::describe_rows;
use deltalog::engine::history::{history_batch, history_schema};
use deltalog::engine::log::StagedCommit;
use deltalog::engine::protocol::{LogPath, MaterializedRowTracking, to_log_string};
use deltalog::engine::scan::{FileListing, ListColumn, TableScan};
use deltalog::{
    Environment, Error, ErrorKind, RowsRead, Snapshot as CoreSnapshot, SnapshotBuilder, clean_up_log,
    compact_log, write_checkpoint,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::answers;
use crate::call::call;
use crate::change_range::ChangeRange;
use crate::error::IntoPython;
use crate::fragment;
use crate::handle::Commits;
use crate::predicate::user_predicate;
use crate::spark_changes::SparkChanges;
use crate::spark_plan::{SparkPlan, pack, pack_answers};
use crate::store_options::StoreOptions;
use crate::stream::{ArrowStream, Origin};
use crate::upkeep;

/// A part of a scan: its serialized form, the number of its files, their size in bytes, and the number of their rows.
type ScanPart<'py> = (Bound<'py, PyBytes>, usize, u64, Option<u64>);

/// The result of verifying a checksum file: the file, the fields that were compared and, for each difference, the
/// field's name, its value in the checksum file, and its value according to the log.
type Verified = (Option<String>, Vec<String>, Vec<(String, String, String)>);

/// A staged commit: its path, or its version and contents.
#[derive(FromPyObject)]
pub(crate) enum Staged {
    #[pyo3(transparent)]
    File(String),
    Inline(u64, Vec<u8>),
}

fn staged_of(staged: Vec<Staged>) -> deltalog::Result<Vec<StagedCommit>> {
    let commits = staged.into_iter().map(|staged| match staged {
        Staged::File(path) => StagedCommit::file(&path),
        Staged::Inline(version, bytes) => Ok(StagedCommit::inline(version, bytes)),
    });
    commits.collect()
}

/// Empties the process's registry of snapshots, so that the next call opens a table as a new process would. For
/// benchmarks.
#[pyfunction]
pub(crate) fn forget_snapshots(py: Python<'_>) {
    py.detach(deltalog::engine::snapshot::forget_snapshots);
}

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct Snapshot(pub(crate) CoreSnapshot);

impl Snapshot {
    /// Returns the URL of a file of the table.
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
    #[pyo3(signature = (
        uri,
        version = None,
        timestamp_ms = None,
        storage_options = None,
        staged_commits = None,
        allowed_roots = None,
        table_id = None,
        max_age = None,
    ))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
    fn open(
        py: Python<'_>,
        uri: &str,
        version: Option<u64>,
        timestamp_ms: Option<i64>,
        storage_options: Option<StoreOptions>,
        staged_commits: Option<Vec<Staged>>,
        allowed_roots: Option<Vec<String>>,
        table_id: Option<&str>,
        max_age: Option<Duration>,
    ) -> PyResult<Self> {
        call(py, || {
            let options = storage_options.unwrap_or_default();
            let storage = options.open(uri)?;
            let mut builder = CoreSnapshot::builder(&storage);
            builder = version.into_iter().fold(builder, SnapshotBuilder::version);
            builder = timestamp_ms.into_iter().fold(builder, SnapshotBuilder::timestamp_ms);
            builder = table_id.into_iter().fold(builder, SnapshotBuilder::table_id);
            builder =
                allowed_roots.iter().flatten().try_fold(builder, |builder, root| builder.allow_root(root))?;
            if let Some(staged) = staged_commits {
                builder = builder.staged_commits(staged_of(staged)?);
            }
            builder.open_registered(max_age.unwrap_or_default(), &upkeep::environment())
        })
        .map(Self)
    }

    /// Opens another version of the same table, with the same storage options.
    fn at_version(&self, py: Python<'_>, version: u64) -> PyResult<Self> {
        call(py, || CoreSnapshot::builder(self.0.storage()).version(version).open()).map(Self)
    }

    #[getter]
    fn uri(&self) -> String {
        self.0.storage().url()
    }

    #[getter]
    fn allowed_roots(&self) -> Vec<String> {
        self.0.resolver().allowed_roots().collect()
    }

    #[getter]
    fn version(&self) -> u64 {
        self.0.version()
    }

    #[getter]
    fn timestamp_ms(&self, py: Python<'_>) -> PyResult<i64> {
        call(py, || self.0.timestamp_ms())
    }

    #[getter]
    fn schema_json(&self) -> &str {
        match self.0.metadata().schema_string.as_str() {
            // Some writers write an empty string, which is not JSON, for a table without columns.
            "" => r#"{"type":"struct","fields":[]}"#,
            schema => schema,
        }
    }

    #[getter]
    fn column_mapping_mode(&self) -> &'static str {
        self.0.mapped_schema().mode().name()
    }

    #[getter]
    fn physical_schema_json(&self) -> String {
        self.0.mapped_schema().physical().to_json()
    }

    #[getter]
    fn row_tracking_columns(&self) -> Option<(String, String)> {
        let columns = MaterializedRowTracking::of(self.0.protocol(), self.0.metadata()).ok()?;
        Some((columns.row_id, columns.row_commit_version))
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

    fn clustering_columns(&self, py: Python<'_>) -> PyResult<Vec<Vec<String>>> {
        call(py, || self.0.clustering_columns())
    }

    fn create_checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || write_checkpoint(&self.0, &Environment::system()))
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

    #[getter]
    fn table_features(&self) -> Vec<String> {
        let protocol = self.0.protocol();
        let features = protocol.reader_features().into_iter().chain(protocol.writer_features());
        let names: BTreeSet<String> = features.map(|feature| feature.name().to_owned()).collect();
        names.into_iter().collect()
    }

    #[pyo3(signature = (staged_commits = None))]
    fn refresh(slf: Bound<'_, Self>, staged_commits: Option<Vec<Staged>>) -> PyResult<Py<Self>> {
        let core = slf.get().0.clone();
        let newest = call(slf.py(), || match staged_commits {
            Some(staged) => core.refresh_with(staged_of(staged)?),
            None => core.refresh(),
        })?;
        if newest.is_same(&slf.get().0) { Ok(slf.unbind()) } else { Py::new(slf.py(), Self(newest)) }
    }

    /// Opens `version`, which the caller has committed after opening this snapshot, or a later version with the same
    /// rows.
    fn after_commit(&self, py: Python<'_>, version: u64) -> PyResult<Self> {
        call(py, || self.0.after_commit(version)).map(Self)
    }

    /// Returns the last version up to which other writers have made no changes since version `seen`. The caller has
    /// committed the versions in `own`.
    fn unchanged_since(&self, py: Python<'_>, seen: u64, own: Vec<u64>) -> PyResult<u64> {
        call(py, || self.0.unchanged_since(seen, &own))
    }

    /// Opens `version`, on which an overwrite is based. Raises `CommitConflictError` if the log no longer contains the
    /// version.
    fn as_base(&self, py: Python<'_>, version: u64) -> PyResult<Self> {
        let gone = |error: Error| {
            let conflict = Conflict::new(version + 1, ConflictReason::LogCleanedUp);
            conflict.into_error(ErrorKind::CommitConflict, self.0.storage().url()).with_source(error)
        };
        let base = call(py, || match self.0.at_version(version) {
            Err(error) if error.kind() == ErrorKind::VersionNotFound => Err(gone(error)),
            base => base,
        })?;
        Ok(Self(base))
    }

    /// Opens version `version`, or the newest version at the time `timestamp_ms`.
    #[pyo3(signature = (version = None, timestamp_ms = None))]
    fn at(&self, py: Python<'_>, version: Option<u64>, timestamp_ms: Option<i64>) -> PyResult<Self> {
        let found = call(py, || match (version, timestamp_ms) {
            (Some(version), None) => self.0.at_version(version),
            (None, Some(timestamp_ms)) => self.0.at_timestamp_ms(timestamp_ms),
            _ => Err(deltalog::Error::invalid_argument("pass either a version or a timestamp, and not both")),
        });
        found.map(Self)
    }

    fn find_commit(&self, py: Python<'_>, transaction_id: &str) -> PyResult<Option<u64>> {
        call(py, || find_commit(self.0.storage(), transaction_id))
    }

    fn num_files(&self, py: Python<'_>) -> PyResult<u64> {
        call(py, || self.0.totals()).map(|totals| totals.files)
    }

    fn size_in_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        call(py, || self.0.totals()).map(|totals| totals.bytes)
    }

    #[pyo3(signature = (limit = None))]
    fn history_json(&self, py: Python<'_>, limit: Option<usize>) -> PyResult<Vec<String>> {
        let text = |entry: deltalog::engine::history::HistoryEntry| {
            let mut object = entry.fields()?;
            object.insert("version".to_owned(), entry.version.into());
            object.insert("timestamp".to_owned(), entry.timestamp_ms.into());
            Ok(serde_json::Value::Object(object).to_string())
        };
        call(py, || self.0.history(limit)?.into_iter().map(text).collect::<deltalog::Result<Vec<_>>>())
    }

    #[pyo3(signature = (limit = None))]
    fn history(&self, py: Python<'_>, limit: Option<usize>) -> PyResult<ArrowStream> {
        let batch = call(py, || history_batch(&self.0.history(limit)?))?;
        ArrowStream::start(py, history_schema(), std::iter::once(Ok(batch)))
    }

    #[pyo3(signature = (start, end = None))]
    fn commit_actions(&self, py: Python<'_>, start: u64, end: Option<u64>) -> PyResult<ArrowStream> {
        let changes = call(py, || self.0.commit_actions(start, end))?;
        ArrowStream::start(py, commit_actions_schema(), changes)
    }

    fn commits(&self, py: Python<'_>, start: u64) -> PyResult<Commits> {
        call(py, || self.0.commits(start)).map(Commits::new)
    }

    #[getter]
    fn log_retention(&self) -> PyResult<Duration> {
        self.0.log_retention().into_python()
    }

    #[getter]
    fn deleted_file_retention(&self) -> PyResult<Duration> {
        self.0.deleted_file_retention().into_python()
    }

    fn ensure_removable(&self) -> PyResult<()> {
        self.0.ensure_removable().into_python()
    }

    fn verify(&self, py: Python<'_>) -> PyResult<Verified> {
        let found = call(py, || self.0.verify())?;
        let differences = found
            .differences
            .into_iter()
            .map(|one| (one.field.to_owned(), one.checksum, one.replay))
            .collect();
        Ok((found.file, found.checked.into_iter().map(str::to_owned).collect(), differences))
    }

    #[pyo3(signature = (dry_run = false))]
    fn clean_up_log(&self, py: Python<'_>, dry_run: bool) -> PyResult<Vec<String>> {
        call(py, || clean_up_log(&self.0, &Environment::system(), dry_run)).map(|cleaned| cleaned.files)
    }

    fn compact_log(&self, py: Python<'_>, start: u64, end: u64) -> PyResult<bool> {
        call(py, || compact_log(&self.0, start, end))
    }

    fn domain_metadata(&self, py: Python<'_>) -> PyResult<BTreeMap<String, String>> {
        let domains = call(py, || self.0.domain_metadata())?;
        Ok(domains.into_iter().map(|domain| (domain.domain, domain.configuration)).collect())
    }

    fn transaction_versions(&self, py: Python<'_>) -> PyResult<BTreeMap<String, i64>> {
        let transactions = call(py, || self.0.app_transactions())?;
        Ok(transactions.into_iter().map(|transaction| (transaction.app_id, transaction.version)).collect())
    }

    #[pyo3(signature = (predicate = None))]
    fn partitions(&self, py: Python<'_>, predicate: Option<&str>) -> PyResult<Vec<Vec<Option<String>>>> {
        call(py, || {
            let columns = self.0.metadata().partition_columns.len();
            if columns == 0 {
                return Ok(Vec::new());
            }
            let found = answers::of(&self.0, predicate, "UTC")?.files_by_partition()?;
            let values =
                |row| found.columns().iter().take(columns).map(|column| to_log_string(column, row)).collect();
            (0..found.num_rows()).map(values).collect()
        })
    }

    #[pyo3(signature = (columns = None, predicate = None))]
    fn files(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        predicate: Option<&str>,
    ) -> PyResult<ArrowStream> {
        let list = call(py, || {
            let mut listing = FileListing::new(&self.0);
            if let Some(columns) = columns {
                listing = listing.columns(
                    columns
                        .iter()
                        .map(|name| ListColumn::parse(name))
                        .collect::<deltalog::Result<Vec<_>>>()?,
                );
            }
            if let Some(predicate) = user_predicate(predicate)? {
                listing = listing.predicate(&predicate)?;
            }
            listing.read()
        })?;
        ArrowStream::start(py, list.schema().clone(), list)
    }

    #[pyo3(signature = (predicate = None))]
    fn file_uris(&self, py: Python<'_>, predicate: Option<&str>) -> PyResult<Vec<String>> {
        call(py, || {
            let mut listing = FileListing::new(&self.0);
            if let Some(predicate) = user_predicate(predicate)? {
                listing = listing.predicate(&predicate)?;
            }
            listing
                .paths()?
                .map(|path| path.map(|path| self.uri_of(&path)))
                .collect::<deltalog::Result<Vec<_>>>()
        })
    }

    #[pyo3(signature = (
        columns = None,
        predicate = None,
        row_ids = false,
        view_types = false,
        is_chosen = false,
        limit = None,
        ordered = false,
        batch_rows = None,
        threads = None,
    ))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
    fn scan(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        predicate: Option<&str>,
        row_ids: bool,
        view_types: bool,
        is_chosen: bool,
        limit: Option<u64>,
        ordered: bool,
        batch_rows: Option<usize>,
        threads: Option<usize>,
    ) -> PyResult<ArrowStream> {
        let predicate = call(py, || user_predicate(predicate))?;
        let origin = Origin {
            snapshot: self.0.clone(),
            rows: predicate.clone().map_or(RowsRead::All, |predicate| RowsRead::Matching(vec![predicate])),
            is_chosen,
        };
        let rows = call(py, || {
            let mut scan = TableScan::new(&self.0);
            if let Some(columns) = columns {
                scan = scan.columns(columns);
            }
            if let Some(predicate) = predicate {
                scan = scan.predicate(predicate);
            }
            if row_ids {
                scan = scan.row_ids();
            }
            if view_types {
                scan = scan.view_types();
            }
            if ordered {
                scan = scan.in_order();
            }
            scan = limit.into_iter().fold(scan, TableScan::limit);
            scan = batch_rows.into_iter().fold(scan, TableScan::batch_rows);
            scan = threads.into_iter().fold(scan, TableScan::threads);
            scan.read()
        })?;
        let schema = describe_rows(self.0.schema(), &rows.schema());
        Ok(ArrowStream::start(py, Arc::new(schema), rows)?.of(origin))
    }

    #[pyo3(signature = (predicate = None, time_zone = "UTC"))]
    fn count(&self, py: Python<'_>, predicate: Option<&str>, time_zone: &str) -> PyResult<u64> {
        call(py, || answers::of(&self.0, predicate, time_zone)?.count())
    }

    #[pyo3(signature = (predicate = None, time_zone = "UTC"))]
    fn count_by_partition(
        &self,
        py: Python<'_>,
        predicate: Option<&str>,
        time_zone: &str,
    ) -> PyResult<ArrowStream> {
        let counts = call(py, || answers::of(&self.0, predicate, time_zone)?.count_by_partition())?;
        ArrowStream::start(py, counts.schema(), std::iter::once(Ok(counts)))
    }

    #[pyo3(signature = (column, predicate = None, time_zone = "UTC"))]
    fn min_max<'py>(
        &self,
        py: Python<'py>,
        column: &str,
        predicate: Option<&str>,
        time_zone: &str,
    ) -> PyResult<answers::Bounds<'py>> {
        let bounds = call(py, || answers::of(&self.0, predicate, time_zone)?.min_max(column))?;
        answers::bounds_to_python(py, bounds.as_ref())
    }

    #[pyo3(signature = (columns, predicate = None))]
    fn bounds<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<String>,
        predicate: Option<&str>,
    ) -> PyResult<Vec<answers::Bounds<'py>>> {
        let found = call(py, || answers::of(&self.0, predicate, "UTC")?.bounds(&columns))?;
        found.iter().map(|bounds| answers::bounds_to_python(py, bounds.as_ref())).collect()
    }

    #[pyo3(signature = (predicate = None))]
    fn scan_size(&self, py: Python<'_>, predicate: Option<&str>) -> PyResult<(u64, u64, Option<u64>)> {
        let size = call(py, || {
            let scan = TableScan::new(&self.0);
            user_predicate(predicate)?.into_iter().fold(scan, TableScan::predicate).size()
        })?;
        Ok((size.files, size.bytes, size.rows))
    }

    #[pyo3(signature = (versions, columns = None, predicate = None, allow_out_of_range = false))]
    fn changes(
        &self,
        py: Python<'_>,
        versions: ChangeRange,
        columns: Option<Vec<String>>,
        predicate: Option<&str>,
        allow_out_of_range: bool,
    ) -> PyResult<ArrowStream> {
        let (schema, rows) = call(py, || {
            let feed = versions.feed(&self.0)?.allow_out_of_range(allow_out_of_range);
            let feed = user_predicate(predicate)?.into_iter().fold(feed, ChangeFeed::predicate);
            let plan = feed.plan()?;
            let rows = plan.read(columns.as_deref())?;
            Ok((describe_rows(plan.snapshot().schema(), &rows.schema()), rows))
        })?;
        ArrowStream::start(py, Arc::new(schema), rows)
    }

    fn plan_spark(&self, py: Python<'_>, filter_sql: &str, time_zone: &str) -> PyResult<SparkPlan> {
        call(py, || pack(&self.0, filter_sql, time_zone)).map(SparkPlan)
    }

    fn spark_answers<'py>(
        &self,
        py: Python<'py>,
        filter_sql: &str,
        time_zone: &str,
        columns: Vec<String>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let answers = call(py, || pack_answers(&self.0, filter_sql, time_zone, &columns))?;
        Ok(answers.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn spark_changes(&self, py: Python<'_>, versions: ChangeRange) -> PyResult<SparkChanges> {
        call(py, || versions.feed(&self.0)?.plan()).map(SparkChanges)
    }

    #[pyo3(signature = (filter_sql, n, row_ids = false, positions = false, columns = None, condition = None))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
    fn scan_partitions<'py>(
        &self,
        py: Python<'py>,
        filter_sql: &str,
        n: usize,
        row_ids: bool,
        positions: bool,
        columns: Option<Vec<String>>,
        condition: Option<(String, String)>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let wanted = fragment::Wanted { columns, row_ids, positions, condition };
        let fragments = call(py, || fragment::scan_partitions(&self.0, filter_sql, n, &wanted))?;
        Ok(fragments.iter().map(|fragment| PyBytes::new(py, fragment)).collect())
    }

    #[pyo3(signature = (n, columns = None, predicate = None, ordered = false))]
    fn scan_tasks<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        columns: Option<Vec<String>>,
        predicate: Option<&str>,
        ordered: bool,
    ) -> PyResult<Vec<ScanPart<'py>>> {
        let parts = call(py, || fragment::scan_tasks(&self.0, n, columns, predicate, ordered))?;
        let part =
            |part: fragment::Part| (PyBytes::new(py, &part.fragment), part.files, part.size, part.rows);
        Ok(parts.into_iter().map(part).collect())
    }

    fn __repr__(&self) -> String {
        format!("Snapshot('{}', version={})", self.0.storage().url(), self.0.version())
    }
}
