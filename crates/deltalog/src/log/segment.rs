//! The listing of the log, and the part of it that makes a version.
//!
//! ```text
//!             checkpoint            commits
//!   ... 7 8 9 [10]  +  11.json 12.json 13.json  =  version 13
//! ```
//!
//! - The commits of a segment are contiguous and end at its version; a gap is an error that names the missing version.
//! - A listing is no snapshot of a directory: one that was made while commits were added may show N + 1 and not N. What seems to be missing is asked
//!   for by name before it is called missing.
//! - `_last_checkpoint` only tells where a listing may start. If what it points at is not there, the whole log is listed.
//! - A checkpoint newer than the version asked for is never used.

use super::checkpoint_files::CheckpointCandidates;
use super::name::LogFileName;
use super::{LOG_DIRECTORY, LastCheckpoint};
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{FileMeta, Storage};

/// The files that make a version: a checkpoint, if there is one, and the commits after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSegment {
    /// The version that the segment makes.
    pub version: u64,
    /// The checkpoint to start from.
    pub checkpoint: Option<CheckpointFiles>,
    /// The commits after the checkpoint, oldest first.
    pub commits: Vec<CommitFile>,
}

/// A complete checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointFiles {
    /// The version it holds.
    pub version: u64,
    /// Its files in order, with names relative to `_delta_log`.
    pub files: Vec<FileMeta>,
}

/// A commit as the listing shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitFile {
    /// Its version.
    pub version: u64,
    /// Bytes.
    pub size: u64,
    /// Milliseconds since the epoch.
    pub modified_ms: i64,
}

impl CommitFile {
    /// Path relative to the table's root.
    pub fn path(&self) -> String {
        LogFileName::Commit(self.version).path()
    }
}

/// What a listing found.
#[derive(Default)]
struct Listing {
    commits: Vec<CommitFile>,
    checkpoints: CheckpointCandidates,
    any: bool,
}

impl Listing {
    /// Lists from `start`, leaving out what is newer than `end`.
    fn from(storage: &Storage, start: u64, end: Option<u64>) -> Result<Self> {
        // "00…07" sorts before every name that starts with "00…07.".
        let after = if start == 0 { String::new() } else { format!("{start:020}") };
        let mut listing = Self::default();
        for file in storage.list_after(LOG_DIRECTORY, &after)? {
            let Some(name) = LogFileName::parse(&file.name) else { continue };
            listing.any |= !matches!(name, LogFileName::LastCheckpoint | LogFileName::Sidecar(_));
            if name.version().is_none_or(|version| version < start || end.is_some_and(|end| version > end)) {
                continue;
            }
            match name {
                LogFileName::Commit(version) => {
                    listing.commits.push(CommitFile { version, size: file.size, modified_ms: file.modified_ms })
                }
                _ => listing.checkpoints.add(&name, &file),
            }
        }
        Ok(listing)
    }
}

impl LogSegment {
    /// Finds the segment of `version`, or of the newest one.
    ///
    /// # Errors
    /// `NotATable` if the log has no file, `VersionNotFound` if it has no such version, `CorruptLog` for a gap, and the store's own.
    pub fn find(storage: &Storage, version: Option<u64>) -> Result<Self> {
        let hint = LastCheckpoint::read(storage)?.filter(|hint| version.is_none_or(|version| hint.version <= version));
        if let Some(hint) = hint {
            let listing = Listing::from(storage, hint.version, version)?;
            if listing.checkpoints.newest().is_some() {
                return Self::build(storage, listing, version);
            }
            tracing::warn!(
                table = storage.url(),
                version = hint.version,
                "_last_checkpoint points at no complete checkpoint: listing the whole log"
            );
        }
        let listing = Listing::from(storage, 0, version)?;
        if !listing.any {
            return Err(not_a_table(storage));
        }
        Self::build(storage, listing, version)
    }

