//! Optimistic transactions: what is to change, and the one way to commit it. Protocol: "Creation of New Log
//! Entries".
//!
//! ```text
//!   base snapshot ──► actions ──► put-if-absent N.json ──► created: committed
//!                                     │
//!                                     ├─ taken: read it. Own id: committed. Else check: conflict, or go on at N + 1
//!                                     └─ no answer: read it. Own id: committed. Foreign: as above. Absent: put the same bytes again
//! ```
//!
//! - `N.json` is only ever created, never overwritten, and the store's client does not retry the create.
//! - Every commit carries an id of its own in `commitInfo.txnId`: a writer knows its commit when it reads it
//!   back.
//! - The outcome is a value: committed at a version, or a conflict with a version and the reason. Errors are
//!   failures; all of them but `CommitStateUnknown` mean that nothing was committed.
//! - A blind append never conflicts with other appends; it goes on until it lands.

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

/// Changes that become one commit.
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
    /// A transaction that makes the table's first version.
    ///
    /// # Errors
    /// `SchemaMismatch`, `InvalidArgument` or `Unsupported` if there can be no such table;
    /// `TableAlreadyExists` if there is a log, also one whose first versions were cleaned up.
    pub fn create(
        storage: &Storage,
        definition: &TableDefinition,
        operation: Operation,
        environment: &Environment,
    ) -> Result<Self> {
        let actions = definition.actions(environment).map_err(|error| error.in_table(storage.url()))?;
        if is_table(storage)? {
            return Err(Error::new(ErrorKind::TableAlreadyExists, "there is a table already")
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

    /// A transaction that reads nothing and adds files.
    ///
    /// # Errors
    /// `Unsupported` if the table has a feature that cannot be written.
    pub fn append(base: &Snapshot, operation: Operation, environment: &Environment) -> Result<Self> {
        Self::on(base, ReadSet::Nothing, operation, environment)
    }

    /// A transaction that removes every file of `base`, and may then add others.
    ///
    /// # Errors
    /// `Unsupported` if the table has a feature that cannot be written, `InvalidArgument` if it is
    /// append-only, and what reading the file list gives.
    pub fn overwrite(base: &Snapshot, operation: Operation, environment: &Environment) -> Result<Self> {
        let mut transaction = Self::on(base, ReadSet::WholeTable, operation, environment)?;
        if is_append_only(base.metadata()) {
            return Err(Error::invalid_argument(
                "the table is append-only (delta.appendOnly), so nothing in it can be overwritten",
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

    /// Returns the conflict of a transaction that has read all of `base` with what was committed since, if there
    /// is one.
    ///
    /// # Errors
    /// `CorruptLog`, and the store's own.
    pub(crate) fn conflict_since(base: &Snapshot) -> Result<Option<Conflict>> {
        Ok(standing::next_version(base, ReadSet::WholeTable, &[])?.err())
    }

    /// Adds data files.
    pub fn add_files(&mut self, files: impl IntoIterator<Item = Add>) {
        self.actions.extend(files.into_iter().map(Action::Add));
    }

    /// Records the progress of an application, so that it can tell later what has landed. Protocol:
    /// "Transaction Identifiers".
    pub fn record_progress(&mut self, app_id: impl Into<String>, version: i64) {
        self.record(SetTransaction { app_id: app_id.into(), version, last_updated: None });
    }

    /// Records the progress of an application, updated now if it does not say when.
    pub(crate) fn record(&mut self, progress: SetTransaction) {
        let last_updated = progress.last_updated.or_else(|| Some(self.environment.now_ms()));
        self.actions.push(Action::Txn(SetTransaction { last_updated, ..progress }));
    }

    /// The version that was read; `None` if the table is being made.
    pub fn base_version(&self) -> Option<u64> {
        self.base.as_ref().map(Snapshot::version)
    }

    /// Commits. When it is committed and the table's checkpoint interval is full, a checkpoint is written as
    /// well.
    ///
    /// # Errors
    /// `CommitStateUnknown` if the store's answer was lost and cannot be found out; every other error means
    /// that nothing was committed.
    pub fn commit(self) -> Result<Outcome> {
        commit::commit(self)
    }

    /// As [`Transaction::commit`], with a conflict as an error.
    ///
    /// # Errors
    /// `CommitConflict`, or `TableAlreadyExists` for a table that was to be made, and those of
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
