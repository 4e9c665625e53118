//! `SparkWrite`: a write that Spark carries out. It is checked before Spark writes files, and committed afterwards,
//! possibly by another process.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deltalog::engine::commit::{Operation, SaveMode};
use deltalog::engine::distributed::delete_files;
use deltalog::engine::dml::files_of_statement;
use deltalog::engine::protocol::TableHeader;
use deltalog::engine::protocol::{ColumnMappingMode, Metadata, StructType};
use deltalog::engine::write::{Reported, TableWriteSpec};
use deltalog::{
    ColumnPath, DistributedWrite, Error, PendingWrite, ReplaceWhere, Result, RuleText, Snapshot, Storage,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::auto_compaction::AutoCompaction;
use crate::call::{call, call_that_commits};
use crate::commit_arguments::{AlreadyApplied, Answer};
use crate::create::parse_mode;
use crate::distributed::{WriteTask, fragments_of};
use crate::error::IntoPython;
use crate::snapshot::Snapshot as PySnapshot;
use crate::store_options::{StoreOptions, open_storage};
use crate::table_options::TableOptions;
use crate::upkeep;
use crate::write_target::WriteTarget;
use crate::write_token::Token;

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct SparkWrite {
    token: Token,
    storage: Storage,
    spec: TableWriteSpec,
    table_schema: Option<String>,
    /// Whether the write creates or replaces the table from a definition. A token does not contain the definition.
    is_definition: bool,
    pending: Mutex<Option<PendingWrite>>,
    /// The reports of the tasks of Spark's jobs.
    reports: Mutex<Vec<u8>>,
    /// The range of bytes in `reports` that comes from jobs which generate values of identity columns.
    counting: Mutex<Range<usize>>,
}

impl SparkWrite {
    /// Creates the object for a write that has just been checked, and records its base in the token.
    fn begun(mut token: Token, storage: Storage, pending: PendingWrite) -> Self {
        token.record(&pending);
        Self::new(token, storage, pending)
    }

    fn new(token: Token, storage: Storage, pending: PendingWrite) -> Self {
        Self {
            spec: pending.spec().clone(),
            table_schema: pending.base().map(|_| pending.table_schema().to_json()),
            is_definition: false,
            token,
            storage,
            pending: Mutex::new(Some(pending)),
            reports: Mutex::default(),
            counting: Mutex::new(0..usize::MAX),
        }
    }

    /// Returns a write of the files of a statement that changes rows of exactly `base`; see [`files_of_statement`].
    pub(crate) fn of_statement(base: &Snapshot, data_schema: Option<&str>) -> Result<Self> {
        let environment = upkeep::environment();
        let data = data_schema.map(StructType::from_json).transpose()?;
        let pending = files_of_statement(base, data, &environment)?;
        let schema = &base.metadata().schema_string;
        let token = Token::new(base.storage(), schema, SaveMode::Append, &environment);
        Ok(Self::begun(token, base.storage().clone(), pending))
    }

    /// Returns the table with its new schema, if the write changes the schema.
    pub(crate) fn evolved(&self) -> Option<TableHeader> {
        self.token.evolved.clone()
    }

    /// Ends the write, and returns the reports of its tasks. Files that cannot be used are deleted.
    ///
    /// If values of identity columns were generated, also returns the table's metadata with the new high water marks.
    pub(crate) fn take_reported(&self) -> Result<(Reported, Option<Metadata>)> {
        let pending = self.take()?;
        Ok((self.reported_to(&pending)?, pending.counted_metadata()?))
    }

    fn reported_to(&self, pending: &PendingWrite) -> Result<Reported> {
        let reports = mem::take(&mut *self.reports());
        pending.reported(&reports, self.counting().clone()).inspect_err(|_| {
            // The caller gets the error that made the files unusable, and not an error of the deletion. VACUUM removes
            // files that are left.
            let _ = PendingWrite::delete_reported(&self.storage, &reports);
        })
    }

    /// States that no job of this write generates values of identity columns.
    pub(crate) fn copies_identity_values(&self) {
        *self.counting() = 0..0;
    }

    fn counting(&self) -> MutexGuard<'_, Range<usize>> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reports(&self) -> MutexGuard<'_, Vec<u8>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<PendingWrite> {
        let taken = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| self.is_closed())
    }

    fn is_closed(&self) -> Error {
        Error::invalid_argument("the write was already committed or aborted").in_table(self.storage.url())
    }
}

