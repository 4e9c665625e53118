//! Commits a write by making a transaction from its files.
//!
//! After the commit, small files are compacted if the table or the session asks for it.

use super::{PendingWrite, Target, WriteOutcome};
use crate::commit::own_files::OwnFiles;
use crate::commit::{
    AlreadyApplied, Committed, Conflict, ConflictReason, IsolationLevel, Operation, Outcome,
    PartitionOverwrite, SaveMode, Transaction,
};
use crate::error::{Error, ErrorKind, Result};
use crate::operations::define::CreationMode;
use crate::operations::insert::replacement::{NewRows, replace_matching};
use crate::operations::maintain::auto_compaction::{CommittedWrite, after_write, is_asked_for};
use crate::protocol::Add;
use crate::protocol::TableHeader;
use crate::snapshot::Snapshot;
use crate::values::stats::num_records;

impl PendingWrite {
    /// Commits `files`. If the commit fails or has no effect, the files are deleted. If it is unknown whether the
    /// commit succeeded, they are kept.
    ///
    /// # Errors
    /// Returns `CommitConflict`, `TableAlreadyExists`, `CommitStateUnknown`, and errors from the store. After any error
    /// except `CommitStateUnknown`, this call has committed nothing.
    pub fn commit(self, files: Vec<Add>, operation: Operation) -> Result<WriteOutcome> {
        let (storage, base) = (self.storage.clone(), self.base().cloned());
        let mut own = OwnFiles::new(&storage, base.as_ref());
        own.add(files.iter().map(|file| &file.path));
        let compacts = is_asked_for(self.table().1, &self.environment);
        let (environment, engine_info) = (self.environment.clone(), operation.engine_info.clone());
        let outcome = self.try_commit(&files, operation, &mut own);
        let outcome = own.settle_unless(outcome, |outcome| outcome.version().is_some());
        if compacts && let Ok(WriteOutcome::Committed(committed)) = &outcome {
            after_write(&CommittedWrite {
                storage: &storage,
                base: base.as_ref(),
                committed,
                engine_info,
                files: &files,
                environment: &environment,
            });
        }
        outcome
    }

    /// Commits `files` as [`PendingWrite::commit`] does, but returns an error if there was nothing to do.
    ///
    /// # Errors
    /// Returns `CommitConflict` with the reason `app_transaction` for a write that was already committed,
    /// `TableAlreadyExists` even in the mode `Ignore`, and `InvalidArgument` for an empty write that skips its
    /// commit. Also returns the errors of [`PendingWrite::commit`].
    pub fn commit_or_fail(self, files: Vec<Add>, operation: Operation) -> Result<Committed> {
        let table = self.storage.url();
        self.committed(files, operation)?
            .ok_or_else(|| Error::invalid_argument("the write has nothing to commit").in_table(table))
    }

    /// Commits `files` as [`PendingWrite::commit_or_fail`] does, but commits nothing and returns `None` if the write
    /// changes nothing; see [`PendingWrite::skip_if_empty`].
    ///
    /// # Errors
    /// Returns the same errors as [`PendingWrite::commit_or_fail`], except `InvalidArgument` for an empty write.
    pub fn commit_if_changed(mut self, files: Vec<Add>, operation: Operation) -> Result<Option<Committed>> {
        self.skip_if_empty();
        self.committed(files, operation)
    }

    /// Commits `files`. Returns `None` if the write changes nothing and skips its commit.
    fn committed(self, files: Vec<Add>, operation: Operation) -> Result<Option<Committed>> {
        let table = self.storage.url();
        match self.commit(files, operation)? {
            WriteOutcome::Committed(committed) => Ok(Some(committed)),
            WriteOutcome::Unchanged => Ok(None),
            WriteOutcome::AlreadyApplied(applied) => Err(applied.into_error(table)),
            WriteOutcome::TableExists(conflict) => {
                Err(conflict.into_error(ErrorKind::TableAlreadyExists, table))
            }
        }
    }

