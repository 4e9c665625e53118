//! State about a table that its snapshots share, and work on its log that is left for later commits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use object_store::PutPayload;

use crate::log::VersionChecksum;
use crate::storage::FileMeta;

/// The maximum number of commits of this process whose content is kept.
pub(crate) const MOST_OWN_COMMITS: u64 = 20;

/// The maximum size in bytes of a commit whose content is kept.
const LARGEST_OWN_COMMIT: usize = 16 << 10;

/// The state that a snapshot shares with all snapshots that are refreshed from it.
#[derive(Debug, Default)]
pub(crate) struct LeftOver {
    expired: Mutex<Expired>,
    has_files: AtomicBool,
    /// Whether it was already logged that a part of the history cannot be read.
    has_warned: AtomicBool,
    own: Mutex<OwnCommits>,
    /// The newest checksum that this process has derived, with its version.
    derived: Mutex<Option<(u64, VersionChecksum)>>,
}

/// The newest commits of this process. A later transaction on the same snapshot does not have to read them.
#[derive(Debug, Default)]
struct OwnCommits {
    /// For each version, the tag with which the store has acknowledged its file, and the content of the file.
    files: BTreeMap<u64, (u64, Bytes)>,
    newest: u64,
}

/// Expired files of a log, in the order in which they are to be deleted, and the table's settings at the time they were
/// found.
#[derive(Debug, Default)]
pub(crate) struct Expired {
    pub(crate) files: VecDeque<FileMeta>,
    /// The retention of the log, after which the files have expired.
    pub(crate) retention_ms: i64,
    /// The version before which checkpoints were protected when the files were found.
    pub(crate) protected_before: u64,
}

impl LeftOver {
    /// Returns whether an earlier clean-up has left files that are still to be deleted.
    pub(crate) fn has_files(&self) -> bool {
        self.has_files.load(Ordering::Relaxed)
    }

    /// Takes the files that a clean-up has left, so that only one of several commits deletes them.
    pub(crate) fn take(&self) -> Expired {
        let mut expired = self.expired.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_files.store(false, Ordering::Relaxed);
        std::mem::take(&mut *expired)
    }

    /// Replaces the list of files that a clean-up has left.
    pub(crate) fn put(&self, files: Expired) {
        let mut expired = self.expired.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_files.store(!files.files.is_empty(), Ordering::Relaxed);
        *expired = files;
    }

    /// Records that this process has committed `version`. `tag` is the tag of the commit's file.
    pub(crate) fn note_own_commit(&self, version: u64, payload: &PutPayload, tag: Option<u64>) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.newest = own.newest.max(version);
        if let Some(tag) = tag.filter(|_| payload.content_length() <= LARGEST_OWN_COMMIT) {
            own.files.insert(version, (tag, payload.clone().into()));
            if own.files.len() as u64 > MOST_OWN_COMMITS {
                own.files.pop_first();
            }
        }
    }

    /// Returns the content of this process's commit of a version, if `listed` is still its file.
    pub(crate) fn own_commit(&self, version: u64, listed: &FileMeta) -> Option<Bytes> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let (tag, bytes) = own.files.get(&version)?;
        (listed.tag == Some(*tag) && listed.size == bytes.len() as u64).then(|| bytes.clone())
    }

    /// Returns the newest version that this process has committed; 0 if there is none.
    pub(crate) fn newest_own_commit(&self) -> u64 {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).newest
    }

    /// Keeps the checksum that was derived for `version`, and forgets the one that was kept before.
    pub(crate) fn keep_checksum(&self, version: u64, checksum: &VersionChecksum) {
        *self.derived.lock().unwrap_or_else(PoisonError::into_inner) = Some((version, checksum.clone()));
    }

    /// Returns the checksum of `version`, if it was the last one derived.
    pub(crate) fn derived_checksum(&self, version: u64) -> Option<VersionChecksum> {
        let derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        derived.as_ref().filter(|(of, _)| *of == version).map(|(_, checksum)| checksum.clone())
    }

    /// Forgets the checksum that was derived last.
    pub(crate) fn forget_checksum(&self) {
        *self.derived.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns whether this is the first time that a part of the history cannot be read. Later failures are not logged,
    /// because clean-ups try again every hour.
    pub(crate) fn is_first_warning(&self) -> bool {
        !self.has_warned.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_files_are_kept_until_taken() {
        let left = LeftOver::default();
        assert!(!left.has_files());
        let file = FileMeta { name: "a".to_owned(), size: 1, modified_ms: 1, tag: None };
        left.put(Expired { files: [file.clone()].into(), ..Expired::default() });
        assert!(left.has_files());
        assert_eq!(left.take().files, [file]);
        assert!(!left.has_files() && left.take().files.is_empty());
        assert!(left.is_first_warning() && !left.is_first_warning());
    }

    /// If a table was restored from a copy, another commit may have the same version as one of ours.
    #[test]
    fn own_commits_are_identified_by_tag_and_size_and_only_a_few_are_kept() {
        let left = LeftOver::default();
        let listed = |size, tag| FileMeta { name: String::new(), size, modified_ms: 1, tag };
        left.note_own_commit(7, &"abc".into(), Some(5));
        assert_eq!(left.own_commit(7, &listed(3, Some(5))).unwrap(), "abc");
        for other in [listed(4, Some(5)), listed(3, Some(6)), listed(3, None)] {
            assert!(left.own_commit(7, &other).is_none());
        }
        left.note_own_commit(8, &"abc".into(), None);
        left.note_own_commit(9, &vec![0; LARGEST_OWN_COMMIT + 1].into(), Some(5));
        assert_eq!(left.newest_own_commit(), 9);
        assert_eq!(left.own.lock().unwrap().files.len(), 1);
        for version in 10..40 {
            left.note_own_commit(version, &"abc".into(), Some(5));
        }
        assert!(left.own_commit(19, &listed(3, Some(5))).is_none());
        assert!(left.own_commit(20, &listed(3, Some(5))).is_some());
    }
}
