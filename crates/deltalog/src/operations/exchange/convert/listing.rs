//! Finds the files to convert in a directory.
//!
//! - Names that begin with `_` or `.` are hidden, except for the directories of partition columns (`_p=1`), as in
//!   Spark.
//! - Links to directories are not followed. VACUUM does not follow them either, because their files are not in the
//!   directory.
//! - A directory with its own log is refused: it is another table, and only that table's log shows which of its files
//!   are live.
//! - The output of a Spark stream is refused as well: its log shows which files are valid, and files from failed
//!   attempts are not valid.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::partitions::Partition;
use super::{FoundFile, named};
use crate::error::{Error, Result};
use crate::log::LOG_DIRECTORY;
use crate::operations::maintain::vacuum::{is_hidden, name_of};
use crate::storage::{FileMeta, Storage};

/// The directory with the log of a Spark stream that writes files.
const STREAM_LOG: &str = "_spark_metadata";

/// Returns the files below the root, and the partitions that their directories name. `columns` are the partition
/// columns, if the caller knows them.
///
/// # Errors
/// Returns `InvalidArgument` for a directory that contains a table, and for a directory whose name looks like a
/// partition but is not one. Also returns errors from the store.
pub(super) fn find<'a>(
    storage: &Storage,
    columns: impl Iterator<Item = &'a str>,
) -> Result<(Vec<FoundFile>, Vec<Partition>)> {
    let known: Vec<String> = columns.map(|column| format!("{column}=")).collect();
    let tables: Mutex<Vec<String>> = Mutex::default();
    let is_stream = AtomicBool::new(false);
    let enters = |directory: &str| {
        let name = name_of(directory);
        if name == STREAM_LOG {
            is_stream.store(true, Ordering::Relaxed);
            return false;
        }
        if name == LOG_DIRECTORY {
            if let Some((above, _)) = directory.rsplit_once('/') {
                tables.lock().unwrap_or_else(PoisonError::into_inner).push(above.to_owned());
            }
            return false;
        }
        let is_partition = (name.starts_with('_') && name.contains('='))
            || known.iter().any(|beginning| name.starts_with(beginning.as_str()));
        !is_hidden(name) || is_partition
    };
    let (mut files, mut partitions) = (Vec::new(), Vec::new());
    let mut numbers: HashMap<String, usize> = HashMap::new();
    storage.walk("", &enters, |found: Vec<FileMeta>| {
        for file in found.into_iter().filter(|file| !is_hidden(name_of(&file.name)) && file.size > 0) {
            let directory = file.name.rsplit_once('/').map_or("", |(directory, _)| directory);
            let partition = match numbers.get(directory) {
                Some(number) => *number,
                None => {
                    partitions.push(Partition::of_directory(directory)?);
                    numbers.insert(directory.to_owned(), partitions.len() - 1);
                    partitions.len() - 1
                }
            };
            let FileMeta { name: path, size, modified_ms, .. } = file;
            files.push(FoundFile { path, size, modified_ms, partition });
        }
        Ok(())
    })?;
    if is_stream.into_inner() {
        return Err(Error::invalid_argument(format!(
            "a Spark stream wrote this directory, and only its log ({STREAM_LOG}) shows which files are valid"
        ))
        .with_hint(format!(
            "pass the valid files as a list, or delete {STREAM_LOG} if all files are valid"
        )));
    }
    let mut tables = tables.into_inner().unwrap_or_else(PoisonError::into_inner);
    tables.sort_unstable();
    tables.dedup();
    match tables.is_empty() {
        true => Ok((files, partitions)),
        false => Err(Error::invalid_argument(format!(
            "the directory contains other Delta tables: {}",
            named(tables.iter().map(String::as_str))
        ))
        .with_hint("move them elsewhere: only their logs show which of their files have live rows")),
    }
}
