//! `DistributedWrite`, `WriteTask` and `Fragment`: a write whose files are written by several processes.

use std::sync::{Mutex, PoisonError};

use deltalog::engine::commit::Operation;
use deltalog::{Environment, Error, ErrorKind, Result};
use pyo3::prelude::*;

use crate::argument;
use crate::call::{call, call_that_commits};
use crate::commit_arguments::{AlreadyApplied, Answer};
use crate::error::IntoPython;
use crate::snapshot::Snapshot;
use crate::store_options::StoreOptions;
use crate::stream::reader_of;
use crate::write_arguments::WriteArguments;
use crate::write_batches::{rows_of, written};
use crate::write_target::WriteTarget;

/// The information that a worker needs to write files of a distributed write: the table's location, schema and rules.
/// It can be pickled, and contains no credentials.
#[pyclass(frozen, eq, module = "deltalog._internal")]
#[derive(Clone, PartialEq)]
pub(crate) struct WriteTask(pub(crate) deltalog::WriteTask);

#[pymethods]
impl WriteTask {
    #[new]
    fn new(json: &Bound<'_, PyAny>) -> PyResult<Self> {
        deltalog::WriteTask::from_json(&argument::text("json", json)?).map(Self).into_python()
    }

    /// Serializes the task to a string, from which `WriteTask(text)` creates it again.
    fn to_json(&self) -> PyResult<String> {
        self.0.to_json().into_python()
    }

    fn __getnewargs__(&self) -> PyResult<(String,)> {
        Ok((self.to_json()?,))
    }

    #[getter]
    fn table_uri(&self) -> &str {
        self.0.table_url()
    }

    #[getter]
    fn write_id(&self) -> &str {
        self.0.directory()
    }

    /// Returns a copy of the task that is number `number` of `of` tasks. The number determines which values the task
    /// assigns to identity columns.
    fn numbered(&self, number: &Bound<'_, PyAny>, of: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (number, of) = (argument::count("number", number)?, argument::count("of", of)?);
        self.0.numbered(number, of).map(Self).into_python()
    }

    /// Writes `data` to files of the table, and returns the fragment that lists the files.
    ///
    /// The log is not read, and nothing is committed. If writing fails, the files are deleted.
    #[pyo3(signature = (data, storage_options = None, credential_provider = None))]
    fn write(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        storage_options: Option<&Bound<'_, PyAny>>,
        credential_provider: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Fragment> {
        let options = StoreOptions::checked(self.0.table_url(), storage_options, credential_provider, py)?;
        let reader = reader_of(data)?;
        call(py, || {
            let storage = options.open(self.0.table_url())?;
            let writer = self.0.writer(&storage, &Environment::system())?;
            self.0.fragment(written(writer, rows_of(reader))?).map(Fragment)
        })
    }

    fn __repr__(&self) -> String {
        format!("WriteTask(table_uri={:?}, write_id={:?})", self.0.table_url(), self.0.directory())
    }
}

/// The files that one worker has written as part of a distributed write, as plain data. It can be pickled.
#[pyclass(frozen, eq, from_py_object, module = "deltalog._internal")]
#[derive(Clone, PartialEq)]
pub(crate) struct Fragment(pub(crate) deltalog::Fragment);

#[pymethods]
impl Fragment {
    #[new]
    fn new(json: &Bound<'_, PyAny>) -> PyResult<Self> {
        deltalog::Fragment::from_json(&argument::text("json", json)?).map(Self).into_python()
    }

    /// Serializes the fragment to a string, from which `Fragment(text)` creates it again.
    fn to_json(&self) -> PyResult<String> {
        self.0.to_json().into_python()
    }

    fn __getnewargs__(&self) -> PyResult<(String,)> {
        Ok((self.to_json()?,))
    }

    #[getter]
    fn write_id(&self) -> &str {
        self.0.write_id()
    }

    #[getter]
    fn paths(&self) -> Vec<&str> {
        self.0.files().iter().map(|file| file.path.as_str()).collect()
    }

    #[getter]
    fn num_rows(&self) -> u64 {
        self.0.num_rows()
    }

    #[getter]
    fn size_in_bytes(&self) -> u64 {
        self.0.size_in_bytes()
    }

    fn __repr__(&self) -> String {
        format!(
            "Fragment(write_id={:?}, files={}, num_rows={}, size_in_bytes={})",
            self.0.write_id(),
            self.0.files().len(),
            self.0.num_rows(),
            self.0.size_in_bytes()
        )
    }
}

/// A write whose files are written by several processes. It begins and is committed in this process; workers write
/// the files.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct DistributedWrite {
    task: deltalog::WriteTask,
    state: Mutex<State>,
}

enum State {
    Open(Box<(deltalog::DistributedWrite, Operation)>),
    Closed(Closed),
}

/// Why a write is no longer open.
#[derive(Clone, Copy, PartialEq)]
enum Closed {
    /// The write was committed, or its commit has definitely failed.
    Ended,
    Aborted,
    Unknown,
}

impl DistributedWrite {
    fn new(write: deltalog::DistributedWrite, operation: Operation) -> Self {
        let task = write.task().clone();
        Self { task, state: Mutex::new(State::Open(Box::new((write, operation)))) }
    }

