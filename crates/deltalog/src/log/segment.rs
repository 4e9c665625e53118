//! Finding the files that make up a version.
//!
//! ```text
//!             checkpoint            commits
//!   ... 7 8 9 [10]  +  11.json 12.json 13.json  =  version 13
//! ```
//!
//! - The commits of a segment are contiguous and end at its version. A gap is an error. If newer versions do not need
//!   the missing commit, the error says that the requested version was not found (see [`super::extent`]). Otherwise, it
//!   says that the log is corrupt.
//! - `_last_checkpoint` only determines where the listing starts. If it does not name a complete checkpoint, the whole
//!   log is listed.
//! - A checkpoint that is newer than the requested version is never used.

use std::collections::BTreeMap;

use super::checkpoint_files::CheckpointFiles;
use super::commit_files::{CommitFile, CommitKind, useful_compactions, with_compactions};
use super::extent::{missing_commit, no_such_version};
use super::listing::{Listing, SegmentSource, fill_gaps, not_a_table};
use super::{LOG_DIRECTORY, LastCheckpoint, is_table};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::log_name::LogFileName;
use crate::storage::{FileMeta, Storage};

/// The files that make up a version: a checkpoint, if there is one, and the commits after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSegment {
    /// The version.
    pub version: u64,
    /// The checkpoint to start from.
    pub checkpoint: Option<CheckpointFiles>,
    /// The commits after the checkpoint, oldest first.
    pub commits: Vec<CommitFile>,
    /// Compactions that are read in place of some of `commits`, oldest first and without overlaps.
    pub compactions: Vec<CommitFile>,
    /// The published commit of exactly this version, if the store has listed it. It shows whether another log has
    /// replaced this one since.
    pub(crate) commit: Option<FileMeta>,
    /// The checksum file of exactly this version.
    pub checksum: Option<FileMeta>,
    /// The newest checksum file of an earlier version, but not one before the checkpoint. If the checksum of this
    /// version is missing or belongs to another commit, it can be computed from that file and the commits after it.
    pub(crate) older_checksum: Option<(u64, FileMeta)>,
    /// The newest version at the time of the last listing that began at the checkpoint. Later listings may begin at a
    /// later version, and may then not show a newer checkpoint.
    pub(crate) searched: u64,
}

/// The versions after the version of a segment.
#[derive(Debug)]
pub(crate) struct NewerVersions {
    /// The newest version, or the segment's version if there is no newer one.
    pub(crate) newest: u64,
    /// The files of the published commits of newer versions, as far as the listing shows them.
    pub(crate) entries: BTreeMap<u64, FileMeta>,
}

/// The number of versions before the end of a segment that are listed again to find newer checkpoints. Their files fit
/// in one page of a listing.
const MOST_LISTED: u64 = 100;

/// Why the log is searched for versions that are newer than a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// To find the newest version. Files of the segment that have already been read need not exist any more.
    Newest,
    /// To find the newest version after some files of the segment could not be read.
    Lost,
    /// To find the segment that opening the table would find. All its files must exist.
    Place,
}

/// The result of a search for versions that are newer than a segment.
#[derive(Debug)]
pub(crate) enum Newer {
    /// There is neither a newer version nor a newer checkpoint.
    Unchanged,
    /// There is a newer version or a newer checkpoint.
    Segment(Box<LogSegment>),
    /// The version of the segment was cleaned up after a newer checkpoint was written, or its commits were replaced.
    /// Only the metadata can show whether this is still the same table.
    Unknown,
}

/// What has happened to a version since it was read.
pub(crate) enum Fate {
    /// The version exists, or there is no evidence that it does not.
    There,
    /// A clean-up of the log has deleted the commit of the version. A checkpoint of a newer version exists.
    CleanedUp,
    /// The table was dropped, and perhaps another table was created in its place.
    Dropped(Error),
}

impl LogSegment {
    /// Finds the segment of `version`, or of the newest version if `version` is `None`.
    ///
    /// # Errors
    /// `NotATable` if there is no log, `VersionNotFound` if the log does not have the version, `CorruptLog` for
    /// a gap after the newest checkpoint; also errors from the store.
    pub fn find(storage: &Storage, version: Option<u64>) -> Result<Self> {
        Self::find_in(SegmentSource::new(storage), version)
    }

