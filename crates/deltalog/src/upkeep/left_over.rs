//! What upkeep leaves to later commits of the same table.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::storage::FileMeta;

/// What a snapshot shares with those that are refreshed from it.
#[derive(Debug, Default)]
pub(crate) struct LeftOver {
    expired: Mutex<Expired>,
    has_files: AtomicBool,
    doubt: Mutex<Option<Doubt>>,
    /// Whether it was logged that a part of the history cannot be read.
    has_warned: AtomicBool,
}

/// The checksums that may have a wrong number of files.
#[derive(Debug)]
struct Doubt {
    newest: u64,
    /// The version whose files were counted.
    except: u64,
}

/// Expired files of a log, in the order in which they are deleted, and what the table said when they were found.
#[derive(Debug, Default)]
pub(super) struct Expired {
    pub(super) files: VecDeque<FileMeta>,
    /// The retention by which they have expired.
    pub(super) retention_ms: i64,
    /// The version before which checkpoints were protected.
    pub(super) protected_before: u64,
}

impl LeftOver {
    /// Returns whether a clean-up has left files.
    pub(super) fn has_files(&self) -> bool {
        self.has_files.load(Ordering::Relaxed)
    }

    /// Takes the files that a clean-up has left, so that of several commits only one deletes them.
    pub(super) fn take(&self) -> Expired {
        let mut expired = self.expired.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_files.store(false, Ordering::Relaxed);
        std::mem::take(&mut *expired)
    }

    /// Replaces the files that a clean-up has left.
    pub(super) fn put(&self, files: Expired) {
        let mut expired = self.expired.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_files.store(!files.files.is_empty(), Ordering::Relaxed);
        *expired = files;
    }

    /// Records that the checksums of the versions up to `newest` may be wrong, except one.
    pub(super) fn doubt_checksums(&self, newest: u64, except: u64) {
        *self.doubt.lock().unwrap_or_else(PoisonError::into_inner) = Some(Doubt { newest, except });
    }

    /// Returns whether this is the first time that a part of the history cannot be read. Clean-ups try it every hour.
    pub(super) fn is_first_warning(&self) -> bool {
        !self.has_warned.swap(true, Ordering::Relaxed)
    }

    /// Returns whether the checksum of `version` may be wrong.
    pub(crate) fn is_doubtful(&self, version: u64) -> bool {
        let doubt = self.doubt.lock().unwrap_or_else(PoisonError::into_inner);
        doubt.as_ref().is_some_and(|doubt| version <= doubt.newest && version != doubt.except)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubts_and_files_are_kept_until_they_are_taken() {
        let left = LeftOver::default();
        assert!(!left.is_doubtful(0) && !left.has_files());
        left.doubt_checksums(7, 3);
        assert_eq!([2, 3, 7, 8].map(|version| left.is_doubtful(version)), [true, false, true, false]);
        let file = FileMeta { name: "a".to_owned(), size: 1, modified_ms: 1, tag: None };
        left.put(Expired { files: [file.clone()].into(), ..Expired::default() });
        assert!(left.has_files());
        assert_eq!(left.take().files, [file]);
        assert!(!left.has_files() && left.take().files.is_empty());
        assert!(left.is_first_warning() && !left.is_first_warning());
    }
}
