//! `SparkWrite`: a write that Spark carries out. It is checked before Spark writes and committed afterwards,
//! possibly in another process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use deltalog::engine::definition::TableHeader;
use deltalog::engine::distributed::delete_files;
use deltalog::engine::protocol::{ColumnMappingMode, Metadata, Protocol, SetTransaction, StructType};
use deltalog::engine::transaction::{
    Conflict, ConflictReason, Operation, PartitionOverwrite, SaveMode, changed_for_writers,
};
use deltalog::engine::write::{TableWriteSpec, Written};
use deltalog::{
    DistributedWrite, Error, ErrorKind, IdentityValues, PendingWrite, ReplaceWhere, Result, RuleText,
    SchemaMode, Snapshot, SnapshotBuilder, Storage, WriteRequest,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};

use crate::call::{call, call_that_commits};
use crate::commit_arguments::{AlreadyApplied, Answer};
use crate::distributed::{WriteTask, fragments_of};
use crate::error::IntoPython;
use crate::snapshot::{Snapshot as PySnapshot, open_storage};
use crate::table_options::TableOptions;
use crate::upkeep;
use crate::write_target::WriteTarget;

/// A write in a form that other processes can read. Holds no credentials.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Token {
    uri: String,
    /// The version that the write is based on; `None` if the table is to be created.
    base: Option<u64>,
    /// The table that the write creates, if it creates one. All processes write its files by the same names.
    new_table: Option<TableHeader>,
    /// The protocol and the metadata of that version.
    base_table: Option<(Protocol, Metadata)>,
    /// The roots that the base was opened with, as URLs.
    allowed_roots: Vec<String>,
    schema: String,
    mode: String,
    partition_overwrite: String,
    options: TableOptions,
    /// The application whose progress the write is, and its version.
    app_transaction: Option<(String, i64)>,
    /// The predicate of the rows that an overwrite replaces, the time zone of its times, and whether new rows must
    /// meet it.
    replace_where: Option<(String, String, bool)>,
    /// `merge` or `overwrite`, if the write may change the schema.
    schema_mode: Option<String>,
    /// The table with the schema that the write gives it. All processes write its files by the same names.
    evolved: Option<TableHeader>,
    /// Relative to the table's root.
    directory: String,
}

impl Token {
    fn request(&self) -> Result<WriteRequest> {
        let mut request =
            self.options.clone().request(StructType::from_json(&self.schema)?, SaveMode::parse(&self.mode)?);
        request.partition_overwrite = PartitionOverwrite::parse(&self.partition_overwrite)?;
        if let Some((app_id, version)) = &self.app_transaction {
            request.app_transactions = vec![SetTransaction::new(app_id.clone(), *version)];
        }
        request.replace_where = self.replace_where.as_ref().map(|(predicate, time_zone, checks_rows)| {
            let mut replaced = ReplaceWhere::new(predicate);
            (replaced.time_zone, replaced.checks_rows) = (time_zone.clone(), *checks_rows);
            replaced
        });
        if let Some(mode) = &self.schema_mode {
            request.schema_mode = SchemaMode::parse(mode)?;
        }
        request.evolved = self.evolved.clone();
        Ok(request)
    }

    /// Records what the write is based on.
    fn set_base(&mut self, base: &Snapshot) {
        self.base = Some(base.version());
        self.base_table = Some((base.protocol().clone(), base.metadata().clone()));
        self.allowed_roots = base.resolver().allowed_roots().collect();
    }

