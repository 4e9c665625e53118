//! Optimistic transactions: the changes to a table, and the only way to commit them. Protocol: "Creation of New Log
//! Entries".
//!
//! ```text
//!   base snapshot, what was read of it, changes
//!        │
//!        ▼
//!   commits since the base ── rules ──► conflict, with the transaction
//!        │ none conflicts
//!        ▼
//!   prepare version N on top of them ──► put-if-absent N.json
//!        ▲                                     │
//!        │                                     ├─ created ──────► committed
//!        │                                     ├─ exists ───────► read it ─┬─ own id ──► committed
//!        └──────── rules, N + 1 ◄──────────────┴─ no answer ────► read it ─┼─ other ───► rules
//!                                                                          └─ absent ──► put the same bytes again
//! ```
//!
//! - `N.json` is only ever created, never overwritten. The store's client does not retry this request.
//! - Every commit has a unique id in `commitInfo.txnId`. A writer recognizes its own commit by this id when it reads
//!   the commit back.
//! - What a transaction has read is a value ([`ReadSet`]), and so is its outcome: either the committed version, or a
//!   conflict that names the winning commit and the violated rule (see [`rules`]). A conflict is not an error. Every
//!   error except `CommitStateUnknown` means that nothing was committed.
//! - Every attempt is prepared from the version before it ([`head`]).
//! - File actions are kept as record batches ([`changes`]).
//! - A blind append never conflicts with appends, deletes or compactions. It is retried at the next version until it
//!   succeeds.

mod appended;
mod applied;
mod changes;
mod commit_loop;
mod conflict;
mod encode;
mod find;
mod head;
mod isolation;
mod objection;
mod operation;
mod overwrite;
pub(crate) mod own_files;
mod partitions;
mod prepared;
mod put;
mod read_set;
mod row_deletes;
mod row_ids;
pub(crate) mod row_moves;
mod rules;
mod source;
mod winners;

pub use applied::AlreadyApplied;
pub(crate) use applied::check_distinct;
pub(crate) use commit_loop::CommittedVersion;
pub use commit_loop::{Committed, Outcome};
pub use conflict::{Conflict, ConflictReason, WhatWasRead};
pub use find::find_commit;
pub use isolation::IsolationLevel;
pub(crate) use objection::Objection;
pub(crate) use operation::names_this_crate;
pub use operation::{Operation, PartitionOverwrite, SaveMode, SchemaMode};
pub(crate) use partitions::PartitionSet;
pub(crate) use prepared::OwnCommit;
pub use read_set::ReadSet;
pub use source::RowsRead;

use arrow::array::RecordBatch;

use self::changes::Changes;
use self::overwrite::RowsOfFile;
use self::row_deletes::RowDelete;
use self::row_ids::RowIds;
use self::source::Source;
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::Predicate;
use crate::log::deletion_vector::DeletionVector;
use crate::log::replay::adds_of;
use crate::protocol::{
    Add, AddCdcFile, CLUSTERING_DOMAIN, DomainMetadata, Metadata, PathResolver, Protocol, SetTransaction,
    TableFeature, TableHeader, ensure_writable,
};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::storage::{Storage, parse_location};
use crate::write::TableWriteSpec;

/// Checks whether files that were written for a table with this protocol and this metadata may be added to `newest`.
/// Returns the reason if they must not be added, otherwise `None`.
///
/// For writers that cannot examine the commits in between because they were cleaned up.
///
/// # Errors
/// `CorruptLog` for an invalid schema.
pub fn changed_for_writers(
    protocol: &Protocol,
    metadata: &Metadata,
    newest: &Snapshot,
) -> Result<Option<ConflictReason>> {
    if newest.protocol() != protocol {
        return Ok(Some(ConflictReason::ProtocolChanged));
    }
    // The files need statistics of the clustering columns, which may have changed.
    if protocol.supports(&TableFeature::Clustering) {
        return Ok(Some(ConflictReason::DomainChanged(CLUSTERING_DOMAIN.to_owned())));
    }
    let concerns = rules::concerns_writers(metadata, newest.metadata())?;
    Ok(concerns.then_some(ConflictReason::MetadataChanged))
}