    /// Does the same as [`LogSegment::find`], but lists the log in `source`.
    pub(crate) fn find_in(source: SegmentSource<'_>, version: Option<u64>) -> Result<Self> {
        let storage = source.storage;
        // If a checkpoint was unreadable, an older one may be needed. To find it, the whole log has to be listed.
        let hint = if source.without.is_empty() { LastCheckpoint::read(storage)? } else { None };
        if let Some(hint) = hint.filter(|hint| version.is_none_or(|version| hint.version <= version)) {
            let mut listing = Listing::from(source, hint.version, version)?;
            listing.extend_to(storage, version.or(listing.checksum_version()))?;
            if listing.checkpoints.newest(source.without).is_some() {
                return Self::build(source, listing, version);
            }
            tracing::warn!(
                table = storage.url(),
                version = hint.version,
                "_last_checkpoint does not point at a complete checkpoint: listing the whole log"
            );
        }
        let mut listing = Listing::from(source, 0, version)?;
        listing.extend_to(storage, version.or(listing.checksum_version()))?;
        if !listing.has_files {
            return Err(not_a_table(storage));
        }
        Self::build(source, listing, version)
    }

    /// Lists the log and returns the segment of the newest version. It begins with the newest checkpoint, which may
    /// have been written after `self` was found, for the same version or an older one. It includes the files of `self`
    /// that are still needed.
    ///
    /// The listing begins at the checkpoint of `self`. If many commits follow that checkpoint, most listings begin
    /// later, so that one request is enough. In this case, the log is listed from the checkpoint only from time to
    /// time, and whenever `look` requires it.
    ///
    /// # Errors
    /// `TableReplaced` or `NotATable` if the log is not the one in which `self` was found, `CorruptLog` for a
    /// gap; also errors from the store.
    pub(crate) fn newer_in(&self, source: SegmentSource<'_>, look: Look) -> Result<Newer> {
        // The listing includes the version of `self`, to check that it is still the same.
        let start = self.start_of_listing(look);
        let listing = Listing::from(source, start, None)?;
        if !self.is_still_in(source.storage, &listing)? {
            return Ok(Newer::Unknown);
        }
        let version = listing.newest_version().unwrap_or_default().max(self.version);
        let found = listing.checkpoints.newest(source.without);
        let checkpoint = match (&self.checkpoint, found) {
            (Some(own), Some(found)) if found.version < own.version => Some(own.clone()),
            // If a version has several checkpoints, the one that was already read is kept.
            (Some(own), Some(found)) if found.version == own.version && listing.checkpoints.have(own) => {
                Some(own.clone())
            }
            (own, found) => found.or_else(|| own.clone()),
        };
        let first = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version + 1);
        if look == Look::Place && !self.is_whole_in(&listing, checkpoint.as_ref(), first) {
            return Ok(Newer::Unknown);
        }
        let checksum = listing.checksum_of(version);
        if version == self.version && checkpoint == self.checkpoint && checksum == self.checksum {
            return Ok(Newer::Unchanged);
        }
        let Some(mut commits) = self.commits_with(&listing, first) else { return Ok(Newer::Unknown) };
        if let Some(missing) = fill_gaps(source.storage, first, version, &mut commits)? {
            return Err(missing_commit(source.storage, missing));
        }
        let commit = match version == self.version {
            true => self.commit.clone(),
            false => listing.published_commit(source.storage, version)?,
        };
        let own_checksum = || {
            let file = self.checksum.clone().filter(|_| self.version < version);
            file.map(|file| (self.version, file))
        };
        let base = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version);
        let older_checksum = listing
            .checksum_before(version, base)
            .or_else(own_checksum)
            .or_else(|| self.older_checksum.clone())
            .filter(|(of, _)| *of >= base);
        // Compactions that were already read are kept. New compactions are only used for new commits.
        let mut compactions = self.compactions.clone();
        compactions.retain(|compaction| compaction.start() >= first);
        let new = commits.partition_point(|commit| commit.version <= self.version);
        compactions.extend(useful_compactions(commits.get(new..).unwrap_or_default(), &listing.compactions));
        let searched = if start <= self.base() { version } else { self.searched };
        Ok(Newer::Segment(Box::new(Self {
            version,
            checkpoint,
            commits,
            compactions,
            commit,
            checksum,
            older_checksum,
            searched,
        })))
    }

    /// Returns the commits from version `first` on, combined from this segment and from `listing`. Returns `None` if
    /// `listing` shows that a commit of this segment has been replaced.
    fn commits_with(&self, listing: &Listing, first: u64) -> Option<Vec<CommitFile>> {
        let listed_from = listing.commits.first().map_or(u64::MAX, |commit| commit.version);
        let (older, shown) =
            self.commits.split_at(self.commits.partition_point(|commit| commit.version < listed_from));
        let mut newer: BTreeMap<u64, CommitFile> =
            shown.iter().map(|commit| (commit.version, *commit)).collect();
        for found in &listing.commits {
            let own = newer.insert(found.version, *found);
            // A staged commit moves to another file when it is published.
            if own.is_some_and(|own| own != *found && own.kind == found.kind) {
                return None;
            }
        }
        let all = older.iter().copied().chain(newer.into_values());
        Some(all.filter(|commit| commit.version >= first).collect())
    }

    /// Returns whether the listing shows `checkpoint` and all commits of this segment from version `first` on. A newer
    /// segment needs these files. Staged commits are not checked.
    fn is_whole_in(&self, listing: &Listing, checkpoint: Option<&CheckpointFiles>, first: u64) -> bool {
        let shows = |own: &CommitFile| {
            let is_staged = matches!(own.kind, CommitKind::Staged(_));
            is_staged || listing.commits.binary_search_by_key(&own.version, |found| found.version).is_ok()
        };
        let needed = self.commits.partition_point(|commit| commit.version < first);
        self.commits.get(needed..).unwrap_or_default().iter().all(shows)
            && checkpoint.is_none_or(|checkpoint| listing.checkpoints.have(checkpoint))
    }

    /// Returns the version of the checkpoint, or 0 if there is none.
    fn base(&self) -> u64 {
        self.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version)
    }

    /// Returns the version from which the log is listed to find newer versions and newer checkpoints.
    fn start_of_listing(&self, look: Look) -> u64 {
        let behind = self.version - self.base();
        let is_due = self.version - self.searched >= MOST_LISTED.max(behind / 4);
        match look {
            Look::Newest if behind > MOST_LISTED && !is_due => self.version - MOST_LISTED,
            _ => self.base(),
        }
    }

    /// Lists the log from this version on, and returns the newer versions. Returns `None` if this version was cleaned
    /// up (see [`Newer::Unknown`]).
    ///
    /// # Errors
    /// Returns the same errors as [`LogSegment::newer_in`], except that gaps are not detected.
    pub(crate) fn newer_versions_in(&self, source: SegmentSource<'_>) -> Result<Option<NewerVersions>> {
        let mut listing = Listing::from(source, self.version, None)?;
        let newest = listing.newest_version().unwrap_or_default().max(self.version);
        if !self.is_still_in(source.storage, &listing)? {
            return Ok(None);
        }
        let entries = listing.entries.split_off(&(self.version + 1));
        Ok(Some(NewerVersions { newest, entries }))
    }

    /// Returns what has happened to this version since it was read. Only its commit can show that: a checkpoint of the
    /// version may have been written later.
    ///
    /// # Errors
    /// Returns errors from the store.
    pub(crate) fn fate_in(&self, storage: &Storage) -> Result<Fate> {
        // Without a commit, there is nothing to compare: a version may exist although its commit does not.
        let Some(own) = &self.commit else { return Ok(Fate::There) };
        if let Some(found) = storage.head(&LogFileName::Commit(self.version).path())? {
            return Ok(match own.is_same_object(&found) {
                true => Fate::There,
                false => Fate::Dropped(self.replaced(storage)),
            });
        }
        let (mut newest, mut newest_checkpoint) = (None, None);
        for file in storage.list_directory_after(LOG_DIRECTORY, "")? {
            match LogFileName::parse(&file.name) {
                Some(LogFileName::Commit(version)) => newest = newest.max(Some(version)),
                Some(
                    LogFileName::ClassicCheckpoint(version)
                    | LogFileName::CheckpointPart { version, .. }
                    | LogFileName::UuidCheckpoint { version, .. },
                ) => newest_checkpoint = newest_checkpoint.max(Some(version)),
                _ => {}
            }
        }
        Ok(match newest {
            None => Fate::Dropped(not_a_table(storage)),
            Some(newest) if newest <= self.version => Fate::Dropped(self.replaced(storage)),
            // Without a newer checkpoint, this version would still be needed, so it was not cleaned up.
            Some(_) if newest_checkpoint > Some(self.version) => Fate::CleanedUp,
            Some(_) => Fate::There,
        })
    }

    /// Returns whether this version, which `listing` includes, still exists unchanged. Returns `false` if it was
    /// cleaned up, or if only the table's metadata can show whether it is unchanged.
    ///
    /// # Errors
    /// `TableReplaced` or `NotATable` if the version no longer exists or was replaced; also errors from the store.
    fn is_still_in(&self, storage: &Storage, listing: &Listing) -> Result<bool> {
        if matches!(self.commits.last(), Some(CommitFile { kind: CommitKind::Staged(_), .. })) {
            // The catalog, not the listing, decides which commits belong to the table.
            return Ok(true);
        }
        let is_unknown = self.commit.is_none();
        let found = match listing.commit_of(self.version) {
            // The listing may lag behind.
            None if !is_unknown => storage.head(&LogFileName::Commit(self.version).path())?,
            found => found,
        };
        let checkpoint_remains = || {
            let same =
                |(own, other): (&FileMeta, &FileMeta)| own.name == other.name && own.is_same_object(other);
            let found = listing.checkpoints.newest(&[]).filter(|found| found.version == self.version);
            matches!((&self.checkpoint, found), (Some(own), Some(found))
                if own.files.len() == found.files.len() && own.files.iter().zip(&found.files).all(same))
        };
        match (&self.commit, found) {
            (Some(own), Some(found)) if own.is_same_object(&found) => Ok(true),
            // Some file systems round times once they no longer cache them, so different times may belong to the same
            // commit. In that case, the table's metadata decides.
            (Some(own), Some(found)) if own.size == found.size => Ok(false),
            (Some(_), Some(_)) => Err(self.replaced(storage)),
            (None, None) if checkpoint_remains() => Ok(true),
            (_, found) if found.is_some() || listing.checkpoints.newest(&[]).is_some() => Ok(false),
            _ if is_table(storage)? => Err(self.replaced(storage)),
            _ => Err(not_a_table(storage)),
        }
    }

    /// Returns the error for a log that was replaced by another one.
    pub(crate) fn replaced(&self, storage: &Storage) -> Error {
        replaced(storage, self.version)
    }

    /// Returns the files to read after the checkpoint, oldest first: commits, or compactions that replace them.
    pub fn files(&self) -> Vec<CommitFile> {
        with_compactions(&self.commits, &self.compactions)
    }

    fn build(source: SegmentSource<'_>, listing: Listing, wanted: Option<u64>) -> Result<Self> {
        let storage = source.storage;
        let checkpoint = listing.checkpoints.newest(source.without);
        let first = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version + 1);
        let mut commits = listing.commits.clone();
        commits.retain(|commit| commit.version >= first);
        let base = checkpoint.as_ref().map(|checkpoint| checkpoint.version);
        let newest = commits.last().map(|commit| commit.version).or(base);
        let Some(newest) = newest else { return Err(no_such_version(source, wanted, None)) };
        // A gap before the requested version must not be taken for the end of the log.
        let missing = fill_gaps(storage, first, newest, &mut commits)?;
        if missing.is_some() || wanted.is_some_and(|wanted| wanted != newest) {
            return Err(no_such_version(source, wanted, missing));
        }
        let compactions = useful_compactions(&commits, &listing.compactions);
        let commit = listing.published_commit(storage, newest)?;
        let checksum = listing.checksum_of(newest);
        let older_checksum = listing.checksum_before(newest, base.unwrap_or_default());
        Ok(Self {
            version: newest,
            checkpoint,
            commits,
            compactions,
            commit,
            checksum,
            older_checksum,
            searched: newest,
        })
    }
}

/// Returns the error for version `version` of a table that was replaced by another one.
pub(crate) fn replaced(storage: &Storage, version: u64) -> Error {
    let message = "since the table was opened, it was dropped and another one was created in its place";
    Error::new(ErrorKind::TableReplaced, message)
        .in_table(storage.url())
        .at_version(version)
        .with_hint("open the table again")
}