    /// Opens the snapshot that the write is based on.
    ///
    /// An append does not depend on the files of that version, so it is based on the newest one if the version was
    /// cleaned up meanwhile, unless protocol or metadata have changed in a way that concerns writers, or unless the
    /// values that it has given to identity columns are taken.
    fn open_base(&self, storage: &Storage) -> Result<Option<Snapshot>> {
        let Some(version) = self.base else { return Ok(None) };
        let open = |version: Option<u64>| {
            let builder = Snapshot::builder(storage);
            let ids = self.base_table.iter().map(|(_, metadata)| &metadata.id);
            let builder = ids.fold(builder, |builder, id| builder.table_id(id));
            let builder =
                self.allowed_roots.iter().try_fold(builder, |builder, root| builder.allow_root(root))?;
            version.into_iter().fold(builder, SnapshotBuilder::version).open()
        };
        let conflict =
            |reason| Conflict::new(version, reason).into_error(ErrorKind::CommitConflict, storage.url());
        let base = match open(Some(version)) {
            Err(error) if error.kind() == ErrorKind::VersionNotFound && self.mode == "append" => open(None),
            opened => opened,
        };
        let base = base.map_err(|error| match error.kind() {
            ErrorKind::NotATable | ErrorKind::TableReplaced => conflict(ConflictReason::TableReplaced),
            ErrorKind::VersionNotFound => conflict(ConflictReason::LogCleanedUp),
            _ => error,
        })?;
        if base.version() != version
            && let Some((protocol, metadata)) = &self.base_table
        {
            // The write would undo changes of the metadata that were made since, however harmless.
            if self.evolved.is_some() && base.metadata() != metadata {
                return Err(conflict(ConflictReason::MetadataChanged));
            }
            if let Some(reason) = changed_for_writers(protocol, metadata, &base)? {
                return Err(conflict(reason));
            }
            if self.counted_from(protocol, metadata)?
                != self.counted_from(base.protocol(), base.metadata())?
            {
                return Err(conflict(ConflictReason::MetadataChanged));
            }
        }
        Ok(Some(base))
    }

    /// Returns the first values that the write gives to identity columns of such a table: to those that its rows lack.
    /// (Protocol: "Identity Columns".)
    fn counted_from(&self, protocol: &Protocol, metadata: &Metadata) -> Result<Vec<IdentityValues>> {
        let schema = StructType::from_json(&self.schema)?;
        let given: Vec<String> = schema.fields().iter().map(|field| field.name.clone()).collect();
        TableWriteSpec::new(protocol, metadata)?.rules().identity_values(&given)
    }

    /// Opens the write that this token stands for.
    pub(crate) fn open(&self) -> Result<PendingWrite> {
        let storage = open_storage(&self.uri, None)?;
        let environment = upkeep::environment();
        if let Some(table) = &self.new_table {
            return PendingWrite::creating(&storage, table.clone(), self.request()?, &environment);
        }
        let base = self.open_base(&storage)?;
        PendingWrite::on(&storage, base, self.request()?, &environment)?.ok_or_else(|| {
            Error::invalid_argument("the write has no effect, so it cannot be resumed")
                .in_table(storage.url())
        })
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| {
            Error::invalid_argument("the bytes are not a token of a write").with_source(error)
        })
    }
}

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct SparkWrite {
    token: Token,
    storage: Storage,
    directory: String,
    spec: TableWriteSpec,
    table_schema: Option<String>,
    pending: Mutex<Option<PendingWrite>>,
}

impl SparkWrite {
    fn new(token: Token, storage: Storage, pending: PendingWrite) -> Self {
        Self {
            directory: storage.file_url(&token.directory),
            spec: pending.spec().clone(),
            table_schema: pending.base().map(|_| pending.table_schema().to_json()),
            token,
            storage,
            pending: Mutex::new(Some(pending)),
        }
    }

    /// Deletes the files that the engine wrote.
    fn delete_files(&self) -> Result<()> {
        delete_files(&self.storage, &self.token.directory)
    }

    fn take(&self) -> Result<PendingWrite> {
        let taken = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| self.is_closed())
    }

    fn is_closed(&self) -> Error {
        Error::invalid_argument("the write was already committed or aborted").in_table(self.storage.url())
    }
}

