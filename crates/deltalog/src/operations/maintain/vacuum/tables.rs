//! Finds other tables in a table's root, if the files come from a source other than a listing of the store.

use std::collections::BTreeSet;

use super::candidates::{Candidates, Files};
use crate::error::Result;
use crate::log::LOG_DIRECTORY;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

impl Candidates {
    /// Completes the list, without the files of other tables in the table's root: the tables in `known`, and those that
    /// the store reports next to the files.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`; `Unsupported` for a link.
    pub(super) fn finish_beside(mut self, snapshot: &Snapshot, known: Vec<String>) -> Result<Files> {
        let mut tables = known;
        tables.extend(tables_among(snapshot.storage(), &self.directories())?);
        tables.sort_unstable();
        tables.dedup();
        if tables.is_empty() {
            return Ok(self.finish(None));
        }
        warn_of(snapshot, &tables);
        let is_elsewhere = |path: &str| tables.iter().any(|table| path.starts_with(table));
        Ok(self.finish(Some(&is_elsewhere)))
    }
}

/// Warns that tables inside the table are left alone.
pub(super) fn warn_of(snapshot: &Snapshot, tables: &[String]) {
    let table = snapshot.storage().url();
    tracing::warn!(table, directories = ?tables, "VACUUM leaves other tables alone that are in the table's root");
}

/// Returns the directories that have their own log, with a slash after each. The store is asked for each directory,
/// because a log or an old inventory does not show them.
///
/// # Errors
/// `Unavailable`, `PermissionDenied`; `Unsupported` for a link.
fn tables_among(storage: &Storage, directories: &BTreeSet<String>) -> Result<Vec<String>> {
    let directories: Vec<&String> = directories.iter().collect();
    let has_log = |directory: &&String| -> Result<Option<String>> {
        let log = format!("{directory}/{LOG_DIRECTORY}");
        Ok((!storage.list_directory_after(&log, "")?.is_empty()).then(|| format!("{directory}/")))
    };
    let found = parallel::each(&directories, storage.most_readers(), has_log)?;
    Ok(found.into_iter().flatten().collect())
}
