//! Writes rows in three steps: the write is checked against the table, this crate or an engine writes its files, and
//! the write is committed.
//!
//! ```text
//!   begin ──► files: DataWriter, or an engine below `directory` ──► commit
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `base` | determines the version that a write is based on |
//! | `commit` | turns the files of a write into a transaction, and commits it |
//! | `define` | begins to create or replace a table by its definition |
//! | `outcome` | the outcome of a write |
//! | `small_append` | appends a few rows with a single listing of the log |
//!
//! - Everything that can be refused before files are written is refused when the write begins.
//! - Files that were written but not committed belong to no version. `abort` deletes them; otherwise VACUUM does.

mod base;
mod commit;
mod define;
pub(crate) mod distributed;
mod outcome;
pub(crate) mod replacement;
mod small_append;
pub(crate) mod write_request;

pub(crate) use base::newest;
pub use outcome::WriteOutcome;
pub use small_append::{Rows, SmallAppend, small_append};

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::datatypes::SchemaRef;

use crate::commit::own_files::delete_data_file;
use crate::commit::{AlreadyApplied, PartitionOverwrite, RowsRead, SaveMode, check_distinct};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::Predicate;
use crate::operations::define::{CreationMode, TableDefinition};
use crate::operations::insert::replacement::{ReplaceWhere, check_predicate};
use crate::operations::insert::write_request::{WriteRequest, check_existing, evolved, requested};
use crate::protocol::TableHeader;
use crate::protocol::{Metadata, Protocol, SetTransaction, StructType, path};
use crate::runtime::environment::{AutoCompaction, Environment};
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::write::{DataWriter, Reported, TableWriteSpec, WriteOptions, reported, reported_paths};

/// The table that is written to.
#[derive(Debug, Clone)]
enum Target {
    /// An existing table, at the version that the write is based on.
    Existing(Snapshot),
    /// A new table, which the write creates.
    New(Box<TableHeader>),
}

/// A write that has been checked but not committed yet.
#[derive(Debug)]
pub struct PendingWrite {
    storage: Storage,
    target: Target,
    mode: SaveMode,
    /// The mode of creation, if the write defines a table.
    definition: Option<CreationMode>,
    partition_overwrite: PartitionOverwrite,
    /// The predicate for the rows that an overwrite replaces. `None` if no predicate selects them, if the table does
    /// not exist yet, or if the write was already applied.
    replaced: Option<Predicate>,
    /// The same predicate in the form in which the caller passed it. New rows are checked against it.
    replace_where: Option<ReplaceWhere>,
    /// The rows of the table from which the data was computed.
    reads: RowsRead,
    /// The table with its new schema, if the write changes the schema.
    evolved: Option<TableHeader>,
    spec: TableWriteSpec,
    progress: Vec<SetTransaction>,
    already_applied: Option<AlreadyApplied>,
    /// Whether the commit is skipped if the write changes nothing.
    skips_empty: bool,
    environment: Environment,
}

impl PendingWrite {
    /// Checks the request against the newest version of the table. Returns `None` if the mode is `Ignore` and the
    /// table exists.
    ///
    /// The write is based on the newest version. If the data was computed from an older version, an overwrite must use
    /// [`PendingWrite::begin_on`]. Otherwise, the commits after the older version are lost without a conflict.
    ///
    /// # Errors
    /// Returns `TableAlreadyExists`; `SchemaMismatch`; `Unsupported` for a table that cannot be written;
    /// `InvalidArgument`, also if the data is computed from rows of the table ([`WriteRequest::reads`]), because the
    /// version with these rows is not known; and errors from the store.
    pub fn begin(
        storage: &Storage,
        request: WriteRequest,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        if !request.reads.is_nothing() {
            return Err(Error::invalid_argument(
                "the version of the table from which the data was computed is unknown",
            )
            .in_table(storage.url())
            .with_hint("begin the write on the snapshot that was read"));
        }
        Self::on(storage, base::newest(storage)?, request, environment)
    }

    /// Checks the request of a writer that has read the version `read` of the table. Returns `None` if the mode is
    /// `Ignore`.
    ///
    /// - An overwrite replaces the files of exactly that version. It fails with `CommitConflict` if another commit
    ///   has added or removed files since, or has changed the protocol or the metadata. For an overwrite of
    ///   partitions, or of the rows for which a predicate is true, only changes of the affected files are conflicts.
    /// - An append does not depend on any file of the table, so it is based on the newest version. If its data was
    ///   computed from rows of the table ([`WriteRequest::reads`]), it is based on `read` and depends on these rows.
    ///
    /// # Errors
    /// Returns the same errors as [`PendingWrite::begin`].
    pub fn begin_on(
        read: &Snapshot,
        request: WriteRequest,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        let replaces_all =
            request.partition_overwrite == PartitionOverwrite::Static && request.replace_where.is_none();
        let base = match request.mode {
            SaveMode::Overwrite if replaces_all => {
                base::of_replacement(read, &request.app_transactions, environment)?
            }
            // The partitions to replace are only known once there is data.
            SaveMode::Overwrite => read.clone(),
            SaveMode::Append if !request.reads.is_nothing() => read.clone(),
            _ => read.refresh()?,
        };
        Self::on(read.storage(), Some(base), request, environment)
    }

