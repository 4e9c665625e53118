//! Statements whose rows are found and written by tasks in several processes. An engine runs the tasks, which use
//! this crate.
//!
//! ```text
//!   coordinator                           tasks                                   coordinator, perhaps another process
//!   StatementTask::new ── as JSON ──────► rows that are marked (MarkedRows)
//!                                         writer ── StatementFragment ──────────► commit
//! ```
//!
//! - Tasks report removed rows by the number of their file ([`super::FileNumbers`]) and their position in the file.
//! - Without deletion vectors, the process that commits copies the remaining rows of the affected files.
//! - All new files of the tasks are in one directory, whose name is also the id of the transaction.
//! - If the commit is known to have failed, or has no effect, all files of the tasks are deleted.

use std::collections::BTreeMap;

use super::metrics::RowCounts;
use super::numbered::FileNumbers;
use super::row_change::{RowChange, RowChangeOutcome, cardinality_violation};
use super::run::files_of_statement;
use super::statement::Statement;
use crate::commit::own_files::discard_unused;
use crate::commit::{AlreadyApplied, Conflict, ConflictReason, Operation};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::Predicate;
use crate::operations::insert::distributed::{Fragment, WriteTask, check, delete_files, delete_unnamed};
use crate::operations::rewrite::{RowWriter, copy_others, list};
use crate::protocol::SetTransaction;
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::write::row_copy::with_ids;
use crate::write::{DataWriter, Reported, TableWriteSpec, reported};

/// The data that the tasks and the commit of a statement need. It contains no credentials.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementTask(WriteTask);

/// The result of a task: the files that it has written, and the rows that it has removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementFragment {
    /// The files that the task has written.
    pub files: Fragment,
    /// The removed rows, as a report of [`super::MarkedRows`].
    pub report: Vec<u8>,
}

/// The combined results of a statement's tasks, ready to be committed.
#[derive(Debug)]
pub struct TaskedStatement {
    /// The description of the statement.
    pub statement: Statement,
    /// Who commits, and additional fields of the commit.
    pub operation: Operation,
    /// The progress of applications to record.
    pub app_transactions: Vec<SetTransaction>,
    /// The rows that the statement has read; `None` for the whole table. See [`RowChange::reads`].
    pub reads: Option<Predicate>,
    /// Whether the statement depends on all files that it has read, because rows that match but are not changed also
    /// affect its result.
    pub keeps_matches: bool,
    /// Whether it is an error if several rows of the source match the same row, as in most forms of MERGE.
    pub matches_once: bool,
    /// The number of rows of the source of a MERGE.
    pub source_rows: u64,
    /// The time at which the statement began, in milliseconds since the epoch.
    pub started_ms: i64,
}

impl StatementTask {
    /// Begins a statement on exactly `base`. Its new files are written below `directory`. For applications that number
    /// their statements, `progress` is what the commit is to record. If the table already records it, or later
    /// progress, also returns that record: the statement has been committed before.
    ///
    /// # Errors
    /// Returns `Unsupported` if the table has a feature that cannot be written, a rule that cannot be evaluated, or a
    /// change data feed for which files would have to be written. Returns `InvalidArgument` if the table is
    /// append-only.
    pub fn new(
        base: &Snapshot,
        statement: &str,
        directory: &str,
        progress: &[SetTransaction],
        environment: &Environment,
    ) -> Result<(Self, Option<AlreadyApplied>)> {
        let located = |error| base.located(error);
        let mut change = RowChange::new(base, environment)?;
        if base.metadata().has_change_feed() && !(statement == "DELETE" && base.deletes_by_vectors()?) {
            return Err(located(
                Error::unsupported(format!(
                    "{statement} by tasks in several processes does not write the change data files that the table's \
                     change data feed needs (delta.enableChangeDataFeed)"
                ))
                .with_hint(
                    "use a classic Spark session or deltalog.DeltaTable; DELETE works with delta.enableDeletionVectors",
                ),
            ));
        }
        change.record(progress.iter().cloned());
        let applied = change.already_applied()?;
        let pending = files_of_statement(base, None, environment)?;
        pending.spec().bound_rules().map_err(located)?;
        Ok((Self(WriteTask::of(&pending, directory.to_owned())), applied))
    }

    /// Parses a string that [`StatementTask::to_json`] has returned.
    ///
    /// # Errors
    /// Returns the same errors as [`WriteTask::from_json`].
    pub fn from_json(json: &str) -> Result<Self> {
        WriteTask::from_json(json).map(Self)
    }

    /// Serializes the task for other processes.
    ///
    /// # Errors
    /// Returns the same errors as [`WriteTask::to_json`].
    pub fn to_json(&self) -> Result<String> {
        self.0.to_json()
    }

    /// Returns the location of the table.
    pub fn table_url(&self) -> &str {
        self.0.table_url()
    }

    /// Returns a writer for changed and new rows. The rows must include their values of identity columns. If the
    /// table has row tracking, they must also include their row ids, as a scan returns them.
    ///
    /// # Errors
    /// Returns the same errors as [`WriteTask::writer`].
    pub fn writer(&self, storage: &Storage, environment: &Environment) -> Result<DataWriter> {
        self.0.writer_by(self.spec().map_err(|error| error.in_table(storage.url()))?, storage, environment)
    }