/// The result of beginning a write: the write, or the information that the table has already recorded it.
#[derive(IntoPyObject)]
#[allow(clippy::large_enum_variant, reason = "moved into a Python object at once")]
enum Begun {
    Write(SparkWrite),
    AlreadyApplied(AlreadyApplied),
}

impl Begun {
    fn of(token: Token, target: &WriteTarget, pending: PendingWrite) -> Self {
        match pending.already_applied() {
            Some(applied) => Self::AlreadyApplied(AlreadyApplied::new(applied)),
            None => Self::Write(SparkWrite::begun(token, target.storage().clone(), pending)),
        }
    }
}

/// Returns the description of the operation that a commit records.
pub(crate) fn operation(
    name: &str,
    parameters: BTreeMap<String, String>,
    engine_info: &str,
    user_metadata: Option<String>,
) -> Operation {
    let mut operation = parameters
        .iter()
        .fold(Operation::new(name), |operation, (name, value)| operation.parameter(name, value.as_str()));
    operation.engine_info = engine_of(engine_info);
    operation.user_metadata = user_metadata;
    operation
}

/// Returns the name of the engine without deltalog's own name, which the crate appends.
fn engine_of(engine_info: &str) -> Option<String> {
    let parts = engine_info.split_whitespace().filter(|part| !part.starts_with("deltalog/"));
    let engine = parts.collect::<Vec<_>>().join(" ");
    (!engine.is_empty()).then_some(engine)
}

/// Checks the predicate of an overwrite (`replaceWhere`). If its time zone is not known (empty), the predicate must
/// not depend on a time zone.
fn in_known_zone(replaced: (String, String, bool)) -> Result<(String, String, bool)> {
    let (predicate, time_zone, checks_rows) = replaced;
    if !time_zone.is_empty() {
        return Ok((predicate, time_zone, checks_rows));
    }
    if ReplaceWhere::new(&predicate).depends_on_time_zone()? {
        return Err(Error::invalid_argument(format!(
            "the predicate {predicate} has a time without a time zone, but a Python data source does not know the \
             zone of the session"
        ))
        .with_hint("add an offset, as in TIMESTAMP '2024-01-01 00:00:00+00:00'"));
    }
    Ok((predicate, time_zone, checks_rows))
}

/// Returns each rule as a pair of its name and its expression.
fn pairs(rules: &[RuleText]) -> Vec<(String, String)> {
    rules.iter().map(|rule| (rule.name.clone(), rule.sql.clone())).collect()
}

#[pymethods]
impl SparkWrite {
    #[staticmethod]
    #[pyo3(signature = (
        uri, schema_json, mode, options, storage_options = None, base = None, partition_overwrite = "static",
        app_transaction = None, replace_where = None, schema_mode = None, reads = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
    fn begin(
        py: Python<'_>,
        uri: &str,
        schema_json: &str,
        mode: &str,
        options: TableOptions,
        storage_options: Option<StoreOptions>,
        base: Option<Bound<'_, PySnapshot>>,
        partition_overwrite: &str,
        app_transaction: Option<(String, i64)>,
        replace_where: Option<(String, String, bool)>,
        schema_mode: Option<String>,
        reads: Option<(Vec<String>, String)>,
    ) -> PyResult<Option<Begun>> {
        let base = base.map(|base| base.get().0.clone());
        call(py, || {
            let environment = upkeep::environment();
            let target = WriteTarget::new(uri, storage_options, base)?;
            let token = Token {
                partition_overwrite: partition_overwrite.to_owned(),
                options: options.of_spark(),
                app_transaction,
                replace_where: replace_where.map(in_known_zone).transpose()?,
                schema_mode,
                reads,
                ..Token::new(target.storage(), schema_json, SaveMode::parse(mode)?, &environment)
            };
            let pending = target.begin(token.request()?, &environment)?;
            Ok(pending.map(|pending| Begun::of(token, &target, pending)))
        })
    }

