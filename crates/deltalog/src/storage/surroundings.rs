//! Finds out what is at a location that has no table, for the error message. This never fails. For a remote store, it
//! only looks at the URL and sends no request.

use std::fs;
use std::path::Path;

use super::Storage;

/// The name of the directory of a table's log.
const LOG: &str = "_delta_log";

/// The maximum number of directory entries that are read.
const MAX_ENTRIES: usize = 1000;

/// What is at a location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Surroundings {
    /// Nothing, or something unknown.
    Unknown,
    /// A file.
    File,
    /// An empty directory.
    Empty,
    /// A directory with Parquet files, or with directories that are named like partitions.
    Parquet,
    /// The log of a table, or a file in it. The value is the location of the table.
    Log(String),
    /// A directory inside a table, such as a partition. The value is the location of the table.
    Inside(String),
}

impl Storage {
    /// Returns what is at the root of a storage.
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
