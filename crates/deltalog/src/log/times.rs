//! The times at which versions were committed, and time travel by timestamp. (PROTOCOL, "In-Commit
//! Timestamps".)
//!
//! - From the version that enables in-commit timestamps on, the time of a commit is the timestamp in its `commitInfo`.
//!   Before that version, or if they are not enabled, it is the modification time of the commit's file.
//! - As in the JVM implementation, file times are made monotonic: each is at least one millisecond after the
//!   previous one.
//! - A time at or after the enablement of in-commit timestamps is looked up only among the versions that have them. An
//!   earlier time is looked up only among the versions that do not have them.
//! - Commits may be missing below a checkpoint. It is unknown which version was the newest at a time between the
//!   commits before and after such a gap.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::commit_files::CommitFile;
use super::extent::{Extent, Versions};
use super::listing::{Listing, SegmentSource, not_a_table};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{Action, CommitInfo, Metadata, Protocol, TableFeature};
use crate::storage::Storage;

/// The table property with the version that enabled in-commit timestamps.
pub(crate) const ENABLEMENT_VERSION: &str = "delta.inCommitTimestampEnablementVersion";
/// The table property with the in-commit timestamp of that version.
pub(crate) const ENABLEMENT_TIMESTAMP: &str = "delta.inCommitTimestampEnablementTimestamp";

/// Which versions of a table have in-commit timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InCommitTimestamps {
    /// No version.
    Never,
    /// All versions.
    Always,
    /// The version that enabled in-commit timestamps, and all later versions.
    Since {
        /// The version that enabled in-commit timestamps.
        version: u64,
        /// The in-commit timestamp of that version, in milliseconds since the epoch.
        timestamp_ms: i64,
    },
}

impl InCommitTimestamps {
    /// Returns which versions have in-commit timestamps, according to the protocol and the metadata.
    ///
    /// # Errors
    /// `CorruptLog` if a table property has an invalid value.
    pub fn of(protocol: &Protocol, metadata: &Metadata) -> Result<Self> {
        let is_feature = |feature| {
            matches!(feature, TableFeature::InCommitTimestamp | TableFeature::InCommitTimestampPreview)
        };
        if !metadata.is_enabled("delta.enableInCommitTimestamps")
            || !protocol.writer_features().into_iter().any(is_feature)
        {
            return Ok(Self::Never);
        }
        let number = |key: &str| -> Result<Option<i64>> {
            let Some(text) = metadata.property(key) else { return Ok(None) };
            text.trim().parse().map(Some).map_err(|error| {
                Error::corrupt_log(format!("the table property {key} is not a number")).with_source(error)
            })
        };
        let version = number(ENABLEMENT_VERSION)?;
        let timestamp = number(ENABLEMENT_TIMESTAMP)?;
        match (version, timestamp) {
            (None, None) => Ok(Self::Always),
            (Some(version), Some(timestamp_ms)) => {
                let version = u64::try_from(version).map_err(|error| {
                    Error::corrupt_log(
                        "the table property delta.inCommitTimestampEnablementVersion is negative",
                    )
                    .with_source(error)
                })?;
                Ok(Self::Since { version, timestamp_ms })
            }
            _ => Err(Error::corrupt_log(
                "one of the table properties delta.inCommitTimestampEnablementVersion and \
                 delta.inCommitTimestampEnablementTimestamp is missing",
            )),
        }
    }

    fn covers(self, version: u64) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Since { version: first, .. } => version >= first,
        }
    }
}

/// The commits that still exist, with their times.
#[derive(Debug)]
pub struct CommitTimes {
    storage: Storage,
    /// The commits, oldest first. File times are adjusted so that they increase.
    commits: Vec<CommitFile>,
    /// The last version of the range in which commits were searched. It may have no commit.
    newest: u64,
    extent: Extent,
    in_commit: InCommitTimestamps,
    /// The in-commit timestamps that have already been read, by version.
    known: BTreeMap<u64, i64>,
}

impl CommitTimes {
    /// Lists the commits up to version `end`, or all commits if `end` is `None`.
    ///
    /// # Errors
    /// `NotATable`; also errors from the store.
    pub fn read(storage: &Storage, end: Option<u64>, in_commit: InCommitTimestamps) -> Result<Self> {
        Self::read_in(SegmentSource::new(storage), end, in_commit, BTreeMap::new())
    }