    /// Passes the open write to `work`, which returns its next state.
    fn change<T>(
        &self,
        work: impl FnOnce(deltalog::DistributedWrite, Operation) -> (State, Result<T>),
    ) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // If `work` panics, it is not known whether the write was committed.
        match std::mem::replace(&mut *state, State::Closed(Closed::Unknown)) {
            State::Open(open) => {
                let (write, operation) = *open;
                let (next, result) = work(write, operation);
                *state = next;
                result
            }
            State::Closed(how) => {
                *state = State::Closed(how);
                Err(how.refusal().in_table(self.task.table_url()))
            }
        }
    }
}

impl Closed {
    fn refusal(self) -> Error {
        match self {
            Self::Ended => {
                Error::invalid_argument("the write was already committed, or its commit has failed")
                    .with_hint("begin another write")
            }
            Self::Aborted => {
                Error::invalid_argument("the write was already aborted").with_hint("begin another write")
            }
            Self::Unknown => Error::invalid_argument(
                "it is not known whether the write was committed, so its files must stay",
            )
            .with_hint("look for the commit with DeltaTable.find_commit"),
        }
    }
}

#[pymethods]
impl DistributedWrite {
    #[getter]
    fn task(&self) -> WriteTask {
        WriteTask(self.task.clone())
    }

    /// Returns numbered tasks, which can generate values of identity columns.
    fn tasks(&self, count: &Bound<'_, PyAny>) -> PyResult<Vec<WriteTask>> {
        let count = match argument::count("count", count)? {
            0 => return Err(argument::wrong("count", count, "the number of tasks, at least 1")),
            count => count,
        };
        (0..count).map(|number| self.task.numbered(number, count).map(WriteTask).into_python()).collect()
    }

    /// Commits fragments as a single version.
    fn commit(&self, py: Python<'_>, fragments: &Bound<'_, PyAny>) -> PyResult<Option<Answer>> {
        let fragments = fragments_of(fragments)?;
        call_that_commits(py, || {
            self.change(|write, operation| match write.check(&fragments) {
                Err(error) => (State::Open(Box::new((write, operation))), Err(error)),
                Ok(checked) => {
                    let outcome = write.commit(checked, operation);
                    let is_unknown = matches!(
                        &outcome,
                        Err(error) if error.kind() == ErrorKind::CommitStateUnknown
                    );
                    let closed = if is_unknown { Closed::Unknown } else { Closed::Ended };
                    (State::Closed(closed), outcome.map(Answer::of))
                }
            })
        })
    }

    /// Deletes all files of the write.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || {
            self.change(|write, operation| match write.abort() {
                Ok(()) => (State::Closed(Closed::Aborted), Ok(())),
                Err(error) => (State::Open(Box::new((write, operation))), Err(error)),
            })
        })
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Aborts the write, unless it was committed or aborted. If an exception has ended the block, that exception is
    /// raised even if files cannot be deleted.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (exception, traceback);
        // This thread releases the interpreter while it waits for the lock, because a thread in `commit` may hold the
        // lock and wait for the interpreter, to log a warning.
        let is_open = py
            .detach(|| matches!(*self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Open(_)));
        if is_open {
            let aborted = self.abort(py);
            if exception_type.is_none() {
                aborted?;
            }
        }
        Ok(false)
    }

    fn __repr__(&self) -> String {
        format!(
            "DistributedWrite(table_uri={:?}, write_id={:?})",
            self.task.table_url(),
            self.task.directory()
        )
    }
}

/// Collects fragments from any iterable.
pub(crate) fn fragments_of(fragments: &Bound<'_, PyAny>) -> PyResult<Vec<deltalog::Fragment>> {
    let refuse = |value: &Bound<'_, PyAny>| {
        argument::wrong("fragments", value, "a list of the fragments that WriteTask.write returned")
    };
    let one = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        item.extract::<Fragment>().map(|fragment| fragment.0).map_err(|_| refuse(fragments))
    };
    fragments.try_iter().map_err(|_| refuse(fragments))?.map(one).collect()
}

/// The result of beginning a distributed write: the write, or the information that the table has already recorded it.
#[derive(IntoPyObject)]
#[allow(clippy::large_enum_variant, reason = "moved into a Python object at once")]
pub(crate) enum Begun {
    Write(DistributedWrite),
    AlreadyApplied(AlreadyApplied),
}

/// Checks a write, and returns it so that it can be given to workers. If `schema_json` is `None`, the data must have
/// the table's schema. Returns `None` if the mode is `ignore` and the table exists.
#[pyfunction]
#[pyo3(signature = (uri, schema_json, arguments, storage_options = None, base = None))]
pub(crate) fn begin_write(
    py: Python<'_>,
    uri: &str,
    schema_json: Option<&str>,
    arguments: WriteArguments,
    storage_options: Option<StoreOptions>,
    base: Option<Bound<'_, Snapshot>>,
) -> PyResult<Option<Begun>> {
    let base = base.map(|base| base.get().0.clone());
    call(py, || {
        let target = WriteTarget::new(uri, storage_options, base)?;
        let environment = arguments.environment()?;
        let pending =
            target.begin_with_schema(schema_json, |schema| arguments.request(schema), &environment)?;
        let Some(pending) = pending else { return Ok(None) };
        if let Some(applied) = pending.already_applied() {
            return Ok(Some(Begun::AlreadyApplied(AlreadyApplied::new(applied))));
        }
        let operation = arguments.operation(&pending)?;
        let write = deltalog::DistributedWrite::new(pending)?;
        Ok(Some(Begun::Write(DistributedWrite::new(write, operation))))
    })
}