    /// Returns the result of a task. `writer` is `None` if the task has written no rows.
    ///
    /// # Errors
    /// Returns the same errors as [`DataWriter::finish`].
    pub fn fragment(&self, writer: Option<DataWriter>, report: Vec<u8>) -> Result<StatementFragment> {
        let files = match writer {
            Some(writer) => self.0.fragment(writer)?,
            None => Fragment::new(self.0.directory(), Vec::new(), None)?,
        };
        Ok(StatementFragment { files, report })
    }

    fn spec(&self) -> Result<TableWriteSpec> {
        let (protocol, metadata) = self.0.table();
        with_ids(protocol, metadata, self.0.spec()?.with_given_identities())
    }

    /// Commits the changes that the tasks have made to rows of `base`, the version that the statement has read.
    ///
    /// # Errors
    /// Returns the errors of [`RowChange::commit`], `InvalidArgument` if a row matches several rows of the source but
    /// must not, and for results of another statement, `CorruptData`, and errors from the store.
    pub fn commit(
        &self,
        base: &Snapshot,
        request: TaskedStatement,
        fragments: &[StatementFragment],
        environment: &Environment,
    ) -> Result<RowChangeOutcome> {
        let storage = base.storage();
        let result = self.try_commit(base, request, fragments, environment);
        let is_committed = |(outcome, _): &(RowChangeOutcome, Vec<String>)| outcome.is_committed();
        let (outcome, unnamed) = discard_unused(result, is_committed, || self.clean(storage))?;
        if outcome.is_committed() {
            delete_unnamed(storage, self.0.directory(), &unnamed);
        }
        Ok(outcome)
    }

    /// Deletes all files of the tasks. The statement must not have been committed.
    ///
    /// # Errors
    /// Returns errors from the store, but only after trying to delete every file.
    pub fn delete(&self, storage: &Storage) -> Result<()> {
        delete_files(storage, self.0.directory())
    }

    fn clean(&self, storage: &Storage) {
        if let Err(error) = self.delete(storage) {
            tracing::warn!(table = storage.url(), %error, "the files of a statement could not be deleted");
        }
    }

    /// Returns the outcome, and the decoded paths of files in the statement's directory that no task's result lists.
    fn try_commit(
        &self,
        base: &Snapshot,
        request: TaskedStatement,
        fragments: &[StatementFragment],
        environment: &Environment,
    ) -> Result<(RowChangeOutcome, Vec<String>)> {
        let located = |error| base.located(error);
        if self.0.table().1.id != base.metadata().id {
            let replaced = Conflict::new(base.version(), ConflictReason::TableReplaced);
            return Err(replaced.into_error(ErrorKind::CommitConflict, base.storage().url()));
        }
        let (began_ms, scan_ms) = (environment.now_ms(), environment.ms_since(request.started_ms));
        let spec = self.spec().map_err(located)?;
        let files: Vec<Fragment> = fragments.iter().map(|fragment| fragment.files.clone()).collect();
        let checked = check(base.storage(), &spec, self.0.directory(), &files).map_err(located)?;
        let reports: Vec<u8> = fragments.iter().flat_map(|fragment| fragment.report.clone()).collect();
        let reported = reported(&reports, 0..0, &spec).map_err(located)?;
        let mut change = RowChange::new(base, environment)?;
        change.began(request.started_ms, self.0.directory());
        change.record(request.app_transactions);
        change.add_files(checked.files);
        let taken = read(&mut change, request.reads, request.keeps_matches).and_then(|()| {
            let copied = take(&mut change, &reported, request.matches_once, environment)?;
            let mut counts = RowCounts::of_tasks(&reported, request.source_rows);
            (counts.copied, counts.scan_ms) = (copied, scan_ms);
            counts.rewrite_ms = environment.ms_since(began_ms);
            Ok(counts)
        });
        match taken {
            Ok(counts) => {
                let outcome = change.commit(&request.statement, request.operation, &counts)?;
                Ok((outcome, checked.unnamed))
            }
            Err(error) => {
                change.abort();
                Err(located(error))
            }
        }
    }
}

fn read(change: &mut RowChange, reads: Option<Predicate>, keeps_matches: bool) -> Result<()> {
    if keeps_matches {
        let listed = list(change.base(), reads.as_ref(), |_| true)?;
        change.read_files(listed.into_iter().map(|file| file.add));
    }
    change.reads(reads);
    Ok(())
}

/// Removes the rows from their files. Returns how many remaining rows were copied.
fn take(
    change: &mut RowChange,
    reported: &Reported,
    matches_once: bool,
    environment: &Environment,
) -> Result<u64> {
    let base = change.base().clone();
    let files = match reported.removed.is_empty() {
        true => BTreeMap::new(),
        false => FileNumbers::of(&base)?.files(&base, reported.removed.keys().copied())?,
    };
    if reported.matched_twice.is_some() && matches_once {
        return Err(cardinality_violation());
    }
    let by_vectors = base.deletes_by_vectors()?;
    let mut copied = 0;
    let mut writer = RowWriter::new(&base, environment, false)?;
    for (number, file) in &files {
        let Some(rows) = reported.removed.get(number) else { continue };
        if !by_vectors && file.deleted_with(&base, rows)?.is_some() {
            copied += copy_others(&base, &mut writer, file, rows, |_, _, _| Ok(()))
                .map_err(|error| error.at_path(&file.add.path))?;
        }
        change.take_out(file, rows.clone(), by_vectors)?;
    }
    change.finish(writer)?;
    Ok(copied)
}
