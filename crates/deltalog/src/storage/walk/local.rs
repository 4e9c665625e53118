//! Lists directories of the local file system. Each directory is read by a job of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Enters;
use super::jobs::{Found, Lister};
use crate::error::{Error, Result};
use crate::storage::list::{file_meta, followed, is_staged};

/// The maximum number of files in a batch.
const BATCH: usize = 1_000;

/// The directories below `root`.
pub(super) struct Directories<'a> {
    pub(super) root: &'a Path,
    pub(super) enters: Enters<'a>,
    /// Converts an error of the file system.
    pub(super) named: &'a (dyn Fn(io::Error) -> Error + Sync),
}

/// A directory: its path, and its path relative to the root. The relative path is empty for the root itself, and
/// otherwise ends with a slash.
pub(super) struct Directory(PathBuf, String);

impl Lister for Directories<'_> {
    type Job = Directory;

    fn first(&self) -> Directory {
        Directory(self.root.to_owned(), String::new())
    }

    fn run(&self, Directory(path, prefix): Directory, found: Found<'_>) -> Result<Vec<Directory>> {
        self.read(&path, &prefix, found).map_err(self.named)
    }
}

impl Directories<'_> {
    fn read(&self, path: &Path, prefix: &str, found: Found<'_>) -> io::Result<Vec<Directory>> {
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            // The directory was just deleted.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(directories);
            }
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else {
                continue;
            };
            if entry.file_type()?.is_dir() {
                if (self.enters)(&name) {
                    directories.push(Directory(entry.path(), format!("{name}/")));
                }
                continue;
            }
            if is_staged(&name) {
                continue;
            }
            let Some(metadata) = followed(&entry)?.filter(|found| !found.is_dir()) else { continue };
            files.push(file_meta(name, &metadata)?);
            if files.len() == BATCH && found(std::mem::take(&mut files)).is_err() {
                return Ok(Vec::new());
            }
        }
        if !files.is_empty() && found(files).is_err() {
            return Ok(Vec::new());
        }
        Ok(directories)
    }
}
