//! Rows that a transaction deletes from data files, by deletion vectors. Protocol: "Deletion Vectors".
//!
//! Two transactions that delete different rows of one file do not conflict: the second one merges its rows into the
//! vector of the first. The vectors are therefore made for each attempt, not once per transaction:
//!
//! ```text
//!   rows to delete ──┐
//!   vector in base ──┼─ note(winner): its vector instead ──► prepare: the union, in a new file ──► remove, add
//!                    └─ a row is in both: conflict
//! ```
//!
//! - A file that loses all its rows is removed. If all rows to delete are already deleted, the file stays as it is.
//! - A winning commit that removes the file is a conflict, unless it records where the rows are now
//!   ([`crate::commit::row_moves`]). Then the rows are deleted there.
//! - A winning commit that restores deleted rows is a conflict. A winning commit that adds the file again with the same
//!   rows, for example with new statistics, is not.
//! - If a vector was written but not committed, its file is deleted.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use arrow::array::RecordBatch;
use roaring::RoaringTreemap;

use super::conflict::ConflictReason;
use crate::commit::own_files::delete_vectors;
use crate::commit::row_moves::RowMove;
use crate::error::{Error, ErrorKind, Result};
use crate::log::deletion_vector::{DeletionVector, DeletionVectors, vector_file, write_vectors};
use crate::log::replay::{Commit, adds_of, batches_of_adds, removes_of};
use crate::protocol::{Action, Add, DeletionVectorDescriptor, LogPath, PathResolver, Remove};
use crate::runtime::environment::Environment;
use crate::storage::Storage;
use crate::values::stats::{num_records, with_wide_bounds};

/// Rows to delete from one data file.
#[derive(Debug)]
pub(super) struct RowDelete {
    /// The logical file in the version that was read.
    pub(super) file: Add,
    /// The rows, by their positions in the data file.
    pub(super) rows: DeletionVector,
}

/// The rows that one transaction deletes, as each of its attempts to commit sees them.
#[derive(Debug)]
pub(super) struct RowDeletes<'a> {
    storage: &'a Storage,
    resolver: &'a PathResolver,
    environment: &'a Environment,
    files: Vec<File<'a>>,
    /// The indexes of `files` by their resolved paths.
    by_path: HashMap<LogPath, usize>,
    /// The files with deletion vectors that were written but not committed.
    written: Vec<String>,
}

/// A data file as of the newest version that was examined.
#[derive(Debug)]
struct File<'a> {
    add: Add,
    /// The number of rows of the data file, including deleted rows.
    num_records: u64,
    /// The rows that are already deleted.
    deleted: RoaringTreemap,
    /// The rows that the transaction deletes.
    rows: Cow<'a, RoaringTreemap>,
    /// The actions of the last attempt, if they can be used again.
    actions: Option<Vec<Action>>,
    /// The file that contains the vector of these actions.
    vector_file: Option<String>,
}

impl<'a> RowDeletes<'a> {
    /// Reads the deletion vectors that the files have in the version that was read.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is passed twice, whose number of rows is unknown, or that is too short for one
    /// of the rows; also the errors of [`DeletionVectors::read`].
    pub(super) fn new(
        deletes: &'a [RowDelete],
        storage: &'a Storage,
        resolver: &'a PathResolver,
        environment: &'a Environment,
    ) -> Result<Self> {
        let mut this = Self {
            storage,
            resolver,
            environment,
            files: Vec::with_capacity(deletes.len()),
            by_path: HashMap::new(),
            written: Vec::new(),
        };
        let mut named = HashSet::new();
        for RowDelete { file, rows } in deletes {
            let located = |error: Error| error.at_path(&file.path);
            let known = this.file(file.clone(), Cow::Borrowed(rows.bitmap()))?;
            rows.ensure_within(known.num_records).map_err(located)?;
            let path = resolver.parse(&file.path)?;
            if !named.insert(path.clone()) {
                let message = "the transaction deletes rows of the same file twice";
                return Err(located(Error::invalid_argument(message)));
            }
            if rows.bitmap().is_subset(&known.deleted) {
                continue;
            }
            this.by_path.insert(path, this.files.len());
            this.files.push(known);
        }
        Ok(this)
    }

