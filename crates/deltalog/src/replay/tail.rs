//! Reconciling the commits after the checkpoint, and the checkpoint against them.

use std::sync::Arc;

use arrow::array::{BooleanArray, BooleanBuilder, RecordBatch, UInt32Array};
use arrow::compute::{filter_record_batch, take_record_batch};
use hashbrown::HashSet;

use super::checkpoint::CheckpointReader;
use super::columns::{FileColumn, FileColumns};
use super::commit::Commit;
use super::key::Keys;
use crate::error::{Error, Result};
use crate::protocol::PathResolver;

/// What the commits after the checkpoint make of files: the live ones, the tombstones, and every key they named.
#[derive(Debug, Default)]
pub struct Tail {
    /// Live files, newest first, with all columns.
    pub adds: Vec<RecordBatch>,
    /// Tombstones, newest first.
    pub removes: Vec<RecordBatch>,
    keys: HashSet<Box<str>>,
}

impl Tail {
    /// Reconciles `commits`, which come newest first.
    ///
    /// # Errors
    /// `CorruptLog` for a path that cannot be.
    pub fn reconcile<'a>(commits: impl IntoIterator<Item = &'a Arc<Commit>>, resolver: &PathResolver) -> Result<Self> {
        let mut tail = Self::default();
        for commit in commits {
            tail.push(commit, resolver).map_err(|error| error.at_version(commit.version))?;
        }
        Ok(tail)
    }

    fn push(&mut self, commit: &Commit, resolver: &PathResolver) -> Result<()> {
        let adds = Keys::new(&commit.adds, resolver)?;
        let removes = Keys::new(&commit.removes, resolver)?;
        let (mut live, mut dead) = (Vec::new(), Vec::new());
        let (mut next_add, mut next_remove) = (0, 0);
        let mut key = String::new();
        for is_add in &commit.order {
            let (keys, next, kept) = if *is_add { (&adds, &mut next_add, &mut live) } else { (&removes, &mut next_remove, &mut dead) };
            keys.write(*next, &mut key)?;
            if !self.keys.contains(key.as_str()) {
                self.keys.insert(key.as_str().into());
                kept.push(u32::try_from(*next).map_err(|_| Error::corrupt_log("the commit has more actions than can be held"))?);
            }
            *next += 1;
        }
        self.adds.extend(take(&commit.adds, live)?);
        self.removes.extend(take(&commit.removes, dead)?);
        Ok(())
    }

    /// Whether no file action follows the checkpoint.
    fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Which rows of a checkpoint's batch still count.
    fn survivors(&self, batch: &RecordBatch, resolver: &PathResolver) -> Result<BooleanArray> {
        let keys = Keys::new(batch, resolver)?;
        let mut survivors = BooleanBuilder::with_capacity(batch.num_rows());
        let mut key = String::new();
        for row in 0..batch.num_rows() {
            keys.write(row, &mut key)?;
            survivors.append_value(!self.keys.contains(key.as_str()));
        }
        Ok(survivors.finish())
    }

    /// The rows of a checkpoint's batch that no commit after it has named.
    pub(crate) fn filter(&self, batch: RecordBatch, resolver: &PathResolver) -> Result<RecordBatch> {
        if self.is_empty() {
            return Ok(batch);
        }
        let survivors = self.survivors(&batch, resolver)?;
        if survivors.true_count() == batch.num_rows() {
            return Ok(batch);
        }
        filter_record_batch(&batch, &survivors).map_err(|error| Error::corrupt_log("file actions cannot be filtered").with_source(error))
    }
}

fn take(batch: &RecordBatch, rows: Vec<u32>) -> Result<Option<RecordBatch>> {
    if rows.is_empty() {
        return Ok(None);
    }
    if rows.len() == batch.num_rows() {
        return Ok(Some(batch.clone()));
    }
    take_record_batch(batch, &UInt32Array::from(rows))
        .map(Some)
        .map_err(|error| Error::corrupt_log("file actions cannot be selected").with_source(error))
}

/// The live files of a version, as batches in the form of the log: first those of the commits, then those of the checkpoint.
pub struct FileReplay {
    tail: Arc<Tail>,
    next: usize,
    columns: FileColumns,
    checkpoint: Option<CheckpointReader>,
    resolver: PathResolver,
}

impl FileReplay {
    /// `checkpoint` must have been opened with [`FileReplay::columns_for`] of `columns`.
    pub(crate) fn new(tail: Arc<Tail>, checkpoint: Option<CheckpointReader>, columns: FileColumns, resolver: PathResolver) -> Self {
        Self { tail, next: 0, columns, checkpoint, resolver }
    }

    /// What has to be read to give `columns`: also the key, if there is something to reconcile with.
    pub(crate) fn columns_for(tail: &Tail, columns: FileColumns) -> FileColumns {
        if tail.is_empty() { columns } else { columns.with(FileColumn::Path).with(FileColumn::DeletionVector) }
    }

    fn project(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let indices =
            self.columns.iter().map(|column| batch.schema_ref().index_of(column.name())).collect::<std::result::Result<Vec<_>, _>>();
        indices
            .and_then(|indices| batch.project(&indices))
            .map_err(|error| Error::corrupt_log("file actions lack a column").with_source(error))
    }
}

impl Iterator for FileReplay {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.tail.adds.get(self.next) {
            self.next += 1;
            return Some(self.project(batch));
        }
        let batch = self.checkpoint.as_mut()?.next()?;
        Some(batch.and_then(|batch| self.tail.filter(batch, &self.resolver)).and_then(|batch| self.project(&batch)))
    }
}
