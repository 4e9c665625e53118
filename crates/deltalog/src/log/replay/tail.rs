//! Reconciles the file actions of the commits after the checkpoint, and leaves out the rows of the checkpoint that
//! these actions supersede.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{AsArray, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{filter_record_batch, not};
use arrow::datatypes::{Field, Schema};

use super::checkpoint::{AddRequest, CheckpointReader};
use super::columns::{FileColumn, FileColumns, remove_fields};
use super::commit::Commit;
use super::filter::{apply, columns_of};
use super::key::Keys;
use super::seen::Seen;
use crate::error::{Error, Result};
use crate::protocol::PathResolver;
use crate::storage::Storage;

/// The reconciled file actions of the commits after the checkpoint, and the set of all files for which these commits
/// have actions.
#[derive(Debug)]
pub struct Tail {
    commits: Vec<Reconciled>,
    seen: Seen,
}

/// A commit, and the selection of its file actions that no newer action supersedes.
#[derive(Debug)]
struct Reconciled {
    commit: Arc<Commit>,
    live: Rows,
    dead: Rows,
}

/// A selection of rows of a batch.
#[derive(Debug)]
enum Rows {
    None,
    All,
    Some(BooleanArray),
}

impl Rows {
    fn of(kept: Vec<bool>) -> Self {
        match kept.iter().filter(|kept| **kept).count() {
            0 => Self::None,
            count if count == kept.len() => Self::All,
            _ => Self::Some(BooleanArray::from(kept)),
        }
    }

    /// Returns the selected rows of `batch`; `None` if there are none.
    fn take(&self, batch: &RecordBatch) -> Result<Option<RecordBatch>> {
        match self {
            Self::None => Ok(None),
            Self::All => Ok(Some(batch.clone())),
            Self::Some(rows) => filtered(batch, rows).map(Some),
        }
    }
}

impl Tail {
    /// Reconciles the file actions of `commits`, which are ordered newest first.
    ///
    /// # Errors
    /// `CorruptLog` for an invalid path.
    pub fn reconcile<'a>(
        commits: impl IntoIterator<Item = &'a Arc<Commit>, IntoIter: Clone>,
        resolver: &PathResolver,
    ) -> Result<Self> {
        let commits = commits.into_iter();
        let actions = commits.clone().map(|commit| commit.order.len()).sum();
        let mut tail = Self { commits: Vec::new(), seen: Seen::with_capacity(resolver.clone(), actions) };
        for commit in commits {
            tail.push(commit).map_err(|error| error.at_version(commit.version))?;
        }
        Ok(tail)
    }

    fn push(&mut self, commit: &Arc<Commit>) -> Result<()> {
        let (adds, removes) = (Keys::new(&commit.adds)?, Keys::new(&commit.removes)?);
        let (mut live, mut dead) = (Vec::with_capacity(adds.len()), Vec::with_capacity(removes.len()));
        let (adds, removes) = (self.seen.add_keys(adds), self.seen.add_keys(removes));
        for is_add in &commit.order {
            let (keys, kept) = if *is_add { (adds, &mut live) } else { (removes, &mut dead) };
            kept.push(self.seen.mark(keys, kept.len())?);
        }
        self.commits.push(Reconciled {
            commit: Arc::clone(commit),
            live: Rows::of(live),
            dead: Rows::of(dead),
        });
        Ok(())
    }

    /// Returns the tombstones, newest first, with all their columns.
    pub(crate) fn removes(&self) -> impl Iterator<Item = Result<RecordBatch>> {
        let taken = self.commits.iter().map(|reconciled| reconciled.dead.take(&reconciled.commit.removes));
        taken.filter_map(Result::transpose).map(|batch| with_columns(&batch?, remove_fields()))
    }

    /// Returns whether `commit` is reconciled, which means that it has at most one action per file.
    pub(super) fn is_reconciled(commit: &Arc<Commit>, resolver: &PathResolver) -> Result<bool> {
        let tail = Self::reconcile([commit], resolver)?;
        let is_whole = |rows: &Rows, batch: &RecordBatch| matches!(rows, Rows::All) || batch.num_rows() == 0;
        Ok(tail
            .commits
            .iter()
            .all(|one| is_whole(&one.live, &one.commit.adds) && is_whole(&one.dead, &one.commit.removes)))
    }

    /// Returns whether the commits have added files that are still live.
    pub(crate) fn has_adds(&self) -> bool {
        self.commits.iter().any(|commit| !matches!(commit.live, Rows::None))
    }

    /// Returns whether the commits have tombstones that no newer commit has superseded.
    pub(crate) fn has_removes(&self) -> bool {
        self.commits.iter().any(|commit| !matches!(commit.dead, Rows::None))
    }

    /// Returns whether the commits after the checkpoint have no file actions.
    fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Returns the resolved paths of the files for which the commits have actions. See [`Seen::paths`].
    pub(crate) fn paths(&self, limit: usize) -> Result<Option<Vec<String>>> {
        self.seen.paths(limit)
    }

    /// Returns whether a commit has an action for one of the files of `batch`, which is a batch of the checkpoint.
    pub(crate) fn concerns(&self, batch: &RecordBatch) -> Result<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        let keys = Keys::new(batch)?;
        for row in 0..batch.num_rows() {
            if self.seen.contains(&keys, row)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns a batch of the checkpoint without the rows that a later commit supersedes.
    pub(crate) fn filter(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if self.is_empty() {
            return Ok(batch);
        }
        let keys = Keys::new(&batch)?;
        let remaining =
            (0..batch.num_rows()).map(|row| self.seen.contains(&keys, row).map(|seen| Some(!seen)));
        let remaining = remaining.collect::<Result<BooleanArray>>()?;
        if remaining.true_count() == batch.num_rows() {
            return Ok(batch);
        }
        filtered(&batch, &remaining)
    }
}