/// Checks whether files that were written for `base` may be added to `newest`, a later version of the table. Returns
/// the reason if they must not be added, otherwise `None`.
///
/// # Errors
/// `CorruptLog` for an invalid schema or domain; errors from the store.
fn changed_since(base: &Snapshot, newest: &Snapshot) -> Result<Option<ConflictReason>> {
    if newest.protocol() != base.protocol() {
        return Ok(Some(ConflictReason::ProtocolChanged));
    }
    if base.protocol().supports(&TableFeature::Clustering)
        && newest.clustering_columns()? != base.clustering_columns()?
    {
        return Ok(Some(ConflictReason::DomainChanged(CLUSTERING_DOMAIN.to_owned())));
    }
    let concerns = rules::concerns_writers(base.metadata(), newest.metadata())?;
    Ok(concerns.then_some(ConflictReason::MetadataChanged))
}

/// Changes that are committed together.
#[derive(Debug)]
pub struct Transaction {
    storage: Storage,
    resolver: PathResolver,
    /// The version that was read; `None` if the transaction creates the table.
    base: Option<Snapshot>,
    reads: ReadSet,
    changes: Changes,
    /// The isolation level; `None` for the table's level.
    isolation: Option<IsolationLevel>,
    replaces: Option<Replaced>,
    operation: Operation,
    environment: Environment,
    id: String,
}

/// The rows that an overwrite replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaced {
    WholeTable,
    /// The rows of the partitions that the added files are in.
    Partitions,
}

impl Transaction {
    /// Creates a transaction that creates `table`. If a table already exists, the commit returns a conflict.
    ///
    /// # Errors
    /// `InvalidArgument` if the location is not valid; errors of an invalid schema.
    pub fn create(
        storage: &Storage,
        table: TableHeader,
        operation: Operation,
        environment: &Environment,
    ) -> Result<Self> {
        let resolver = PathResolver::new(storage.root()).map_err(|error| error.in_table(storage.url()))?;
        let domain = table.clustering_domain().map_err(|error| error.in_table(storage.url()))?;
        let TableHeader { protocol, metadata, .. } = table;
        let changes = Changes {
            protocol: Some(protocol),
            metadata: Some(metadata),
            domains: domain.into_iter().collect(),
            ..Changes::default()
        };
        Ok(Self {
            storage: storage.clone(),
            base: None,
            reads: ReadSet::whole_table(&resolver),
            resolver,
            changes,
            isolation: None,
            replaces: None,
            operation,
            id: environment.uuid().to_string(),
            environment: environment.clone(),
        })
    }

    /// Creates a transaction on `base` that has no reads and no changes yet. If it only adds files, it is a blind
    /// append.
    ///
    /// # Errors
    /// `Unsupported` if the table has a feature that cannot be written.
    pub fn new(base: &Snapshot, operation: Operation, environment: &Environment) -> Result<Self> {
        ensure_writable(base.protocol(), base.metadata()).map_err(|error| base.located(error))?;
        Ok(Self {
            storage: base.storage().clone(),
            resolver: base.resolver().clone(),
            base: Some(base.clone()),
            reads: ReadSet::nothing(base.resolver()),
            changes: Changes::default(),
            isolation: None,
            replaces: None,
            operation,
            id: environment.uuid().to_string(),
            environment: environment.clone(),
        })
    }

    /// Creates a transaction that removes every file of `base`, and may then add new ones.
    ///
    /// It is serializable regardless of the table's isolation level: otherwise rows that another writer has added since
    /// `base` would survive, although only the new rows should remain.
    ///
    /// # Errors
    /// Returns the same errors as [`Transaction::new`], `InvalidArgument` if the table is append-only, and errors of
    /// replaying the log.
    pub fn overwrite(base: &Snapshot, operation: Operation, environment: &Environment) -> Result<Self> {
        let mut transaction = Self::new(base, operation, environment)?;
        base.ensure_removable()?;
        transaction.read_whole_table();
        transaction.isolation = Some(IsolationLevel::Serializable);
        transaction.replaces = Some(Replaced::WholeTable);
        transaction.changes.removes = overwrite::removes(base, None, environment.now_ms())?;
        Ok(transaction)
    }

    /// Creates a transaction that removes every file of `base` in the partitions of `files`, and adds `files`. If
    /// `files` is empty, it changes nothing. `evolved` is the table after the commit, if the commit also changes the
    /// schema.
    ///
    /// It is serializable like [`Transaction::overwrite`], but only with respect to these partitions.
    ///
    /// # Errors
    /// Returns the same errors as [`Transaction::overwrite`], and `InvalidArgument` if the table has no partition
    /// columns.
    pub fn overwrite_partitions(
        base: &Snapshot,
        evolved: Option<&TableHeader>,
        files: &[Add],
        operation: Operation,
        environment: &Environment,
    ) -> Result<Self> {
        let mut transaction = Self::new(base, operation, environment)?;
        base.ensure_removable()?;
        transaction.add_files(files)?;
        let located = |error| base.located(error);
        let mut partitions = PartitionSet::of(base, evolved).map_err(located)?;
        for batch in &transaction.changes.adds {
            partitions.insert(batch).map_err(located)?;
        }
        let removes = overwrite::removes(base, Some(&partitions), environment.now_ms()).map_err(located)?;
        transaction.changes.removes = removes;
        transaction.reads.partitions = Some(partitions);
        transaction.isolation = Some(IsolationLevel::Serializable);
        transaction.replaces = Some(Replaced::Partitions);
        Ok(transaction)
    }

