//! What a clean-up after a commit has not deleted yet, because it must not delay the commit for long. The commits after
//! it go on.

use std::sync::{Mutex, PoisonError};

/// Expired files of a log, in the order in which they are deleted. The snapshots of a table in one process share it.
#[derive(Debug, Default)]
pub(crate) struct Backlog(Mutex<Vec<String>>);

impl Backlog {
    /// Takes the files, so that of several commits only one deletes them.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the files.
    pub(super) fn put(&self, files: Vec<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }
}
