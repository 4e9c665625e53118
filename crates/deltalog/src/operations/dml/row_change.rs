//! Commits the changes that a statement makes to the rows of a table.
//!
//! - Deleted rows are given by their positions in a file of the base version. Their deletion vectors are merged with
//!   deletion vectors that other writers have committed since. If both delete the same row, that is a conflict. A
//!   file that has no rows left is removed.
//! - New files belong to the statement. They are deleted if the commit is known to have failed or is no longer
//!   necessary, and kept if it is unknown whether the commit succeeded.
//! - After the commit, small files are compacted if files were added and the table or the session asks for
//!   compaction.
//! - Nothing is committed if there are no changes and no progress of an application to record. A new schema counts as
//!   a change, even if no rows change.

use std::collections::BTreeMap;

use roaring::RoaringTreemap;

use super::emptied::Emptied;
use super::metrics::{FileCounts, RowCounts, StatementMetrics, as_json, metrics};
use super::statement::Statement;
use crate::commit::own_files::OwnFiles;
use crate::commit::{AlreadyApplied, Committed, Operation, Outcome, RowsRead, Transaction, check_distinct};
use crate::error::{Error, Result};
use crate::expression::predicate::Predicate;
use crate::log::deletion_vector::DeletionVector;
use crate::log::replay::batches_of_adds;
use crate::operations::maintain::auto_compaction::{CommittedWrite, after_write, is_asked_for};
use crate::operations::rewrite::{ListedFile, RowWriter};
use crate::protocol::TableHeader;
use crate::protocol::{Add, AddCdcFile, Metadata, SetTransaction, ensure_writable};
use crate::runtime::environment::{AutoCompaction, Environment};
use crate::snapshot::Snapshot;
use crate::values::stats::num_records;

/// The changes of a statement to the rows of a table, which are then committed.
#[derive(Debug)]
pub struct RowChange {
    base: Snapshot,
    environment: Environment,
    started_ms: i64,
    reads: Reads,
    source: RowsRead,
    read_files: Vec<Add>,
    row_deletes: BTreeMap<String, (Add, RoaringTreemap)>,
    removed: Vec<Add>,
    emptied: Vec<ListedFile>,
    added: Vec<Add>,
    change_files: Vec<AddCdcFile>,
    progress: Vec<SetTransaction>,
    header: Option<TableHeader>,
    metadata: Option<Metadata>,
    id: Option<String>,
}

/// The rows that a statement has read, in addition to all rows of individual files.
#[derive(Debug)]
enum Reads {
    Nothing,
    Matching(Predicate),
    WholeTable,
}

/// The outcome of a statement, and its metrics under the names that the JVM implementation uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChangeOutcome {
    /// The changes were committed.
    Committed(Committed, StatementMetrics),
    /// There were no changes, so nothing was committed.
    Unchanged(StatementMetrics),
    /// The same application has already recorded this statement, or a later one, in the table, so nothing was done.
    AlreadyApplied(AlreadyApplied),
}

impl RowChangeOutcome {
    pub(super) fn is_committed(&self) -> bool {
        matches!(self, Self::Committed(..))
    }
}

impl RowChange {
    /// Begins a statement on exactly `base`. The statement's execution time is measured from this call.
    ///
    /// # Errors
    /// Returns `Unsupported` if the table has a feature that cannot be written, and `InvalidArgument` if it is
    /// append-only.
    pub fn new(base: &Snapshot, environment: &Environment) -> Result<Self> {
        ensure_writable(base.protocol(), base.metadata()).map_err(|error| base.located(error))?;
        base.ensure_removable()?;
        Ok(Self {
            base: base.clone(),
            environment: environment.clone(),
            started_ms: environment.now_ms(),
            reads: Reads::Nothing,
            source: RowsRead::Nothing,
            read_files: Vec::new(),
            row_deletes: BTreeMap::new(),
            removed: Vec::new(),
            emptied: Vec::new(),
            added: Vec::new(),
            change_files: Vec::new(),
            progress: Vec::new(),
            header: None,
            metadata: None,
            id: None,
        })
    }