/// Returns the selected rows of a batch of file actions.
pub(crate) fn filtered(batch: &RecordBatch, rows: &BooleanArray) -> Result<RecordBatch> {
    filter_record_batch(batch, rows)
        .map_err(|error| Error::corrupt_log("file actions cannot be filtered").with_source(error))
}

/// Returns the file actions whose `dataChange` is true.
pub(crate) fn changing(actions: &RecordBatch) -> Result<RecordBatch> {
    // A batch without actions has no columns.
    if actions.num_rows() == 0 {
        return Ok(actions.clone());
    }
    let changes =
        actions.column_by_name(FileColumn::DataChange.name()).and_then(|changes| changes.as_boolean_opt());
    let changes = changes.ok_or_else(|| Error::corrupt_log("file actions have no column 'dataChange'"))?;
    match changes.false_count() {
        0 => Ok(actions.clone()),
        _ => filtered(actions, changes),
    }
}

/// Returns the rows of `batch` that are not among `rows`.
pub(crate) fn without(batch: &RecordBatch, rows: &BooleanArray) -> Result<RecordBatch> {
    let others = not(rows)
        .map_err(|error| Error::corrupt_log("file actions cannot be filtered").with_source(error))?;
    filtered(batch, &others)
}

/// Returns the columns `fields` of `batch`. Columns that the batch lacks are filled with nulls.
pub(crate) fn with_columns(batch: &RecordBatch, fields: Vec<Field>) -> Result<RecordBatch> {
    let column = |field: &Field| batch.column_by_name(field.name()).cloned();
    let columns = fields
        .iter()
        .map(|field| column(field).unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows())))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|error| Error::corrupt_log("file actions lack a column").with_source(error))
}

/// An iterator over the live files of a version, first the files in the commits, then the files in the checkpoint. It
/// returns batches of `add` actions with the log's columns (`path`, `partitionValues`, `stats`, …).
pub struct FileReplay {
    storage: Storage,
    tail: Arc<Tail>,
    next: usize,
    request: AddRequest,
    checkpoint: Option<CheckpointReader>,
}

impl FileReplay {
    /// Creates the iterator. `checkpoint` must have been opened with the result of [`FileReplay::request_for`] for
    /// `request`.
    pub(crate) fn new(
        storage: Storage,
        tail: Arc<Tail>,
        checkpoint: Option<CheckpointReader>,
        request: AddRequest,
    ) -> Self {
        Self { storage, tail, next: 0, request, checkpoint }
    }

    /// Returns the request for the checkpoint. If there are commits to reconcile with, it also includes the columns
    /// that make up the key of a file.
    pub(crate) fn request_for(tail: &Tail, request: &AddRequest) -> AddRequest {
        let columns = if tail.is_empty() {
            request.columns
        } else {
            request.columns.with(FileColumn::Path).with(FileColumn::DeletionVector)
        };
        AddRequest { columns, ..request.clone() }
    }

