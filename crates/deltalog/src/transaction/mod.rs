//! Optimistic transactions: the changes to a table, and the one way to commit them. Protocol: "Creation of
//! New Log Entries".
//!
//! ```text
//!   base snapshot ──► actions ──► put-if-absent N.json
//!                                     │
//!                                     ├─ created ──────► committed
//!                                     ├─ exists ───────► read it ─┬─ own id ──► committed
//!                                     └─ no answer ────► read it ─┼─ other ───► conflict, or retry at N + 1
//!                                                                 └─ absent ──► put the same bytes again
//! ```
//!
//! - `N.json` is only ever created, never overwritten, and the store's client does not retry the create.
//! - Every commit has a unique id in `commitInfo.txnId`, by which its writer recognizes it when reading it
//!   back.
//! - The outcome is a value: committed at a version, or a conflict with a version for a reason. Errors are
//!   failures. All errors except `CommitStateUnknown` mean that nothing was committed.
//! - A blind append never conflicts with other appends. It is retried at the next version until it succeeds.

mod commit;
mod conflict;
mod create;
mod find;
mod operation;
mod overwrite;
mod standing;

pub use commit::{Committed, Outcome};
pub use conflict::{Conflict, ConflictReason, ReadSet};
pub use create::TableDefinition;
pub use find::find_commit;
pub use operation::{Operation, SaveMode};

use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::log::is_table;
use crate::protocol::{Action, Add, SetTransaction, ensure_writable, is_append_only};
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// Changes that are committed together.
#[derive(Debug)]
pub struct Transaction {
    storage: Storage,
    base: Option<Snapshot>,
    read: ReadSet,
    actions: Vec<Action>,
    operation: Operation,
    environment: Environment,
}

impl Transaction {
    /// Creates a transaction that creates a table.
    ///
    /// # Errors
    /// `SchemaMismatch`, `InvalidArgument` or `Unsupported` if such a table cannot exist;
    /// `TableAlreadyExists` if there is a log, even if its first versions were cleaned up.
    pub fn create(
        storage: &Storage,
        definition: &TableDefinition,
        operation: Operation,
        environment: &Environment,
    ) -> Result<Self> {
        let actions = definition.actions(environment).map_err(|error| error.in_table(storage.url()))?;
        if is_table(storage)? {
            return Err(Error::new(ErrorKind::TableAlreadyExists, "the table already exists")
                .in_table(storage.url())
                .with_reason(ConflictReason::TableCreated.name()));
        }
        Ok(Self {
            storage: storage.clone(),
            base: None,
            read: ReadSet::WholeTable,
            actions,
            operation,
            environment: environment.clone(),
        })
    }

    /// Creates a transaction that reads nothing and adds files.
    ///
    /// # Errors
    /// `Unsupported` if the table has a feature that cannot be written.
    pub fn append(base: &Snapshot, operation: Operation, environment: &Environment) -> Result<Self> {
        Self::on(base, ReadSet::Nothing, operation, environment)
    }

    /// Creates a transaction that removes every file of `base`, and may then add others.
    ///
    /// # Errors
    /// `Unsupported` if the table has a feature that cannot be written; `InvalidArgument` if it is
    /// append-only; also errors while reading the file list.
    pub fn overwrite(base: &Snapshot, operation: Operation, environment: &Environment) -> Result<Self> {
        let mut transaction = Self::on(base, ReadSet::WholeTable, operation, environment)?;
        if is_append_only(base.metadata()) {
            return Err(Error::invalid_argument(
                "the table is append-only (delta.appendOnly) and cannot be overwritten",
            )
            .in_table(base.storage().url()));
        }
        transaction.actions = overwrite::removes(base, environment.now_ms())?;
        Ok(transaction)
    }

    fn on(base: &Snapshot, read: ReadSet, operation: Operation, environment: &Environment) -> Result<Self> {
        ensure_writable(base.protocol(), base.metadata())
            .map_err(|error| error.in_table(base.storage().url()).at_version(base.version()))?;
        Ok(Self {
            storage: base.storage().clone(),
            base: Some(base.clone()),
            read,
            actions: Vec::new(),
            operation,
            environment: environment.clone(),
        })
    }

    /// Returns the conflict between a transaction that has read all of `base` and the commits after it, if
    /// there is one.
    ///
    /// # Errors
    /// `CorruptLog`; also errors of the store.
    pub(crate) fn conflict_since(base: &Snapshot, environment: &Environment) -> Result<Option<Conflict>> {
        Ok(standing::next_version(base, ReadSet::WholeTable, &[], environment)?.err())
    }

    /// Adds data files.
    pub fn add_files(&mut self, files: impl IntoIterator<Item = Add>) {
        self.actions.extend(files.into_iter().map(Action::Add));
    }

    /// Records the progress of an application, which shows it later whether this commit succeeded. Protocol:
    /// "Transaction Identifiers".
    pub fn record_progress(&mut self, app_id: impl Into<String>, version: i64) {
        self.record(SetTransaction { app_id: app_id.into(), version, last_updated: None });
    }

    /// Records the progress of an application. Without a time of update, the current time is used.
    pub(crate) fn record(&mut self, progress: SetTransaction) {
        let last_updated = progress.last_updated.or_else(|| Some(self.environment.now_ms()));
        self.actions.push(Action::Txn(SetTransaction { last_updated, ..progress }));
    }

    /// Returns the version that was read; `None` if the transaction creates the table.
    pub fn base_version(&self) -> Option<u64> {
        self.base.as_ref().map(Snapshot::version)
    }

    /// Commits the transaction. If the new version completes the table's checkpoint interval, a checkpoint is
    /// written as well.
    ///
    /// # Errors
    /// `CommitStateUnknown` if the store gave no answer and the commit cannot be read back. Every other error
    /// means that nothing was committed.
    pub fn commit(self) -> Result<Outcome> {
        commit::commit(self)
    }

    /// Commits the transaction like [`Transaction::commit`], but returns a conflict as an error.
    ///
    /// # Errors
    /// `CommitConflict`, or `TableAlreadyExists` if the transaction creates the table; also the errors of
    /// [`Transaction::commit`].
    pub fn commit_or_fail(self) -> Result<Committed> {
        let (table, creates) = (self.storage.url(), self.base.is_none());
        match self.commit()? {
            Outcome::Committed(committed) => Ok(committed),
            Outcome::Conflict(conflict) if creates => {
                Err(conflict.into_error(ErrorKind::TableAlreadyExists, table))
            }
            Outcome::Conflict(conflict) => Err(conflict.into_error(ErrorKind::CommitConflict, table)),
        }
    }
}