    /// Checks a write that creates or replaces a table from a definition; see `DeltaTable.create`.
    #[staticmethod]
    #[pyo3(signature = (
        uri, schema_json, mode, options, storage_options = None, cluster_by = None, base = None, app_transaction = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
    fn define(
        py: Python<'_>,
        uri: &str,
        schema_json: &str,
        mode: &str,
        options: TableOptions,
        storage_options: Option<StoreOptions>,
        cluster_by: Option<Vec<String>>,
        base: Option<Bound<'_, PySnapshot>>,
        app_transaction: Option<(String, i64)>,
    ) -> PyResult<Option<Begun>> {
        let base = base.map(|base| base.get().0.clone());
        call(py, || {
            let environment = upkeep::environment();
            let target = WriteTarget::new(uri, storage_options, base)?;
            let options = options.of_spark();
            let token = Token {
                options: options.clone(),
                app_transaction,
                ..Token::new(target.storage(), schema_json, SaveMode::Overwrite, &environment)
            };
            let mut definition = options.definition(StructType::from_json(schema_json)?);
            definition.clustering_columns =
                cluster_by.map(|columns| columns.iter().map(|column| ColumnPath::parse(column)).collect());
            let progress = token.request()?.app_transactions;
            let pending = target.define(&definition, parse_mode(mode)?, progress, &environment)?;
            Ok(pending.map(|pending| match Begun::of(token, &target, pending) {
                Begun::Write(write) => Begun::Write(Self { is_definition: true, ..write }),
                applied => applied,
            }))
        })
    }

    #[getter]
    fn location(&self) -> String {
        self.storage.url()
    }

    fn add_reports(&self, reports: &[u8]) {
        self.reports().extend(reports);
    }

    /// Refuses a table with rules that separate processes cannot apply, because this crate cannot evaluate their
    /// expressions. This is checked before the write starts its writers.
    fn ensure_evaluable(&self) -> PyResult<()> {
        let bound = self.spec.bound_rules();
        bound.map(drop).map_err(|error| error.in_table(self.storage.url())).into_python()
    }

    #[getter]
    fn checks(&self) -> Vec<(String, String)> {
        pairs(&self.spec.rules().checks)
    }

    #[getter]
    fn generated_columns(&self) -> Vec<(String, String)> {
        pairs(&self.spec.rules().generated)
    }

    /// Whether the table has generated or identity columns.
    #[getter]
    fn computes_columns(&self) -> bool {
        self.spec.rules().computes_columns()
    }

    /// The names of the identity columns, and whether rows may provide values for each of them.
    #[getter]
    fn identity_columns(&self) -> Vec<(String, bool)> {
        self.spec.rules().identity_columns()
    }

    /// Returns the name, the first value and the step of each identity column that the rows lack, so that the engine
    /// can generate the values. Jobs whose tasks have reported before are not affected.
    fn identity_values(&self, given: Vec<String>) -> PyResult<Vec<(String, i64, i64)>> {
        let values = self.spec.rules().identity_values(&given);
        let values = values.map_err(|error| error.in_table(self.storage.url())).into_python()?;
        *self.counting() = self.reports().len()..usize::MAX;
        Ok(values.into_iter().map(|values| (values.column, values.first, values.step)).collect())
    }

    /// States that jobs whose tasks report from now on do not generate values of identity columns.
    fn end_identity_values(&self) {
        self.counting().end = self.reports().len();
    }

    #[getter]
    fn partition_columns(&self) -> Vec<String> {
        self.spec.partition_columns().to_vec()
    }

    #[getter]
    fn physical_partition_columns(&self) -> Vec<String> {
        self.spec.physical_partition_columns().to_vec()
    }

    /// The names that Spark uses for the partition columns in directory names, if the files themselves also contain
    /// these columns.
    #[getter]
    fn directory_columns(&self) -> Option<Vec<String>> {
        self.spec.keeps_partition_columns().then(|| self.spec.directory_columns())
    }

    #[getter]
    fn physical_schema_json(&self) -> Option<String> {
        let is_mapped = self.spec.column_mapping() != ColumnMappingMode::None;
        is_mapped.then(|| self.spec.physical_schema().to_json())
    }

    /// Returns whether files lack columns of the table, or fields of structs, because their type is void. Refuses a
    /// table whose rows cannot be stored in files.
    fn lacks_void(&self) -> PyResult<bool> {
        let refused = |error: Error| error.in_table(self.storage.url());
        self.spec.ensure_storable().map_err(refused).into_python()?;
        Ok(self.spec.lacks_void())
    }

    /// The options of Spark's Parquet writer that the table requires: the codec and the Bloom filters.
    #[getter]
    fn parquet_options(&self) -> BTreeMap<String, String> {
        let filters = self.spec.bloom_filters();
        let codec = self.spec.configuration().get("delta.parquet.compression.codec");
        let codec = codec.map(|codec| ("compression".to_owned(), codec.to_ascii_lowercase()));
        let mut options: BTreeMap<String, String> = codec.into_iter().collect();
        for column in filters.columns() {
            let path = column.parts().join(".");
            options.insert(format!("parquet.bloom.filter.enabled#{path}"), "true".to_owned());
            options.insert(format!("parquet.bloom.filter.fpp#{path}"), filters.rate().to_string());
            match filters.values() {
                Some(values) => {
                    options.insert(format!("parquet.bloom.filter.expected.ndv#{path}"), values.to_string());
                }
                // Without this option, each Bloom filter takes a megabyte, even if its column is small.
                None => {
                    options.insert("parquet.bloom.filter.adaptive.enabled".to_owned(), "true".to_owned());
                }
            }
        }
        options
    }

