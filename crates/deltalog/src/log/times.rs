//! When versions were committed, and by whom.
//!
//! Protocol: "In-Commit Timestamps", "Commit Provenance Information".
//!
//! - A commit's time is its `inCommitTimestamp` if it has one, else the time of its file.
//! - File times are made monotonic as the JVM implementation does: each at least a millisecond after the one before.

use serde_json::{Map, Value};

use super::name::LogFileName;
use super::segment::{CommitFile, list_commits};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{Action, CommitInfo};
use crate::storage::Storage;

/// The commits that are still there, with their times.
#[derive(Debug)]
pub struct CommitTimes {
    storage: Storage,
    /// Oldest first, with monotonic file times.
    commits: Vec<CommitFile>,
}

impl CommitTimes {
    /// Lists the commits up to `end`, or all.
    ///
    /// # Errors
    /// `NotATable`, and the store's own.
    pub fn read(storage: &Storage, end: Option<u64>) -> Result<Self> {
        let mut commits = list_commits(storage, end)?;
        let mut last = i64::MIN;
        for commit in &mut commits {
            commit.modified_ms = commit.modified_ms.max(last.saturating_add(1));
            last = commit.modified_ms;
        }
        Ok(Self { storage: storage.clone(), commits })
    }

    /// The time of `version`, milliseconds since the epoch.
    ///
    /// # Errors
    /// `VersionNotFound` if its commit is not there any more.
    pub fn of(&self, version: u64) -> Result<i64> {
        match self.commits.binary_search_by_key(&version, |commit| commit.version) {
            Ok(index) => self.time(index),
            Err(_) => Err(Error::new(ErrorKind::VersionNotFound, "the commit is not there any more, so its time is not known")
                .at_version(version)
                .in_table(self.storage.url())),
        }
    }

    fn time(&self, index: usize) -> Result<i64> {
        let commit = self.commits[index];
        Ok(read_commit_info(&self.storage, commit)?.and_then(|info| info.in_commit_timestamp).unwrap_or(commit.modified_ms))
    }

    /// The newest version that was committed at or before `timestamp_ms`.
    ///
    /// # Errors
    /// `VersionNotFound` before the oldest commit and after the newest, with both times.
    pub fn version_at(&self, timestamp_ms: i64) -> Result<u64> {
        let (Some(first), Some(last)) = (self.commits.first(), self.commits.len().checked_sub(1)) else {
            return Err(
                Error::new(ErrorKind::VersionNotFound, "no commit is there any more, so no time is known").in_table(self.storage.url())
            );
        };
        let (oldest, newest) = (self.time(0)?, self.time(last)?);
        if timestamp_ms < oldest || timestamp_ms > newest {
            let last = self.commits[last].version;
            return Err(Error::new(
                ErrorKind::VersionNotFound,
                format!(
                    "no version was the newest at {}: versions {} to {last} are of {} to {}",
                    show(timestamp_ms),
                    first.version,
                    show(oldest),
                    show(newest)
                ),
            )
            .in_table(self.storage.url())
            .with_hint("choose a time between these two, or read by version"));
        }
        // The last index whose time is at or before the timestamp.
        let (mut low, mut high) = (0, self.commits.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.time(middle)? <= timestamp_ms { low = middle } else { high = middle }
        }
        Ok(self.commits[low].version)
    }
}

fn show(timestamp_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(timestamp_ms)
        .map_or_else(|| format!("{timestamp_ms} ms"), |time| time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
}

/// A commit as the history shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryEntry {
    /// Its version.
    pub version: u64,
    /// When it was committed, milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// What its writer said, as it stands in the log; empty if the writer said nothing.
    pub commit_info: Map<String, Value>,
}

/// The newest `limit` commits up to `end`, newest first; those whose file is gone are left out.
///
/// # Errors
/// `CorruptLog`, and the store's own.
pub fn history(storage: &Storage, end: u64, limit: Option<usize>) -> Result<Vec<HistoryEntry>> {
    let times = CommitTimes::read(storage, Some(end))?;
    let limit = limit.unwrap_or(usize::MAX);
    let entry = |commit: &CommitFile| {
        let info = read_commit_info(storage, *commit)?;
        let timestamp_ms = info.as_ref().and_then(|info| info.in_commit_timestamp).unwrap_or(commit.modified_ms);
        let commit_info = match info.map(serde_json::to_value).transpose() {
            Ok(Some(Value::Object(fields))) => fields,
            Ok(_) => Map::new(),
            Err(error) => return Err(Error::corrupt_log("commitInfo cannot be shown").with_source(error).at_version(commit.version)),
        };
        Ok(HistoryEntry { version: commit.version, timestamp_ms, commit_info })
    };
    times.commits.iter().rev().take(limit).map(entry).collect()
}

/// The provenance of a commit, without parsing its file actions.
fn read_commit_info(storage: &Storage, commit: CommitFile) -> Result<Option<CommitInfo>> {
    let path = LogFileName::Commit(commit.version).path();
    let located = |error: Error| error.at_path(&path).at_version(commit.version).in_table(storage.url());
    let bytes = storage.read(&path).map_err(located)?;
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        let line = line.trim_ascii();
        // A file action, of which there may be many, starts with its own name.
        if line.is_empty() || line.starts_with(b"{\"add\"") || line.starts_with(b"{\"remove\"") {
            continue;
        }
        let text = std::str::from_utf8(line)
            .map_err(|error| located(Error::corrupt_log("the line is not UTF-8").with_source(error).at_line(number)))?;
        if let Some(Action::CommitInfo(info)) = Action::parse_line(text).map_err(|error| located(error.at_line(number)))? {
            return Ok(Some(info));
        }
    }
    Ok(None)
}
