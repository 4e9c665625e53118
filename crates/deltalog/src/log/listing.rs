//! What a listing of the log contains.
//!
//! - A listing is not a consistent snapshot of a directory: if commits are added while it runs, it may show N + 1 but
//!   not N. Before a commit is reported as missing, it is requested by name.
//! - A listing may contain stray files: for example a commit below a gap that a clean-up has left, or the checksum of a
//!   version that does not exist. Such a file alone does not mean that its version exists.

use std::collections::BTreeMap;

use super::LOG_DIRECTORY;
use super::checkpoint_files::{CheckpointCandidates, CheckpointFiles};
use super::commit_files::{CommitFile, CommitKind};
use super::staged::StagedCommit;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::log_name::LogFileName;
use crate::storage::{FileMeta, Storage, Surroundings};

/// The log to list, with the catalog's commits to add and the checkpoints to ignore.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentSource<'a> {
    pub(crate) storage: &'a Storage,
    /// Commits that a catalog has accepted. They may not be published yet.
    pub(crate) staged: &'a [StagedCommit],
    /// Checkpoints that turned out to be unreadable and must not be used.
    pub(crate) without: &'a [CheckpointFiles],
}

impl<'a> SegmentSource<'a> {
    pub(crate) fn new(storage: &'a Storage) -> Self {
        Self { storage, staged: &[], without: &[] }
    }
}

/// The log's files that a listing has found.
#[derive(Default)]
pub(super) struct Listing {
    /// The commits, oldest first.
    pub(super) commits: Vec<CommitFile>,
    pub(super) compactions: Vec<CommitFile>,
    pub(super) checkpoints: CheckpointCandidates,
    /// The checksum files, by version. Some may belong to versions that do not exist.
    checksums: BTreeMap<u64, FileMeta>,
    /// The files of the published commits, as the listing shows them, by version.
    pub(super) entries: BTreeMap<u64, FileMeta>,
    /// Whether the log has any file besides `_last_checkpoint`.
    pub(super) has_files: bool,
}

impl Listing {
    /// Lists the log from version `start` on, without the versions after `end`.
    pub(super) fn from(source: SegmentSource<'_>, start: u64, end: Option<u64>) -> Result<Self> {
        // "00…07" sorts before every name that starts with "00…07.".
        let after = if start == 0 { String::new() } else { format!("{start:020}") };
        let mut listing = Self::default();
        for file in source.storage.list_directory_after(LOG_DIRECTORY, &after)? {
            let Some(name) = LogFileName::parse(&file.name) else { continue };
            listing.has_files |= !matches!(name, LogFileName::LastCheckpoint);
            if name.version().is_none_or(|version| version < start || end.is_some_and(|end| version > end)) {
                continue;
            }
            let commit = |version, kind| CommitFile::of(version, kind, &file);
            match name {
                LogFileName::Commit(version) => {
                    listing.commits.push(commit(version, CommitKind::Published));
                    listing.entries.insert(version, file);
                }
                LogFileName::Compaction { start, end } => {
                    listing.compactions.push(commit(end, CommitKind::Compacted { start }))
                }
                LogFileName::Checksum(version) if file.size > 0 => {
                    listing.checksums.insert(version, file);
                }
                _ => listing.checkpoints.add(&name, &file),
            }
        }
        // A store may list a file on two pages.
        listing.commits.dedup_by_key(|commit| commit.version);
        listing.add_staged(source, start, end)?;
        Ok(listing)
    }

    /// Adds the commits that the catalog knows but the listing does not show.
    fn add_staged(&mut self, source: SegmentSource<'_>, start: u64, end: Option<u64>) -> Result<()> {
        for staged in source.staged {
            let version = staged.version();
            if version < start || end.is_some_and(|end| version > end) {
                continue;
            }
            let Err(place) = self.commits.binary_search_by_key(&version, |commit| commit.version) else {
                continue;
            };
            let kind = CommitKind::Staged(staged.uuid);
            let commit = match source.storage.head(&staged.path())? {
                Some(file) => CommitFile::of(version, kind, &file),
                // The staged file is gone because the commit was published after the catalog had answered.
                None => published(source.storage, version)?.ok_or_else(|| {
                    Error::new(ErrorKind::FileNotFound, "the staged commit does not exist")
                        .in_table(source.storage.url())
                        .at_version(version)
                        .at_path(staged.path())
                        .with_hint("ask the catalog again")
                })?,
            };
            self.commits.insert(place, commit);
            self.has_files = true;
        }
        Ok(())
    }

    pub(super) fn newest_version(&self) -> Option<u64> {
        self.commits
            .last()
            .map(|commit| commit.version)
            .max(self.checkpoints.newest(&[]).map(|checkpoint| checkpoint.version))
    }

