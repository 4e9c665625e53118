//! Collects the files that the log still needs. (Protocol: "Action Reconciliation", "Deletion Vectors".)
//!
//! - A file is needed if it is live. It is also needed if it was removed after the cut-off, because a version within
//!   the retention then contains it. The files with the deletion vectors of needed files are needed as well.
//! - Files are compared by their resolved paths. If an action's path was not encoded as the protocol requires, the
//!   file whose name is literally the same is protected as well.
//! - A path outside of the table's directory may still lead into it through a link, a mount or another name of a
//!   bucket. A file in the directory is therefore needed if a needed file outside of it has the same name.
//! - A path or a deletion vector that cannot be parsed is an error, and nothing is deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;

use super::path_set::PathSet;
use crate::error::{Error, Result};
use crate::log::CommitFile;
use crate::log::deletion_vector::vector_path;
use crate::log::replay::{
    Commit, DeletionVectorColumn, FileColumn, FileColumns, are_plain, has_vectors, visit_commits,
};
use crate::protocol::{LogPath, PathResolver};
use crate::snapshot::Snapshot;

/// The number of commits that are collected and then read together.
const READ_TOGETHER: usize = 64;

/// The files that must be kept, and the files that were removed before the cut-off.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    kept: PathSet,
    /// The names of needed files outside of the table's directory.
    outside: PathSet,
    /// Files that were removed before the cut-off. Some of them may still have to be kept.
    expired: PathSet,
}

impl Retained {
    /// Returns the files that `snapshot` needs, and the files that earlier versions after `cutoff_ms` need.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store.
    pub(crate) fn of(snapshot: &Snapshot, cutoff_ms: i64) -> Result<Self> {
        let mut retained = Self::default();
        retained.keep_needed(snapshot, cutoff_ms)?;
        Ok(retained)
    }

    /// Keeps the files that `snapshot` needs, and the files that earlier versions after `cutoff_ms` need.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store.
    pub(super) fn keep_needed(&mut self, snapshot: &Snapshot, cutoff_ms: i64) -> Result<()> {
        self.keep_live(snapshot)?;
        for batch in snapshot.replay_removes()? {
            self.add_removes(&batch?, cutoff_ms, snapshot.resolver())?;
        }
        Ok(())
    }

    /// Keeps the live files of a version.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store.
    pub(crate) fn keep_live(&mut self, snapshot: &Snapshot) -> Result<()> {
        let columns = FileColumns::of(&[FileColumn::Path, FileColumn::DeletionVector]);
        for batch in snapshot.replay_files(columns)? {
            self.keep_adds(&batch?, snapshot.resolver())?;
        }
        Ok(())
    }

    /// Keeps the files of `add` actions, which must have the columns of the log.
    pub(super) fn keep_adds(&mut self, batch: &RecordBatch, resolver: &PathResolver) -> Result<()> {
        let files = Files::of(batch, resolver)?;
        (0..batch.num_rows()).try_for_each(|row| files.insert(row, &mut self.kept, &mut self.outside))
    }

    /// Keeps the files that commits have removed since `cutoff_ms`. Checkpoints no longer contain `remove` actions
    /// that are older than the table's own retention, but the commits still do.
    pub(super) fn keep_removed_by(
        &mut self,
        snapshot: &Snapshot,
        commits: &[CommitFile],
        cutoff_ms: i64,
    ) -> Result<()> {
        visit_commits(snapshot.storage(), commits, |_, commit| {
            self.add_removes(&commit?.removes, cutoff_ms, snapshot.resolver())?;
            Ok(true)
        })
    }

    /// Keeps the files that the commits of `newest` after version `known` have added, even if later commits have
    /// removed them. Only the commits themselves show such files; log compactions and checkpoints do not.
    ///
    /// # Errors
    /// Returns `FileNotFound` if a commit was deleted by a cleanup, `CorruptLog`, and errors from the store.
    pub(super) fn keep_added_since(&mut self, known: u64, newest: &Snapshot) -> Result<()> {
        let in_memory: BTreeMap<u64, &Arc<Commit>> =
            newest.state().commits().map(|commit| (commit.version, commit)).collect();
        let listed: BTreeMap<u64, CommitFile> =
            newest.segment().commits.iter().map(|commit| (commit.version, *commit)).collect();
        let mut missing = Vec::new();
        for version in known + 1..=newest.version() {
            match in_memory.get(&version) {
                Some(commit) => self.keep_adds(&commit.adds, newest.resolver())?,
                None => {
                    missing.push(listed.get(&version).copied().unwrap_or_else(|| CommitFile::named(version)));
                }
            }
            // A corrupt checkpoint may have a version that is far too high, without commits for the versions before
            // it. The commits are read in groups, so that the first missing commit ends this loop early.
            if missing.len() >= READ_TOGETHER || version == newest.version() {
                visit_commits(newest.storage(), &missing, |_, commit| {
                    self.keep_adds(&commit?.adds, newest.resolver())?;
                    Ok(true)
                })?;
                missing.clear();
            }
        }
        Ok(())
    }

