//! DELETE, UPDATE and MERGE.

use std::collections::BTreeMap;
use std::sync::Arc;

use deltalog::engine::commit::Operation;
use deltalog::engine::dml::{self, Clause, ClauseAction, Merge, MergeSource, Request, RowChangeOutcome};
use deltalog::engine::protocol::StructType;
use deltalog::{Error, Result, Snapshot as CoreSnapshot};
use pyo3::prelude::*;

use crate::call::call_that_commits;
use crate::commit_arguments::{AlreadyApplied, CommitArguments};
use crate::snapshot::Snapshot;
use crate::stream::{ArrowStream, reader_of};
use crate::upkeep::{environment_with, noted};
use crate::write_batches::pieces;

/// The outcome of a statement.
#[derive(IntoPyObject)]
pub(crate) enum Done {
    /// The metrics, and the versions that were committed. The list of versions is empty if there was nothing to
    /// change.
    Metrics((BTreeMap<&'static str, u64>, Vec<u64>)),
    AlreadyApplied(AlreadyApplied),
}

impl Done {
    fn of(outcome: RowChangeOutcome, versions: Vec<u64>) -> Self {
        match outcome {
            RowChangeOutcome::Committed(_, metrics) | RowChangeOutcome::Unchanged(metrics) => {
                Self::Metrics((metrics.into_iter().collect(), versions))
            }
            RowChangeOutcome::AlreadyApplied(applied) => Self::AlreadyApplied(AlreadyApplied::new(&applied)),
        }
    }
}

impl From<RowChangeOutcome> for Done {
    fn from(outcome: RowChangeOutcome) -> Self {
        let version = match &outcome {
            RowChangeOutcome::Committed(committed, _) => Some(committed.version),
            _ => None,
        };
        Self::of(outcome, version.into_iter().collect())
    }
}

/// Runs a statement on the version of `snapshot`. Other Python threads can run at the same time.
fn run(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    commit: CommitArguments,
    file_format: Option<String>,
    work: impl FnOnce(&CoreSnapshot, Request) -> Result<RowChangeOutcome> + Send,
) -> PyResult<Done> {
    let snapshot = snapshot.get().0.clone();
    call_that_commits(py, || {
        let commits = Arc::default();
        let environment = environment_with(file_format.as_deref())?.with_commits_in(&commits);
        let mut request = Request::new(&environment);
        request.operation = commit.describe(Operation::default())?;
        request.app_transactions = commit.progress();
        let outcome = work(&snapshot, request)?;
        Ok(Done::of(outcome, noted(&commits)))
    })
}

/// Deletes the rows for which a predicate is true.
#[pyfunction]
#[pyo3(signature = (snapshot, predicate, commit, file_format = None))]
pub(crate) fn delete_rows(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    predicate: Option<String>,
    commit: CommitArguments,
    file_format: Option<String>,
) -> PyResult<Done> {
    run(py, snapshot, commit, file_format, |base, request| dml::delete(base, predicate.as_deref(), request))
}

/// Assigns new values to columns in the rows for which a predicate is true.
#[pyfunction]
#[pyo3(signature = (snapshot, values, predicate, commit, file_format = None))]
pub(crate) fn update_rows(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    values: Vec<(String, String)>,
    predicate: Option<String>,
    commit: CommitArguments,
    file_format: Option<String>,
) -> PyResult<Done> {
    run(py, snapshot, commit, file_format, |base, request| {
        dml::update(base, &values, predicate.as_deref(), request)
    })
}

/// A clause of a MERGE: `deltalog.table.merge.MergeClause` in Python.
#[derive(FromPyObject)]
pub(crate) struct ClauseArguments {
    by_source: bool,
    action: String,
    condition: Option<String>,
    /// A SQL expression for each column; None assigns all columns of the source.
    values: Option<Vec<(String, String)>>,
    /// The columns of the source that are left out.
    except_columns: Vec<String>,
}

impl ClauseArguments {
    fn clause(self) -> Result<Clause> {
        let action = match (self.action.as_str(), self.values) {
            ("delete", _) => ClauseAction::Delete,
            ("update", Some(values)) => ClauseAction::Update(values),
            ("update", None) => ClauseAction::UpdateAll(self.except_columns),
            ("insert", Some(values)) => ClauseAction::Insert(values),
            ("insert", None) => ClauseAction::InsertAll(self.except_columns),
            (other, _) => {
                return Err(Error::invalid_argument(format!("'{other}' is not an action of a MERGE clause")));
            }
        };
        Ok(Clause { by_source: self.by_source, condition: self.condition, action })
    }
}

/// The arguments of a MERGE: `deltalog.table.merge.MergeArguments` in Python.
#[derive(FromPyObject)]
pub(crate) struct MergeArguments {
    condition: String,
    source_alias: String,
    target_alias: String,
    clauses: Vec<ClauseArguments>,
}

/// Merges the rows of an Arrow stream, which is read once, into a table. If the rows were read from the table itself,
/// the statement is based on the version from which they were read, and also depends on these rows: it conflicts with
/// later commits that change them and, depending on the isolation level, with later commits that add such rows.
#[pyfunction]
#[pyo3(signature = (snapshot, source, arguments, commit, file_format = None, merge_schema = false))]
pub(crate) fn merge_rows(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    source: &Bound<'_, PyAny>,
    arguments: MergeArguments,
    commit: CommitArguments,
    file_format: Option<String>,
    merge_schema: bool,
) -> PyResult<Done> {
    let stream = source.cast::<ArrowStream>().ok();
    let origin = stream.and_then(|stream| stream.get().origin_in(&snapshot.get().0).cloned());
    let reader = reader_of(source)?;
    run(py, snapshot, commit, file_format, |newest, mut request| {
        let base = origin.as_ref().map_or(newest, |origin| &origin.snapshot);
        if let Some(origin) = &origin {
            request.source = origin.rows.clone();
        }
        let MergeArguments { condition, source_alias, target_alias, clauses } = arguments;
        let clauses = clauses.into_iter().map(ClauseArguments::clause).collect::<Result<_>>()?;
        let merge = Merge { condition, source_alias, target_alias, clauses };
        let schema = reader.schema();
        let source = MergeSource::new(&schema, pieces(reader))?;
        if merge_schema {
            request.new_columns = Some(StructType::from_arrow(&schema)?);
        }
        dml::merge(base, &merge, &source, request)
    })
}
