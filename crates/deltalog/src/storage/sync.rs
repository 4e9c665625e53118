//! Making files and directories durable.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::parallel;

/// How many files are synced at once: each waits for the disk, not for a core.
const THREADS: usize = 8;

/// Syncs `files`, which another program has written, and every directory from theirs up to `root`. The file
/// that failed comes with the error.
pub(super) fn sync_files(root: &Path, files: &[PathBuf]) -> Result<(), (PathBuf, io::Error)> {
    let sync = |path: &PathBuf| {
        File::open(path).and_then(|file| file.sync_all()).map_err(|error| (path.clone(), error))
    };
    parallel::each(files, THREADS, sync)?;
    // A file is durable only if the entries that lead to it are; deeper directories first.
    let directories: BTreeSet<&Path> = files
        .iter()
        .flat_map(|file| file.ancestors().skip(1).take_while(|path| path.starts_with(root)))
        .collect();
    for directory in directories.into_iter().rev() {
        sync_directory(directory).map_err(|error| (directory.to_owned(), error))?;
    }
    Ok(())
}

/// Syncs a directory's own entries. Elsewhere than on Unix it cannot be opened as a file, and its entries are
/// journalled.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}
