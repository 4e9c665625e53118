//! Which files of a write that failed may be deleted.
//!
//! A commit whose state was unknown may have succeeded. If its writer repeats it with the same files, and the
//! repetition fails or has no effect, the files are part of the table.

use std::collections::HashSet;

use arrow::array::AsArray;

use crate::error::{ErrorKind, Result};
use crate::protocol::{LogPath, PathResolver, path};
use crate::replay::{FileColumn, FileColumns};
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// Deletes those of `paths`, as actions have them, that no file of the newest version has. Files that cannot be deleted
/// now are left for VACUUM: what the caller reports is what became of the commit.
pub(crate) fn delete_unused(storage: &Storage, paths: Vec<String>) {
    for path in unused(storage, paths) {
        let deleted = path::decode(&path).and_then(|path| storage.delete(&path));
        if let Err(error) = deleted {
            tracing::warn!(table = storage.url(), path, %error, "a file of a write could not be deleted");
        }
    }
}

/// Returns those of `paths`, as actions have them, that no file of the newest version has. Returns none if that cannot
/// be found out.
fn unused(storage: &Storage, paths: Vec<String>) -> Vec<String> {
    if paths.is_empty() {
        return paths;
    }
    match live(storage, &paths) {
        Ok(live) => {
            paths.into_iter().zip(live).filter(|(_, is_live)| !is_live).map(|(path, _)| path).collect()
        }
        Err(error) => {
            let table = storage.url();
            tracing::warn!(table, %error, "the files of a write that failed remain, because the table cannot be read");
            Vec::new()
        }
    }
}

/// Returns for each path whether it is that of a file of the newest version.
fn live(storage: &Storage, paths: &[String]) -> Result<Vec<bool>> {
    let newest = match Snapshot::open(storage, None) {
        Err(error) if error.kind() == ErrorKind::NotATable => return Ok(vec![false; paths.len()]),
        opened => opened?,
    };
    let resolver = PathResolver::new(storage.root())?;
    let paths = paths.iter().map(|path| resolver.parse(path)).collect::<Result<Vec<LogPath>>>()?;
    let given: HashSet<&LogPath> = paths.iter().collect();
    let mut found = HashSet::new();
    for batch in newest.replay_files(FileColumns::of(&[FileColumn::Path]))? {
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