    /// Returns the conflict between a transaction that has read all of `base` and the commits after `base`, if there is
    /// one.
    ///
    /// # Errors
    /// `CorruptLog`; also errors from the store.
    pub(crate) fn conflict_since(base: &Snapshot, environment: &Environment) -> Result<Option<Conflict>> {
        let mut transaction = Self::new(base, Operation::default(), environment)?;
        transaction.read_whole_table();
        transaction.isolation = Some(IsolationLevel::Serializable);
        commit_loop::conflict_so_far(&transaction)
    }

    /// Sets the isolation level. Without it, the table's level applies.
    #[must_use]
    pub fn with_isolation(mut self, level: IsolationLevel) -> Self {
        self.isolation = Some(level);
        self
    }

    /// Records that the transaction depends on all files of its base.
    pub fn read_whole_table(&mut self) {
        self.reads.whole_table = true;
    }

    /// Records the rows of the base that the transaction's new rows were computed from.
    ///
    /// Commits that change these rows, or add rows that the same query would have read, are conflicts according to the
    /// isolation level of the table; the transaction's own level does not matter. An append that has read rows is not a
    /// blind append.
    pub fn read_rows(&mut self, rows: RowsRead) {
        self.reads.source = Source::new(rows);
    }

    /// Records that the transaction depends on all metadata domains of its base except row tracking.
    pub(crate) fn read_domains(&mut self) {
        self.reads.domains = true;
    }

    /// Records that the transaction depends on all rows for which `predicate` is true, including rows that do not
    /// exist yet.
    pub fn read_predicate(&mut self, predicate: Predicate) {
        self.reads.add_predicate(predicate);
    }

    /// Records that the transaction depends on the files of `batch`, which has the log's columns.
    ///
    /// # Errors
    /// `CorruptLog` for a path that the table must not refer to.
    pub fn read_files(&mut self, batch: &RecordBatch) -> Result<()> {
        self.reads.add_files(batch)
    }

    /// Adds data files.
    ///
    /// # Errors
    /// `CorruptLog` if a map of an action has more entries than an Arrow array can hold.
    pub fn add_files(&mut self, files: &[Add]) -> Result<()> {
        self.changes.add_files(files)
    }

    /// Adds change data files. For this commit, readers of the change data feed then read only these files. Protocol:
    /// "Add CDC File".
    pub fn add_change_files(&mut self, files: impl IntoIterator<Item = AddCdcFile>) {
        self.changes.change_files.extend(files);
    }

    /// Adds the `add` actions of `batch`, which has the log's columns.
    pub fn add_batch(&mut self, batch: RecordBatch) {
        self.changes.adds.push(batch);
    }

    /// Adds files that an earlier version has removed, given by their `add` actions in a batch with the log's columns.
    /// A VACUUM that has begun since the base then causes a conflict.
    pub(crate) fn bring_back(&mut self, batch: RecordBatch) {
        self.changes.brings_files_back = true;
        self.add_batch(batch);
    }

    /// Adds the `remove` actions of `batch`, which has the log's columns.
    pub fn remove_batch(&mut self, batch: RecordBatch) {
        self.changes.removes.push(batch);
    }

    /// Removes files of the base, given by their `add` actions in a batch with the log's columns.
    ///
    /// # Errors
    /// `CorruptLog` for a batch that does not have the log's columns.
    pub(crate) fn remove_files(&mut self, adds: &RecordBatch) -> Result<()> {
        self.remove_rows_of(adds, RowsOfFile::Removed)
    }

    /// Removes files of the base, given by their `add` actions in a batch with the log's columns. The transaction must
    /// also add, with `dataChange` false, the files that now contain their rows.
    ///
    /// # Errors
    /// `CorruptLog` for a batch that does not have the log's columns.
    pub(crate) fn remove_moved(&mut self, adds: &RecordBatch) -> Result<()> {
        self.remove_rows_of(adds, RowsOfFile::Moved)
    }

