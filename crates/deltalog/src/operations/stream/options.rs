//! The options of a stream.

use std::time::Duration;

use regex::Regex;

use super::tracking::SchemaTracking;
use crate::error::{Error, Result};

/// The default of [`StreamOptions::pause`].
const PAUSE: Duration = Duration::from_secs(1);

/// Where a new stream, which does not have an offset yet, begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StreamStart {
    /// With all rows of the snapshot, followed by the commits after it.
    #[default]
    Snapshot,
    /// With the commit of this version.
    Version(u64),
    /// With the first commit that was made at or after this time, in milliseconds since the epoch.
    Timestamp(i64),
    /// With the next commit that is made.
    Latest,
    /// With the commit of this version, which [`TableStream::start`] has returned for an earlier stream. That commit
    /// may not exist yet.
    ///
    /// [`TableStream::start`]: super::TableStream::start
    Pinned(u64),
}

/// How a stream treats a commit that removes rows, that is, a commit that has `remove` actions with `dataChange`.
///
/// | commit | `Refuse` | `IgnoreDeletes` | `Ignore` | `Skip` |
/// | --- | --- | --- | --- | --- |
/// | only removes files | error | no rows | no rows | no rows |
/// | removes and adds files | error | error | all rows of the added files | no rows |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ChangeHandling {
    /// Commits that remove files are errors.
    #[default]
    Refuse,
    /// Commits that only remove files are skipped, as by the JVM connector's option `ignoreDeletes`.
    IgnoreDeletes,
    /// All rows of rewritten files are read again, as by the JVM connector's options `ignoreChanges` and
    /// `ignoreFileDeletion`.
    Ignore,
    /// All commits that remove files are skipped, as by the JVM connector's option `skipChangeCommits`.
    Skip,
}

/// What a stream reads, and how.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    pub(super) start: StreamStart,
    pub(super) changes: ChangeHandling,
    pub(super) is_change_feed: bool,
    pub(super) excluded: Option<Regex>,
    pub(super) tolerates_loss: bool,
    pub(super) pause: Duration,
    pub(super) tracking: Option<SchemaTracking>,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            start: StreamStart::default(),
            changes: ChangeHandling::default(),
            is_change_feed: false,
            excluded: None,
            tolerates_loss: false,
            pause: PAUSE,
            tracking: None,
        }
    }
}

impl StreamOptions {
    /// Creates the options of a stream that reads the snapshot, and then all commits after it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets where the stream begins if it has no offset yet.
    #[must_use]
    pub fn start(mut self, start: StreamStart) -> Self {
        self.start = start;
        self
    }

    /// Sets how commits that remove rows are treated.
    #[must_use]
    pub fn changes(mut self, changes: ChangeHandling) -> Self {
        self.changes = changes;
        self
    }

    /// Reads the change data feed instead of the rows: the rows that each commit has inserted, updated and deleted,
    /// with the columns `_change_type`, `_commit_version` and `_commit_timestamp`. The rows of the first snapshot are
    /// returned as inserts of its version. [`StreamOptions::changes`] then has no effect.
    #[must_use]
    pub fn change_feed(mut self, is_change_feed: bool) -> Self {
        self.is_change_feed = is_change_feed;
        self
    }

    /// Excludes files if the regular expression `pattern` matches any part of their path in the log. Excluded files
    /// still count for limits and offsets.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if `pattern` is not a valid regular expression.
    pub fn exclude(mut self, pattern: &str) -> Result<Self> {
        self.excluded = Some(Regex::new(pattern).map_err(|error| {
            Error::invalid_argument(format!(
                "the pattern that excludes files is not a valid regular expression: {pattern}"
            ))
            .with_source(error)
            .with_hint("look-around and references to groups are not supported; escape special characters")
        })?);
        Ok(self)
    }

    /// Skips commits that were deleted by a cleanup before the stream has read them, instead of failing. Their rows
    /// are lost.
    #[must_use]
    pub fn tolerate_loss(mut self, tolerates_loss: bool) -> Self {
        self.tolerates_loss = tolerates_loss;
        self
    }

    /// Sets the time after which the stream looks for new versions again if there were none. The default is one
    /// second.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Records the schemas with which the stream reads, so that it can continue after any schema change. The stream
    /// ends with an error before the change, and a newly opened stream continues with the new schema.
    #[must_use]
    pub fn track_schema(mut self, tracking: SchemaTracking) -> Self {
        self.tracking = Some(tracking);
        self
    }
}
