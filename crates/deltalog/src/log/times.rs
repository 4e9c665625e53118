//! When versions were committed, and time travel by that.
//!
//! Protocol: "In-Commit Timestamps".
//!
//! - Where in-commit timestamps are enabled, a commit's time is the one in its `commitInfo`; its file's time
//!   before that version, and where they are not enabled at all.
//! - File times are made monotonic as the JVM implementation does: each at least a millisecond after the one
//!   before.
//! - A time from the enabling on is looked for among the versions with in-commit timestamps only, an earlier
//!   one among the others only.

use std::collections::BTreeMap;

use super::commit_files::CommitFile;
use super::segment::{CommitListing, SegmentSource, list_commits, missing_commit};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{Action, CommitInfo, Metadata, Protocol, TableFeature};
use crate::storage::Storage;

/// From which version on a table's commits carry their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InCommitTimestamps {
    /// From none.
    Never,
    /// From the first.
    Always,
    /// From the version on that enabled them.
    Since {
        /// That version.
        version: u64,
        /// Its time, in milliseconds since the epoch.
        timestamp_ms: i64,
    },
}

impl InCommitTimestamps {
    /// What a version's protocol and metadata say.
    ///
    /// # Errors
    /// `CorruptLog` for a version or time of the enabling that is no number.
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
                Error::corrupt_log(format!("the table property {key} is no number")).with_source(error)
            })
        };
        let version = number("delta.inCommitTimestampEnablementVersion")?;
        let timestamp = number("delta.inCommitTimestampEnablementTimestamp")?;
        match (version, timestamp) {
            (None, None) => Ok(Self::Always),
            (Some(version), Some(timestamp_ms)) => {
                let version = u64::try_from(version).map_err(|error| {
                    Error::corrupt_log("delta.inCommitTimestampEnablementVersion is below 0")
                        .with_source(error)
                })?;
                Ok(Self::Since { version, timestamp_ms })
            }
            _ => Err(Error::corrupt_log(
                "of the two table properties that say when in-commit timestamps were enabled one is missing",
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

/// The commits that are still there, with their times.
#[derive(Debug)]
pub struct CommitTimes {
    storage: Storage,
    /// Oldest first, with monotonic file times.
    commits: Vec<CommitFile>,
    oldest_readable: Option<u64>,
    in_commit: InCommitTimestamps,
    /// In-commit timestamps that were read already.
    known: BTreeMap<u64, i64>,
}

impl CommitTimes {
    /// Lists the commits up to `end`, or all.
    ///
    /// # Errors
    /// `NotATable`, and the store's own.
    pub fn read(storage: &Storage, end: Option<u64>, in_commit: InCommitTimestamps) -> Result<Self> {
        Self::read_in(SegmentSource::new(storage), end, in_commit, BTreeMap::new())
    }

    /// As [`CommitTimes::read`], with what `source` says and the in-commit timestamps `known`.
    pub(crate) fn read_in(
        source: SegmentSource<'_>,
        end: Option<u64>,
        in_commit: InCommitTimestamps,
        known: BTreeMap<u64, i64>,
    ) -> Result<Self> {
        let CommitListing { mut commits, oldest_readable } = list_commits(source, end)?;
        let mut last = i64::MIN;
        for commit in &mut commits {
            commit.modified_ms = commit.modified_ms.max(last.saturating_add(1));
            last = commit.modified_ms;
        }
        Ok(Self { storage: source.storage.clone(), commits, oldest_readable, in_commit, known })
    }

    /// The time of `version`, milliseconds since the epoch.
    ///
    /// # Errors
    /// `VersionNotFound` if its commit is not there any more; `CorruptLog` if it has no in-commit timestamp
    /// and must have one.
    pub fn of(&self, version: u64) -> Result<i64> {
        match self.commits.binary_search_by_key(&version, |commit| commit.version) {
            Ok(index) => self.time(self.commits.get(index)),
            Err(_) => Err(Error::new(
                ErrorKind::VersionNotFound,
                "the commit is not there any more, so its time is not known",
            )
            .at_version(version)
            .in_table(self.storage.url())),
        }
    }

    fn time(&self, commit: Option<&CommitFile>) -> Result<i64> {
        let nothing = || {
            Error::new(ErrorKind::VersionNotFound, "no commit is there any more, so no time is known")
                .in_table(self.storage.url())
        };
        let commit = commit.ok_or_else(nothing)?;
        if !self.in_commit.covers(commit.version) {
            return Ok(commit.modified_ms);
        }
        if let Some(time) = self.known.get(&commit.version) {
            return Ok(*time);
        }
        let info = read_commit_info(&self.storage, *commit)?;
        info.and_then(|info| info.in_commit_timestamp).ok_or_else(|| {
            Error::corrupt_log("the commit lacks 'inCommitTimestamp', which the table's properties ask for")
                .in_table(self.storage.url())
                .at_version(commit.version)
                .at_path(commit.path())
        })
    }

    /// The time of a commit whose `info` is at hand, for showing: where an in-commit timestamp is missing,
    /// the file's time has to do.
    pub(crate) fn shown(&self, commit: &CommitFile, info: Option<&CommitInfo>) -> i64 {
        let in_commit =
            info.and_then(|info| info.in_commit_timestamp).filter(|_| self.in_commit.covers(commit.version));
        in_commit.unwrap_or(commit.modified_ms)
    }

    /// The newest version that was committed at or before `timestamp_ms`.
    ///
    /// # Errors
    /// `VersionNotFound` before the oldest readable version and after the newest, with the range of both and
    /// why it ends there.
    pub fn version_at(&self, timestamp_ms: i64) -> Result<u64> {
        let oldest = self.oldest_readable.unwrap_or(u64::MAX);
        let readable = self
            .commits
            .iter()
            .position(|commit| commit.version >= oldest)
            .and_then(|index| self.commits.get(index..));
        let readable = readable.unwrap_or_default();
        let (first, last) = (self.time(readable.first())?, self.time(readable.last())?);
        if timestamp_ms < first || timestamp_ms > last {
            return Err(self.out_of_range(timestamp_ms, readable, first, last));
        }
        // Of those with in-commit timestamps or of those without, never of both.
        let split = readable.partition_point(|commit| !self.in_commit.covers(commit.version));
        let (by_file, in_commit) = readable.split_at(split);
        let candidates = match self.in_commit {
            InCommitTimestamps::Since { timestamp_ms: enabled, .. }
                if timestamp_ms < enabled && !by_file.is_empty() =>
            {
                by_file
            }
            InCommitTimestamps::Never => by_file,
            _ => in_commit,
        };
        // The last index whose time is at or before the timestamp.
        let (mut low, mut high) = (0, candidates.len());
        while high.saturating_sub(low) > 1 {
            let middle = low + (high - low) / 2;
            if self.time(candidates.get(middle))? <= timestamp_ms { low = middle } else { high = middle }
        }
        let found = candidates.get(low).map(|commit| commit.version);
        found.ok_or_else(|| self.out_of_range(timestamp_ms, readable, first, last))
    }

    fn out_of_range(&self, timestamp_ms: i64, readable: &[CommitFile], first: i64, last: i64) -> Error {
        let version = |commit: Option<&CommitFile>| commit.map_or(0, |commit| commit.version);
        let (oldest, newest) = (version(readable.first()), version(readable.last()));
        let range =
            format!("the readable versions {oldest} to {newest} are of {} to {}", show(first), show(last));
        let (message, why) = match (timestamp_ms < first, oldest) {
            (true, 0) => (
                "no version is as old as",
                format!("version 0 is of {}: choose this time or a later one", show(first)),
            ),
            (true, _) => (
                "no version that can still be read is as old as",
                format!("the log before version {oldest} was cleaned up: choose a later time"),
            ),
            (false, _) => (
                "no version is as new as",
                format!(
                    "version {newest} is the newest: choose its time or an earlier one, or open the newest version"
                ),
            ),
        };
        Error::new(ErrorKind::VersionNotFound, format!("{message} {}: {range}", show(timestamp_ms)))
            .in_table(self.storage.url())
            .with_hint(why)
    }

    /// The commit of `version`.
    ///
    /// # Errors
    /// `VersionNotFound` if it was cleaned up or is not there yet, `CorruptLog` if it is missing among
    /// others.
    pub(crate) fn commit(&self, version: u64) -> Result<CommitFile> {
        if let Ok(index) = self.commits.binary_search_by_key(&version, |commit| commit.version)
            && let Some(commit) = self.commits.get(index)
        {
            return Ok(*commit);
        }
        let (Some(first), Some(last)) = (self.commits.first(), self.commits.last()) else {
            return Err(Error::new(ErrorKind::VersionNotFound, "no commit is there any more")
                .in_table(self.storage.url()));
        };
        let range = format!("the commits of versions {} to {} are", first.version, last.version);
        if version < first.version {
            return Err(Error::new(
                ErrorKind::VersionNotFound,
                format!("the commit of version {version} is not there any more: {range}"),
            )
            .in_table(self.storage.url())
            .with_hint("the log before them was cleaned up"));
        }
        if version > last.version {
            return Err(Error::new(
                ErrorKind::VersionNotFound,
                format!("version {version} does not exist yet: {range}"),
            )
            .in_table(self.storage.url()));
        }
        Err(missing_commit(&self.storage, version))
    }

    /// The commits, oldest first; their file times are monotonic.
    pub fn commits(&self) -> &[CommitFile] {
        &self.commits
    }

    /// The first version committed at or after `timestamp_ms`, if there is one.
    ///
    /// # Errors
    /// `CorruptLog`, and the store's own.
    pub fn first_at_or_after(&self, timestamp_ms: i64) -> Result<Option<u64>> {
        let index = self.count_while(|time| time < timestamp_ms)?;
        Ok(self.commits.get(index).map(|commit| commit.version))
    }

    /// The last version committed at or before `timestamp_ms`, if there is one.
    ///
    /// # Errors
    /// `CorruptLog`, and the store's own.
    pub fn last_at_or_before(&self, timestamp_ms: i64) -> Result<Option<u64>> {
        let index = self.count_while(|time| time <= timestamp_ms)?.checked_sub(1);
        Ok(index.and_then(|index| self.commits.get(index)).map(|commit| commit.version))
    }

    /// Which versions there are, and of what times, for messages.
    ///
    /// # Errors
    /// `CorruptLog`, and the store's own.
    pub(crate) fn span(&self) -> Result<String> {
        match (self.commits.first(), self.commits.last()) {
            (Some(first), Some(last)) => {
                let (oldest, newest) = (self.time(Some(first))?, self.time(Some(last))?);
                Ok(format!(
                    "the versions {} to {} are of {} to {}",
                    first.version,
                    last.version,
                    show(oldest),
                    show(newest)
                ))
            }
            _ => Ok("there are none".to_owned()),
        }
    }

    /// How many of the oldest commits have a time for which `holds`, which once false stays so.
    fn count_while(&self, holds: impl Fn(i64) -> bool) -> Result<usize> {
        let (mut low, mut high) = (0, self.commits.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self.time(self.commits.get(middle))?) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }
}

fn show(timestamp_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(timestamp_ms).map_or_else(
        || format!("{timestamp_ms} ms"),
        |time| time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
    )
}

/// The provenance of a commit, without parsing its file actions.
pub(crate) fn read_commit_info(storage: &Storage, commit: CommitFile) -> Result<Option<CommitInfo>> {
    let path = commit.path();
    let located = |error: Error| error.at_path(&path).at_version(commit.version).in_table(storage.url());
    let bytes = storage.read(&path).map_err(located)?;
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        let line = line.trim_ascii();
        // A file action, of which there may be many, starts with its own name.
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
