//! Decides which directories and files in a table's directory VACUUM may delete.
//!
//! - Names that begin with `_` or `.` are hidden: the log, manifests, temporary files of writers, checksum files of
//!   Hadoop. Exceptions are `_change_data` in the root, and the directories of partition columns whose names begin
//!   with such a character (`_p=1`).
//! - `metadata` is hidden if the table is also an Iceberg table, because this directory then belongs to Iceberg.
//! - A directory with its own log is another table, and the log of the vacuumed table does not show which of its
//!   files are live. The JVM implementation deletes such files.
//!
//! Unlike the JVM implementation, this module considers neither other directories whose names begin with
//! `_change_data`, nor `_delta_index`, which contains indexes of files that may be live.

use std::sync::{Mutex, PoisonError};

use crate::log::LOG_DIRECTORY;
use crate::snapshot::Snapshot;

/// The directory for change data files. (Protocol: "Add CDC File".)
pub(crate) const CHANGES: &str = "_change_data";

/// The rules for which directories and files VACUUM considers, and the other tables that were found.
#[derive(Debug)]
pub(crate) struct Visible {
    /// The prefixes that mark the table's partition directories, such as `day=`.
    partitions: Vec<String>,
    hides_metadata: bool,
    /// The directories that have turned out to contain other tables.
    tables: Mutex<Vec<String>>,
}

impl Visible {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let metadata = snapshot.metadata();
        let names = metadata.partition_columns.iter().flat_map(|column| {
            // The directory of a partition column may have the column's logical or its physical name.
            [Some(column.as_str()), snapshot.mapped_schema().physical_name(column)]
        });
        let formats = metadata.property("delta.universalFormat.enabledFormats").unwrap_or_default();
        Self {
            partitions: names.flatten().map(|name| format!("{name}=")).collect(),
            hides_metadata: formats.to_ascii_lowercase().contains("iceberg"),
            tables: Mutex::default(),
        }
    }

    /// Returns whether to list a directory, given by its path relative to the root. Its parents must have been
    /// accepted before. Remembers directories of other tables.
    pub(crate) fn enters(&self, directory: &str) -> bool {
        let (above, name) = directory.rsplit_once('/').unwrap_or(("", directory));
        if name == LOG_DIRECTORY {
            if !above.is_empty() {
                let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
                if !tables.iter().any(|table| table == above) {
                    tables.push(above.to_owned());
                }
            }
            return false;
        }
        if self.hides_metadata && name == "metadata" {
            return false;
        }
        !is_hidden(name)
            || (above.is_empty() && name == CHANGES)
            || self.partitions.iter().any(|partition| name.starts_with(partition))
    }

    /// Returns whether VACUUM considers a file whose directory it considers.
    pub(crate) fn shows(file: &str) -> bool {
        !is_hidden(name_of(file))
    }

    /// Returns whether VACUUM considers both a file and every directory above it. `file` is the file's path relative
    /// to the root.
    pub(super) fn shows_path(&self, file: &str) -> bool {
        // All directories are checked, even after the first one that is not considered, to find other tables.
        let directories = file.match_indices('/').filter_map(|(end, _)| file.get(..end));
        let hidden = directories.filter(|directory| !self.enters(directory)).count();
        hidden == 0 && Self::shows(file)
    }

    /// Returns the directories of other tables that were found, each with a slash at the end.
    pub(crate) fn other_tables(&self) -> Vec<String> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.iter().map(|table| format!("{table}/")).collect()
    }
}

/// Returns whether a file or directory with this name is hidden.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with(['_', '.'])
}

/// Returns the last part of a path.
pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible() -> Visible {
        Visible {
            partitions: vec!["p=".to_owned(), "_p=".to_owned()],
            hides_metadata: false,
            tables: Mutex::default(),
        }
    }

    #[test]
    fn hidden_directories_are_not_entered() {
        for (directory, expected) in [
            ("p=1", true),
            ("any", true),
            ("_p=1", true),
            ("a/_p=1", true),
            ("_change_data", true),
            ("_change_data/_p=1", true),
            ("metadata", true),
            ("_p", false),
            ("_q=1", false),
            (".p=1", false),
            ("_change_data_2", false),
            ("a/_change_data", false),
            ("_delta_index", false),
            ("_temporary", false),
        ] {
            assert_eq!(visible().enters(directory), expected, "{directory}");
        }
        assert!(!Visible { hides_metadata: true, ..visible() }.enters("metadata"));
    }

    #[test]
    fn tables_in_a_table_are_noticed() {
        let visible = visible();
        assert!(!visible.enters("_delta_log"));
        assert!(visible.other_tables().is_empty());
        assert!(!visible.shows_path("a/b/_delta_log/0.json"));
        assert!(
            visible.shows_path("a/b/c") && !visible.shows_path("a/.b/c") && !visible.shows_path("a/b/.c")
        );
        assert_eq!(visible.other_tables(), ["a/b/"]);
    }
}