    /// Commits `files`. Additional files that are written for the commit are added to `own`.
    fn try_commit(self, files: &[Add], operation: Operation, own: &mut OwnFiles) -> Result<WriteOutcome> {
        if let Some(applied) = self.already_applied {
            return Ok(WriteOutcome::AlreadyApplied(applied));
        }
        let operation = with_metrics(operation, files);
        let replaces_partitions = self.partition_overwrite == PartitionOverwrite::Dynamic
            && !self.spec.partition_columns().is_empty();
        let environment = &self.environment;
        let mut transaction = match (&self.target, self.mode) {
            (Target::Existing(base), _) if let Some(replaced) = &self.replaced => {
                let mut transaction = Transaction::new(base, operation, environment)?
                    .with_isolation(IsolationLevel::Serializable);
                let (protocol, metadata) = self.table();
                let new = NewRows { protocol, metadata, spec: &self.spec, files };
                replace_matching(&mut transaction, base, replaced, &new, environment, own)?;
                transaction
            }
            (Target::Existing(base), SaveMode::Overwrite) if replaces_partitions => {
                Transaction::overwrite_partitions(base, self.evolved.as_ref(), files, operation, environment)?
            }
            (target, mode) => {
                let mut transaction = match target {
                    Target::New(table) => {
                        Transaction::create(&self.storage, TableHeader::clone(table), operation, environment)
                    }
                    Target::Existing(base) if mode == SaveMode::Overwrite => {
                        Transaction::overwrite(base, operation, environment)
                    }
                    Target::Existing(base) => Transaction::new(base, operation, environment),
                }?;
                transaction.add_files(files)?;
                transaction
            }
        };
        transaction.read_rows(self.reads.clone());
        for progress in self.progress.iter().cloned() {
            transaction.record(progress);
        }
        if let (Target::Existing(base), Some(table)) = (&self.target, &self.evolved) {
            transaction.set_header(table.clone(), base)?;
        }
        if let Some(metadata) = self.counted_metadata()? {
            transaction.set_metadata(metadata);
        }
        if self.skips_empty && transaction.changes_nothing() {
            return Ok(WriteOutcome::Unchanged);
        }
        match transaction.commit()? {
            Outcome::Conflict { conflict, transaction }
                if conflict.reason == ConflictReason::TableCreated =>
            {
                self.meet_created(conflict, *transaction)
            }
            outcome => WriteOutcome::of(outcome),
        }
    }

    /// Determines the outcome if another writer has created the table first.
    fn meet_created(self, conflict: Conflict, transaction: Transaction) -> Result<WriteOutcome> {
        let created = match self.mode == SaveMode::Append || !self.progress.is_empty() {
            true => Some(Snapshot::open(&self.storage, None)?),
            false => None,
        };
        // An earlier attempt of the same write may have created the table. This could not be checked while there was
        // no table.
        if let Some(created) = &created
            && let Some(applied) = AlreadyApplied::in_snapshot(created, &self.progress)?
        {
            return Ok(WriteOutcome::AlreadyApplied(applied));
        }
        match (self.mode, created) {
            (SaveMode::Append, Some(created)) => append_to_created(conflict, transaction, &created),
            (SaveMode::Ignore, _) => Ok(WriteOutcome::TableExists(conflict)),
            // This mode may replace an existing table, but not this one, because it was created concurrently.
            _ if self.definition == Some(CreationMode::CreateOrReplace) => {
                Err(conflict.into_error(ErrorKind::CommitConflict, self.storage.url()))
            }
            _ => Err(transaction.failed(conflict)),
        }
    }
}

/// Appends to the table `created` by another writer, if it is the same as the table that `transaction` would have
/// created.
fn append_to_created(
    conflict: Conflict,
    transaction: Transaction,
    created: &Snapshot,
) -> Result<WriteOutcome> {
    let failed = transaction.failed(conflict);
    match transaction.onto(created) {
        Err(error) if error.kind() == ErrorKind::SchemaMismatch => Err(failed),
        transaction => WriteOutcome::of(transaction?.commit()?),
    }
}

/// Adds the metrics that every Delta writer records in its commits.
fn with_metrics(operation: Operation, files: &[Add]) -> Operation {
    let bytes: u64 = files.iter().filter_map(|file| u64::try_from(file.size).ok()).sum();
    let rows: Option<u64> = files.iter().map(|file| num_records(file.stats.as_deref()?)).sum();
    let operation = operation.metric("numFiles", files.len() as u64).metric("numOutputBytes", bytes);
    match rows {
        Some(rows) => operation.metric("numOutputRows", rows),
        None => operation,
    }
}
