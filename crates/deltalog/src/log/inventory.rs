//! All files of a table's log, from one listing.

use std::collections::{BTreeMap, HashSet};

use super::LOG_DIRECTORY;
use super::checkpoint_files::{CheckpointCandidates, CheckpointFiles, CheckpointKind};
use super::commit_files::{CommitFile, CommitKind};
use super::extent::Extent;
use super::times::{CommitTimes, InCommitTimestamps};
use crate::error::Result;
use crate::protocol::log_name::LogFileName;
use crate::storage::{FileMeta, Storage};

/// The files of a log, ordered by name, so that files of older versions come first.
#[derive(Debug)]
pub(crate) struct LogInventory {
    files: Vec<(LogFileName, FileMeta)>,
    others: Vec<FileMeta>,
}

impl LogInventory {
    /// Lists the log with its sidecars and staged commits.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    pub(crate) fn read(storage: &Storage) -> Result<Self> {
        let listed = storage.list_after(LOG_DIRECTORY, "")?;
        let (mut files, mut others) = (Vec::new(), Vec::new());
        for file in listed {
            match LogFileName::parse(&file.name) {
                Some(name) => files.push((name, file)),
                None => others.push(file),
            }
        }
        // A store may list a file on two pages.
        files.dedup_by(|a, b| a.1.name == b.1.name);
        Ok(Self { files, others })
    }

    /// Returns the files in the order of their names.
    pub(crate) fn files(&self) -> impl Iterator<Item = &(LogFileName, FileMeta)> {
        self.files.iter()
    }

    /// Returns the files in the log's directory that do not have a log file's name.
    pub(crate) fn others(&self) -> impl Iterator<Item = &FileMeta> {
        self.others.iter()
    }

    /// Returns files that may be the top-level files of checkpoints, but have a name that this crate does not know, for
    /// example a UUID in another spelling. Readers that know such a name need the sidecars of this checkpoint.
    pub(crate) fn unknown_heads(&self) -> impl Iterator<Item = CheckpointFiles> {
        self.others.iter().filter(|file| file.size > 0).filter_map(|file| {
            let (version, rest) = file.name.split_once(".checkpoint.")?;
            let kind = match rest.rsplit_once('.').map_or(rest, |(_, extension)| extension) {
                "json" => CheckpointKind::UuidJson,
                "parquet" => CheckpointKind::Classic,
                _ => return None,
            };
            let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
            let version = version.parse().ok().filter(|_| is_version)?;
            Some(CheckpointFiles { version, kind, files: vec![file.clone()] })
        })
    }

    /// Returns the complete checkpoints, newest first.
    pub(crate) fn checkpoints(&self) -> Vec<CheckpointFiles> {
        self.candidates().newest_first()
    }

    /// Returns whether a file of this listing is missing from the `later` one.
    pub(crate) fn has_lost_files(&self, later: &Self) -> bool {
        let left: HashSet<&str> = later.files.iter().map(|(_, file)| file.name.as_str()).collect();
        self.files.iter().any(|(_, file)| !left.contains(file.name.as_str()))
    }

    fn candidates(&self) -> CheckpointCandidates {
        let mut checkpoints = CheckpointCandidates::default();
        self.files.iter().for_each(|(name, file)| checkpoints.add(name, file));
        checkpoints
    }

    /// Returns the published commits, oldest first.
    pub(crate) fn commits(&self) -> impl Iterator<Item = CommitFile> {
        let commit = |(name, file): &(LogFileName, FileMeta)| match *name {
            LogFileName::Commit(version) => Some(CommitFile::of(version, CommitKind::Published, file)),
            _ => None,
        };
        self.files.iter().filter_map(commit)
    }

    /// Returns the times at which the published commits were made.
    pub(crate) fn commit_times(&self, storage: &Storage, in_commit: InCommitTimestamps) -> CommitTimes {
        CommitTimes::of_commits(storage, self.commits().collect(), self.extent(), in_commit, BTreeMap::new())
    }

    /// Returns the oldest version that can be read.
    pub(crate) fn oldest_readable(&self) -> Option<u64> {
        self.extent().readable.oldest()
    }

    fn extent(&self) -> Extent {
        let commits = self.commits().map(|commit| commit.version);
        Extent::new(commits, self.candidates().versions(&[]).collect())
    }
}
