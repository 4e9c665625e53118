//! Writes whose files are written by several processes: a coordinator begins and commits the write, and workers write
//! files.
//!
//! ```text
//!   coordinator                              workers (any process or machine that reaches the table)
//!   DistributedWrite::new
//!     task ── WriteTask, as JSON ──────────► writer(storage) ── files below the write's directory
//!     check ◄─ Fragment, as JSON ────────────┘
//!     commit: all fragments, one version
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `task` | the information that a worker needs, because it does not read the log |
//! | `fragment` | the list of files that a worker has written, as plain data |
//! | `check` | compares fragments with the write and with the store |
//!
//! - Tasks and fragments contain no credentials. Each process opens the store with its own.
//! - All files of a write are in one directory, whose name is the write's id. The write can therefore find its files
//!   without the workers: `abort` also deletes the files of workers that died, and a commit deletes files that are in
//!   no fragment, such as the files of a worker that ran twice.
//! - The values of identity columns are divided into lanes: each task has a number, and only assigns values that
//!   belong to this number. The base of the commit must still have the high water mark with which the tasks began;
//!   otherwise the check fails. A concurrent commit that moves the mark is a conflict.
//! - Files are deleted only if it is certain whether the commit has succeeded.

mod check;
mod fragment;
mod task;

pub use check::CheckedFragments;
pub(crate) use check::check;
pub use fragment::{Fragment, FragmentFile};
pub use task::WriteTask;

use crate::commit::Operation;
use crate::commit::own_files::OwnFiles;
use crate::error::{Error, Result};
use crate::operations::insert::{PendingWrite, WriteOutcome};
use crate::protocol::path;
use crate::storage::Storage;

/// A write whose files are written by several processes.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{Int64Array, RecordBatch};
/// use deltalog::{
///     DistributedWrite, Environment, Fragment, Operation, PendingWrite, PrimitiveType, SaveMode, Storage,
///     StructField, StructType, WriteRequest, WriteTask,
/// };
///
/// /// Runs in any process: text comes in, text goes out.
/// fn work(task: &str, ids: Vec<i64>) -> Result<String, Box<dyn std::error::Error>> {
///     let task = WriteTask::from_json(task)?;
///     let storage = Storage::open(task.table_url(), [])?;
///     let mut writer = task.writer(&storage, &Environment::system())?;
///     writer.write(&RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids)) as _)])?)?;
///     Ok(task.fragment(writer)?.to_json()?)
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let location = directory.path().to_str().ok_or("no UTF-8")?;
/// let storage = Storage::open(location, [])?;
/// let schema = StructType::try_new(vec![StructField::new("id", PrimitiveType::Long, true)])?;
/// let request = WriteRequest::new(schema, SaveMode::Append);
/// let pending = PendingWrite::begin(&storage, request, &Environment::system())?.ok_or("nothing to write")?;
/// let write = DistributedWrite::new(pending)?;
///
/// let task = write.task().to_json()?;
/// let fragments = [work(&task, vec![1, 2])?, work(&task, vec![3])?];
///
/// let fragments = fragments.iter().map(|json| Fragment::from_json(json)).collect::<Result<Vec<_>, _>>()?;
/// let checked = write.check(&fragments)?;
/// assert_eq!(write.commit(checked, Operation::new("WRITE"))?.version(), Some(0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DistributedWrite {
    pending: PendingWrite,
    task: WriteTask,
}

impl DistributedWrite {
    /// Begins a write that several processes will carry out.
    ///
    /// # Errors
    /// `Unsupported` for a table with an expression that this crate cannot evaluate.
    pub fn new(pending: PendingWrite) -> Result<Self> {
        let directory = pending.environment().uuid().to_string();
        let task = WriteTask::of(&pending, directory);
        pending.spec().bound_rules().map_err(|error| error.in_table(pending.storage().url()))?;
        Ok(Self { pending, task })
    }