    fn remove_rows_of(&mut self, adds: &RecordBatch, rows: RowsOfFile) -> Result<()> {
        if adds.num_rows() > 0 {
            self.changes.removes.push(overwrite::remove(adds, self.environment.now_ms(), rows)?);
        }
        Ok(())
    }

    /// Deletes rows of a data file that remains in the table. `file` is the logical file in the base, with its
    /// statistics and its deletion vector; `rows` are positions in the data file. Rows that are deleted already are
    /// ignored.
    ///
    /// The transaction depends only on these rows of the file. A commit that deletes other rows of the file is not a
    /// conflict; its deletion vector is merged with this one.
    pub fn delete_rows(&mut self, file: Add, rows: DeletionVector) {
        self.changes.row_deletes.push(RowDelete { file, rows });
    }

    /// Returns whether the transaction needs the statistics of files that other writers add.
    fn needs_statistics(&self) -> bool {
        self.reads.needs_statistics() || !self.changes.row_deletes.is_empty()
    }

    /// Records the progress of an application. The application can later read it to find out whether this commit
    /// succeeded. Protocol: "Transaction Identifiers".
    ///
    /// If another commit since the base has recorded the same version or a later one, the outcome is
    /// [`Outcome::AlreadyApplied`]. This does not check what the base itself has recorded.
    pub fn record_progress(&mut self, app_id: impl Into<String>, version: i64) {
        self.record(SetTransaction { app_id: app_id.into(), version, last_updated: None });
    }

    /// Records the progress of an application. If `lastUpdated` is missing, the current time is used.
    pub(crate) fn record(&mut self, progress: SetTransaction) {
        let last_updated = progress.last_updated.or_else(|| Some(self.environment.now_ms()));
        self.changes.transactions.push(SetTransaction { last_updated, ..progress });
    }

    /// Sets the configuration of a metadata domain, or removes the domain. Protocol: "Domain Metadata".
    ///
    /// # Errors
    /// `InvalidArgument` for a domain that the protocol reserves.
    pub fn set_domain(&mut self, domain: DomainMetadata) -> Result<()> {
        if domain.is_system_controlled() || RowIds::is_own_domain(&domain) {
            return Err(Error::invalid_argument(format!(
                "the metadata domain '{}' is reserved for the protocol",
                domain.domain
            ))
            .in_table(self.storage.url())
            .with_hint("choose a name that does not begin with 'delta.'"));
        }
        self.changes.domains.push(domain);
        Ok(())
    }

    /// Sets the metadata and the clustering columns to the values in `table`, and the protocol if it differs from the
    /// protocol of `base`.
    ///
    /// # Errors
    /// Returns the same errors as [`TableHeader::clustering_domain`].
    pub(crate) fn set_header(&mut self, table: TableHeader, base: &Snapshot) -> Result<()> {
        self.changes.domains.extend(table.clustering_domain()?);
        if table.protocol != *base.protocol() {
            self.set_protocol(table.protocol);
        }
        self.set_metadata(table.metadata);
        Ok(())
    }

    /// Sets a metadata domain that is reserved by the protocol.
    pub(crate) fn set_system_domain(&mut self, domain: DomainMetadata) {
        self.changes.domains.push(domain);
    }

