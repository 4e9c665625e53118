//! Making files durable that another program has written.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many files are synced at once: each waits for the disk, not for a core.
const THREADS: usize = 8;

/// Syncs `files`, and every directory from theirs up to `root`. The file that failed comes with the error.
pub(super) fn sync_files(root: &Path, files: &[PathBuf]) -> Result<(), (PathBuf, io::Error)> {
    let next = AtomicUsize::new(0);
    let failure: Mutex<Option<(PathBuf, io::Error)>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(files.len()) {
            scope.spawn(|| {
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = File::open(path).and_then(|file| file.sync_all()) {
                        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((path.clone(), error));
                        return;
                    }
                }
            });
        }
    });
    if let Some(failure) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure);
    }
    // A file is durable only if the entries that lead to it are; deeper directories first.
    let directories: BTreeSet<&Path> =
        files.iter().flat_map(|file| file.ancestors().skip(1).take_while(|path| path.starts_with(root))).collect();
    for directory in directories.into_iter().rev() {
        sync_directory(directory).map_err(|error| (directory.to_owned(), error))?;
    }
    Ok(())
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Other systems cannot open directories.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
