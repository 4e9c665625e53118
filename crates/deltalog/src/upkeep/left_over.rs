//! What upkeep leaves to later commits of the same table.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a snapshot shares with those that are refreshed from it.
#[derive(Debug, Default)]
pub(crate) struct LeftOver {
    expired: Mutex<Expired>,
    has_files: AtomicBool,
    /// The versions whose checksums may have a wrong number of files.
    doubtful: Mutex<Option<RangeInclusive<u64>>>,
}

/// Expired files of a log, in the order in which they are deleted, and the retention by which they have expired.
#[derive(Debug, Default)]
pub(super) struct Expired {
    pub(super) files: Vec<String>,
    pub(super) retention_ms: i64,
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

    /// Records that the checksums of `versions` may be wrong: each is derived from the one before, and one was.
    pub(super) fn doubt_checksums(&self, versions: RangeInclusive<u64>) {
        *self.doubtful.lock().unwrap_or_else(PoisonError::into_inner) = Some(versions);
    }

    /// Returns whether the checksum of `version` may be wrong.
    pub(crate) fn is_doubtful(&self, version: u64) -> bool {
        let doubtful = self.doubtful.lock().unwrap_or_else(PoisonError::into_inner);
        doubtful.as_ref().is_some_and(|versions| versions.contains(&version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubts_and_files_are_kept_until_they_are_taken() {
        let left = LeftOver::default();
        assert!(!left.is_doubtful(0) && !left.has_files());
        left.doubt_checksums(3..=7);
        assert_eq!([2, 3, 7, 8].map(|version| left.is_doubtful(version)), [false, true, true, false]);
        left.put(Expired { files: vec!["a".to_owned()], retention_ms: 1 });
        assert!(left.has_files());
        assert_eq!(left.take().files, ["a"]);
        assert!(!left.has_files() && left.take().files.is_empty());
    }
}
