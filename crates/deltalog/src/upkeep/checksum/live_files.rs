//! Tracks the live files that are known from a checksum and from the commits after it.
//!
//! If the checksum lists all files, all live files are known. Otherwise, only the files in the commits are known, and
//! the commits must be consistent with each other: no file is added or removed twice in a row.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;

use crate::error::Result;
use crate::log::replay::{Commit, DeletionVectorColumn, FileColumn, add_at, file_key};
use crate::log::{Change, FileTotals, VersionChecksum};
use crate::protocol::{Add, PathResolver};

/// The maximum number of files that a checksum lists. It is low because a checksum is written with each commit.
pub(super) const MOST_LISTED_FILES: usize = 20;

/// The maximum number of file actions that are tracked.
const MOST_TRACKED: usize = 10_000;

/// A live file.
#[derive(Debug, Clone)]
struct Live {
    size: i64,
    /// The number of rows that the file's deletion vector marks as deleted.
    deleted: Option<i64>,
    place: Place,
}

/// Where to find the `add` action of a file.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The action is in the list of files of the checksum. The value is its index in this list.
    Listed(usize),
    /// The action is in a commit. The values are the index of the commit and the row of the action.
    Commit(usize, usize),
}

/// The effect of a commit on live files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileChange {
    /// The commit only adds files that are not live, and only removes files that are live.
    Exact,
    /// The commit only adds files that are already live, with the same sizes and deletion vectors. It removes no files.
    LiveAgain,
    /// The commit may add files that are already live, or remove files that are not live.
    Unknown,
}

/// The live files that are known individually.
pub(super) struct LiveFiles<'c> {
    listed: Vec<Add>,
    commits: Vec<&'c Commit>,
    /// The files by key. The value is `None` for files that were removed.
    files: HashMap<String, Option<Live>>,
    is_complete: bool,
    /// Whether there are too many file actions to track.
    is_overfull: bool,
}

impl<'c> LiveFiles<'c> {
    /// Returns the files that `checksum` lists.
    ///
    /// # Errors
    /// `CorruptLog` for a path that the table must not refer to.
    pub(super) fn of(checksum: &VersionChecksum, resolver: &PathResolver) -> Result<Self> {
        let listed = checksum.all_files.clone();
        let is_complete = listed.as_ref().is_some_and(|files| files.len() as u64 == checksum.num_files);
        let listed = listed.filter(|_| is_complete).unwrap_or_default();
        let mut files = HashMap::with_capacity(listed.len());
        for (at, add) in listed.iter().enumerate() {
            let deleted = add.deletion_vector.as_ref().map(|vector| vector.cardinality);
            let live = Live { size: add.size, deleted, place: Place::Listed(at) };
            files.insert(file_key(&add.path, add.deletion_vector.as_ref(), resolver)?, Some(live));
        }
        let is_complete = is_complete && files.len() == listed.len();
        Ok(Self { listed, commits: Vec::new(), files, is_complete, is_overfull: false })
    }