/// What a write begins with.
#[derive(IntoPyObject)]
#[allow(clippy::large_enum_variant, reason = "moved into a Python object at once")]
enum Begun {
    Write(SparkWrite),
    AlreadyApplied(AlreadyApplied),
}

fn operation(
    name: &str,
    parameters: BTreeMap<String, String>,
    engine_info: &str,
    user_metadata: Option<String>,
) -> Operation {
    let mut operation = parameters
        .iter()
        .fold(Operation::new(name), |operation, (name, value)| operation.parameter(name, value.as_str()));
    // The crate appends its own name.
    let engine = engine_info
        .split_whitespace()
        .filter(|part| !part.starts_with("deltalog/"))
        .collect::<Vec<_>>()
        .join(" ");
    operation.engine_info = (!engine.is_empty()).then_some(engine);
    operation.user_metadata = user_metadata;
    operation
}

/// Checks a predicate of replaced rows whose time zone is unknown (empty): it must not depend on it.
fn in_known_zone(replaced: (String, String, bool)) -> Result<(String, String, bool)> {
    let (predicate, time_zone, checks_rows) = replaced;
    if !time_zone.is_empty() {
        return Ok((predicate, time_zone, checks_rows));
    }
    if ReplaceWhere::new(&predicate).depends_on_time_zone()? {
        return Err(Error::invalid_argument(format!(
            "the predicate {predicate} has a time without a time zone, and a Python data source does not know that of \
             the session"
        ))
        .with_hint("add an offset, as in TIMESTAMP '2024-01-01 00:00:00+00:00'"));
    }
    Ok((predicate, "UTC".to_owned(), checks_rows))
}

/// Returns names and expressions.
fn pairs(rules: &[RuleText]) -> Vec<(String, String)> {
    rules.iter().map(|rule| (rule.name.clone(), rule.sql.clone())).collect()
}

#[pymethods]
impl SparkWrite {
    #[staticmethod]
    #[pyo3(signature = (
        uri, schema_json, mode, options, storage_options = None, base = None, partition_overwrite = "static",
        app_transaction = None, replace_where = None, schema_mode = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
    fn begin(
        py: Python<'_>,
        uri: &str,
        schema_json: &str,
        mode: &str,
        options: TableOptions,
        storage_options: Option<HashMap<String, String>>,
        base: Option<Bound<'_, PySnapshot>>,
        partition_overwrite: &str,
        app_transaction: Option<(String, i64)>,
        replace_where: Option<(String, String, bool)>,
        schema_mode: Option<String>,
    ) -> PyResult<Option<Begun>> {
        let base = base.map(|base| base.get().0.clone());
        call(py, || {
            let environment = upkeep::environment();
            let target = WriteTarget::new(uri, storage_options, base)?;
            let mut token = Token {
                uri: target.storage().url(),
                base: None,
                new_table: None,
                base_table: None,
                allowed_roots: Vec::new(),
                schema: schema_json.to_owned(),
                mode: mode.to_owned(),
                partition_overwrite: partition_overwrite.to_owned(),
                options: options.of_spark(),
                app_transaction,
                replace_where: replace_where.map(in_known_zone).transpose()?,
                schema_mode,
                evolved: None,
                directory: environment.uuid().to_string(),
            };
            let Some(pending) = target.begin(token.request()?, &environment)? else {
                return Ok(None);
            };
            if let Some(applied) = pending.already_applied() {
                return Ok(Some(Begun::AlreadyApplied(AlreadyApplied::new(applied))));
            }
            token.new_table = pending.new_table().cloned();
            token.evolved = pending.evolved().cloned();
            if let Some(base) = pending.base() {
                token.set_base(base);
            }
            Ok(Some(Begun::Write(Self::new(token, target.storage().clone(), pending))))
        })
    }

    #[getter]
    fn directory(&self) -> &str {
        &self.directory
    }