    /// Checks the request against exactly `base`; `None` means that the table does not exist yet.
    ///
    /// # Errors
    /// Returns the same errors as [`PendingWrite::begin`].
    pub fn on(
        storage: &Storage,
        base: Option<Snapshot>,
        request: WriteRequest,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        let mode = request.mode;
        let located = |error: Error| error.in_table(storage.url());
        check_distinct(&request.app_transactions).map_err(located)?;
        let Some(snapshot) = base else {
            let mut definition = TableDefinition::new(request.schema.clone());
            definition.partition_columns = request.partition_by.clone().unwrap_or_default();
            (definition.name, definition.description) = (request.name.clone(), request.description.clone());
            definition.configuration.clone_from(&request.configuration);
            let table = definition.resolve(environment).map_err(located)?;
            return Self::creating(storage, table, request, environment).map(Some);
        };
        if mode == SaveMode::Ignore {
            return Ok(None);
        }
        // The table may have been created by an earlier attempt of this write.
        let already_applied = AlreadyApplied::in_snapshot(&snapshot, &request.app_transactions)?;
        if mode == SaveMode::ErrorIfExists && already_applied.is_none() {
            return Err(located(
                Error::new(ErrorKind::TableAlreadyExists, "the table already exists")
                    .at_version(snapshot.version()),
            )
            .with_hint("write with the mode append or overwrite"));
        }
        if already_applied.is_none() {
            check_existing(&snapshot, &request).map_err(located)?;
        }
        let at_version = |error: Error| located(error.at_version(snapshot.version()));
        let replaced = match &request.replace_where {
            Some(replaced) if already_applied.is_none() => {
                Some(replaced.resolve(&snapshot).map_err(at_version)?)
            }
            _ => None,
        };
        let evolved = match already_applied {
            Some(_) => None,
            None => evolved(&snapshot, &request, environment).map_err(at_version)?,
        };
        let spec = match &evolved {
            Some(table) => TableWriteSpec::of_evolved(&snapshot, &table.protocol, &table.metadata),
            None => TableWriteSpec::of(&snapshot),
        };
        let spec = spec.map_err(at_version)?;
        let spec = requested(spec, &request).map_err(located)?;
        Ok(Some(Self {
            storage: storage.clone(),
            target: Target::Existing(snapshot),
            mode,
            definition: None,
            partition_overwrite: request.partition_overwrite,
            replaced,
            replace_where: request.replace_where,
            reads: request.reads,
            evolved,
            spec,
            progress: request.app_transactions,
            already_applied,
            skips_empty: false,
            environment: environment.clone(),
        }))
    }

    /// Returns a write that creates `table`, with the settings of `request`. Another process may have resolved the
    /// table's definition.
    ///
    /// # Errors
    /// Returns `CorruptLog` if the table's schema or a property is invalid, and `InvalidArgument` if `replace_where`
    /// does not fit the rest of the request.
    #[doc(hidden)]
    pub fn creating(
        storage: &Storage,
        table: TableHeader,
        request: WriteRequest,
        environment: &Environment,
    ) -> Result<Self> {
        let located = |error: Error| error.in_table(storage.url());
        check_distinct(&request.app_transactions).map_err(located)?;
        let spec = spec_of(&table).map_err(located)?;
        if let Some(replaced) = &request.replace_where {
            replaced.check_mode(request.mode, request.partition_overwrite).map_err(located)?;
            check_predicate(replaced, &spec).map_err(located)?;
        }
        let spec = requested(spec, &request).map_err(located)?;
        Ok(Self {
            storage: storage.clone(),
            target: Target::New(Box::new(table)),
            mode: request.mode,
            definition: None,
            partition_overwrite: PartitionOverwrite::Static,
            replaced: None,
            replace_where: request.replace_where,
            reads: RowsRead::Nothing,
            evolved: None,
            spec,
            progress: request.app_transactions,
            already_applied: None,
            skips_empty: false,
            environment: environment.clone(),
        })
    }

    /// If an application has already committed the same write, returns the record of that commit. This write then has
    /// no effect, and committing it deletes its files.
    pub fn already_applied(&self) -> Option<&AlreadyApplied> {
        self.already_applied.as_ref()
    }

    /// Returns the table's schema, to which the data must be converted.
    pub fn table_schema(&self) -> &StructType {
        self.spec.schema()
    }

    /// Returns the table's schema as an Arrow schema.
    pub fn arrow_schema(&self) -> &SchemaRef {
        self.spec.arrow()
    }

    /// Returns the table's partition columns.
    pub fn partition_columns(&self) -> &[String] {
        self.spec.partition_columns()
    }

    /// Returns the table's properties.
    pub fn configuration(&self) -> &BTreeMap<String, String> {
        self.spec.configuration()
    }

    /// Returns the rules that writers of the table's files must follow.
    #[doc(hidden)]
    pub fn spec(&self) -> &TableWriteSpec {
        &self.spec
    }

