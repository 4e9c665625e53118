//! Finds the files that may be deleted in a listing of the table's root.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use super::candidates::{Candidates, Files, reason};
use super::path_set::PathSet;
use super::retained::Retained;
use super::tables::warn_of;
use super::visible::{Visible, name_of};
use crate::error::Result;
use crate::snapshot::Snapshot;
use crate::storage::FileMeta;

/// The files and directories that one of the sources has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Files,
    /// The number of directories that were listed, including the root.
    pub(super) directories: u64,
    /// Directories that may be empty, if the store has directories.
    pub(super) nested: Vec<String>,
    /// Whether there are checksum files of Hadoop next to the files.
    pub(super) has_checksums: bool,
    /// The version up to which all removed files have been found, by this VACUUM or by an earlier one.
    pub(super) searched_up_to: Option<u64>,
}

/// Lists the table's directory.
///
/// # Errors
/// Returns `Unavailable` or `PermissionDenied`.
pub(super) fn find(snapshot: &Snapshot, retained: &Retained, cutoff_ms: i64) -> Result<Found> {
    let storage = snapshot.storage();
    let visible = Visible::of(snapshot);
    let has_directories = storage.has_directories();
    let entered: Mutex<(PathSet, Vec<String>)> = Mutex::default();
    let enters = |directory: &str| {
        let enters = visible.enters(directory);
        if enters {
            // In an object store, the same directory is visited once for each of its objects, so directories are
            // counted by means of a set.
            let mut entered = entered.lock().unwrap_or_else(PoisonError::into_inner);
            entered.0.insert(directory);
            if has_directories {
                entered.1.push(directory.to_owned());
            }
        }
        enters
    };
    let candidates = RefCell::new(Candidates::default());
    let mut has_checksums = false;
    storage.walk("", &enters, |files: Vec<FileMeta>| {
        let mut candidates = candidates.borrow_mut();
        for file in &files {
            if !Visible::shows(&file.name) {
                has_checksums |= name_of(&file.name).ends_with(".crc");
            } else if !has_directories && file.size == 0 {
                // An empty object may be the marker of a directory. The listing does not show the slash at the end of
                // its name, so deleting it could delete a file of the same name. It is therefore kept. Data files and
                // files with deletion vectors are never empty.
            } else if let Some(reason) = reason(file, retained, cutoff_ms) {
                candidates.push(file, reason);
            }
        }
        Ok(())
    })?;
    let (directories, mut nested) = entered.into_inner().unwrap_or_else(PoisonError::into_inner);
    let tables = visible.other_tables();
    let is_elsewhere = |path: &str| tables.iter().any(|table| path.starts_with(table));
    if !tables.is_empty() {
        warn_of(snapshot, &tables);
        nested.retain(|directory| !is_elsewhere(directory));
    }
    let files = candidates.into_inner().finish((!tables.is_empty()).then_some(&is_elsewhere));
    Ok(Found {
        files,
        directories: directories.len() as u64 + 1,
        nested,
        has_checksums: has_checksums && has_directories,
        searched_up_to: None,
    })
}
