//! Determines where a stream begins.

use super::offset::{Index, StreamOffset};
use super::options::StreamStart;
use super::schema;
use super::seen::ensure_seen;
use super::table_stream::{State, TableStream};
use super::tracking::TrackedSchema;
use super::walk::Position;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::ColumnMappingMode;

/// Returns the position directly before the commit of `version`.
fn tail(version: u64) -> Position {
    Position { version, index: None, is_initial: false }
}

impl TableStream {
    /// Returns the version of the commit with which a new stream begins; `None` if it begins with a snapshot. A
    /// reader that stores this version can open the stream again with [`StreamStart::Pinned`]. The new stream then
    /// misses no commit, even if the reader failed before it stored its first offset.
    ///
    /// # Errors
    /// Returns `VersionNotFound` for a start that is not in the log, `CorruptLog`, and errors from the store.
    pub fn start(&self) -> Result<Option<u64>> {
        self.located(|| {
            let start = self.begin(&mut self.state())?;
            Ok((!start.is_initial).then_some(start.version))
        })
    }

    /// Returns the position at which the stream begins.
    pub(super) fn begin(&self, state: &mut State) -> Result<Position> {
        if let Some(start) = state.start {
            return Ok(start);
        }
        let start = match self.options().start {
            StreamStart::Snapshot => {
                Position { version: self.table().version(), index: None, is_initial: true }
            }
            StreamStart::Latest => {
                self.look(state)?;
                tail(state.commits.newest_version() + 1)
            }
            StreamStart::Version(version) => {
                self.ensure_there(version)?;
                tail(version)
            }
            StreamStart::Pinned(version) => {
                ensure_seen(state, version.saturating_sub(1), self.environment())?;
                tail(version)
            }
            StreamStart::Timestamp(timestamp_ms) => {
                let times = self.table().refresh()?.commit_times(None)?;
                times.check_known(timestamp_ms)?;
                match times.first_at_or_after(timestamp_ms)? {
                    Some(version) => tail(version),
                    None => {
                        return Err(Error::new(
                            ErrorKind::VersionNotFound,
                            format!("the start of the stream is after the newest version: {}", times.span()?),
                        )
                        .with_hint("choose an earlier time, or start with the next commit (latest)"));
                    }
                }
            }
        };
        state.start = Some(start);
        Ok(start)
    }

    fn ensure_there(&self, version: u64) -> Result<()> {
        let times = self.table().refresh()?.commit_times(None)?;
        if times.commits().iter().any(|commit| commit.version == version) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::VersionNotFound,
            format!("the stream cannot start with version {version}: {}", times.described()),
        )
        .at_version(version)
        .with_hint("choose one of these versions, or leave out the start to begin with all rows"))
    }

    /// Returns the position at which the first batch begins, given its `end`, which an earlier process may have
    /// determined.
    pub(super) fn first(&self, end: &StreamOffset) -> Result<Position> {
        let initial = |version: u64| Position { version, index: None, is_initial: true };
        match self.options().start {
            StreamStart::Snapshot if end.is_initial() => Ok(initial(end.version())),
            StreamStart::Snapshot => {
                let known =
                    self.state().start.filter(|start| start.is_initial && start.version < end.version());
                if let Some(known) = known {
                    return Ok(known);
                }
                // The batch ends after its snapshot, and `end` does not show which snapshot that was. The snapshot of
                // the version before `end` contains the rows of the original snapshot and of the commits after it,
                // except rows that were deleted since.
                end.version().checked_sub(1).map(initial).ok_or_else(|| {
                    Error::invalid_argument(format!(
                        "no first batch that begins with a snapshot ends at {end}"
                    ))
                })
            }
            _ => {
                let mut state = self.state();
                let start = match (self.options().start, state.start) {
                    // More commits may have been made since the stream was opened. In order to skip none of them, the
                    // batch begins after the snapshot with which the stream was opened.
                    (StreamStart::Latest, None) => tail(self.table().version() + 1),
                    _ => self.begin(&mut state)?,
                };
                // A first batch contains at least one commit.
                if (start.version, Index::Base) >= (end.version(), end.index()) {
                    return Err(Error::new(
                        ErrorKind::VersionNotFound,
                        format!(
                            "the first batch of the stream was not finished, and its start is no longer known: \
                             it ends at {end}, but the stream would begin with version {}",
                            start.version
                        ),
                    )
                    .with_hint(
                        "begin with a new checkpoint, and with the first version that the batch was to read \
                         (startingVersion) instead of the next commit",
                    ));
                }
                Ok(start)
            }
        }
    }

    /// Checks that the rows of the first version to be read can be read with the schema of the stream. Later calls do
    /// nothing.
    pub(super) fn check_start(&self, state: &mut State, from: Position) -> Result<()> {
        // A stream with schema tracking stops where the schema changes.
        let is_tracked = state.commits.tracked().is_some_and(TrackedSchema::is_active);
        let may_differ = !is_tracked && !from.is_initial && from.version < self.table().version();
        let needs_check = self.options().is_change_feed || may_differ;
        if state.is_start_checked || !needs_check || from.version > state.commits.newest_version() {
            return Ok(());
        }
        let first = match self.table().at_version(from.version) {
            Ok(first) => Some(first),
            // The version may no longer be readable although its commit exists. The snapshot of a first batch is
            // checked when its files are sorted.
            Err(error) if error.kind() == ErrorKind::VersionNotFound => {
                // A column may have been dropped or renamed since. Only the schema of that version would show this.
                if may_differ && self.snapshot().mapped_schema().mode() != ColumnMappingMode::None {
                    return Err(Error::new(
                        ErrorKind::VersionNotFound,
                        "under column mapping, a stream needs the schema of the version from which it goes on, but \
                         that was cleaned up",
                    )
                    .with_source(error)
                    .at_version(from.version)
                    .with_hint("begin with a new checkpoint"));
                }
                None
            }
            Err(error) => return Err(error),
        };
        if let Some(first) = first {
            if may_differ {
                schema::check(self.snapshot(), first.version(), first.protocol(), first.metadata())?;
            }
            if self.options().is_change_feed {
                schema::ensure_change_feed(first.version(), first.metadata())?;
            }
        }
        state.is_start_checked = true;
        Ok(())
    }
}