    /// Records the time at which the statement began, in milliseconds since the epoch, and the `id` of its
    /// transaction, which another process can use to find the commit. The id must not have been used before.
    pub(super) fn began(&mut self, started_ms: i64, id: &str) {
        self.started_ms = started_ms;
        self.id = Some(id.to_owned());
    }

    /// Returns the version that the statement has read.
    pub fn base(&self) -> &Snapshot {
        &self.base
    }

    /// Records the rows that the statement has read to find the rows to change: the rows for which `predicate` may be
    /// true. `None` means that it has read the whole table.
    ///
    /// - A commit that adds a file which may have such rows is a conflict, except for blind appends under
    ///   `WriteSerializable`, the default. A commit that deletes other rows is not a conflict.
    /// - If the whole table was read, a commit that removes a file or deletes rows is also a conflict. A statement
    ///   that evaluates each row separately, but whose condition cannot be expressed as a predicate, should pass the
    ///   predicate `true` to avoid this.
    pub fn reads(&mut self, predicate: Option<Predicate>) {
        self.reads = predicate.map_or(Reads::WholeTable, Reads::Matching);
    }

    /// Records the rows of the table from which the source of a MERGE was computed. A commit that changes these rows,
    /// or adds more such rows, is a conflict, except for blind appends under `WriteSerializable`.
    pub fn computed_from(&mut self, rows: RowsRead) {
        self.source = rows;
    }

    /// Records that the statement depends on all rows of these files of the base version, for example because some of
    /// their rows match the source of a MERGE but are not changed. A commit that deletes rows of these files is a
    /// conflict.
    pub fn read_files(&mut self, files: impl IntoIterator<Item = Add>) {
        self.read_files.extend(files);
    }

    /// Deletes rows from a file of the base version, given by their positions in the file. `add` describes the file
    /// with its statistics and its deletion vector; rows that are already deleted need not be included. A row that is
    /// changed is deleted here, and added in a new file. The table must allow deletion vectors.
    pub fn delete_rows(&mut self, add: Add, rows: RoaringTreemap) {
        if !rows.is_empty() {
            let (_, deleted) =
                self.row_deletes.entry(add.path.clone()).or_insert_with(|| (add, RoaringTreemap::new()));
            *deleted |= rows;
        }
    }

    /// Removes rows from a file of the base version. If `by_vectors` is true, a deletion vector deletes the rows.
    /// Otherwise, the file is removed, and its remaining rows must be in new files.
    ///
    /// # Errors
    /// Returns `CorruptData` for a file that is not Parquet, or whose number of rows differs from its statistics.
    /// Also returns errors from the store.
    pub fn take_out(&mut self, file: &ListedFile, rows: RoaringTreemap, by_vectors: bool) -> Result<()> {
        match by_vectors {
            true => self.delete_rows(file.counted(&self.base, rows.len())?, rows),
            false => self.remove_file(file.add.clone()),
        }
        Ok(())
    }

    /// Removes a file of the base version with all its rows. If another writer has moved the rows to another file
    /// since, they are deleted in that file, provided that the table has deletion vectors.
    pub fn empty_file(&mut self, file: ListedFile) {
        self.emptied.push(file);
    }

    /// Removes a whole file of the base version. The rows that remain must be in a new file.
    pub fn remove_file(&mut self, add: Add) {
        self.removed.push(add);
    }

    /// Adds new data files, which then belong to the statement.
    pub fn add_files(&mut self, files: impl IntoIterator<Item = Add>) {
        self.added.extend(files);
    }

    /// Adds change data files, which must contain all changes of this statement. They then belong to the statement.
    /// (Protocol: "Change Data Files".)
    pub fn add_changes(&mut self, files: impl IntoIterator<Item = AddCdcFile>) {
        self.change_files.extend(files);
    }