    #[getter]
    fn table_schema_json(&self) -> Option<&str> {
        self.table_schema.as_deref()
    }

    /// Whether the table's properties request that rows are distributed over writing tasks of about the same size.
    #[getter]
    fn optimizes_writes(&self) -> bool {
        let property = self.spec.configuration().get("delta.autoOptimize.optimizeWrite");
        property.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    #[getter]
    fn target_file_size(&self) -> u64 {
        self.spec.target_file_size()
    }

    #[pyo3(signature = (operation, parameters, engine_info, user_metadata = None, auto_compaction = None))]
    fn commit(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: BTreeMap<String, String>,
        engine_info: &str,
        user_metadata: Option<String>,
        auto_compaction: Option<AutoCompaction>,
    ) -> PyResult<Option<Answer>> {
        call_that_commits(py, || {
            let mut pending = self.take()?;
            pending.skip_if_empty();
            if let Some(settings) = auto_compaction {
                pending.set_auto_compaction(settings.into());
            }
            let reported = self.reported_to(&pending)?;
            let operation = self::operation(operation, parameters, engine_info, user_metadata);
            Ok(Answer::of(pending.commit(reported.files, operation)?))
        })
    }

    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || {
            drop(self.take()?);
            PendingWrite::delete_reported(&self.storage, &mem::take(&mut *self.reports()))
        })
    }

    fn token<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        if self.is_definition {
            let error = Error::invalid_argument("a write that defines its table has no token");
            return Err(error.in_table(self.storage.url())).into_python();
        }
        let json = serde_json::to_vec(&self.token).map_err(|error| {
            Error::invalid_argument("the write cannot be serialized as a token").with_source(error)
        });
        Ok(PyBytes::new(py, &json.into_python()?))
    }

    #[staticmethod]
    #[pyo3(signature = (token, storage_options = None, app_transaction = None))]
    fn resume(
        py: Python<'_>,
        token: &[u8],
        storage_options: Option<StoreOptions>,
        app_transaction: Option<(String, i64)>,
    ) -> PyResult<Self> {
        call(py, || {
            let mut token = Token::read(token)?;
            token.app_transaction = app_transaction.or(token.app_transaction);
            let storage = open_storage(&token.uri, storage_options)?;
            let pending = token.open(&storage)?;
            Ok(Self::new(token, storage, pending))
        })
    }

    /// Returns the task, which contains everything that other processes need to write files of this write.
    fn task(&self) -> PyResult<WriteTask> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = pending.as_ref().ok_or_else(|| self.is_closed()).into_python()?;
        Ok(WriteTask(deltalog::WriteTask::of(pending, self.token.directory.clone())))
    }

    #[pyo3(signature = (fragments, operation, parameters, engine_info, user_metadata = None))]
    fn commit_fragments(
        &self,
        py: Python<'_>,
        fragments: &Bound<'_, PyAny>,
        operation: &str,
        parameters: BTreeMap<String, String>,
        engine_info: &str,
        user_metadata: Option<String>,
    ) -> PyResult<Option<Answer>> {
        let fragments = fragments_of(fragments)?;
        call_that_commits(py, || {
            let mut pending = self.take()?;
            pending.skip_if_empty();
            let write = DistributedWrite::resume(pending, self.token.directory.clone());
            let checked = write.check(&fragments).inspect_err(|_| {
                // The caller gets the error that made the fragments unusable, and not an error of the deletion. VACUUM
                // removes files that are left.
                let _ = delete_files(&self.storage, &self.token.directory);
            })?;
            let operation = self::operation(operation, parameters, engine_info, user_metadata);
            Ok(Answer::of(write.commit(checked, operation)?))
        })
    }

    #[staticmethod]
    #[pyo3(signature = (token, storage_options = None))]
    fn delete(py: Python<'_>, token: &[u8], storage_options: Option<StoreOptions>) -> PyResult<()> {
        call(py, || {
            // The table may have been replaced by another one, so its log is not read.
            let token = Token::read(token)?;
            delete_files(&open_storage(&token.uri, storage_options)?, &token.directory)
        })
    }
}