    /// Sets the protocol. Protocol: "Protocol Evolution".
    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.changes.protocol = Some(protocol);
    }

    /// Sets the metadata. Protocol: "Change Metadata".
    pub(crate) fn set_metadata(&mut self, metadata: Metadata) {
        self.changes.metadata = Some(metadata);
    }

    /// Lets the transaction, and the work after its commit, refer to files below `roots` (URLs). A shallow clone adds
    /// such files.
    ///
    /// # Errors
    /// `InvalidArgument` if a root is not a valid location.
    pub(crate) fn allow_roots(&mut self, roots: &[String]) -> Result<()> {
        for root in roots {
            self.resolver = self.resolver.clone().allow(&parse_location(root)?)?;
        }
        Ok(())
    }

    /// Protects the checkpoints of all versions before this commit by recording its version in the metadata. Has no
    /// effect if the transaction does not set the metadata. (Table feature `checkpointProtection`.)
    pub(crate) fn protect_checkpoints(&mut self) {
        self.changes.protects_checkpoints = true;
    }

    /// Returns whether the commit would change nothing except the history.
    pub(crate) fn changes_nothing(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the version that was read; `None` if the transaction creates the table.
    pub fn base_version(&self) -> Option<u64> {
        self.base.as_ref().map(Snapshot::version)
    }

    /// Sets the id of the transaction. It must be unique.
    pub(crate) fn set_id(&mut self, id: &str) {
        id.clone_into(&mut self.id);
    }

    /// Returns the id of the transaction, as it will be in `commitInfo.txnId`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Bases an uncommitted transaction on another version of the table, usually on a newer one after a conflict.
    ///
    /// - A transaction that creates a table becomes an append, if another writer has created an equal table.
    /// - An overwrite replaces the rows of the new base instead.
    /// - An append stays as it is.
    ///
    /// # Errors
    /// `InvalidArgument` for a transaction that has read rows of its base, which must be read again. `SchemaMismatch`
    /// if the files of the transaction do not fit the schema or the partitioning of the new base. Also the errors of
    /// [`Transaction::overwrite`].
    pub fn onto(self, base: &Snapshot) -> Result<Self> {
        let Self { operation, environment, changes, .. } = self;
        let url = base.storage().url();
        let differs = match (&self.base, &changes.metadata) {
            (Some(old), _) => {
                old.protocol() != base.protocol() || rules::concerns_writers(old.metadata(), base.metadata())?
            }
            // The other writer's table may have rules, such as constraints, that the files were not checked against.
            (None, Some(new)) => {
                *base.schema() != new.schema()?
                    || base.metadata().partition_columns != new.partition_columns
                    || !TableWriteSpec::new(base.protocol(), base.metadata())?.rules().is_empty()
            }
            (None, None) => true,
        };
        if differs {
            return Err(Error::schema_mismatch(
                "the table is no longer as it was when the files were written: its schema, its partitioning or its \
                 properties differ",
            )
            .in_table(url)
            .at_version(base.version())
            .with_hint("write the data again"));
        }
        let is_creation = self.base.is_none();
        let reads_rows = self.reads.whole_table
            || !self.reads.predicates.is_empty()
            || !self.reads.files.is_empty()
            || !self.reads.source.rows.is_nothing();
        let has_read = match self.replaces {
            None if is_creation => false,
            // The files to remove were chosen by reading the base, so the caller must read and choose again.
            None => !self.reads.is_nothing() || !changes.removes.is_empty(),
            Some(Replaced::WholeTable) => false,
            Some(Replaced::Partitions) => reads_rows,
        } || !changes.row_deletes.is_empty();
        if has_read || (!is_creation && (changes.protocol.is_some() || changes.metadata.is_some())) {
            return Err(Error::invalid_argument(
                "the transaction depends on rows of the version that it has read",
            )
            .in_table(url)
            .with_hint("read the newest version, and repeat the operation"));
        }
        let mut moved = match self.replaces {
            None => Self::new(base, operation, &environment)?,
            Some(Replaced::WholeTable) => Self::overwrite(base, operation, &environment)?,
            Some(Replaced::Partitions) => {
                let mut files = Vec::new();
                for batch in &changes.adds {
                    files.extend(adds_of(batch)?);
                }
                Self::overwrite_partitions(base, None, &files, operation, &environment)?
            }
        };
        moved.id = self.id;
        moved.isolation = self.isolation.or(moved.isolation);
        moved.changes.adds = changes.adds;
        moved.changes.transactions = changes.transactions;
        moved.changes.domains = changes.domains;
        if is_creation {
            // The other writer's creation has already set table-level state, such as the clustering columns.
            moved.changes.domains.retain(|domain| !domain.is_system_controlled());
        }
        Ok(moved)
    }

    /// Commits the transaction, and calls `after` with the version that was created.
    ///
    /// # Errors
    /// Returns the same errors as [`Transaction::commit`].
    pub(crate) fn commit_then(self, after: fn(CommittedVersion<'_>)) -> Result<Outcome> {
        commit_loop::commit(self, after)
    }

    /// Returns the store of the table.
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the newest version of the table, after a conflict about files of `base`, the last version that was read.
    /// The caller may then repeat the transaction on the newest version, with the files of that version.
    ///
    /// # Errors
    /// `CommitConflict` if files that were written for `base` must not be added to the newest version; errors from
    /// the store.
    pub(crate) fn newer_base(&self, base: &Snapshot) -> Result<Snapshot> {
        let newest = base.refresh()?;
        match changed_since(base, &newest)? {
            None => Ok(newest),
            Some(reason) => Err(self.failed(Conflict::new(newest.version(), reason))),
        }
    }

    /// Returns the error for a conflict of this transaction.
    pub fn failed(&self, conflict: Conflict) -> Error {
        let kind =
            if self.base.is_none() { ErrorKind::TableAlreadyExists } else { ErrorKind::CommitConflict };
        conflict.into_error(kind, self.storage.url())
    }
}
