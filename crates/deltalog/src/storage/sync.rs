//! Making files and directories durable.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::parallel;

/// The number of files that are synced at once. Each sync waits for the disk, not for a core.
const THREADS: usize = 8;

/// Syncs `files`, which another program has written, and all their parent directories up to `root`. An error
/// comes with the path that failed.
pub(super) fn sync_files(root: &Path, files: &[PathBuf]) -> Result<(), (PathBuf, io::Error)> {
    let sync = |path: &PathBuf| {
        File::open(path).and_then(|file| file.sync_all()).map_err(|error| (path.clone(), error))
    };
    parallel::each(files, THREADS, sync)?;
    // A file is durable only if its directory entries are. Deeper directories are synced first.
    let directories: BTreeSet<&Path> = files
        .iter()
        .flat_map(|file| file.ancestors().skip(1).take_while(|path| path.starts_with(root)))
        .collect();
    for directory in directories.into_iter().rev() {
        sync_directory(directory).map_err(|error| (directory.to_owned(), error))?;
    }
    Ok(())
}

/// Syncs the entries of a directory. Other systems than Unix journal them, and cannot open a directory as a
/// file.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}