    fn add_removes(&mut self, batch: &RecordBatch, cutoff_ms: i64, resolver: &PathResolver) -> Result<()> {
        let files = Files::of(batch, resolver)?;
        let times = deletion_times(batch);
        let mut expired_outside = PathSet::default();
        for row in 0..batch.num_rows() {
            if is_expired(times, row, cutoff_ms) {
                files.insert(row, &mut self.expired, &mut expired_outside)?;
            } else {
                files.insert(row, &mut self.kept, &mut self.outside)?;
            }
        }
        Ok(())
    }

    /// Returns whether the file at `path`, which is relative to the table's root, must be kept.
    pub(crate) fn keeps(&self, path: &str) -> bool {
        let name = || path.rsplit_once('/').map_or(path, |(_, name)| name);
        self.kept.contains(path) || (!self.outside.is_empty() && self.outside.contains(name()))
    }

    /// Returns whether the file was removed from the table before the cut-off.
    pub(crate) fn has_expired(&self, path: &str) -> bool {
        self.expired.contains(path)
    }

    /// Returns the number of files that must be kept.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}

/// Returns the deletion times of `remove` actions, if any action has one.
pub(super) fn deletion_times(removes: &RecordBatch) -> Option<&Int64Array> {
    removes.column_by_name("deletionTimestamp").and_then(|column| column.as_primitive_opt::<Int64Type>())
}

/// Returns whether a file was removed before the cut-off. A `remove` action without a time counts as old.
pub(super) fn is_expired(times: Option<&Int64Array>, row: usize, cutoff_ms: i64) -> bool {
    times.filter(|times| times.is_valid(row)).is_none_or(|times| times.value(row) < cutoff_ms)
}

/// The files to which the actions of a batch refer.
pub(super) struct Files<'a> {
    resolver: &'a PathResolver,
    paths: &'a StringArray,
    are_plain: bool,
    vectors: Option<DeletionVectorColumn<'a>>,
}

impl<'a> Files<'a> {
    pub(super) fn of(batch: &'a RecordBatch, resolver: &'a PathResolver) -> Result<Self> {
        let paths = batch
            .column_by_name(FileColumn::Path.name())
            .and_then(|column| column.as_string_opt())
            .ok_or_else(|| Error::corrupt_log("file actions have no column 'path'"))?;
        let vectors = has_vectors(batch).then(|| DeletionVectorColumn::of_log(batch)).transpose()?;
        Ok(Self { resolver, paths, are_plain: are_plain(paths), vectors })
    }

    /// Returns the data file of the action in a row.
    pub(super) fn data_file(&self, row: usize) -> Result<LogPath> {
        self.resolver.parse(self.text(row)?)
    }

    /// Returns the file with the deletion vector of the action in a row, if it has one.
    pub(super) fn vector_file(&self, row: usize) -> Result<Option<LogPath>> {
        let descriptor = self.vectors.as_ref().map(|vectors| vectors.get(row)).transpose()?.flatten();
        Ok(descriptor.map(|descriptor| vector_path(&descriptor, self.resolver)).transpose()?.flatten())
    }

    fn text(&self, row: usize) -> Result<&str> {
        let text = self.paths.is_valid(row).then(|| self.paths.value(row));
        text.ok_or_else(|| Error::corrupt_log("a file action has no path"))
    }

    fn insert(&self, row: usize, paths: &mut PathSet, outside: &mut PathSet) -> Result<()> {
        let text = self.text(row)?;
        if self.are_plain {
            paths.insert(text);
        } else {
            let file = self.data_file(row)?;
            if matches!(&file, LogPath::Relative(path) if path != text) {
                paths.insert(text);
            }
            insert(&file, paths, outside);
        }
        if let Some(file) = self.vector_file(row)? {
            insert(&file, paths, outside);
        }
        Ok(())
    }
}

fn insert(file: &LogPath, paths: &mut PathSet, outside: &mut PathSet) {
    match file {
        LogPath::Relative(path) => paths.insert(path),
        LogPath::Absolute(path) => {
            if let Some((_, name)) = path.path().rsplit_once('/') {
                outside.insert(name);
            }
        }
    }
}
