//! Finds other tables in the table's directory, if the files to delete were not found by listing the store.

use std::collections::BTreeSet;

use super::candidates::{Candidates, Files};
use crate::error::Result;
use crate::log::LOG_DIRECTORY;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

impl Candidates {
    /// Completes the list, leaving out the files of other tables inside the table's directory. The other tables are
    /// those in `known`, and those found by asking the store, for each directory that contains a listed file at any
    /// depth, whether the directory has its own log.
    ///
    /// # Errors
    /// Returns `Unavailable`, `PermissionDenied`, and `Unsupported` for a link.
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

/// Logs a warning that VACUUM does not touch other tables inside of the table's directory.
pub(super) fn warn_of(snapshot: &Snapshot, tables: &[String]) {
    let table = snapshot.storage().url();
    let directories = tables;
    tracing::warn!(
        table,
        ?directories,
        "the table's directory contains other tables: VACUUM does not touch them"
    );
}

/// Returns the directories that have their own log, with a slash at the end. The store is asked about each directory,
/// because a log or an outdated inventory does not show other tables.
///
/// # Errors
/// Returns `Unavailable`, `PermissionDenied`, and `Unsupported` for a link.
fn tables_among(storage: &Storage, directories: &BTreeSet<String>) -> Result<Vec<String>> {
    let directories: Vec<&String> = directories.iter().collect();
    let has_log = |directory: &&String| -> Result<Option<String>> {
        let log = format!("{directory}/{LOG_DIRECTORY}");
        Ok((!storage.list_directory_after(&log, "")?.is_empty()).then(|| format!("{directory}/")))
    };
    let found = parallel::each(&directories, storage.most_readers(), has_log)?;
    Ok(found.into_iter().flatten().collect())
}