    /// The segment after new commits: `self` plus what a listing from its version on shows; `None` if there is nothing new.
    ///
    /// # Errors
    /// `CorruptLog` for a gap, and the store's own.
    pub fn refresh(&self, storage: &Storage) -> Result<Option<Self>> {
        // From its own version on: the checkpoint of a commit appears after the commit, and a handle that always looked past it would never find one.
        let listing = Listing::from(storage, self.version, None)?;
        let newer = listing.checkpoints.newest();
        let newest = listing.commits.last().map(|commit| commit.version).max(newer.as_ref().map(|checkpoint| checkpoint.version));
        let Some(version) = newest.filter(|version| *version > self.version) else { return Ok(None) };
        let mut commits = self.commits.clone();
        commits.extend(listing.commits.into_iter().filter(|commit| commit.version > self.version));
        let checkpoint = newer.or_else(|| self.checkpoint.clone());
        let first = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version + 1);
        commits.retain(|commit| commit.version >= first);
        fill_gaps(storage, first, version, &mut commits)?;
        Ok(Some(Self { version, checkpoint, commits }))
    }

    fn build(storage: &Storage, listing: Listing, wanted: Option<u64>) -> Result<Self> {
        let checkpoint = listing.checkpoints.newest();
        let first = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version + 1);
        let mut commits = listing.commits;
        let oldest = commits.first().map(|commit| commit.version);
        commits.retain(|commit| commit.version >= first);
        let newest = commits.last().map(|commit| commit.version).or(checkpoint.as_ref().map(|checkpoint| checkpoint.version));
        if checkpoint.is_none()
            && oldest != Some(0)
            && let Some((version, name)) = listing.checkpoints.unsupported()
        {
            return Err(Error::unsupported(
                "the feature v2Checkpoint is not supported yet, and the log cannot be read without its checkpoint",
            )
            .in_table(storage.url())
            .at_version(version)
            .at_path(format!("{LOG_DIRECTORY}/{name}")));
        }
        let Some(newest) = newest else { return Err(Self::no_such_version(storage, wanted)) };
        // The log begins after the version asked for, or with commits whose checkpoint is newer than it.
        if wanted.is_some() && checkpoint.is_none() && oldest != Some(0) && storage.head(&LogFileName::Commit(0).path())?.is_none() {
            return Err(Self::no_such_version(storage, wanted));
        }
        if wanted.is_some_and(|wanted| wanted != newest) {
            // A gap below the version asked for would otherwise be taken for the end of the log.
            fill_gaps(storage, first, newest, &mut commits)?;
            return Err(Self::no_such_version(storage, wanted));
        }
        fill_gaps(storage, first, newest, &mut commits)?;
        Ok(Self { version: newest, checkpoint, commits })
    }

    /// Says which versions there are.
    fn no_such_version(storage: &Storage, wanted: Option<u64>) -> Error {
        let error = |message: String| Error::new(ErrorKind::VersionNotFound, message).in_table(storage.url());
        match Listing::from(storage, 0, None) {
            Err(error) => error,
            Ok(listing) if !listing.any => not_a_table(storage),
            Ok(listing) => {
                let newest = listing
                    .commits
                    .last()
                    .map(|commit| commit.version)
                    .max(listing.checkpoints.newest().map(|checkpoint| checkpoint.version));
                let Some(newest) = newest else {
                    return Error::corrupt_log("the log holds neither a commit nor a complete checkpoint").in_table(storage.url());
                };
                let Some(wanted) = wanted else { return error("the newest version cannot be found".to_owned()).at_version(newest) };
                let oldest = oldest_readable(&listing);
                let range = oldest.map_or_else(|| "none".to_owned(), |oldest| format!("{oldest} to {newest}"));
                if wanted > newest {
                    error(format!("version {wanted} does not exist yet: the readable versions are {range}"))
                } else if oldest.is_some_and(|oldest| oldest <= wanted) {
                    // Neither the end of the log nor cleaned up: its commit is gone from the middle.
                    missing_commit(storage, wanted)
                } else {
                    error(format!("version {wanted} can no longer be read: the readable versions are {range}"))
                        .with_hint("the log before them was cleaned up")
                }
            }
        }
    }
}

/// Every commit that is still there, oldest first.
pub(super) fn list_commits(storage: &Storage, end: Option<u64>) -> Result<Vec<CommitFile>> {
    let listing = Listing::from(storage, 0, end)?;
    if listing.any { Ok(listing.commits) } else { Err(not_a_table(storage)) }
}

/// The oldest version that can be rebuilt: 0 if its commit is there, else that of the oldest checkpoint.
fn oldest_readable(listing: &Listing) -> Option<u64> {
    match listing.commits.first() {
        Some(commit) if commit.version == 0 => Some(0),
        _ => listing.checkpoints.oldest(),
    }
}

fn not_a_table(storage: &Storage) -> Error {
    Error::new(ErrorKind::NotATable, "there is no Delta table here: it has no log")
        .in_table(storage.url())
        .at_path(LOG_DIRECTORY)
        .with_hint("check the path, or create the table first")
}

/// Makes `commits` those of `first` to `last` without a gap: a commit that the listing does not show is asked for by name.
fn fill_gaps(storage: &Storage, first: u64, last: u64, commits: &mut Vec<CommitFile>) -> Result<()> {
    let mut expected = first;
    while expected <= last {
        let index = usize::try_from(expected - first).unwrap_or(usize::MAX);
        if commits.get(index).is_none_or(|commit| commit.version != expected) {
            let file = storage.head(&LogFileName::Commit(expected).path())?.ok_or_else(|| missing_commit(storage, expected))?;
            commits.insert(index.min(commits.len()), CommitFile { version: expected, size: file.size, modified_ms: file.modified_ms });
        }
        expected += 1;
    }
    Ok(())
}

fn missing_commit(storage: &Storage, version: u64) -> Error {
    Error::corrupt_log(format!("the commit of version {version} is missing"))
        .in_table(storage.url())
        .at_version(version)
        .at_path(LogFileName::Commit(version).path())
        .with_hint("restore the file, or read a version before it")
}