    /// Returns the number of files that were seen so far, including those that filters rejected. See
    /// [`AddRequest::looked_at`].
    pub fn looked_at(&self) -> u64 {
        self.request.looked_at.load(Ordering::Relaxed)
    }

    fn project(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        with_columns(batch, self.request.columns.iter().map(FileColumn::field).collect())
    }

    /// Returns the live files of `reconciled`. If their statistics are not in memory, they are read again, and are only
    /// kept in the returned batch.
    fn of_commit(&self, reconciled: &Reconciled) -> Result<Option<RecordBatch>> {
        let commit = &reconciled.commit;
        if matches!(reconciled.live, Rows::None) {
            return Ok(None);
        }
        let columns = self.request.columns.iter().fold(columns_of(&self.request.filters), FileColumns::with);
        let reread;
        let adds = match commit.statistics_in.filter(|_| columns.contains(FileColumn::Stats)) {
            None => &commit.adds,
            Some(file) => {
                reread = Commit::read(&self.storage, file)?;
                &reread.adds
            }
        };
        if adds.num_rows() != commit.adds.num_rows() {
            return Err(
                Error::corrupt_log("the commit has changed since it was read").at_version(commit.version)
            );
        }
        let Some(live) = reconciled.live.take(adds)? else { return Ok(None) };
        self.request.looked_at.fetch_add(live.num_rows() as u64, Ordering::Relaxed);
        let kept = apply(
            &self.request.filters,
            with_columns(&live, columns.iter().map(FileColumn::field).collect())?,
        )?;
        self.project(&kept).map(Some)
    }
}

impl Iterator for FileReplay {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(reconciled) = self.tail.commits.get(self.next) {
            let batch = self.of_commit(reconciled).transpose();
            self.next += 1;
            if batch.is_some() {
                return batch;
            }
        }
        let batch = self.checkpoint.as_mut()?.next()?;
        Some(batch.and_then(|batch| self.tail.filter(batch)).and_then(|batch| self.project(&batch)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::log::CommitFile;

    /// Creates three commits, with common and uncommon lines, a file that is added and removed, and a file that is
    /// added again with different statistics.
    fn commits() -> (tempfile::TempDir, Storage) {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("_delta_log");
        std::fs::create_dir(&log).unwrap();
        let add = |path: &str, rows: u64| {
            let stats = format!(r#"{{\"numRecords\":{rows}}}"#);
            let rest = r#""partitionValues":{},"size":1,"modificationTime":2,"dataChange":true"#;
            format!(r#"{{"add":{{"path":"{path}",{rest},"stats":"{stats}"}}}}"#)
        };
        for (version, lines) in [
            vec![add("a", 1), add("b", 2), add("%63", 3)],
            vec![
                r#"{"remove":{"path":"b","dataChange":true}}"#.to_owned(),
                add("a", 4).replace("\":", "\": "),
            ],
            vec![
                add("d", 5),
                r#"{"remove":{"path":"d","dataChange":true}}"#.to_owned(),
                r#"{"commitInfo":{}}"#.to_owned(),
            ],
        ]
        .into_iter()
        .enumerate()
        {
            std::fs::write(log.join(format!("{version:020}.json")), lines.join("\n")).unwrap();
        }
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        (directory, storage)
    }

    fn listed(
        storage: &Storage,
        columns: &[FileColumn],
        read: fn(&Storage, CommitFile) -> Result<Commit>,
    ) -> Vec<RecordBatch> {
        let file = CommitFile::named;
        let commits: Vec<_> =
            (0..3).rev().map(|version| Arc::new(read(storage, file(version)).unwrap())).collect();
        let tail = Tail::reconcile(&commits, &PathResolver::new(storage.root()).unwrap()).unwrap();
        FileReplay::new(storage.clone(), Arc::new(tail), None, AddRequest::new(FileColumns::of(columns)))
            .map(|batch| batch.unwrap())
            .collect()
    }

    /// Statistics that are read again are assigned to the same files as before.
    #[test]
    fn statistics_that_are_read_again_are_unchanged() {
        let (_directory, storage) = commits();
        for columns in
            [FileColumn::ALL.as_slice(), &[FileColumn::Stats], &[FileColumn::Path, FileColumn::Size]]
        {
            let held = listed(&storage, columns, Commit::read);
            assert_eq!(held.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
            assert_eq!(held, listed(&storage, columns, Commit::read_without_stats));
        }
    }
}
