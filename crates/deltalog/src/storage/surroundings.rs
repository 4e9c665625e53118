//! Finds out what exists at a location without a table, for the error message. It never fails, and sends no request to
//! a remote store: there it only examines the text of the location.

use std::fs;
use std::path::Path;

use super::Storage;

/// The name of the directory of a table's log.
const LOG: &str = "_delta_log";

/// The maximum number of entries that are read of a directory.
const MAX_ENTRIES: usize = 1000;

/// The kind of thing at a location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Surroundings {
    /// Nothing, or unknown.
    Unknown,
    /// A file.
    File,
    /// A directory without a file.
    Empty,
    /// A directory with Parquet files, or with partitions of them.
    Parquet,
    /// The log of a table, or something in it. The table is at the location.
    Log(String),
    /// A directory of a table, such as a partition. The table is at the location.
    Inside(String),
}

impl Storage {
    /// Returns what is at the root.
    pub(crate) fn surroundings(&self) -> Surroundings {
        let url = self.url();
        if let Some((table, _)) = url.split_once(&format!("/{LOG}")) {
            return Surroundings::Log(table.to_owned());
        }
        if !self.has_directories() {
            return Surroundings::Unknown;
        }
        let Ok(path) = self.root().to_file_path() else { return Surroundings::Unknown };
        let has_log = |directory: &&Path| directory.join(LOG).is_dir();
        if let Some(table) = path.ancestors().skip(1).find(has_log) {
            return Surroundings::Inside(table.display().to_string());
        }
        if path.is_file() {
            return Surroundings::File;
        }
        let Ok(entries) = fs::read_dir(&path) else { return Surroundings::Unknown };
        let names = entries.flatten().take(MAX_ENTRIES).map(|entry| entry.file_name());
        let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        if names.is_empty() {
            return Surroundings::Empty;
        }
        let is_parquet = |name: &String| {
            !name.starts_with(['_', '.'])
                && (name.ends_with(".parquet") || (name.contains('=') && path.join(name).is_dir()))
        };
        if names.iter().any(is_parquet) { Surroundings::Parquet } else { Surroundings::Unknown }
    }
}