    /// Does the same as [`CommitTimes::read`], but lists the log in `source`, and does not read the in-commit
    /// timestamps in `known` again.
    pub(crate) fn read_in(
        source: SegmentSource<'_>,
        end: Option<u64>,
        in_commit: InCommitTimestamps,
        known: BTreeMap<u64, i64>,
    ) -> Result<Self> {
        // The listing goes beyond `end`, because newer checkpoints show whether a missing commit was cleaned up.
        let mut listing = Listing::from(source, 0, None)?;
        if !listing.has_files {
            return Err(not_a_table(source.storage));
        }
        listing.complete(source.storage)?;
        let extent = Extent::of(&listing, source.without);
        let mut commits = listing.commits;
        commits.retain(|commit| end.is_none_or(|end| commit.version <= end));
        let times = Self::of_commits(source.storage, commits, extent, in_commit, known);
        Ok(Self { newest: end.unwrap_or(times.newest), ..times })
    }

    /// Returns the times of the commits of a log whose readable versions are given by `extent`.
    pub(super) fn of_commits(
        storage: &Storage,
        mut commits: Vec<CommitFile>,
        extent: Extent,
        in_commit: InCommitTimestamps,
        known: BTreeMap<u64, i64>,
    ) -> Self {
        let mut last = i64::MIN;
        for commit in &mut commits {
            commit.modified_ms = commit.modified_ms.max(last.saturating_add(1));
            last = commit.modified_ms;
        }
        let newest = commits.last().map(|commit| commit.version).max(extent.readable.newest());
        let newest = newest.unwrap_or_default();
        Self { storage: storage.clone(), commits, newest, extent, in_commit, known }
    }

    /// Returns the time of `version` in milliseconds since the epoch.
    ///
    /// # Errors
    /// `VersionNotFound` if its commit no longer exists; `CorruptLog` if it lacks a required in-commit
    /// timestamp.
    pub fn of(&self, version: u64) -> Result<i64> {
        match self.commits.binary_search_by_key(&version, |commit| commit.version) {
            Ok(index) => self.time(self.commits.get(index)),
            Err(_) => Err(Error::new(
                ErrorKind::VersionNotFound,
                "the commit no longer exists, so its time is unknown",
            )
            .at_version(version)
            .in_table(self.storage.url())),
        }
    }

    fn time(&self, commit: Option<&CommitFile>) -> Result<i64> {
        let no_commits = || {
            Error::new(ErrorKind::VersionNotFound, "the log has no commits, so the time is unknown")
                .in_table(self.storage.url())
        };
        let commit = commit.ok_or_else(no_commits)?;
        if !self.in_commit.covers(commit.version) {
            return Ok(commit.modified_ms);
        }
        if let Some(time) = self.known.get(&commit.version) {
            return Ok(*time);
        }
        let info = read_commit_info(&self.storage, *commit)?;
        info.and_then(|info| info.in_commit_timestamp).ok_or_else(|| {
            Error::corrupt_log("the commit lacks 'inCommitTimestamp', which the table's properties require")
                .in_table(self.storage.url())
                .at_version(commit.version)
                .at_path(commit.path())
        })
    }

    /// Returns the time of a commit with the given `info`, for display. If a required in-commit timestamp is
    /// missing, the time of the file is returned instead.
    pub(crate) fn shown(&self, commit: &CommitFile, info: Option<&CommitInfo>) -> i64 {
        let in_commit =
            info.and_then(|info| info.in_commit_timestamp).filter(|_| self.in_commit.covers(commit.version));
        in_commit.unwrap_or(commit.modified_ms)
    }

    /// Returns the time of `version`, for display, if its commit still exists. `in_commit` is the commit's in-commit
    /// timestamp, if the commit has one.
    pub(crate) fn shown_of(&self, version: u64, in_commit: Option<i64>) -> Option<i64> {
        let in_commit = in_commit.filter(|_| self.in_commit.covers(version));
        in_commit.or_else(|| {
            let index = self.commits.binary_search_by_key(&version, |commit| commit.version).ok()?;
            self.commits.get(index).map(|commit| commit.modified_ms)
        })
    }

