//! What a clean-up after a commit has not deleted yet, because it must not delay the commit for long. The commits after
//! it go on.

use std::sync::{Mutex, PoisonError};

/// Expired files of a log, in the order in which they are deleted. A snapshot shares it with those that are refreshed
/// from it.
#[derive(Debug, Default)]
pub(crate) struct Backlog(Mutex<Remaining>);

/// Files, and the retention by which they have expired.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    pub(super) files: Vec<String>,
    pub(super) retention_ms: i64,
}

impl Backlog {
    /// Takes the files, so that of several commits only one deletes them.
    pub(super) fn take(&self) -> Remaining {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the files.
    pub(super) fn put(&self, remaining: Remaining) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = remaining;
    }
}
