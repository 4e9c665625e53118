//! The files that were written for a change to a table, until the change is committed.
//!
//! - They are deleted if the commit is known to have failed, and kept while its outcome is unknown.
//! - A commit with an unknown outcome may have succeeded. If its writer repeats it with the same files, and the
//!   repetition fails or has no effect, the files may still be part of the table or of an older version. So they are
//!   deleted only if neither the live files nor the tombstones of the table contain them.
//! - The files are deleted even if the call is interrupted.
//! - Hadoop keeps the checksum of a local file in a hidden file next to it, which is deleted as well.

use std::collections::HashSet;

use arrow::array::AsArray;

use crate::error::{ErrorKind, Result};
use crate::log::replay::{Commit, FileColumn, FileColumns};
use crate::protocol::log_name::LogFileName;
use crate::protocol::{LogPath, PathResolver, path};
use crate::runtime::interrupt;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// The files that were written for one change.
#[derive(Debug)]
pub(crate) struct OwnFiles {
    storage: Storage,
    /// The version that the change has read; `None` if it creates the table.
    base: Option<Snapshot>,
    /// The paths of data files, percent-encoded as in actions.
    data: Vec<String>,
    /// The paths of change data files.
    changes: Vec<String>,
}

impl OwnFiles {
    /// Returns an empty set of files for a change of `base`, or for a change that creates the table.
    pub(crate) fn new(storage: &Storage, base: Option<&Snapshot>) -> Self {
        Self { storage: storage.clone(), base: base.cloned(), data: Vec::new(), changes: Vec::new() }
    }

    /// Returns the set of files for a change of `base`, with data files given by their paths, percent-encoded as in
    /// actions.
    pub(crate) fn of<P: Into<String>>(base: &Snapshot, paths: impl IntoIterator<Item = P>) -> Self {
        let mut files = Self::new(base.storage(), Some(base));
        files.add(paths);
        files
    }

    /// Adds data files.
    pub(crate) fn add<P: Into<String>>(&mut self, paths: impl IntoIterator<Item = P>) {
        self.data.extend(paths.into_iter().map(Into::into));
    }

    /// Adds change data files.
    pub(crate) fn add_changes<P: Into<String>>(&mut self, paths: impl IntoIterator<Item = P>) {
        self.changes.extend(paths.into_iter().map(Into::into));
    }

    /// Returns the `result` of the change, or of one of its steps. If it has certainly failed, the files are deleted
    /// first.
    pub(crate) fn settle<T>(self, result: Result<T>) -> Result<T> {
        self.settle_unless(result, |_| true)
    }

    /// Returns the `result` of the change. If the change has certainly failed, or if the outcome shows that the files
    /// are not used, the files are deleted first.
    pub(crate) fn settle_unless<T>(self, result: Result<T>, is_used: impl FnOnce(&T) -> bool) -> Result<T> {
        discard_unused(result, is_used, || self.delete())
    }

    /// Deletes the data files that no version uses, and the change data files that no version after the base has. A
    /// file that cannot be deleted is left for VACUUM. This is only logged, so that the caller can report the outcome
    /// of the commit.
    pub(crate) fn delete(self) {
        let Self { storage, base, data, changes } = &self;
        interrupt::shielded(|| {
            delete_unused(storage, data, |paths| known(storage, paths));
            if let Some(base) = base {
                delete_unused(storage, changes, |paths| recorded(base, paths));
            }
        });
    }
}

/// Returns `result` after calling `discard`, which deletes the files that were written for it. Does not call `discard`
/// if the files are in use or if their commit may be in the log.
pub(crate) fn discard_unused<T>(
    result: Result<T>,
    is_used: impl FnOnce(&T) -> bool,
    discard: impl FnOnce(),
) -> Result<T> {
    let may_be_used = match &result {
        Ok(outcome) => is_used(outcome),
        Err(error) => error.is_commit_state_unknown(),
    };
    if !may_be_used {
        discard();
    }
    result
}

/// Deletes a deletion vector file that no version refers to. If this fails, it is only logged.
pub(crate) fn delete_vectors(storage: &Storage, path: &str) {
    if let Err(error) = storage.delete(path) {
        tracing::warn!(table = storage.url(), file = path, %error, "an unused deletion vector file remains");
    }
}

fn delete(storage: &Storage, path: &str) {
    if let Err(error) = path::decode(path).and_then(|path| delete_data_file(storage, &path)) {
        tracing::warn!(table = storage.url(), path, %error, "a file of a write could not be deleted");
    }
}

/// Deletes the file at a decoded path, and the checksum that Hadoop keeps next to a local file. No version may refer to
/// the file.
///
/// # Errors
/// Returns errors from the store.
pub(crate) fn delete_data_file(storage: &Storage, path: &str) -> Result<()> {
    storage.delete(path)?;
    if storage.root().scheme() != "file" {
        return Ok(());
    }
    let (directory, name) = path.rsplit_once('/').map_or(("", path), |(directory, name)| (directory, name));
    storage.delete(format!("{directory}/.{name}.crc").trim_start_matches('/'))
}

/// Deletes those `paths` (percent-encoded as in actions) that are not used. `find` returns for each path whether it is
/// used. If `find` fails, no file is deleted.
fn delete_unused(storage: &Storage, paths: &[String], find: impl FnOnce(&[String]) -> Result<Vec<bool>>) {
    if paths.is_empty() {
        return;
    }
    match find(paths) {
        Ok(used) => {
            let unused = paths.iter().zip(used).filter(|(_, is_used)| !is_used);
            unused.for_each(|(path, _)| delete(storage, path));
        }
        Err(error) => {
            let table = storage.url();
            tracing::warn!(table, %error, "the files of a failed write remain: the table cannot be read");
        }
    }
}

/// Returns for each path whether the newest version has the file or a tombstone of it. If there is a tombstone, an
/// older version may still use the file.
fn known(storage: &Storage, paths: &[String]) -> Result<Vec<bool>> {
    let newest = match Snapshot::open(storage, None) {
        Err(error) if error.kind() == ErrorKind::NotATable => return Ok(vec![false; paths.len()]),
        opened => opened?,
    };
    let resolver = PathResolver::new(storage.root())?;
    let paths = paths.iter().map(|path| resolver.parse(path)).collect::<Result<Vec<LogPath>>>()?;
    let given: HashSet<&LogPath> = paths.iter().collect();
    let mut found = HashSet::new();
    for batch in newest.replay_files(FileColumns::of(&[FileColumn::Path]))?.chain(newest.replay_removes()?) {
        let batch = batch?;
        let column = batch.column_by_name(FileColumn::Path.name());
        for path in column.and_then(|column| column.as_string_opt::<i32>()).into_iter().flatten().flatten() {
            let path = newest.resolver().parse(path)?;
            if given.contains(&path) {
                found.insert(path);
            }
        }
    }
    Ok(paths.iter().map(|path| found.contains(path)).collect())
}

/// Returns for each path whether a version after `base` has it as a change data file.
fn recorded(base: &Snapshot, paths: &[String]) -> Result<Vec<bool>> {
    let resolver = base.resolver();
    let mut found = HashSet::new();
    for version in base.version() + 1..=base.refresh()?.version() {
        let bytes = base.storage().read(&LogFileName::Commit(version).path())?;
        for file in Commit::parse_without_stats(&bytes, version)?.cdc {
            found.insert(resolver.parse(&file.path)?);
        }
    }
    paths.iter().map(|path| Ok(found.contains(&resolver.parse(path)?))).collect()
}