    /// Returns the newest version that was committed at or before `timestamp_ms`.
    ///
    /// # Errors
    /// `VersionNotFound` for a time before the oldest readable version or after the newest one. The message lists the
    /// readable versions and their times.
    pub fn version_at(&self, timestamp_ms: i64) -> Result<u64> {
        let is_readable = |commit: &&CommitFile| self.extent.readable.contains(commit.version);
        let from = self.commits.iter().position(|commit| is_readable(&commit));
        let commits = from.and_then(|from| self.commits.get(from..)).unwrap_or_default();
        let (first, last) = (self.time(commits.first())?, self.time(commits.iter().rfind(is_readable))?);
        if timestamp_ms < first || timestamp_ms > last {
            return Err(self.out_of_range(timestamp_ms, first, last));
        }
        // Either all candidates have in-commit timestamps, or none of them does.
        let split = commits.partition_point(|commit| !self.in_commit.covers(commit.version));
        let (by_file, in_commit) = commits.split_at(split);
        let candidates = match self.in_commit {
            InCommitTimestamps::Since { timestamp_ms: enabled, .. }
                if timestamp_ms < enabled && !by_file.is_empty() =>
            {
                by_file
            }
            InCommitTimestamps::Never => by_file,
            _ => in_commit,
        };
        // Find the last index whose time is at or before the timestamp.
        let (mut low, mut high) = (0, candidates.len());
        while high.saturating_sub(low) > 1 {
            let middle = low + (high - low) / 2;
            if self.time(candidates.get(middle))? <= timestamp_ms { low = middle } else { high = middle }
        }
        let Some(found) = candidates.get(low) else {
            return Err(self.out_of_range(timestamp_ms, first, last));
        };
        let next = commits.get(commits.partition_point(|commit| commit.version <= found.version));
        let is_before_gap = next.is_some_and(|next| next.version > found.version + 1);
        if !is_readable(&found) || (is_before_gap && self.time(Some(found))? < timestamp_ms) {
            return Err(self.extent.unknown_at(&self.storage, &show(timestamp_ms)));
        }
        Ok(found.version)
    }

    fn out_of_range(&self, timestamp_ms: i64, first: i64, last: i64) -> Error {
        let versions = self.commits.iter().map(|commit| commit.version);
        let readable: Versions = versions.filter(|version| self.extent.readable.contains(*version)).collect();
        let (oldest, newest) = (readable.oldest().unwrap_or(0), readable.newest().unwrap_or(0));
        let range = format!("the readable {}", committed(&readable, first, last));
        let (message, hint) = match (timestamp_ms < first, oldest) {
            (true, 0) => (
                "no version was committed at or before",
                format!("version 0 was committed at {}: choose that time or a later one", show(first)),
            ),
            (true, _) => (
                "no version that can still be read was committed at or before",
                format!("the log before version {oldest} was cleaned up: choose a later time"),
            ),
            (false, _) => (
                "no version was committed at or after",
                format!(
                    "version {newest} is the newest: choose its time or an earlier one, or open the newest version"
                ),
            ),
        };
        Error::new(ErrorKind::VersionNotFound, format!("{message} {}: {range}", show(timestamp_ms)))
            .in_table(self.storage.url())
            .with_hint(hint)
    }

    /// Checks that the newest version before `timestamp_ms` is known, that is, that the time does not lie in a gap of
    /// missing commits.
    ///
    /// # Errors
    /// `VersionNotFound` if the time lies in a gap; `CorruptLog`; also errors from the store.
    pub(crate) fn check_known(&self, timestamp_ms: i64) -> Result<()> {
        let after = self.count_while(|time| time <= timestamp_ms)?;
        let before = after.checked_sub(1).and_then(|index| self.commits.get(index));
        match (before, self.commits.get(after)) {
            (Some(before), Some(next))
                if next.version > before.version + 1 && self.time(Some(before))? < timestamp_ms =>
            {
                Err(self.extent.unknown_at(&self.storage, &show(timestamp_ms)))
            }
            _ => Ok(()),
        }
    }

    /// Returns the commit of `version`.
    ///
    /// # Errors
    /// `VersionNotFound` if it was cleaned up or does not exist yet, `CorruptLog` if it is missing after the newest
    /// checkpoint.
    pub(crate) fn commit(&self, version: u64) -> Result<CommitFile> {
        if let Ok(index) = self.commits.binary_search_by_key(&version, |commit| commit.version)
            && let Some(commit) = self.commits.get(index)
        {
            return Ok(*commit);
        }
        let absent = |message| Error::new(ErrorKind::VersionNotFound, message).in_table(self.storage.url());
        let Some(last) = self.commits.last() else { return Err(absent("the log has no commits".to_owned())) };
        Err(if version > last.version {
            absent(format!("version {version} does not exist yet: {}", self.described()))
                .with_hint("choose one of these versions")
        } else {
            self.extent.missing(&self.storage, version, &self.described())
        })
    }

