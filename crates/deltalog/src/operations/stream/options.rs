//! The options of a stream.

use std::time::Duration;

use regex::Regex;

use super::tracking::SchemaTracking;
use crate::error::{Error, Result};

/// How long a stream without new versions waits before it looks at the store again.
const PAUSE: Duration = Duration::from_secs(1);

/// Where a stream begins if it has no offset yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StreamStart {
    /// With all rows of the snapshot, and then the commits after it.
    #[default]
    Snapshot,
    /// With the commit of this version.
    Version(u64),
    /// With the first commit at or after this time, in milliseconds since the epoch.
    Timestamp(i64),
    /// With the next commit.
    Latest,
    /// With the commit of this version, which need not be there yet: where [`TableStream::start`] has found that the
    /// stream begins.
    ///
    /// [`TableStream::start`]: super::TableStream::start
    Pinned(u64),
}

/// How a stream treats a commit that removes rows, which has `remove` actions with `dataChange`.
///
/// | commit | `Refuse` | `IgnoreDeletes` | `Ignore` | `Skip` |
/// | --- | --- | --- | --- | --- |
/// | only removes files | error | no rows | no rows | no rows |
/// | removes and adds files | error | error | all rows of the added files | no rows |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ChangeHandling {
    /// Both are errors.
    #[default]
    Refuse,
    /// `ignoreDeletes`.
    IgnoreDeletes,
    /// `ignoreChanges`, and the older `ignoreFileDeletion`: rows of a file that was rewritten are read again.
    Ignore,
    /// `skipChangeCommits`.
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
    /// Reads the snapshot, and then all commits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets where a stream begins if it has no offset yet.
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

    /// Reads the change data feed instead of the rows: what each commit has inserted, updated and deleted, with the
    /// columns `_change_type`, `_commit_version` and `_commit_timestamp`. The rows of the first snapshot are inserts of
    /// its version. [`StreamOptions::changes`] then has no effect.
    #[must_use]
    pub fn change_feed(mut self, is_change_feed: bool) -> Self {
        self.is_change_feed = is_change_feed;
        self
    }

    /// Leaves out files whose path in the log contains a match of the regular expression `pattern`. They still count
    /// for limits and offsets.
    ///
    /// # Errors
    /// `InvalidArgument` for a text that is no regular expression.
    pub fn exclude(mut self, pattern: &str) -> Result<Self> {
        self.excluded = Some(Regex::new(pattern).map_err(|error| {
            Error::invalid_argument(format!("this is no regular expression for paths: {pattern}"))
                .with_source(error)
                .with_hint(
                    "look-around and references to groups are not supported; escape special characters",
                )
        })?);
        Ok(self)
    }

    /// Skips commits that were cleaned up before the stream has read them, instead of failing. Their rows are lost.
    #[must_use]
    pub fn tolerate_loss(mut self, tolerates_loss: bool) -> Self {
        self.tolerates_loss = tolerates_loss;
        self
    }

    /// Sets how long the stream does not ask the store again after it has found nothing new. The default is one second.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Records the schemas with which the stream reads, so that it can continue after any change of the schema: the
    /// stream ends before the change and, opened again, continues with the new schema.
    #[must_use]
    pub fn track_schema(mut self, tracking: SchemaTracking) -> Self {
        self.tracking = Some(tracking);
        self
    }
}
