//! `StatementTask` and `StatementFragment`: a DELETE, UPDATE or MERGE that tasks in several processes carry out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use deltalog::engine::dml::{MarkedRows, TaskedStatement};
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::{Environment, Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::{call, call_that_commits};
use crate::commit_arguments::{AlreadyApplied, progress_of};
use crate::error::IntoPython;
use crate::snapshot::Snapshot;
use crate::spark_statement::StatementText;
use crate::spark_write::operation;
use crate::statements::Done;
use crate::store_options::{StoreOptions, open_storage};
use crate::stream::reader_of;
use crate::upkeep;
use crate::write_batches::{rows_of, written};

/// The information that a task of a statement needs. It can be pickled, and contains no credentials.
#[pyclass(frozen, eq, module = "deltalog._internal")]
#[derive(Clone, PartialEq)]
pub(crate) struct StatementTask(deltalog::engine::dml::StatementTask);

/// The result of a task of a statement. It can be pickled.
#[pyclass(frozen, eq, from_py_object, module = "deltalog._internal")]
#[derive(Clone, PartialEq)]
pub(crate) struct StatementFragment(deltalog::engine::dml::StatementFragment);

/// The information that the commit of a statement records: `deltalog.spark.connect.writer.Committing` in Python.
#[derive(FromPyObject)]
struct Committing {
    text: StatementText,
    /// The condition for the rows that were read, and the time zone for its times; `None` if the whole table was
    /// read.
    reads: Option<(String, String)>,
    keeps_matches: bool,
    matches_once: bool,
    source_rows: u64,
    started_ms: i64,
    engine_info: String,
    user_metadata: Option<String>,
    app_transaction: Option<(String, i64)>,
}

impl Committing {
    fn request(self) -> Result<TaskedStatement> {
        let statement = self.text.statement()?;
        let operation = operation(statement.name(), BTreeMap::new(), &self.engine_info, self.user_metadata);
        let reads = self.reads.map(|(sql, time_zone)| parse(&sql, &time_zone, ParseMode::Pruning));
        Ok(TaskedStatement {
            statement,
            operation,
            app_transactions: progress_of(self.app_transaction),
            reads: reads.transpose()?,
            keeps_matches: self.keeps_matches,
            matches_once: self.matches_once,
            source_rows: self.source_rows,
            started_ms: self.started_ms,
        })
    }
}

#[pymethods]
impl StatementTask {
    #[new]
    fn new(json: &str) -> PyResult<Self> {
        deltalog::engine::dml::StatementTask::from_json(json).map(Self).into_python()
    }

    fn __getnewargs__(&self) -> PyResult<(String,)> {
        Ok((self.0.to_json().into_python()?,))
    }

    #[staticmethod]
    #[pyo3(signature = (snapshot, statement, statement_id, app_transaction = None))]
    fn begin(
        py: Python<'_>,
        snapshot: &Bound<'_, Snapshot>,
        statement: &str,
        statement_id: &str,
        app_transaction: Option<(String, i64)>,
    ) -> PyResult<(Self, Option<AlreadyApplied>)> {
        let base = snapshot.get().0.clone();
        call(py, || {
            let progress = progress_of(app_transaction);
            let environment = upkeep::environment();
            let (task, applied) = deltalog::engine::dml::StatementTask::new(
                &base,
                statement,
                statement_id,
                &progress,
                &environment,
            )?;
            Ok((Self(task), applied.as_ref().map(AlreadyApplied::new)))
        })
    }

    /// Carries out one task. `data` contains rows with marker columns (`MarkedRows` in the core).
    #[pyo3(signature = (data, storage_options = None, credential_provider = None))]
    fn run(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        storage_options: Option<&Bound<'_, PyAny>>,
        credential_provider: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StatementFragment> {
        let options = StoreOptions::checked(self.0.table_url(), storage_options, credential_provider, py)?;
        let mut reader = reader_of(data)?;
        call(py, || {
            let marked = Arc::new(Mutex::new(MarkedRows::default()));
            let writer = match MarkedRows::written_schema(&reader.schema()) {
                Some(schema) => {
                    let storage = options.open(self.0.table_url())?;
                    let writer = self.0.writer(&storage, &Environment::system())?;
                    let rows = RowsToWrite { reader, marked: Arc::clone(&marked), schema };
                    Some(written(writer, rows_of(Box::new(rows)))?)
                }
                None => {
                    let mut marked = marked.lock().unwrap_or_else(PoisonError::into_inner);
                    for batch in reader.by_ref() {
                        marked.note(&batch.map_err(|error| {
                            Error::invalid_argument("the rows cannot be read").with_source(error)
                        })?)?;
                    }
                    None
                }
            };
            let marked = std::mem::take(&mut *marked.lock().unwrap_or_else(PoisonError::into_inner));
            self.0.fragment(writer, marked.report()?).map(StatementFragment)
        })
    }

    fn commit(
        &self,
        py: Python<'_>,
        snapshot: &Bound<'_, Snapshot>,
        committing: Committing,
        fragments: Vec<StatementFragment>,
    ) -> PyResult<Done> {
        let base = snapshot.get().0.clone();
        call_that_commits(py, || {
            let fragments: Vec<_> = fragments.into_iter().map(|fragment| fragment.0).collect();
            self.0.commit(&base, committing.request()?, &fragments, &upkeep::environment()).map(Done::from)
        })
    }

    /// Deletes all files of the tasks of a statement that was not committed.
    #[pyo3(signature = (storage_options = None))]
    fn delete(&self, py: Python<'_>, storage_options: Option<StoreOptions>) -> PyResult<()> {
        call(py, || self.0.delete(&open_storage(self.0.table_url(), storage_options)?))
    }
}

/// The rows that a task has to write.
struct RowsToWrite {
    reader: Box<dyn RecordBatchReader + Send>,
    marked: Arc<Mutex<MarkedRows>>,
    schema: SchemaRef,
}

impl Iterator for RowsToWrite {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.reader.next()? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        let mut marked = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        Some(marked.note(&batch).map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for RowsToWrite {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[pymethods]
impl StatementFragment {
    #[new]
    fn new(files: &str, report: &[u8]) -> PyResult<Self> {
        let files = deltalog::Fragment::from_json(files).into_python()?;
        Ok(Self(deltalog::engine::dml::StatementFragment { files, report: report.to_vec() }))
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyBytes>)> {
        Ok((self.0.files.to_json().into_python()?, PyBytes::new(py, &self.0.report)))
    }
}
