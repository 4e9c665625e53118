//! The information that a writer adds to its commit, and the outcome of the commit.

use deltalog::engine::commit::Operation;
use deltalog::engine::protocol::SetTransaction;
use deltalog::{Error, Result, WriteOutcome};
use pyo3::prelude::*;
use serde_json::{Map, Value};

/// The information to record with a commit, in addition to its data: `deltalog.commit.CommitArguments` in Python.
#[derive(FromPyObject)]
pub(crate) struct CommitArguments {
    /// A JSON object with additional fields for `commitInfo`.
    custom_metadata: Option<String>,
    /// The progress of applications: their names, versions, and the times of the versions.
    app_transactions: Vec<(String, i64, Option<i64>)>,
}

impl CommitArguments {
    /// Returns the operation with the additional fields of `commitInfo`.
    ///
    /// # Errors
    /// Returns the errors of [`Operation::custom_metadata`].
    pub(crate) fn describe(&self, operation: Operation) -> Result<Operation> {
        operation.custom_metadata(self.fields()?)
    }

    /// Returns the progress of all applications.
    pub(crate) fn progress(&self) -> Vec<SetTransaction> {
        let progress = self.app_transactions.iter();
        progress
            .map(|(app_id, version, last_updated)| {
                let mut progress = SetTransaction::new(app_id.clone(), *version);
                progress.last_updated = *last_updated;
                progress
            })
            .collect()
    }

    /// Returns the additional fields of `commitInfo`, for a commit that cannot record the progress of applications.
    ///
    /// # Errors
    /// Returns `Unsupported` if there are applications, and `InvalidArgument` if the fields are not a JSON object.
    pub(crate) fn only_fields(&self) -> Result<Map<String, Value>> {
        match self.app_transactions.first() {
            None => self.fields(),
            Some((app_id, ..)) => Err(Error::unsupported(format!(
                "the progress of the application '{app_id}' cannot be recorded with a change of the table"
            ))
            .with_hint("record it with a write")),
        }
    }

    fn fields(&self) -> Result<Map<String, Value>> {
        let Some(json) = &self.custom_metadata else { return Ok(Map::new()) };
        serde_json::from_str(json).map_err(|error| {
            Error::invalid_argument("custom_metadata is not a JSON object").with_source(error)
        })
    }
}

/// Returns the progress of the application that a writer names, without a time. If the writer names none, the list is
/// empty.
pub(crate) fn progress_of(app_transaction: Option<(String, i64)>) -> Vec<SetTransaction> {
    app_transaction.map(|(app_id, version)| SetTransaction::new(app_id, version)).into_iter().collect()
}

/// The result of a write that was skipped, because the table has already recorded this version of the application or a
/// later one.
#[pyclass(frozen, eq, get_all, module = "deltalog._internal")]
#[derive(Clone, PartialEq)]
pub(crate) struct AlreadyApplied {
    app_id: String,
    version: i64,
    recorded: i64,
    table_version: u64,
}

impl AlreadyApplied {
    pub(crate) fn new(applied: &deltalog::AlreadyApplied) -> Self {
        let deltalog::AlreadyApplied { app_id, version, recorded, table_version, .. } = applied;
        Self { app_id: app_id.clone(), version: *version, recorded: *recorded, table_version: *table_version }
    }
}

#[pymethods]
impl AlreadyApplied {
    fn __repr__(&self) -> String {
        let Self { app_id, version, recorded, table_version } = self;
        format!(
            "AlreadyApplied(app_id={app_id:?}, version={version}, recorded={recorded}, \
             table_version={table_version})"
        )
    }
}

/// The outcome of a write: the version that it committed, or the information that it had no effect.
#[derive(IntoPyObject)]
pub(crate) enum Answer {
    Version(u64),
    AlreadyApplied(AlreadyApplied),
}

impl Answer {
    /// Converts `outcome` for Python. Returns None if nothing was written, because another writer has created the
    /// table and the mode is `ignore`, or because there was nothing to change.
    pub(crate) fn of(outcome: WriteOutcome) -> Option<Self> {
        match outcome {
            WriteOutcome::Committed(committed) => Some(Self::Version(committed.version)),
            WriteOutcome::AlreadyApplied(applied) => {
                Some(Self::AlreadyApplied(AlreadyApplied::new(&applied)))
            }
            WriteOutcome::TableExists(_) | WriteOutcome::Unchanged => None,
        }
    }
}