    /// Returns the commits of `versions`, oldest first.
    ///
    /// # Errors
    /// Returns the same errors as [`CommitTimes::commit`], for the first commit that is missing.
    pub(crate) fn commits_of(&self, versions: RangeInclusive<u64>) -> Result<Vec<CommitFile>> {
        versions.map(|version| self.commit(version)).collect()
    }

    /// Returns the versions of the commits.
    fn versions(&self) -> Versions {
        self.commits.iter().map(|commit| commit.version).collect()
    }

    /// Returns the commits, oldest first. File times are adjusted so that they increase.
    pub fn commits(&self) -> &[CommitFile] {
        &self.commits
    }

    /// Returns the commits that lead up to the newest version without a gap. Commits below a gap, which a clean-up or a
    /// slow writer has left, are not included.
    pub(crate) fn commits_of_log(&self) -> &[CommitFile] {
        let mut next = match self.commits.last() {
            // The newest version may have a checkpoint but no commit.
            Some(last) if last.version + 1 >= self.newest => last.version + 1,
            _ => return &[],
        };
        let mut first = self.commits.len();
        while let Some(before) = first.checked_sub(1)
            && self.commits.get(before).is_some_and(|commit| commit.version + 1 == next)
        {
            (first, next) = (before, next - 1);
        }
        self.commits.get(first..).unwrap_or_default()
    }

    /// Returns the first version committed at or after `timestamp_ms`, if there is one.
    ///
    /// # Errors
    /// `CorruptLog`; also errors from the store.
    pub fn first_at_or_after(&self, timestamp_ms: i64) -> Result<Option<u64>> {
        let index = self.count_while(|time| time < timestamp_ms)?;
        Ok(self.commits.get(index).map(|commit| commit.version))
    }

    /// Returns the last version committed at or before `timestamp_ms`, if there is one.
    ///
    /// # Errors
    /// `CorruptLog`; also errors from the store.
    pub fn last_at_or_before(&self, timestamp_ms: i64) -> Result<Option<u64>> {
        let index = self.count_while(|time| time <= timestamp_ms)?.checked_sub(1);
        Ok(index.and_then(|index| self.commits.get(index)).map(|commit| commit.version))
    }

    /// Describes the versions of the commits, for error messages.
    pub(crate) fn described(&self) -> String {
        let versions = self.versions();
        let commits = if versions.is_one() { "commit of version" } else { "commits of versions" };
        format!("the log has the {commits} {versions}")
    }

    /// Describes the versions of the commits and their times, for error messages.
    ///
    /// # Errors
    /// `CorruptLog`; also errors from the store.
    pub(crate) fn span(&self) -> Result<String> {
        match (self.commits.first(), self.commits.last()) {
            (Some(first), Some(last)) => {
                let (oldest, newest) = (self.time(Some(first))?, self.time(Some(last))?);
                Ok(committed(&self.versions(), oldest, newest))
            }
            _ => Ok("the log has no commits".to_owned()),
        }
    }

    /// Returns how many of the oldest commits satisfy `holds`. If it is false for the time of one commit, it must be
    /// false for all later ones.
    fn count_while(&self, holds: impl Fn(i64) -> bool) -> Result<usize> {
        let (mut low, mut high) = (0, self.commits.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self.time(self.commits.get(middle))?) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }
}

/// Describes when versions were committed, from the `first` to the `last`.
fn committed(versions: &Versions, first: i64, last: i64) -> String {
    match versions.is_one() {
        true => format!("version {versions} was committed at {}", show(first)),
        false => format!("versions {versions} were committed from {} to {}", show(first), show(last)),
    }
}

fn show(timestamp_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(timestamp_ms).map_or_else(
        || format!("{timestamp_ms} ms"),
        |time| time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
    )
}

/// Reads the `commitInfo` of a commit, without parsing its file actions.
pub(crate) fn read_commit_info(storage: &Storage, commit: CommitFile) -> Result<Option<CommitInfo>> {
    let path = commit.path();
    let located = |error: Error| error.at_path(&path).at_version(commit.version).in_table(storage.url());
    let bytes = storage.read_listed(&path, commit.listed).map_err(located)?;
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        let line = line.trim_ascii();
        // There may be many file actions. They are recognized by the beginning of their lines and skipped.
        if line.is_empty() || line.starts_with(b"{\"add\"") || line.starts_with(b"{\"remove\"") {
            continue;
        }
        if let Some(Action::CommitInfo(info)) =
            Action::parse_line(line).map_err(|error| located(error.at_line(number)))?
        {
            return Ok(Some(info));
        }
    }
    Ok(None)
}