    /// Applies the file actions of the next commit to the totals. Returns whether the totals are still exact.
    ///
    /// If `change` is `Unknown`, they are only exact if all live files are known.
    ///
    /// # Errors
    /// `CorruptLog` for an action that breaks the protocol.
    pub(super) fn apply(
        &mut self,
        commit: &'c Commit,
        change: FileChange,
        totals: &mut FileTotals,
        resolver: &PathResolver,
    ) -> Result<bool> {
        let at = self.commits.len();
        self.commits.push(commit);
        let (adds, removes) = (FileRows::of(&commit.adds)?, FileRows::of(&commit.removes)?);
        self.is_overfull |= self.files.len() + adds.len() + removes.len() > MOST_TRACKED;
        if self.is_overfull {
            self.is_complete = false;
            self.files.clear();
        }
        match change {
            _ if self.is_complete => {}
            FileChange::Exact => {}
            FileChange::LiveAgain => return self.add_again(&adds, at, resolver),
            FileChange::Unknown => return Ok(false),
        }
        if self.is_overfull {
            return Ok(count_all(totals, &adds, Change::Added).is_some()
                && count_all(totals, &removes, Change::Removed).is_some());
        }
        for (is_add, row) in commit.file_actions() {
            let exact = match is_add {
                true => self.add(&adds, row, Place::Commit(at, row), totals, resolver)?,
                false => self.remove(&removes, row, totals, resolver)?,
            };
            if exact.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn add(
        &mut self,
        rows: &FileRows<'_>,
        row: usize,
        place: Place,
        totals: &mut FileTotals,
        resolver: &PathResolver,
    ) -> Result<Option<()>> {
        let Some(size) = rows.size(row) else { return Ok(None) };
        let live = Live { size, deleted: rows.deleted(row)?, place };
        let deleted = live.deleted;
        match self.files.insert(rows.key(row, resolver)?, Some(live)) {
            // This action replaces an earlier action for the same file.
            Some(Some(former)) if self.is_complete => {
                if totals.count(Change::Removed, former.size, former.deleted).is_none() {
                    return Ok(None);
                }
            }
            Some(Some(_)) => return Ok(None),
            Some(None) | None => {}
        }
        Ok(totals.count(Change::Added, size, deleted))
    }

    /// Handles a commit that only adds files that are already live. Returns whether this is consistent with the other
    /// commits.
    fn add_again(&mut self, rows: &FileRows<'_>, commit: usize, resolver: &PathResolver) -> Result<bool> {
        if self.is_overfull {
            return Ok(true);
        }
        for row in 0..rows.len() {
            let Some(size) = rows.size(row) else { return Ok(false) };
            let live = Live { size, deleted: rows.deleted(row)?, place: Place::Commit(commit, row) };
            let same = (live.size, live.deleted);
            match self.files.insert(rows.key(row, resolver)?, Some(live)) {
                Some(Some(former)) if (former.size, former.deleted) == same => {}
                Some(_) => return Ok(false),
                None => {}
            }
        }
        Ok(true)
    }

    fn remove(
        &mut self,
        rows: &FileRows<'_>,
        row: usize,
        totals: &mut FileTotals,
        resolver: &PathResolver,
    ) -> Result<Option<()>> {
        Ok(match self.files.insert(rows.key(row, resolver)?, None) {
            Some(Some(live)) => totals.count(Change::Removed, live.size, live.deleted),
            // The file was not live before.
            Some(None) | None if self.is_complete => Some(()),
            Some(None) => None,
            None => match rows.size(row) {
                Some(size) => totals.count(Change::Removed, size, rows.deleted(row)?),
                None => None,
            },
        })
    }

    /// Returns the list of all live files. Returns `None` if there are too many for a checksum, or if not all of them
    /// are known. `files` is the total number of live files.
    ///
    /// # Errors
    /// `CorruptLog` for an action that breaks the protocol.
    pub(super) fn all(&self, files: u64) -> Result<Option<Vec<Add>>> {
        let live: Vec<_> = self.files.values().flatten().collect();
        // If as many live files are known as there are in the table, all live files are known.
        if self.is_overfull || live.len() as u64 != files || live.len() > MOST_LISTED_FILES {
            return Ok(None);
        }
        let mut all = Vec::with_capacity(live.len());
        for live in live {
            let add = match live.place {
                Place::Listed(at) => self.listed.get(at).cloned(),
                Place::Commit(at, row) => match self.commits.get(at) {
                    Some(commit) if commit.has_statistics() => Some(add_at(&commit.adds, row)?),
                    _ => None,
                },
            };
            let Some(add) = add else { return Ok(None) };
            all.push(Add { data_change: false, ..add });
        }
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Some(all))
    }
}

/// Adds or subtracts all rows. Returns `None` if this is not possible for a row.
fn count_all(totals: &mut FileTotals, rows: &FileRows<'_>, change: Change) -> Option<()> {
    (0..rows.len()).try_for_each(|row| totals.count(change, rows.size(row)?, rows.deleted(row).ok()?))
}

/// The columns that identify files and contain their sizes.
struct FileRows<'b> {
    batch: &'b RecordBatch,
    vectors: Option<DeletionVectorColumn<'b>>,
}

impl<'b> FileRows<'b> {
    fn of(batch: &'b RecordBatch) -> Result<Self> {
        let has_vectors = batch.column_by_name(FileColumn::DeletionVector.name()).is_some();
        let vectors = has_vectors.then(|| DeletionVectorColumn::of_log(batch)).transpose()?;
        Ok(Self { batch, vectors })
    }

    fn len(&self) -> usize {
        self.batch.num_rows()
    }

    fn size(&self, row: usize) -> Option<i64> {
        let sizes = self.batch.column_by_name(FileColumn::Size.name())?.as_primitive_opt::<Int64Type>()?;
        sizes.is_valid(row).then(|| sizes.value(row))
    }

    /// Returns the number of rows that the deletion vector of a file marks as deleted, if the file has a deletion
    /// vector.
    fn deleted(&self, row: usize) -> Result<Option<i64>> {
        let vector = self.vectors.as_ref().map_or(Ok(None), |vectors| vectors.get(row))?;
        Ok(vector.map(|vector| vector.cardinality))
    }

    fn key(&self, row: usize, resolver: &PathResolver) -> Result<String> {
        let path = self
            .batch
            .column_by_name(FileColumn::Path.name())
            .and_then(|column| column.as_string_opt::<i32>())
            .ok_or_else(|| crate::error::Error::corrupt_log("file actions lack 'path'"))?;
        let vector = self.vectors.as_ref().map_or(Ok(None), |vectors| vectors.get(row))?;
        file_key(path.value(row), vector.as_ref(), resolver)
    }
}