    /// Continues a write that was begun earlier, possibly by another process. `directory` is the directory of its
    /// files.
    #[doc(hidden)]
    pub fn resume(pending: PendingWrite, directory: String) -> Self {
        let task = WriteTask::of(&pending, directory);
        Self { pending, task }
    }

    /// Returns the task, which contains everything that a worker needs.
    pub fn task(&self) -> &WriteTask {
        &self.task
    }

    /// Returns `count` tasks for workers whose rows lack the identity columns of the table. Each task assigns values
    /// that no other task assigns. At most one fragment of each task can be committed.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if `count` is 0.
    pub fn tasks(&self, count: u32) -> Result<Vec<WriteTask>> {
        if count == 0 {
            return Err(Error::invalid_argument("a write needs at least one task"));
        }
        (0..count).map(|number| self.task.numbered(number, count)).collect()
    }

    /// Checks fragments without changing anything. Each must come from a worker of this write, have paths, partition
    /// values and statistics that are valid for the table, and list files that exist with the stated sizes. No file
    /// may be listed twice, and no two fragments may have assigned the same values of identity columns.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a fragment of another write, and for one that was changed after the worker made
    /// it. Returns `FileNotFound` for a file that does not exist, `CorruptData` for a file with a different size, and
    /// errors from the store.
    pub fn check(&self, fragments: &[Fragment]) -> Result<CheckedFragments> {
        check::check(self.pending.storage(), self.pending.spec(), self.task.directory(), fragments)
            .map_err(|error| error.in_table(self.pending.storage().url()))
    }

    /// Commits fragments as one version, and deletes the files of this write that no fragment lists. If the commit
    /// fails or has no effect, all files of the write are deleted. If it is unknown whether it succeeded, all files
    /// are kept.
    ///
    /// # Errors
    /// Returns the same errors as [`PendingWrite::commit`].
    pub fn commit(self, fragments: CheckedFragments, operation: Operation) -> Result<WriteOutcome> {
        let CheckedFragments { files, counted, unnamed } = fragments;
        let storage = self.pending.storage().clone();
        for (column, first, last) in counted {
            self.pending.spec().rules().identities.note(&column, first.min(last), first.max(last))?;
        }
        let outcome = self.pending.commit(files, operation);
        if !outcome.as_ref().is_err_and(Error::is_commit_state_unknown) {
            delete_unnamed(&storage, self.task.directory(), &unnamed);
        }
        outcome
    }

    /// Deletes all files of this write, including the files of workers that died. Workers that are still writing
    /// should be stopped first. Files that they write afterwards belong to no version, and VACUUM removes them.
    ///
    /// # Errors
    /// Returns errors from the store, but only after trying to delete every file. The call can then be repeated.
    pub fn abort(&self) -> Result<()> {
        delete_files(self.pending.storage(), self.task.directory())
    }
}

/// Deletes the files in the directory of a write that are in no fragment, given by their decoded paths.
pub(crate) fn delete_unnamed(storage: &Storage, directory: &str, unnamed: &[String]) {
    let mut files = OwnFiles::new(storage, None);
    files.add(unnamed.iter().map(|path| path::encode(path)));
    files.delete();
    if let Err(error) = storage.delete_empty_directories(directory) {
        tracing::warn!(table = storage.url(), %error, "the empty directories of a write could not be deleted");
    }
}

/// Deletes the files of a write that was not committed. `directory` is the directory that contains them.
///
/// # Errors
/// Returns errors from the store, but only after trying to delete every file.
#[doc(hidden)]
pub fn delete_files(storage: &Storage, directory: &str) -> Result<()> {
    let files = storage.list_after(directory, "")?;
    let deleted: Vec<Result<()>> =
        files.iter().map(|file| storage.delete(&format!("{directory}/{}", file.name))).collect();
    deleted.into_iter().collect::<Result<()>>()?;
    storage.delete_empty_directories(directory)
}
