//! The listing of the log, and the part of it that makes a version.
//!
//! ```text
//!             checkpoint            commits
//!   ... 7 8 9 [10]  +  11.json 12.json 13.json  =  version 13
//! ```
//!
//! - The commits of a segment are contiguous and end at its version; a gap is an error that names the missing version.
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
        let listing = Listing::from(storage, self.version + 1, None)?;
        let Some(newest) = listing.commits.last() else { return Ok(None) };
        let version = newest.version;
        let newer = listing.checkpoints.newest();
        let mut commits = self.commits.clone();
        commits.extend(listing.commits);
        let checkpoint = newer.or_else(|| self.checkpoint.clone());
        let first = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version + 1);
        commits.retain(|commit| commit.version >= first);
        check_contiguous(storage, first, version, &commits)?;
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
        if wanted.is_some_and(|wanted| wanted != newest) {
            // A gap below the version asked for would otherwise be taken for the end of the log.
            check_contiguous(storage, first, newest, &commits)?;
            return Err(Self::no_such_version(storage, wanted));
        }
        check_contiguous(storage, first, newest, &commits)?;
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
                match wanted {
                    None => error("the newest version cannot be found".to_owned()).at_version(newest),
                    Some(wanted) if wanted > newest => error(format!("version {wanted} does not exist yet: the newest is {newest}")),
                    Some(wanted) => {
                        let oldest = oldest_readable(&listing);
                        let range = oldest.map_or_else(|| "none".to_owned(), |oldest| format!("{oldest} to {newest}"));
                        error(format!("version {wanted} can no longer be read: the readable versions are {range}"))
                            .with_hint("the log before them was cleaned up")
                    }
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

fn check_contiguous(storage: &Storage, first: u64, last: u64, commits: &[CommitFile]) -> Result<()> {
    let mut expected = first;
    for commit in commits {
        if commit.version != expected {
            break;
        }
        expected += 1;
    }
    if expected == last + 1 {
        return Ok(());
    }
    Err(Error::corrupt_log(format!("the commit of version {expected} is missing"))
        .in_table(storage.url())
        .at_version(expected)
        .at_path(LogFileName::Commit(expected).path())
        .with_hint("restore the file, or read a version before it"))
}
