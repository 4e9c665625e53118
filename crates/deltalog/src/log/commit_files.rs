//! The files that hold commits: published, staged and compacted. (PROTOCOL, "Delta Log Entries", "Log Compaction
//! Files".)
//!
//! - A compaction replaces the commits `start` to `end` only if all of them are needed. It is not used if it also
//!   contains commits before the first or after the last needed one.
//! - A compaction is used only if its commits exist too. So it neither hides a gap nor adds a version.
//! - A compaction has neither `commitInfo` nor the time of a version. Both are read from the commits.

use uuid::Uuid;

use crate::protocol::log_name::LogFileName;
use crate::storage::{FileMeta, Listed};

/// A file with the actions of one version or of several consecutive versions.
#[derive(Debug, Clone, Copy)]
pub struct CommitFile {
    /// The version. For a compaction, it is the last one.
    pub version: u64,
    /// The size in bytes.
    pub size: u64,
    /// The modification time in milliseconds since the epoch.
    pub modified_ms: i64,
    /// The kind of file.
    pub kind: CommitKind,
    /// The file's metadata from a listing, by which the storage's cache recognizes the file. Comparisons ignore it,
    /// because a local file system may report a rounded modification time once it no longer caches the exact one.
    pub(crate) listed: Option<Listed>,
}

impl PartialEq for CommitFile {
    fn eq(&self, other: &Self) -> bool {
        let compared = |file: &Self| (file.version, file.size, file.modified_ms, file.kind);
        compared(self) == compared(other)
    }
}

impl Eq for CommitFile {}

/// The kind of a file that holds commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitKind {
    /// A published commit, `N.json`.
    Published,
    /// A commit that a catalog has accepted but has not published yet.
    Staged(Uuid),
    /// The reconciled actions of the versions from `start` to the version of the file.
    Compacted {
        /// The first version.
        start: u64,
    },
}

impl CommitFile {
    /// Creates the commit file for `file`, an entry of a listing.
    pub(crate) fn of(version: u64, kind: CommitKind, file: &FileMeta) -> Self {
        Self { version, size: file.size, modified_ms: file.modified_ms, kind, listed: file.listed() }
    }

    /// Returns the published commit of `version`, without size, time and other metadata.
    pub(crate) fn named(version: u64) -> Self {
        Self { version, size: 0, modified_ms: 0, kind: CommitKind::Published, listed: None }
    }

    /// Returns the first version in the file.
    pub fn start(&self) -> u64 {
        match self.kind {
            CommitKind::Compacted { start } => start,
            CommitKind::Published | CommitKind::Staged(_) => self.version,
        }
    }

    /// Returns the name of the file.
    pub fn name(&self) -> LogFileName {
        match self.kind {
            CommitKind::Published => LogFileName::Commit(self.version),
            CommitKind::Staged(uuid) => LogFileName::StagedCommit { version: self.version, uuid },
            CommitKind::Compacted { start } => LogFileName::Compaction { start, end: self.version },
        }
    }

    /// Returns the path relative to the table's root.
    pub fn path(&self) -> String {
        self.name().path()
    }
}

/// Selects compactions from `candidates` that can replace some of `commits`, which are contiguous and oldest first. The
/// selected compactions do not overlap. Compactions that start earlier are preferred, and then longer ones.
pub(super) fn useful_compactions(commits: &[CommitFile], candidates: &[CommitFile]) -> Vec<CommitFile> {
    let Some(first) = commits.first().map(|commit| commit.version) else { return Vec::new() };
    let covered = |candidate: &CommitFile| {
        let start = usize::try_from(candidate.start().checked_sub(first)?).ok()?;
        let end = usize::try_from(candidate.version.checked_sub(first)?).ok()?;
        commits.get(start..=end)
    };
    // A compaction that is larger than the commits it replaces costs more to read than they do.
    let is_useful = |candidate: &&CommitFile| {
        let replaced =
            covered(candidate).map(|commits| commits.iter().map(|commit| commit.size).sum::<u64>());
        candidate.size > 0 && replaced.is_some_and(|replaced| candidate.size <= replaced)
    };
    let mut candidates: Vec<_> = candidates.iter().filter(is_useful).copied().collect();
    candidates.sort_unstable_by_key(|candidate| (candidate.start(), std::cmp::Reverse(candidate.version)));
    let mut chosen: Vec<CommitFile> = Vec::new();
    for candidate in candidates {
        if chosen.last().is_none_or(|last| last.version < candidate.start()) {
            chosen.push(candidate);
        }
    }
    chosen
}

/// Returns the files to read, oldest first: `commits`, except that `compactions` take the place of the commits they
/// contain.
pub(super) fn with_compactions(commits: &[CommitFile], compactions: &[CommitFile]) -> Vec<CommitFile> {
    let mut files = Vec::with_capacity(commits.len());
    let mut compactions = compactions.iter().peekable();
    let mut next_version = 0;
    for commit in commits {
        if commit.version < next_version {
            continue;
        }
        let compaction = compactions.next_if(|compaction| compaction.start() == commit.version);
        let file = compaction.unwrap_or(commit);
        next_version = file.version + 1;
        files.push(*file);
    }
    files
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn commit(version: u64) -> CommitFile {
        CommitFile { size: 10, ..CommitFile::named(version) }
    }

    fn compaction(start: u64, version: u64, size: u64) -> CommitFile {
        CommitFile { size, kind: CommitKind::Compacted { start }, ..CommitFile::named(version) }
    }

    proptest! {
        #[test]
        fn each_version_is_read_exactly_once_and_in_order(
            first in 0..5u64,
            count in 0..20u64,
            ranges in proptest::collection::vec((0..25u64, 1..10u64, 0..100u64), 0..12),
        ) {
            let commits: Vec<_> = (first..first + count).map(commit).collect();
            let of_range = |(start, length, size): &(u64, u64, u64)| compaction(*start, start + length, *size);
            let candidates: Vec<_> = ranges.iter().map(of_range).collect();
            let chosen = useful_compactions(&commits, &candidates);
            let files = with_compactions(&commits, &chosen);
            let versions: Vec<u64> = files.iter().flat_map(|file| file.start()..=file.version).collect();
            prop_assert_eq!(versions, (first..first + count).collect::<Vec<_>>());
            let compacted = files.iter().filter(|file| file.kind != CommitKind::Published).count();
            prop_assert_eq!(compacted, chosen.len());
            prop_assert!(files.len() <= commits.len());
        }
    }

    /// "Log Compaction Files".
    #[test]
    fn only_compactions_within_the_commits_are_used() {
        let commits: Vec<_> = (4..8).map(commit).collect();
        let chosen = |candidate| useful_compactions(&commits, &[candidate]) == [candidate];
        assert!(chosen(compaction(4, 7, 20)));
        assert!(chosen(compaction(5, 6, 20)));
        for (start, end, size) in [(3, 5, 20), (6, 8, 20), (0, 9, 20), (4, 7, 0), (4, 7, 41), (9, 12, 20)] {
            assert!(!chosen(compaction(start, end, size)), "{start} to {end}, {size} bytes");
        }
    }
}