    /// If the listing ends before the commit of `wanted`, requests the commit by name, because listings may lag behind.
    pub(super) fn extend_to(&mut self, storage: &Storage, wanted: Option<u64>) -> Result<()> {
        let Some(wanted) = wanted.filter(|wanted| self.newest_version() < Some(*wanted)) else {
            return Ok(());
        };
        let Some(file) = storage.head(&LogFileName::Commit(wanted).path())? else { return Ok(()) };
        self.commits.push(CommitFile::of(wanted, CommitKind::Published, &file));
        self.entries.insert(wanted, file);
        self.has_files = true;
        Ok(())
    }

    /// Returns the file of the published commit of `wanted`, as the listing shows it.
    pub(super) fn commit_of(&self, wanted: u64) -> Option<FileMeta> {
        self.entries.get(&wanted).cloned()
    }

    /// Returns the file of the commit of `newest`, the newest version. If the listing shows only a checkpoint of this
    /// version, because it lags behind, requests the commit by name. Without the commit, a later refresh could not tell
    /// whether the log is still the same.
    pub(super) fn published_commit(&self, storage: &Storage, newest: u64) -> Result<Option<FileMeta>> {
        match self.commit_of(newest) {
            None if self.commits.last().is_none_or(|last| last.version < newest) => {
                let path = LogFileName::Commit(newest).path();
                let name = path.trim_start_matches(LOG_DIRECTORY).trim_start_matches('/').to_owned();
                Ok(storage.head(&path)?.map(|file| FileMeta { name, ..file }))
            }
            found => Ok(found),
        }
    }

    pub(super) fn checksum_of(&self, wanted: u64) -> Option<FileMeta> {
        self.checksums.get(&wanted).cloned()
    }

    /// Returns the version of the newest checksum file in the listing. A checksum is written after its commit. So
    /// unless the file is a stray one, the commit exists, even if a listing that lags behind does not show it.
    pub(super) fn checksum_version(&self) -> Option<u64> {
        self.checksums.last_key_value().map(|(version, _)| *version)
    }

    /// Returns the newest checksum file in the listing for a version before `wanted`, but not before `base`.
    pub(super) fn checksum_before(&self, wanted: u64, base: u64) -> Option<(u64, FileMeta)> {
        if base >= wanted {
            return None;
        }
        self.checksums.range(base..wanted).next_back().map(|(version, file)| (*version, file.clone()))
    }

    /// Adds commits that are missing between other commits, if the store has them: each is requested by its name. If a
    /// commit is still missing afterwards, the log has a gap.
    pub(super) fn complete(&mut self, storage: &Storage) -> Result<()> {
        let listed = std::mem::take(&mut self.commits);
        for commit in listed {
            let last = self.commits.last().map(|last| last.version);
            for version in last.map_or(commit.version, |last| last + 1)..commit.version {
                let Some(found) = published(storage, version)? else { break };
                self.commits.push(found);
            }
            self.commits.push(commit);
        }
        Ok(())
    }
}

/// Returns the error for a directory without a log.
pub(super) fn not_a_table(storage: &Storage) -> Error {
    let (what, hint) = match storage.surroundings() {
        Surroundings::Unknown => ("it has no log", "check the path, or create the table first".to_owned()),
        Surroundings::Empty => {
            ("the directory is empty", "check the path, or create the table first".to_owned())
        }
        Surroundings::File => ("this is a file", "pass the directory of a table".to_owned()),
        Surroundings::Parquet => (
            "this is a directory of Parquet files without a log",
            "convert it to a table with convert_to_delta, or check the path".to_owned(),
        ),
        Surroundings::Log(table) => ("this is the log of a table", format!("open the table itself: {table}")),
        Surroundings::Inside(table) => (
            "this is inside the directory of a table",
            format!("open the table itself, and filter its rows: {table}"),
        ),
    };
    Error::new(ErrorKind::NotATable, format!("there is no Delta table here: {what}"))
        .in_table(storage.url())
        .at_path(LOG_DIRECTORY)
        .with_hint(hint)
}

/// Completes `commits`, so that they contain every version from `first` to `last`. Commits that the listing did not
/// show are requested by name. Returns the first version whose commit does not exist, if there is one.
pub(super) fn fill_gaps(
    storage: &Storage,
    first: u64,
    last: u64,
    commits: &mut Vec<CommitFile>,
) -> Result<Option<u64>> {
    let mut listed = std::mem::take(commits).into_iter().peekable();
    for version in first..=last {
        let found = match listed.next_if(|commit| commit.version == version) {
            None => published(storage, version)?,
            found => found,
        };
        let Some(commit) = found else { return Ok(Some(version)) };
        commits.push(commit);
    }
    Ok(None)
}

/// Requests the published commit of `version` by name.
fn published(storage: &Storage, version: u64) -> Result<Option<CommitFile>> {
    let file = storage.head(&LogFileName::Commit(version).path())?;
    Ok(file.map(|file| CommitFile::of(version, CommitKind::Published, &file)))
}