    /// Completes the files of `writer`, adds them, and records the values of identity columns that were used.
    ///
    /// # Errors
    /// Returns errors from the store, after deleting the files that do not belong to the statement yet.
    pub(super) fn finish(&mut self, mut writer: RowWriter) -> Result<()> {
        self.add_files(writer.finish_data()?);
        self.add_changes(writer.finish_changes()?);
        if let Some(metadata) = writer.counted_metadata()? {
            self.set_metadata(metadata);
        }
        Ok(())
    }

    /// Records the progress of applications with the commit.
    pub fn record(&mut self, progress: impl IntoIterator<Item = SetTransaction>) {
        self.progress.extend(progress);
    }

    /// Changes the schema of the table, in the same commit, to the schema of the new files.
    pub fn set_header(&mut self, header: TableHeader) {
        self.header = Some(header);
    }

    /// Sets new metadata, which records the values of identity columns that were used.
    pub fn set_metadata(&mut self, metadata: Metadata) {
        self.metadata = Some(metadata);
    }

    /// Sets how small files are compacted after the commit. By default, the environment and the table decide.
    pub fn set_auto_compaction(&mut self, auto_compaction: AutoCompaction) {
        self.environment = self.environment.clone().with_auto_compaction(auto_compaction);
    }

    /// Returns the record in the table which shows that an application has already committed this statement; `None` if
    /// there is no such record.
    ///
    /// # Errors
    /// `CorruptLog`, and errors from the store.
    pub fn already_applied(&self) -> Result<Option<AlreadyApplied>> {
        check_distinct(&self.progress).map_err(|error| error.in_table(self.base.storage().url()))?;
        AlreadyApplied::in_snapshot(&self.base, &self.progress)
    }

    /// Commits the changes that `statement` makes. `operation` says who commits. Its name, parameters and metrics are
    /// replaced.
    ///
    /// # Errors
    /// Returns `CommitConflict`, `CommitStateUnknown`, `InvalidArgument` for changes that must not be in one commit,
    /// and errors from the store. After any error except `CommitStateUnknown`, nothing has been committed.
    pub fn commit(
        self,
        statement: &Statement,
        operation: Operation,
        rows: &RowCounts,
    ) -> Result<RowChangeOutcome> {
        let engine_info = operation.engine_info.clone();
        let outcome = self.try_commit(statement, operation, rows);
        let metadata = self.header.as_ref().map_or(self.base.metadata(), |header| &header.metadata);
        if is_asked_for(metadata, &self.environment)
            && let Ok(RowChangeOutcome::Committed(committed, _)) = &outcome
        {
            after_write(&CommittedWrite {
                storage: self.base.storage(),
                base: Some(&self.base),
                committed,
                engine_info,
                files: &self.added,
                environment: &self.environment,
            });
        }
        self.into_files().settle_unless(outcome, RowChangeOutcome::is_committed)
    }

    /// Abandons the statement. Its new files are deleted, unless a version refers to them.
    pub fn abort(self) {
        self.into_files().delete();
    }

    fn into_files(self) -> OwnFiles {
        let mut files = OwnFiles::of(&self.base, self.added.into_iter().map(|add| add.path));
        files.add_changes(self.change_files.into_iter().map(|file| file.path));
        files
    }

    fn try_commit(
        &self,
        statement: &Statement,
        operation: Operation,
        rows: &RowCounts,
    ) -> Result<RowChangeOutcome> {
        if let Some(applied) = self.already_applied()? {
            return Ok(RowChangeOutcome::AlreadyApplied(applied));
        }
        let taken_ms = self.environment.ms_since(self.started_ms);
        let metrics = metrics(statement, &self.file_counts(), rows, taken_ms);
        if self.row_deletes.is_empty()
            && self.removed.is_empty()
            && self.emptied.is_empty()
            && self.added.is_empty()
            && self.progress.is_empty()
            && self.header.is_none()
        {
            return Ok(RowChangeOutcome::Unchanged(metrics));
        }
        let mut operation = statement.describe(operation);
        operation.metrics = as_json(&metrics);
        let (mut emptied, mut is_first) = (Emptied::unmoved(&self.emptied), true);
        loop {
            match self.transaction(operation.clone(), &emptied)?.commit()? {
                Outcome::Committed(committed) => return Ok(RowChangeOutcome::Committed(committed, metrics)),
                Outcome::AlreadyApplied(applied) => return Ok(RowChangeOutcome::AlreadyApplied(applied)),
                Outcome::Conflict { conflict, transaction } => {
                    let moved = match std::mem::take(&mut is_first) {
                        true => Emptied::moved(&self.base, &self.emptied, &conflict)?,
                        false => None,
                    };
                    let Some(moved) = moved else { return Err(transaction.failed(conflict)) };
                    emptied = moved;
                }
            }
        }
    }

