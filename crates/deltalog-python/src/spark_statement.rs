//! `SparkStatement`: a DELETE, UPDATE or MERGE whose rows Spark finds and writes.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use deltalog::engine::deletion_vector::DeletionVector;
use deltalog::engine::dml::{
    MergeClause, RowChange, RowCounts, Statement, cardinality_violation, ensure_recordable,
};
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::rewrite::{FilesApart, ListedFile, listed_apart, listed_files};
use deltalog::engine::write::{TableWriteSpec, has_change_files, removed_rows};
use deltalog::{Error, Result, Snapshot};
use pyo3::prelude::*;

use crate::auto_compaction::AutoCompaction;
use crate::call::{call, call_that_commits};
use crate::commit_arguments::{AlreadyApplied, progress_of};
use crate::snapshot::Snapshot as PySnapshot;
use crate::spark_plan::{GivenRows, NumberedFile, SparkPlan, file_number, pack_numbered};
use crate::spark_write::{SparkWrite, operation};
use crate::statements::Done;
use crate::upkeep;
use crate::write_token::rows_read;

/// The description of a statement that its commit records: `deltalog.spark.dml.text.StatementText` in Python.
#[derive(FromPyObject)]
pub(crate) struct StatementText {
    /// `DELETE`, `UPDATE` or `MERGE`.
    name: String,
    predicate: Option<String>,
    /// The condition and the action of each clause `WHEN MATCHED`.
    matched: Vec<(Option<String>, String)>,
    not_matched: Vec<(Option<String>, String)>,
    not_matched_by_source: Vec<(Option<String>, String)>,
}

impl StatementText {
    pub(crate) fn statement(self) -> Result<Statement> {
        let clauses = |clauses: Vec<(Option<String>, String)>| {
            clauses.into_iter().map(|(predicate, action)| MergeClause { predicate, action }).collect()
        };
        match self.name.as_str() {
            "DELETE" => Ok(Statement::Delete { predicate: self.predicate }),
            "UPDATE" => Ok(Statement::Update { predicate: self.predicate }),
            "MERGE" => Ok(Statement::Merge {
                predicate: self.predicate.unwrap_or_default(),
                matched: clauses(self.matched),
                not_matched: clauses(self.not_matched),
                not_matched_by_source: clauses(self.not_matched_by_source),
            }),
            name => Err(Error::invalid_argument(format!("there is no statement {name}"))),
        }
    }
}

/// The result of beginning a statement: the statement and the write of its files, or the information that the table has
/// already recorded it.
#[derive(IntoPyObject)]
#[allow(clippy::large_enum_variant, reason = "moved into a Python object at once")]
enum Begun {
    Statement((SparkStatement, SparkWrite)),
    AlreadyApplied(AlreadyApplied),
}

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct SparkStatement {
    base: Snapshot,
    change: Mutex<Option<RowChange>>,
    uses_vectors: bool,
    files: Mutex<Vec<ListedFile>>,
    /// The number of rows in files that are removed without being read.
    unread_rows: AtomicU64,
    /// The numbers of the files that a single job rewrites with all of their rows, both changed and unchanged.
    rewritten: Mutex<BTreeSet<u32>>,
}

impl SparkStatement {
    fn files(&self) -> MutexGuard<'_, Vec<ListedFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> MutexGuard<'_, Option<RowChange>> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the files that lose all of their rows, and returns the remaining files.
    fn remove_unread(&self, apart: FilesApart) -> Vec<ListedFile> {
        if let Some(change) = self.change().as_mut() {
            apart.whole.into_iter().for_each(|file| change.empty_file(file));
        }
        self.unread_rows.store(apart.whole_rows, Ordering::Relaxed);
        apart.others
    }
}

fn file_of(files: &[ListedFile], number: u32) -> Result<&ListedFile> {
    let found = usize::try_from(number).ok().and_then(|number| files.get(number));
    found.ok_or_else(|| {
        Error::corrupt_data(format!("a task has removed rows of file number {number}, which does not exist"))
    })
}

