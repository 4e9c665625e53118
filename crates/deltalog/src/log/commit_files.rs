//! The files that hold commits: published, staged, compacted.
//!
//! Protocol: "Delta Log Entries", "Log Compaction Files".
//!
//! - A compaction stands for the commits `start` to `end` only if all of them are needed: it never reaches
//!   below the first or above the last.
//! - It is used only where its commits are there too, so that it hides no gap and never makes a version of
//!   its own.
//! - A compaction knows neither `commitInfo` nor the time of a version: who asks for those reads the commit.

use uuid::Uuid;

use super::name::LogFileName;

/// A file with the actions of a version, or of several in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitFile {
    /// Its version; of a compaction the last one.
    pub version: u64,
    /// Bytes.
    pub size: u64,
    /// Milliseconds since the epoch.
    pub modified_ms: i64,
    /// What kind of file it is.
    pub kind: CommitKind,
}

/// The kinds of files that hold commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitKind {
    /// `N.json`.
    Published,
    /// A commit that a catalog has accepted and not published yet.
    Staged(Uuid),
    /// The reconciled actions of `start` to the file's version.
    Compacted {
        /// The first version.
        start: u64,
    },
}

impl CommitFile {
    /// The first version in the file.
    pub fn start(&self) -> u64 {
        match self.kind {
            CommitKind::Compacted { start } => start,
            CommitKind::Published | CommitKind::Staged(_) => self.version,
        }
    }

    /// The file's name.
    pub fn name(&self) -> LogFileName {
        match self.kind {
            CommitKind::Published => LogFileName::Commit(self.version),
            CommitKind::Staged(uuid) => LogFileName::StagedCommit { version: self.version, uuid },
            CommitKind::Compacted { start } => LogFileName::Compaction { start, end: self.version },
        }
    }

    /// Path relative to the table's root.
    pub fn path(&self) -> String {
        self.name().path()
    }
}

/// Of `candidates` those that replace commits of `commits`, which are contiguous and oldest first: from each
/// version on the longest, and no two of one version.
pub(super) fn useful_compactions(commits: &[CommitFile], candidates: &[CommitFile]) -> Vec<CommitFile> {
    let Some(first) = commits.first().map(|commit| commit.version) else { return Vec::new() };
    let covered = |candidate: &CommitFile| {
        let start = usize::try_from(candidate.start().checked_sub(first)?).ok()?;
        let end = usize::try_from(candidate.version.checked_sub(first)?).ok()?;
        commits.get(start..=end)
    };
    // What is larger than its commits together costs more than it saves.
    let pays = |candidate: &&CommitFile| {
        let replaced =
            covered(candidate).map(|commits| commits.iter().map(|commit| commit.size).sum::<u64>());
        candidate.size > 0 && replaced.is_some_and(|replaced| candidate.size <= replaced)
    };
    let mut candidates: Vec<_> = candidates.iter().filter(pays).copied().collect();
    candidates.sort_unstable_by_key(|candidate| (candidate.start(), std::cmp::Reverse(candidate.version)));
    let mut chosen: Vec<CommitFile> = Vec::new();
    for candidate in candidates {
        if chosen.last().is_none_or(|last| last.version < candidate.start()) {
            chosen.push(candidate);
        }
    }
    chosen
}

/// What to read, oldest first: `commits`, with `compactions` in place of those they hold.
pub(super) fn with_compactions(commits: &[CommitFile], compactions: &[CommitFile]) -> Vec<CommitFile> {
    let mut files = Vec::with_capacity(commits.len());
    let mut compactions = compactions.iter().peekable();
    let mut done = 0;
    for commit in commits {
        if commit.version < done {
            continue;
        }
        let compaction = compactions.next_if(|compaction| compaction.start() == commit.version);
        let file = compaction.unwrap_or(commit);
        done = file.version + 1;
        files.push(*file);
    }
    files
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn commit(version: u64) -> CommitFile {
        CommitFile { version, size: 10, modified_ms: 0, kind: CommitKind::Published }
    }

    fn compaction(start: u64, version: u64, size: u64) -> CommitFile {
        CommitFile { version, size, modified_ms: 0, kind: CommitKind::Compacted { start } }
    }

    proptest! {
        /// Every version once, in order, and nothing else.
        #[test]
        fn each_version_is_read_once(first in 0..5u64, count in 0..20u64, ranges in proptest::collection::vec((0..25u64, 1..10u64, 0..100u64), 0..12)) {
            let commits: Vec<_> = (first..first + count).map(commit).collect();
            let candidates: Vec<_> = ranges.iter().map(|(start, length, size)| compaction(*start, start + length, *size)).collect();
            let chosen = useful_compactions(&commits, &candidates);
            let files = with_compactions(&commits, &chosen);
            let versions: Vec<u64> = files.iter().flat_map(|file| file.start()..=file.version).collect();
            prop_assert_eq!(versions, (first..first + count).collect::<Vec<_>>());
            prop_assert_eq!(files.iter().filter(|file| file.kind != CommitKind::Published).count(), chosen.len());
            prop_assert!(files.len() <= commits.len());
        }
    }

    /// "Log Compaction Files".
    #[test]
    fn only_what_lies_within_is_used() {
        let commits: Vec<_> = (4..8).map(commit).collect();
        let chosen = |candidate| useful_compactions(&commits, &[candidate]) == [candidate];
        assert!(chosen(compaction(4, 7, 20)));
        assert!(chosen(compaction(5, 6, 20)));
        for (start, end, size) in [(3, 5, 20), (6, 8, 20), (0, 9, 20), (4, 7, 0), (4, 7, 41), (9, 12, 20)] {
            assert!(!chosen(compaction(start, end, size)), "{start} to {end}, {size} bytes");
        }
    }
}
