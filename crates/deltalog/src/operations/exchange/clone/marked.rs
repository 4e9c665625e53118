//! Deletes files that an engine has copied for a clone which was not completed.
//!
//! - Tasks that the engine has abandoned do not report their copies. The copies can be found by the mark of the clone
//!   in their names, because no version refers to a file with this mark.
//! - Hadoop stores the checksum of a local file in a hidden file next to it.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::runtime::parallel;
use crate::storage::Storage;

/// Deletes the files in `directories` whose names begin with the mark. The directories are decoded and relative to
/// the table. Files that cannot be deleted are left for VACUUM, without an error, so that the caller can report why
/// the clone itself has failed.
pub(super) fn delete_marked(target: &Storage, directories: BTreeSet<&str>, mark: u64) {
    let mark = format!("{mark:016x}");
    let directories: Vec<&str> = directories.into_iter().collect();
    let deleted = parallel::each(&directories, target.readers(directories.len()), |directory| {
        delete_in(target, directory, &mark)
    });
    if let Err(error) = deleted {
        tracing::warn!(table = target.url(), %error, "copies of a CLONE that failed could not be deleted");
    }
}

fn delete_in(target: &Storage, directory: &str, mark: &str) -> Result<()> {
    for file in target.list_directory_after(directory.trim_end_matches('/'), "")? {
        if file.name.trim_start_matches('.').starts_with(mark) {
            target.delete(&format!("{directory}{}", file.name))?;
        }
    }
    Ok(())
}