    /// Returns a file with `rows` to delete.
    ///
    /// # Errors
    /// `InvalidArgument` if its number of rows is not known; also the errors of [`DeletionVectors::read`].
    fn file(&self, add: Add, rows: Cow<'a, RoaringTreemap>) -> Result<File<'a>> {
        let located = |error: Error| error.at_path(&add.path);
        // Protocol: "that logical file must have correct `numRecords` information".
        let num_records = add.stats.as_deref().and_then(num_records).ok_or_else(|| {
            let message = "rows of a file can only be deleted if its statistics contain the number of rows";
            located(Error::invalid_argument(message))
        })?;
        let deleted = self.vector(add.deletion_vector.as_ref(), num_records).map_err(located)?;
        Ok(File { add, num_records, deleted, rows, actions: None, vector_file: None })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn vector(
        &self,
        descriptor: Option<&DeletionVectorDescriptor>,
        num_records: u64,
    ) -> Result<RoaringTreemap> {
        let vectors = DeletionVectors::new(self.storage.clone(), self.resolver.clone());
        vectors.deleted(descriptor, Some(num_records))
    }

    /// Examines the deletion vectors of another commit. Returns the reason of the conflict, if the commit conflicts.
    ///
    /// # Errors
    /// `CorruptLog` for a path that the table must not refer to; also the errors of [`DeletionVectors::read`].
    pub(super) fn note(&mut self, winner: &Commit) -> Result<Option<ConflictReason>> {
        if self.is_empty() {
            return Ok(None);
        }
        let is_ours = |path: &str| self.resolver.parse(path).map(|path| self.by_path.get(&path).copied());
        let mut replaced = BTreeMap::new();
        for (row, path) in paths(&winner.removes).enumerate() {
            if let Some(index) = is_ours(path)? {
                replaced.insert(index, row);
            }
        }
        self.note_added_again(winner)?;
        if replaced.is_empty() {
            return Ok(None);
        }
        let mut adds = HashMap::new();
        for add in adds_of(&winner.adds)? {
            adds.insert(self.resolver.parse(&add.path)?, add);
        }
        let mut moved = Vec::new();
        for (index, row) in replaced {
            let Some(file) = self.files.get(index) else { continue };
            let path = file.add.path.clone();
            let located = |error: Error| error.at_path(&path);
            let add = adds.get(&self.resolver.parse(&path)?);
            let Some(add) = add else {
                let remove = removes_of(&winner.removes.slice(row, 1))?.into_iter().next();
                match remove.map_or(Ok(None), |remove| self.followed(file, &remove, &adds)) {
                    Ok(Some(files)) => moved.push((index, files)),
                    Ok(None) => return Ok(Some(ConflictReason::ConcurrentDeleteRead { file: path })),
                    Err(error) => return Err(located(error)),
                }
                continue;
            };
            let deleted = self.vector(add.deletion_vector.as_ref(), file.num_records).map_err(located)?;
            // The other commit has restored a row, or both have deleted the same one.
            let restored = &file.deleted - &deleted;
            let common = &(&deleted - &file.deleted) & &*file.rows;
            if let Some(row) = common.min().or(restored.min()) {
                return Ok(Some(ConflictReason::ConcurrentRowDelete { file: path, row }));
            }
            let add = add.clone();
            if let Some(file) = self.files.get_mut(index) {
                (file.add, file.deleted, file.actions) = (add, deleted, None);
                file.vector_file = None;
            }
        }
        self.replace(moved)?;
        Ok(None)
    }

    /// If another commit adds some of the files again with the same rows, for example with new statistics, uses its
    /// `add` actions from now on.
    fn note_added_again(&mut self, winner: &Commit) -> Result<()> {
        for (row, path) in paths(&winner.adds).enumerate() {
            let Some(index) = self.by_path.get(&self.resolver.parse(path)?).copied() else { continue };
            let add = adds_of(&winner.adds.slice(row, 1))?.into_iter().next();
            if let (Some(add), Some(file)) = (add, self.files.get_mut(index))
                && add.deletion_vector == file.add.deletion_vector
                && add.stats.as_deref().and_then(num_records) == Some(file.num_records)
            {
                (file.add, file.actions, file.vector_file) = (add, None, None);
            }
        }
        Ok(())
    }

    /// Follows the rows of `file` to new files, after another commit has removed the file by `remove` and added `adds`.
    /// Returns the new files, each with the rows to delete from it. Returns `None` if the commit does not record where
    /// the rows are. Also returns `None` if any part of the record does not fit, because a wrong position would delete
    /// another row.
    fn followed(
        &self,
        file: &File<'_>,
        remove: &Remove,
        adds: &HashMap<LogPath, Add>,
    ) -> Result<Option<Vec<File<'a>>>> {
        let Some(moved) = RowMove::of(remove.tags.as_ref()) else { return Ok(None) };
        if remove.data_change || remove.deletion_vector != file.add.deletion_vector {
            return Ok(None);
        }
        let deleted = match moved.deletion_vector == file.add.deletion_vector {
            true => Ok(file.deleted.clone()),
            false => self.vector(moved.deletion_vector.as_ref(), file.num_records),
        };
        let deleted = match deleted {
            Ok(deleted) => deleted,
            // The old vector may have been deleted, because no version that is kept needs it.
            Err(error) if matches!(error.kind(), ErrorKind::FileNotFound | ErrorKind::CorruptData) => {
                tracing::debug!(%error, file = file.add.path, "the deletion vector of a rewritten file cannot be read");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let rows = &*file.rows - &file.deleted;
        let Some(positions) = moved.positions(&rows, &deleted) else { return Ok(None) };
        let mut followed = Vec::with_capacity(positions.len());
        for (path, rows) in positions {
            let add = self.resolver.parse(path).ok().and_then(|path| adds.get(&path));
            let is_moved =
                |add: &&Add| !add.data_change && add.stats.as_deref().and_then(num_records).is_some();
            let Some(add) = add.filter(is_moved) else { return Ok(None) };
            let new = self.file(add.clone(), Cow::Owned(rows))?;
            let is_there = new.rows.max().is_none_or(|last| last < new.num_records);
            if !is_there || !new.rows.is_disjoint(&new.deleted) {
                return Ok(None);
            }
            followed.push(new);
        }
        Ok(Some(followed))
    }

    /// Replaces the files with the given indexes by the files that now have their rows.
    fn replace(&mut self, moved: Vec<(usize, Vec<File<'a>>)>) -> Result<()> {
        if moved.is_empty() {
            return Ok(());
        }
        let mut kept: Vec<Option<File<'a>>> = std::mem::take(&mut self.files).into_iter().map(Some).collect();
        for (index, _) in &moved {
            if let Some(file) = kept.get_mut(*index) {
                *file = None;
            }
        }
        self.files = kept.into_iter().flatten().collect();
        let mut by_path = HashMap::new();
        for (index, file) in self.files.iter().enumerate() {
            by_path.insert(self.resolver.parse(&file.add.path)?, index);
        }
        for new in moved.into_iter().flat_map(|(_, files)| files) {
            let path = self.resolver.parse(&new.add.path)?;
            if let Some(file) = by_path.get(&path).and_then(|index| self.files.get_mut(*index)) {
                *file.rows.to_mut() |= &*new.rows;
                (file.actions, file.vector_file) = (None, None);
                continue;
            }
            by_path.insert(path, self.files.len());
            self.files.push(new);
        }
        self.by_path = by_path;
        Ok(())
    }

    /// Returns the actions that delete the rows, on top of the commits examined so far. Deletion vectors that have
    /// changed since the last attempt are written to new files.
    ///
    /// # Errors
    /// Errors from the store; `InvalidArgument` for statistics that are not a JSON object.
    pub(super) fn prepare(&mut self) -> Result<Vec<Action>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let now_ms = self.environment.now_ms();
        let union = |file: &File<'_>| DeletionVector::from(&file.deleted | &*file.rows);
        let is_pending = |file: &File<'_>| file.actions.is_none();
        let is_emptied = |vector: &DeletionVector, file: &File<'_>| vector.cardinality() >= file.num_records;
        let pending: Vec<DeletionVector> =
            self.files.iter().filter(|file| is_pending(file)).map(union).collect();
        let partial: Vec<DeletionVector> = self
            .files
            .iter()
            .filter(|file| is_pending(file))
            .zip(&pending)
            .filter(|(file, vector)| !is_emptied(vector, file))
            .map(|(_, vector)| vector.clone())
            .collect();
        let (path, descriptors) = match partial.is_empty() {
            true => (None, Vec::new()),
            false => {
                let id = self.environment.uuid();
                self.written.push(vector_file(id));
                (Some(vector_file(id)), write_vectors(self.storage, id, &partial)?)
            }
        };
        let mut descriptors = descriptors.into_iter();
        for (file, vector) in self.files.iter_mut().filter(|file| is_pending(file)).zip(&pending) {
            let mut actions = vec![Action::Remove(file.remove(now_ms))];
            if !is_emptied(vector, file) {
                let mut add = file.add.clone();
                add.deletion_vector = descriptors.next();
                add.stats = add.stats.as_deref().map(with_wide_bounds).transpose()?;
                add.data_change = true;
                actions.push(Action::Add(add));
                file.vector_file = path.clone();
            }
            file.actions = Some(actions);
        }
        Ok(self.files.iter().filter_map(|file| file.actions.clone()).flatten().collect())
    }

    /// Returns the logical files that the actions of [`RowDeletes::prepare`] remove, in batches with the log's columns.
    ///
    /// # Errors
    /// `CorruptLog` if a map has more entries than an Arrow array can hold.
    pub(super) fn replaced(&self) -> Result<Vec<RecordBatch>> {
        let files: Vec<Add> = self.files.iter().map(|file| file.add.clone()).collect();
        batches_of_adds(&files)
    }

    /// Deletes the files with deletion vectors that were written but are not needed: the files of earlier attempts if
    /// the transaction was committed, otherwise all of them. Must only be called when the outcome is known.
    pub(super) fn delete_unused(&mut self, is_committed: bool) {
        let is_used = |path: &String| {
            is_committed && self.files.iter().any(|file| file.vector_file.as_ref() == Some(path))
        };
        self.written.iter().filter(|path| !is_used(path)).for_each(|path| delete_vectors(self.storage, path));
    }
}

impl File<'_> {
    fn remove(&self, now_ms: i64) -> Remove {
        Remove {
            path: self.add.path.clone(),
            deletion_timestamp: Some(now_ms),
            data_change: true,
            extended_file_metadata: Some(true),
            partition_values: Some(self.add.partition_values.clone()),
            size: Some(self.add.size),
            stats: self.add.stats.clone(),
            tags: RowMove::without(self.add.tags.as_ref()),
            deletion_vector: self.add.deletion_vector.clone(),
            base_row_id: self.add.base_row_id,
            default_row_commit_version: self.add.default_row_commit_version,
        }
    }
}

fn paths(batch: &arrow::array::RecordBatch) -> impl Iterator<Item = &str> {
    use arrow::array::AsArray;
    let paths = batch.column_by_name("path").and_then(|column| column.as_string_opt::<i32>());
    paths.into_iter().flat_map(|paths| paths.iter().flatten())
}
