//! Listing the log, and finding the files that make up a version.
//!
//! ```text
//!             checkpoint            commits
//!   ... 7 8 9 [10]  +  11.json 12.json 13.json  =  version 13
//! ```
//!
//! - The commits of a segment are contiguous and end at its version. A gap is an error that names the missing
//!   version.
//! - A listing is not a consistent snapshot of a directory: if commits are added meanwhile, it may show N + 1
//!   but not N. A commit that seems to be missing is requested by name before it is reported as missing.
//! - `_last_checkpoint` only determines where a listing starts. If it does not point at a complete checkpoint,
//!   the whole log is listed.
//! - A checkpoint newer than the requested version is never used.

use std::collections::BTreeMap;

use super::checkpoint_files::{CheckpointCandidates, CheckpointFiles};
use super::commit_files::{CommitFile, CommitKind, useful_compactions, with_compactions};
use super::name::LogFileName;
use super::staged::StagedCommit;
use super::{LOG_DIRECTORY, LastCheckpoint, is_table};
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{FileMeta, Storage, Surroundings};

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
    /// The commit of exactly this version, if the store has listed it. It distinguishes this log from one that
    /// replaces it later.
    pub(crate) commit: Option<FileMeta>,
    /// The checksum file of exactly this version.
    pub checksum: Option<FileMeta>,
    /// The newest checksum file of an earlier version, if this version has none: with the commits since, it tells
    /// what the checksum of this version would say.
    pub(crate) older_checksum: Option<(u64, FileMeta)>,
    /// The version that was the newest when a listing has last shown all files from the checkpoint on.
    pub(crate) searched: u64,
}

/// The versions after that of a segment.
#[derive(Debug)]
pub(crate) struct NewerVersions {
    /// The newest version, or that of the segment if there is no newer one.
    pub(crate) newest: u64,
    /// The entries of the published commits of newer versions, as far as the listing shows them.
    pub(crate) entries: BTreeMap<u64, FileMeta>,
}

/// How many versions of a segment are listed again to find newer checkpoints. They fit into one page of a listing.
const MOST_LISTED: u64 = 100;

/// How newer versions than that of a segment are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Files of the segment need not be there any more if they were read.
    Newest,
    /// The same, but some files of the segment could not be read.
    Lost,
    /// What is found is what an open finds: all files must be there.
    Place,
}

/// What a look for newer versions than that of a segment has found.
#[derive(Debug)]
pub(crate) enum Newer {
    /// There is neither a newer version nor a newer checkpoint.
    Unchanged,
    /// There is one.
    Segment(Box<LogSegment>),
    /// The version of the segment was cleaned up after a newer checkpoint was written, or commits were replaced. Only
    /// the metadata can tell whether the table is still the same.
    Unknown,
}

/// The log in which segments are found, and restrictions on what may be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentSource<'a> {
    pub(crate) storage: &'a Storage,
    /// Commits that a catalog has accepted and that may not be published yet.
    pub(crate) staged: &'a [StagedCommit],
    /// Checkpoints that turned out to be unreadable and must not be used.
    pub(crate) without: &'a [CheckpointFiles],
}

impl<'a> SegmentSource<'a> {
    pub(crate) fn new(storage: &'a Storage) -> Self {
        Self { storage, staged: &[], without: &[] }
    }
}

/// The files that a listing of the log found.
#[derive(Default)]
struct Listing {
    commits: Vec<CommitFile>,
    compactions: Vec<CommitFile>,
    checkpoints: CheckpointCandidates,
    checksum: Option<(u64, FileMeta)>,
    /// The entries of the published commits, by version.
    entries: BTreeMap<u64, FileMeta>,
    /// Whether there is any file of a log besides the hint.
    has_files: bool,
}