    /// Refuses a table with rules that separate processes cannot keep, before its writers are started: expressions that
    /// this crate cannot evaluate.
    fn ensure_evaluable(&self) -> PyResult<()> {
        let rules = self.spec.rules();
        let bound = rules.bind(self.spec.schema(), "UTC");
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

    /// Returns name, first value and step of the identity columns that the rows lack, for the engine to generate.
    fn identity_values(&self, given: Vec<String>) -> PyResult<Vec<(String, i64, i64)>> {
        let values = self.spec.rules().identity_values(&given);
        let values = values.map_err(|error| error.in_table(self.storage.url())).into_python()?;
        Ok(values.into_iter().map(|values| (values.column, values.first, values.step)).collect())
    }

    #[getter]
    fn partition_columns(&self) -> Vec<String> {
        self.spec.partition_columns().to_vec()
    }

    #[getter]
    fn physical_partition_columns(&self) -> Vec<String> {
        self.spec.physical_partition_columns().to_vec()
    }

    /// The columns by which Spark names directories, if the files have the partition columns too.
    #[getter]
    fn directory_columns(&self) -> Option<Vec<String>> {
        self.spec.keeps_partition_columns().then(|| self.spec.directory_columns())
    }

    #[getter]
    fn physical_schema_json(&self) -> Option<String> {
        let is_mapped = self.spec.column_mapping() != ColumnMappingMode::None;
        is_mapped.then(|| self.spec.physical_schema().to_json())
    }

    #[getter]
    fn table_schema_json(&self) -> Option<&str> {
        self.table_schema.as_deref()
    }

    #[pyo3(signature = (operation, parameters, engine_info, written = None, user_metadata = None))]
    fn commit(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: BTreeMap<String, String>,
        engine_info: &str,
        written: Option<(u64, u64)>,
        user_metadata: Option<String>,
    ) -> PyResult<Option<Answer>> {
        call_that_commits(py, || {
            let pending = self.take()?;
            let partitioned = !self.spec.partition_columns().is_empty();
            let written = written
                .map(|(rows, partitions)| Written { rows, partitions: partitioned.then_some(partitions) });
            let files = pending.adopt(&self.token.directory, written).inspect_err(|_| {
                // Return the error that made the files unusable. Files that could not be deleted are left for
                // clean-up.
                let _ = self.delete_files();
            })?;
            let operation = self::operation(operation, parameters, engine_info, user_metadata);
            Ok(Answer::of(pending.commit(files, operation)?))
        })
    }

    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || {
            drop(self.take()?);
            self.delete_files()
        })
    }

    fn token<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let json = serde_json::to_vec(&self.token).map_err(|error| {
            Error::invalid_argument("the write cannot be serialized as a token").with_source(error)
        });
        Ok(PyBytes::new(py, &json.into_python()?))
    }

    #[staticmethod]
    fn resume(py: Python<'_>, token: &[u8]) -> PyResult<Self> {
        call(py, || {
            let token = Token::read(token)?;
            let storage = open_storage(&token.uri, None)?;
            let pending = token.open()?;
            Ok(Self::new(token, storage, pending))
        })
    }

    /// Returns what tasks need to write files of this write.
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
            let write = DistributedWrite::resume(self.take()?, self.token.directory.clone());
            let checked = write.check(&fragments).inspect_err(|_| {
                // Return the error that made the fragments unusable. Files that could not be deleted are left for
                // clean-up.
                let _ = self.delete_files();
            })?;
            let operation = self::operation(operation, parameters, engine_info, user_metadata);
            Ok(Answer::of(write.commit(checked, operation)?))
        })
    }

    #[staticmethod]
    fn delete(py: Python<'_>, token: &[u8]) -> PyResult<()> {
        call(py, || {
            // The table may have been replaced, so its log is not read.
            let token = Token::read(token)?;
            delete_files(&open_storage(&token.uri, None)?, &token.directory)
        })
    }
}