    fn transaction(&self, operation: Operation, emptied: &Emptied) -> Result<Transaction> {
        let mut transaction = Transaction::new(&self.base, operation, &self.environment)?;
        if let Some(id) = &self.id {
            transaction.set_id(id);
        }
        match &self.reads {
            Reads::Nothing => {}
            Reads::Matching(predicate) => transaction.read_predicate(predicate.clone()),
            Reads::WholeTable => transaction.read_whole_table(),
        }
        transaction.read_rows(self.source.clone());
        for batch in batches_of_adds(&self.read_files)? {
            transaction.read_files(&batch)?;
        }
        for (add, rows) in self.row_deletes.values() {
            transaction.delete_rows(add.clone(), DeletionVector::from(rows.clone()));
        }
        for (add, rows) in &emptied.rows {
            transaction.delete_rows(add.clone(), DeletionVector::from(rows.clone()));
        }
        for removed in [&self.removed, &emptied.removed] {
            batches_of_adds(removed)?.iter().try_for_each(|batch| transaction.remove_files(batch))?;
        }
        transaction.add_files(&self.added)?;
        transaction.add_change_files(self.change_files.iter().cloned());
        for progress in self.progress.iter().cloned() {
            transaction.record(progress);
        }
        if let Some(header) = &self.header {
            transaction.set_header(header.clone(), &self.base)?;
        }
        if let Some(metadata) = &self.metadata {
            transaction.set_metadata(metadata.clone());
        }
        Ok(transaction)
    }

    /// Counts the files that this statement adds, removes or changes. Concurrent commits on the same files may change
    /// the result.
    fn file_counts(&self) -> FileCounts {
        let size = |add: &Add| u64::try_from(add.size).unwrap_or_default();
        let removed = || self.removed.iter().chain(self.emptied.iter().map(|file| &file.add));
        let mut counts = FileCounts {
            added: self.added.len() as u64,
            added_bytes: self.added.iter().map(size).sum(),
            removed: removed().count() as u64,
            removed_bytes: removed().map(size).sum(),
            change_files: self.change_files.len() as u64,
            removed_vectors: removed().filter(|add| add.deletion_vector.is_some()).count() as u64,
            ..FileCounts::default()
        };
        for (add, rows) in self.row_deletes.values() {
            let vector = add.deletion_vector.as_ref();
            let deleted = vector.map_or(0, |vector| u64::try_from(vector.cardinality).unwrap_or_default());
            let all = add.stats.as_deref().and_then(num_records);
            if all.is_some_and(|all| rows.len().saturating_add(deleted) >= all) {
                counts.removed += 1;
                counts.removed_bytes += u64::try_from(add.size).unwrap_or_default();
                counts.removed_vectors += u64::from(vector.is_some());
            } else if vector.is_some() {
                counts.updated_vectors += 1;
            } else {
                counts.new_vectors += 1;
            }
        }
        counts
    }
}

/// Returns the error for a row of the table that several rows of the source match, although only one may.
pub fn cardinality_violation() -> Error {
    Error::invalid_argument(
        "[MERGE_CARDINALITY_VIOLATION] several rows of the source match one row of the table, which could be updated \
         or deleted more than once",
    )
    .with_hint("keep one row of the source for each key, or make the condition stricter")
}