impl Listing {
    /// Lists the log from version `start`, leaving out versions after `end`.
    fn from(source: SegmentSource<'_>, start: u64, end: Option<u64>) -> Result<Self> {
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
                LogFileName::Checksum(version) if file.size > 0 => listing.checksum = Some((version, file)),
                _ => listing.checkpoints.add(&name, &file),
            }
        }
        // A store may repeat a file on two pages of a listing.
        listing.commits.dedup_by_key(|commit| commit.version);
        listing.add_staged(source, start, end)?;
        Ok(listing)
    }

    /// Adds commits that the catalog has and the listing does not.
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
                // The commit was published after the catalog was asked.
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

    fn newest_version(&self) -> Option<u64> {
        self.commits
            .last()
            .map(|commit| commit.version)
            .max(self.checkpoints.newest(&[]).map(|checkpoint| checkpoint.version))
    }

    /// Requests the commit of `wanted` by name if the listing ends before it, because listings may lag behind.
    fn extend_to(&mut self, storage: &Storage, wanted: Option<u64>) -> Result<()> {
        let Some(wanted) = wanted.filter(|wanted| self.newest_version() < Some(*wanted)) else {
            return Ok(());
        };
        let Some(file) = storage.head(&LogFileName::Commit(wanted).path())? else { return Ok(()) };
        self.commits.push(CommitFile::of(wanted, CommitKind::Published, &file));
        self.entries.insert(wanted, file);
        self.has_files = true;
        Ok(())
    }

    /// Returns the entry of the published commit of `wanted`.
    fn commit_of(&self, wanted: u64) -> Option<FileMeta> {
        self.entries.get(&wanted).cloned()
    }

    /// Returns the file of the commit of `newest`, the newest version. Requests it by name if the listing, which
    /// may lag behind, shows only its checkpoint. Without it, a later refresh could take this log for another one.
    fn published_commit(&self, storage: &Storage, newest: u64) -> Result<Option<FileMeta>> {
        match self.commit_of(newest) {
            None if self.commits.last().is_none_or(|last| last.version < newest) => {
                let path = LogFileName::Commit(newest).path();
                let name = path.trim_start_matches(LOG_DIRECTORY).trim_start_matches('/').to_owned();
                Ok(storage.head(&path)?.map(|file| FileMeta { name, ..file }))
            }
            found => Ok(found),
        }
    }

    fn checksum_of(&self, wanted: u64) -> Option<FileMeta> {
        self.checksum.as_ref().filter(|(version, _)| *version == wanted).map(|(_, file)| file.clone())
    }

    /// Returns the version of the newest listed checksum file. It is written after its commit, so that the commit
    /// exists even if a listing that lags behind does not show it.
    fn checksum_version(&self) -> Option<u64> {
        self.checksum.as_ref().map(|(version, _)| *version)
    }

    /// Returns the newest listed checksum file, if it is of an earlier version than `wanted`.
    fn checksum_before(&self, wanted: u64) -> Option<(u64, FileMeta)> {
        self.checksum.clone().filter(|(version, _)| *version < wanted)
    }
}

impl LogSegment {
    /// Finds the segment of `version`, or of the newest version.
    ///
    /// # Errors
    /// `NotATable` if there is no log, `VersionNotFound` if the log does not have the version, `CorruptLog` for
    /// a gap; also errors of the store.
    pub fn find(storage: &Storage, version: Option<u64>) -> Result<Self> {
        Self::find_in(SegmentSource::new(storage), version)
    }