    /// Returns the snapshot that the write is based on; `None` if the table is to be created.
    pub fn base(&self) -> Option<&Snapshot> {
        match &self.target {
            Target::Existing(base) => Some(base),
            Target::New(_) => None,
        }
    }

    /// Returns the table with its new schema, if the write changes the schema.
    #[doc(hidden)]
    pub fn evolved(&self) -> Option<&TableHeader> {
        self.evolved.as_ref()
    }

    /// Returns the table that the write creates; `None` if the table exists.
    #[doc(hidden)]
    pub fn new_table(&self) -> Option<&TableHeader> {
        match &self.target {
            Target::Existing(_) => None,
            Target::New(table) => Some(table),
        }
    }

    /// Returns the protocol and metadata that the table will have after the write.
    pub(crate) fn table(&self) -> (&Protocol, &Metadata) {
        match (&self.target, &self.evolved) {
            (Target::New(table), _) => (&table.protocol, &table.metadata),
            (Target::Existing(_), Some(table)) => (&table.protocol, &table.metadata),
            (Target::Existing(base), None) => (base.protocol(), base.metadata()),
        }
    }

    /// Returns which rows an overwrite replaces; `None` if no predicate selects them.
    pub(crate) fn replace_where(&self) -> Option<&ReplaceWhere> {
        self.replace_where.as_ref()
    }

    /// Returns the table that is written to.
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the source of times and ids for the write.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Sets how small files are compacted after the commit. By default, the environment and the table decide.
    pub fn set_auto_compaction(&mut self, auto_compaction: AutoCompaction) {
        self.environment = self.environment.clone().with_auto_compaction(auto_compaction);
    }

    /// Skips the commit if the write changes nothing, that is, if it adds no rows, replaces no rows, and records no
    /// progress of an application. The outcome is then [`WriteOutcome::Unchanged`].
    pub fn skip_if_empty(&mut self) {
        self.skips_empty = true;
    }

    /// Returns a writer for the data files of this write.
    ///
    /// # Errors
    /// `InvalidArgument` if a partition column is not in the schema.
    pub fn writer(&self) -> Result<DataWriter> {
        let options = WriteOptions::new(self.environment.clone());
        let progress = Progress::new("WRITE", self.storage.url(), None, "rows");
        Ok(DataWriter::new(self.storage.clone(), self.spec.clone(), options)?.with_progress(progress))
    }

    /// Returns the files that the tasks of an engine have written according to their reports (`write::task_report`),
    /// after making the files durable. The engine must have enforced the table's rules (`TableWriteSpec::rules`). The
    /// reports in the byte range `counting` use the values of identity columns that the engine has asked for
    /// (`RowRules::identity_values`).
    ///
    /// # Errors
    /// Returns `CorruptData` for a report that does not fit the table, `FileNotFound` if this process does not find a
    /// file in the table's location, and errors from the store.
    #[doc(hidden)]
    pub fn reported(&self, reports: &[u8], counting: Range<usize>) -> Result<Reported> {
        let reported =
            reported(reports, counting, &self.spec).map_err(|error| error.in_table(self.storage.url()))?;
        // Engines let the operating system decide when their files reach the disk, but the commit must not reach the
        // disk before the files do.
        let data = reported.files.iter().map(|add| &add.path);
        let changes = reported.changes.iter().map(|file| &file.path);
        let paths = data.chain(changes).map(|path| path::decode(path)).collect::<Result<Vec<_>>>()?;
        self.storage.sync_reported(paths.iter().map(AsRef::as_ref))?;
        Ok(reported)
    }

    /// Returns the table's metadata with the new high water marks of identity columns; `None` if this write used no
    /// values of identity columns. (PROTOCOL, "Identity Columns".)
    ///
    /// # Errors
    /// Returns the same errors as [`StructType::try_new`].
    #[doc(hidden)]
    pub fn counted_metadata(&self) -> Result<Option<Metadata>> {
        let metadata = match (&self.target, &self.evolved) {
            (Target::Existing(_), Some(table)) => &table.metadata,
            (Target::Existing(base), None) => base.metadata(),
            (Target::New(table), _) => &table.metadata,
        };
        self.spec.counted_metadata(metadata)
    }

    /// Deletes the files of a write that was not committed. `reports` are the reports of an engine's tasks, which list
    /// the files.
    ///
    /// # Errors
    /// Returns `CorruptData` for a report that cannot be read. Returns errors from the store, but only after trying to
    /// delete every file.
    #[doc(hidden)]
    pub fn delete_reported(storage: &Storage, reports: &[u8]) -> Result<()> {
        let paths = reported_paths(reports).map_err(|error| error.in_table(storage.url()))?;
        let deleted: Vec<Result<()>> = paths.iter().map(|path| delete_data_file(storage, path)).collect();
        deleted.into_iter().collect()
    }
}

/// Returns the rules for files of a table that a commit with this protocol and metadata creates or replaces.
fn spec_of(table: &TableHeader) -> Result<TableWriteSpec> {
    TableWriteSpec::clustered(
        &table.protocol,
        &table.metadata,
        table.clustering.as_deref().unwrap_or_default(),
    )
}