#[pymethods]
impl SparkStatement {
    #[staticmethod]
    #[pyo3(signature = (snapshot, app_transaction = None, data_schema = None))]
    fn begin(
        py: Python<'_>,
        snapshot: &Bound<'_, PySnapshot>,
        app_transaction: Option<(String, i64)>,
        data_schema: Option<&str>,
    ) -> PyResult<Begun> {
        let base = snapshot.get().0.clone();
        call(py, || {
            let mut change = RowChange::new(&base, &upkeep::environment())?;
            change.record(progress_of(app_transaction));
            if let Some(applied) = change.already_applied()? {
                return Ok(Begun::AlreadyApplied(AlreadyApplied::new(&applied)));
            }
            let uses_vectors = base.deletes_by_vectors()?;
            let write = SparkWrite::of_statement(&base, data_schema)?;
            if let Some(evolved) = write.evolved() {
                change.set_header(evolved);
            }
            let statement = Self {
                base,
                change: Mutex::new(Some(change)),
                uses_vectors,
                files: Mutex::default(),
                unread_rows: AtomicU64::new(0),
                rewritten: Mutex::default(),
            };
            Ok(Begun::Statement((statement, write)))
        })
    }

    /// Whether rows are deleted by deletion vectors, so that their files remain.
    #[getter]
    fn uses_vectors(&self) -> bool {
        self.uses_vectors
    }

    /// Whether the table has a change data feed.
    #[getter]
    fn has_feed(&self) -> bool {
        self.base.metadata().has_change_feed()
    }