    /// Like [`LogSegment::find`], but in `source`.
    pub(crate) fn find_in(source: SegmentSource<'_>, version: Option<u64>) -> Result<Self> {
        let storage = source.storage;
        // If a checkpoint was unreadable, an older one may be needed, which requires the whole listing.
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

    /// Lists the log, and returns the segment of the newest version. It begins with the newest checkpoint, which may
    /// have been written for this version or an older one meanwhile, and has the files of `self` that it needs.
    ///
    /// The listing begins at the checkpoint of `self`. If many commits follow it, the oldest of them are listed now and
    /// then only, so that a listing costs one request, unless `look` asks for all.
    ///
    /// # Errors
    /// `TableReplaced` or `NotATable` if the log is not the one in which `self` was found, `CorruptLog` for a
    /// gap; also errors of the store.
    pub(crate) fn newer_in(&self, source: SegmentSource<'_>, look: Look) -> Result<Newer> {
        // The listing includes this version, to check that it is still the same.
        let start = self.start_of_listing(look);
        let listing = Listing::from(source, start, None)?;
        if !self.is_still_in(source.storage, &listing)? {
            return Ok(Newer::Unknown);
        }
        let version = listing.newest_version().unwrap_or_default().max(self.version);
        let found = listing.checkpoints.newest(source.without);
        let checkpoint = match (&self.checkpoint, found) {
            (Some(own), Some(found)) if found.version < own.version => Some(own.clone()),
            // Of several checkpoints of one version, the one that was read is kept.
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
        fill_gaps(source.storage, first, version, &mut commits)?;
        let commit = match version == self.version {
            true => self.commit.clone(),
            false => listing.published_commit(source.storage, version)?,
        };
        let own_checksum = || self.checksum.clone().map(|file| (self.version, file));
        let older_checksum = match checksum {
            Some(_) => None,
            None => {
                listing.checksum_before(version).or_else(own_checksum).or_else(|| self.older_checksum.clone())
            }
        };
        // Compactions that were read already are kept; new ones are used only for new commits.
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

    /// Returns the commits from `first` on, of this segment and of the listing of a newer one. Returns `None` if the
    /// listing shows that one of them was replaced.
    fn commits_with(&self, listing: &Listing, first: u64) -> Option<Vec<CommitFile>> {
        let listed_from = listing.commits.first().map_or(u64::MAX, |commit| commit.version);
        let (older, shown) =
            self.commits.split_at(self.commits.partition_point(|commit| commit.version < listed_from));
        let mut newer: BTreeMap<u64, CommitFile> =
            shown.iter().map(|commit| (commit.version, *commit)).collect();
        for found in &listing.commits {
            let own = newer.insert(found.version, *found);
            // A staged commit is published in another file.
            if own.is_some_and(|own| own != *found && own.kind == found.kind) {
                return None;
            }
        }
        let all = older.iter().copied().chain(newer.into_values());
        Some(all.filter(|commit| commit.version >= first).collect())
    }

    /// Returns whether the listing shows all files of this segment that a newer one with `checkpoint` and the commits
    /// from `first` on needs.
    fn is_whole_in(&self, listing: &Listing, checkpoint: Option<&CheckpointFiles>, first: u64) -> bool {
        let shows = |own: &CommitFile| {
            let is_staged = matches!(own.kind, CommitKind::Staged(_));
            is_staged || listing.commits.binary_search_by_key(&own.version, |found| found.version).is_ok()
        };
        let needed = self.commits.partition_point(|commit| commit.version < first);
        self.commits.get(needed..).unwrap_or_default().iter().all(shows)
            && checkpoint.is_none_or(|checkpoint| listing.checkpoints.have(checkpoint))
    }

    /// Returns the version of the checkpoint; 0 without one.
    fn base(&self) -> u64 {
        self.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version)
    }

    /// Returns the version from which the log is listed for newer versions and newer checkpoints.
    fn start_of_listing(&self, look: Look) -> u64 {
        let behind = self.version - self.base();
        let is_due = self.version - self.searched >= MOST_LISTED.max(behind / 4);
        match look {
            Look::Newest if behind > MOST_LISTED && !is_due => self.version - MOST_LISTED,
            _ => self.base(),
        }
    }

    /// Lists the log from this version on, and returns the newer versions. Returns `None` if this version was
    /// cleaned up, see [`Newer::Unknown`].
    ///
    /// # Errors
    /// The same as [`LogSegment::newer_in`], but gaps are not detected.
    pub(crate) fn newer_versions_in(&self, source: SegmentSource<'_>) -> Result<Option<NewerVersions>> {
        let mut listing = Listing::from(source, self.version, None)?;
        let newest = listing.newest_version().unwrap_or_default().max(self.version);
        if !self.is_still_in(source.storage, &listing)? {
            return Ok(None);
        }
        let entries = listing.entries.split_off(&(self.version + 1));
        Ok(Some(NewerVersions { newest, entries }))
    }

    /// Returns the error that says that the table was dropped, and perhaps another one created in its place, since this
    /// version was found; `None` if it is still there. Only commits tell: a checkpoint may have been written since.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn dropped_since(&self, storage: &Storage) -> Result<Option<Error>> {
        // A version may be there without its commit.
        let Some(own) = &self.commit else { return Ok(None) };
        if let Some(found) = storage.head(&LogFileName::Commit(self.version).path())? {
            return Ok((!own.is_same_object(&found)).then(|| self.replaced(storage)));
        }
        let files = storage.list_directory_after(LOG_DIRECTORY, "")?;
        let commits = files.iter().filter_map(|file| match LogFileName::parse(&file.name) {
            Some(LogFileName::Commit(version)) => Some(version),
            _ => None,
        });
        Ok(match commits.max() {
            // The log was cleaned up.
            Some(newest) if newest > self.version => None,
            Some(_) => Some(self.replaced(storage)),
            None => Some(not_a_table(storage)),
        })
    }

    /// Returns whether the log of `listing`, which starts at this version, still has the version unchanged.
    /// Returns `false` if the version was cleaned up.
    ///
    /// # Errors
    /// `TableReplaced` or `NotATable` if the version no longer exists or was replaced; also errors of the store.
    fn is_still_in(&self, storage: &Storage, listing: &Listing) -> Result<bool> {
        if matches!(self.commits.last(), Some(CommitFile { kind: CommitKind::Staged(_), .. })) {
            // The catalog decides which commits belong to the table.
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
            // Some file systems round times once they no longer cache them. The metadata of the log decides.
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

    /// Returns the files to read after the checkpoint, oldest first: the commits, or compactions in their place.
    pub fn files(&self) -> Vec<CommitFile> {
        with_compactions(&self.commits, &self.compactions)
    }

    fn build(source: SegmentSource<'_>, listing: Listing, wanted: Option<u64>) -> Result<Self> {
        let storage = source.storage;
        let checkpoint = listing.checkpoints.newest(source.without);
        let first = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version + 1);
        let mut commits = listing.commits.clone();
        let oldest = commits.first().map(|commit| commit.version);
        commits.retain(|commit| commit.version >= first);
        let newest = commits
            .last()
            .map(|commit| commit.version)
            .or(checkpoint.as_ref().map(|checkpoint| checkpoint.version));
        let Some(newest) = newest else { return Err(Self::no_such_version(source, wanted)) };
        // The log begins after the requested version, or with commits whose checkpoint is newer than it.
        if wanted.is_some()
            && checkpoint.is_none()
            && oldest != Some(0)
            && storage.head(&LogFileName::Commit(0).path())?.is_none()
        {
            return Err(Self::no_such_version(source, wanted));
        }
        // Otherwise a gap before the requested version would be mistaken for the end of the log.
        fill_gaps(storage, first, newest, &mut commits)?;
        if wanted.is_some_and(|wanted| wanted != newest) {
            return Err(Self::no_such_version(source, wanted));
        }
        let compactions = useful_compactions(&commits, &listing.compactions);
        let commit = listing.published_commit(storage, newest)?;
        let (checksum, older_checksum) = (listing.checksum_of(newest), listing.checksum_before(newest));
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

    /// Returns the error for a version that cannot be found, which lists the readable versions.
    fn no_such_version(source: SegmentSource<'_>, wanted: Option<u64>) -> Error {
        let storage = source.storage;
        let error = |message: String| Error::new(ErrorKind::VersionNotFound, message).in_table(storage.url());
        match Listing::from(source, 0, None) {
            Err(error) => error,
            Ok(listing) if !listing.has_files => not_a_table(storage),
            Ok(listing) => {
                let Some(newest) = listing.newest_version() else {
                    return Error::corrupt_log("the log has neither commits nor a complete checkpoint")
                        .in_table(storage.url())
                        .with_hint("restore them; if the table was dropped, delete what is left of its log");
                };
                let Some(wanted) = wanted else {
                    return error("the newest version cannot be read".to_owned()).at_version(newest);
                };
                let oldest = oldest_readable(&listing);
                let range =
                    oldest.map_or_else(|| "none".to_owned(), |oldest| format!("{oldest} to {newest}"));
                if wanted > newest {
                    error(format!("version {wanted} does not exist yet: the readable versions are {range}"))
                        .with_hint("choose one of these versions")
                } else if oldest.is_some_and(|oldest| oldest <= wanted) {
                    // The version is within the log, so its commit is missing between others.
                    missing_commit(storage, wanted)
                } else {
                    error(format!(
                        "version {wanted} can no longer be read: the readable versions are {range}"
                    ))
                    .with_hint("choose one of these versions: earlier parts of the log were cleaned up")
                }
            }
        }
    }
}

/// The commits that still exist, and the oldest version that can be read.
#[derive(Debug)]
pub(super) struct CommitListing {
    /// The commits, oldest first.
    pub(super) commits: Vec<CommitFile>,
    /// The oldest version that can be read, or `None` if there is none.
    pub(super) oldest_readable: Option<u64>,
}

/// Returns all commits up to version `end` that still exist.
pub(super) fn list_commits(source: SegmentSource<'_>, end: Option<u64>) -> Result<CommitListing> {
    let listing = Listing::from(source, 0, end)?;
    if !listing.has_files {
        return Err(not_a_table(source.storage));
    }
    Ok(CommitListing { oldest_readable: oldest_readable(&listing), commits: listing.commits })
}

/// Returns the oldest version that can be read: 0 if its commit exists, otherwise that of the oldest
/// checkpoint.
fn oldest_readable(listing: &Listing) -> Option<u64> {
    match listing.commits.first() {
        Some(commit) if commit.version == 0 => Some(0),
        _ => listing.checkpoints.oldest(),
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

fn not_a_table(storage: &Storage) -> Error {
    let (what, hint) = match storage.surroundings() {
        Surroundings::Unknown => ("it has no log", "check the path, or create the table first".to_owned()),
        Surroundings::Empty => {
            ("the directory is empty", "check the path, or create the table first".to_owned())
        }
        Surroundings::File => ("this is a file", "pass the directory of a table".to_owned()),
        Surroundings::Parquet => (
            "this is a directory of Parquet files without a log",
            "make a table of it by convert_to_delta, or check the path".to_owned(),
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

/// Completes `commits` to those of all versions from `first` to `last`. Commits that the listing did not show
/// are requested by name.
fn fill_gaps(storage: &Storage, first: u64, last: u64, commits: &mut Vec<CommitFile>) -> Result<()> {
    let mut listed = std::mem::take(commits).into_iter().peekable();
    for version in first..=last {
        commits.push(match listed.next_if(|commit| commit.version == version) {
            Some(commit) => commit,
            None => published(storage, version)?.ok_or_else(|| missing_commit(storage, version))?,
        });
    }
    Ok(())
}

/// Requests the published commit of `version` by name.
fn published(storage: &Storage, version: u64) -> Result<Option<CommitFile>> {
    let file = storage.head(&LogFileName::Commit(version).path())?;
    Ok(file.map(|file| CommitFile::of(version, CommitKind::Published, &file)))
}

pub(super) fn missing_commit(storage: &Storage, version: u64) -> Error {
    Error::corrupt_log(format!("the commit of version {version} is missing"))
        .in_table(storage.url())
        .at_version(version)
        .at_path(LogFileName::Commit(version).path())
        .with_hint(
            "restore the file, or read an earlier version; if files of later versions are there by mistake, \
             remove them",
        )
}