    fn check_recordable(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || {
            TableWriteSpec::of(&self.base)
                .and_then(|spec| ensure_recordable(&spec))
                .map_err(|error| self.base.located(error))
        })
    }

    #[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
    fn plan(
        &self,
        py: Python<'_>,
        filter_sql: &str,
        time_zone: &str,
        reads_whole_table: bool,
        keeps_matches: bool,
        removed_sql: Option<&str>,
        source_filters: Vec<String>,
    ) -> PyResult<SparkPlan> {
        call(py, || {
            // Without a filter, the statement reads all rows, but still evaluates each row separately. This is the
            // predicate `true`, and causes fewer conflicts than `reads_whole_table`.
            let sql = if filter_sql.trim().is_empty() { "true" } else { filter_sql };
            let predicate = parse(sql, time_zone, ParseMode::Pruning)?;
            let removed = removed_sql.and_then(|sql| parse(sql, time_zone, ParseMode::Strict).ok());
            let apart = removed.map(|condition| listed_apart(&self.base, &condition)).transpose()?.flatten();
            let listed = match apart {
                Some(apart) => self.remove_unread(apart),
                None => listed_files(&self.base, Some(&predicate))?,
            };
            let source = rows_read(&source_filters, time_zone)?;
            if let Some(change) = self.change().as_mut() {
                change.computed_from(source);
                change.reads((!reads_whole_table).then_some(predicate));
                if keeps_matches {
                    change.read_files(listed.iter().map(|file| file.add.clone()));
                }
            }
            let numbered =
                |(index, file)| file_number(index).map(|number| NumberedFile { number, file, given: None });
            let files = listed.iter().enumerate().map(numbered).collect::<Result<Vec<_>>>()?;
            let plan = pack_numbered(&self.base, &files)?;
            *self.files() = listed;
            Ok(SparkPlan(plan))
        })
    }

    fn copies(
        &self,
        py: Python<'_>,
        write: &Bound<'_, SparkWrite>,
        with_removed: bool,
    ) -> PyResult<Option<SparkPlan>> {
        let write = write.get();
        call(py, || {
            let files = self.files();
            let (mut copied, mut removed) = (Vec::new(), Vec::new());
            for (number, rows) in removed_rows(&write.reports())? {
                let file = file_of(&files, number)?;
                let number = file_number(number as usize)?;
                let deleted =
                    file.deleted_with(&self.base, &rows).map_err(|error| self.base.located(error))?;
                if let Some(deleted) = deleted {
                    copied.push(NumberedFile { number, file, given: Some(GivenRows::Without(deleted)) });
                }
                if with_removed {
                    let rows = GivenRows::Only(DeletionVector::from(rows));
                    removed.push(NumberedFile { number: -1 - number, file, given: Some(rows) });
                }
            }
            if copied.is_empty() {
                return Ok(None);
            }
            copied.append(&mut removed);
            pack_numbered(&self.base, &copied).map(|plan| Some(SparkPlan(plan)))
        })
    }

    fn rewrites(&self, py: Python<'_>, numbers: BTreeSet<u32>) -> PyResult<SparkPlan> {
        call(py, || {
            let files = self.files();
            let numbered = |number: &u32| {
                let file = file_of(&files, *number)?;
                Ok(NumberedFile { number: file_number(*number as usize)?, file, given: None })
            };
            let plan = pack_numbered(&self.base, &numbers.iter().map(numbered).collect::<Result<Vec<_>>>()?)?;
            *self.rewritten.lock().unwrap_or_else(PoisonError::into_inner) = numbers;
            Ok(SparkPlan(plan))
        })
    }

    fn has_change_files(&self, py: Python<'_>, write: &Bound<'_, SparkWrite>) -> PyResult<bool> {
        let write = write.get();
        call(py, || has_change_files(&write.reports()))
    }

    #[pyo3(signature = (
        write, text, engine_info, user_metadata, source_rows, removes_once, scan_ms, rewrite_ms, auto_compaction = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
    fn commit(
        &self,
        py: Python<'_>,
        write: &Bound<'_, SparkWrite>,
        text: StatementText,
        engine_info: &str,
        user_metadata: Option<String>,
        source_rows: u64,
        removes_once: bool,
        scan_ms: u64,
        rewrite_ms: u64,
        auto_compaction: Option<AutoCompaction>,
    ) -> PyResult<Done> {
        let write = write.get();
        call_that_commits(py, || {
            let statement = text.statement()?;
            let taken = self.change().take();
            let mut change = taken.ok_or_else(|| {
                self.base.located(Error::invalid_argument("the statement was already committed or aborted"))
            })?;
            if let Some(settings) = auto_compaction {
                change.set_auto_compaction(settings.into());
            }
            let (reported, metadata) = write.take_reported()?;
            let mut counts = RowCounts::of_tasks(&reported, source_rows);
            let unread = self.unread_rows.load(Ordering::Relaxed);
            counts.deleted = counts.deleted.map(|deleted| deleted.saturating_add(unread));
            (counts.scan_ms, counts.rewrite_ms) = (scan_ms, rewrite_ms);
            change.add_files(reported.files);
            change.add_changes(reported.changes);
            if let Some(metadata) = metadata {
                change.set_metadata(metadata);
            }
            let described = (|| {
                if removes_once && let Some(file) = reported.matched_twice {
                    return Err(cardinality_violation().at_path(&file_of(&self.files(), file)?.add.path));
                }
                let files = self.files();
                let mut rewritten =
                    mem::take(&mut *self.rewritten.lock().unwrap_or_else(PoisonError::into_inner));
                reported.removed.iter().for_each(|(number, _)| {
                    rewritten.remove(number);
                });
                if let Some(number) = rewritten.first() {
                    let path = &file_of(&files, *number)?.add.path;
                    return Err(unstable_condition().at_path(path));
                }
                for (number, rows) in reported.removed {
                    change.take_out(file_of(&files, number)?, rows, self.uses_vectors)?;
                }
                Ok(())
            })();
            if let Err(error) = described {
                change.abort();
                return Err(self.base.located(error));
            }
            let operation = operation(statement.name(), BTreeMap::new(), engine_info, user_metadata);
            change.commit(&statement, operation, &counts).map(Done::from)
        })
    }
}

/// Returns the error for a statement that found rows to change in a file, but found none when it rewrote the file.
fn unstable_condition() -> Error {
    Error::invalid_argument("the condition of the statement has different values when it is evaluated again")
        .with_hint("use functions in it that always return the same value for the same row")
}
