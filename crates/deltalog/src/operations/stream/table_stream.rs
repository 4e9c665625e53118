//! A stream of one table.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::admission::StreamLimits;
use super::batch::StreamBatch;
use super::commits::Commits;
use super::offset::{Index, StreamOffset};
use super::options::StreamOptions;
use super::sorted::SortedFiles;
use super::tracking::TrackedSchema;
use super::walk::{Position, Way};
use crate::error::{Error, Result};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;

/// A stream of the rows of a table.
///
/// ```
/// use deltalog::{Environment, Snapshot, StreamLimits, StreamOptions, TableStream};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// let snapshot = Snapshot::open(&storage, None)?;
/// let stream = TableStream::open(&snapshot, StreamOptions::new(), &Environment::system())?;
///
/// // Keep the offset where the rows go, and begin with it the next time.
/// let (mut done, mut rows) = (None, 0);
/// while let Some(next) = stream.latest(done.as_ref(), StreamLimits::new(Some(1), None))? {
///     if done.as_ref() == Some(&next) {
///         break;
///     }
///     for batch in stream.batch(done.as_ref(), &next)?.read(None)? {
///         rows += batch?.num_rows();
///     }
///     stream.release(&next)?;
///     done = Some(next);
/// }
/// assert_eq!(rows, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TableStream(Arc<Inner>);

struct Inner {
    /// The table with the schema that all rows of the stream have. With schema tracking, this may be an older schema.
    snapshot: Snapshot,
    /// The table with its own schema, as it was when the stream was opened.
    table: Snapshot,
    options: StreamOptions,
    environment: Environment,
    state: Mutex<State>,
    is_closed: AtomicBool,
}

pub(super) struct State {
    pub(super) commits: Commits,
    /// The snapshot with which the stream begins: its version and its files.
    pub(super) initial: Option<(u64, SortedFiles)>,
    /// The position at which the stream begins, once it is known.
    pub(super) start: Option<Position>,
    pub(super) bound: Bound,
    /// Whether the schema of the first version of the first batch has been checked.
    pub(super) is_start_checked: bool,
}

/// The version before which a stream ends.
pub(super) enum Bound {
    None,
    /// The version after the newest version, which the next call of [`TableStream::latest`] determines.
    ToBeFound,
    At(u64),
}

impl TableStream {
    /// Opens the stream. It begins with the rows of `snapshot`, unless the options say otherwise. Its rows have the
    /// schema of `snapshot` or, with schema tracking, the schema that was recorded last. Nothing is read yet.
    ///
    /// # Errors
    /// Returns errors only for a stream with schema tracking: `SchemaMismatch` if the schema change that was recorded
    /// last is not allowed, `InvalidArgument` if the stream is also to tolerate loss or if the schema log belongs to
    /// another source, `Unsupported`, `CorruptLog`, and errors from the store.
    pub fn open(snapshot: &Snapshot, options: StreamOptions, environment: &Environment) -> Result<Self> {
        let located = |error: Error| error.in_table(snapshot.storage().url());
        let (tracked, read) = match &options.tracking {
            Some(_) if options.tolerates_loss => {
                return Err(located(
                    Error::invalid_argument(
                        "a stream with schema tracking cannot skip commits that were cleaned up: one of them may \
                         have changed the schema",
                    )
                    .with_hint("leave out failOnDataLoss=false (tolerate_loss), or the location for schemas"),
                ));
            }
            Some(tracking) => {
                let (tracked, read) = TrackedSchema::open(tracking, snapshot).map_err(located)?;
                (Some(tracked), read)
            }
            None => (None, snapshot.clone()),
        };
        let state = State {
            commits: Commits::new(snapshot, &read, tracked),
            initial: None,
            start: None,
            bound: Bound::None,
            is_start_checked: false,
        };
        Ok(Self(Arc::new(Inner {
            snapshot: read,
            table: snapshot.clone(),
            options,
            environment: environment.clone(),
            state: Mutex::new(state),
            is_closed: AtomicBool::new(false),
        })))
    }

    /// Returns the snapshot that determines the schema of the rows.
    pub fn snapshot(&self) -> &Snapshot {
        &self.0.snapshot
    }

    pub(super) fn table(&self) -> &Snapshot {
        &self.0.table
    }

    pub(super) fn options(&self) -> &StreamOptions {
        &self.0.options
    }

    /// Ends the stream after the version that is the newest one when [`TableStream::latest`] is called next.
    pub fn end_at_newest(&self) {
        self.state().bound = Bound::ToBeFound;
    }

    /// Returns the offset at the end of the next batch. The batch begins at `start`, or at the beginning of the
    /// stream if `start` is `None`. Returns `start` itself if there is nothing new, and `None` if a new stream has no
    /// rows yet.
    ///
    /// If `start` is after all commits seen so far, looks for new versions, at most once per second (see
    /// [`StreamOptions::pause`]). Reads the commits that the batch needs.
    ///
    /// # Errors
    /// Returns `VersionNotFound` for a start that is not in the log, and for a commit that was deleted by a cleanup.
    /// Returns `TableReplaced` for an offset of another table, `Unsupported` for a commit that removes rows (see
    /// [`ChangeHandling`](super::ChangeHandling)), and `SchemaMismatch` for a commit whose rows cannot be read with
    /// the schema of the stream. Also returns `CorruptLog`, and errors from the store.
    pub fn latest(&self, start: Option<&StreamOffset>, limits: StreamLimits) -> Result<Option<StreamOffset>> {
        self.located(|| {
            let mut state = self.state();
            let from = match start {
                Some(offset) => {
                    let from = self.position(offset)?;
                    self.ensure_reached(&mut state, from)?;
                    from
                }
                None => self.begin(&mut state)?,
            };
            if matches!(state.bound, Bound::ToBeFound) {
                self.look(&mut state)?;
                state.bound = Bound::At(state.commits.newest_version() + 1);
            }
            self.begin_tracking(&mut state, from, start.is_none())?;
            let blocked = self.blocked_at(&state, from)?;
            if let Some((version, index)) = blocked {
                return Ok(Some(StreamOffset::new(self.table_id(), version, index, false)));
            }
            self.check_start(&mut state, from)?;
            let until = match state.bound {
                Bound::At(version) => Some((version, Index::Base)),
                Bound::None | Bound::ToBeFound => None,
            };
            // The first batch of a change feed ends with the snapshot. If it also contained commits, its end would
            // not show from which snapshot its inserts came, so the batch could not be read again.
            let end_of_snapshot = (from.version + 1, Index::Base);
            let until = match start.is_none() && from.is_initial && self.0.options.is_change_feed {
                true => Some(until.map_or(end_of_snapshot, |until: (u64, Index)| until.min(end_of_snapshot))),
                false => until,
            };
            let reached =
                self.walk(&mut state, from, until, Way::Ahead, &mut limits.admission(), &mut |_| ())?;
            Ok(match reached {
                None => start.cloned(),
                Some((version, index)) => {
                    let is_initial = from.is_initial && version == from.version;
                    Some(StreamOffset::new(self.table_id(), version, index, is_initial))
                }
            })
        })
    }

    /// Returns the batch from `start`, or from the beginning of the stream, to `end`. Creating a batch is cheap: its
    /// files are looked up when it is read.
    ///
    /// # Errors
    /// Returns `TableReplaced` for an offset of another table, and `InvalidArgument` for offsets in the wrong order. If
    /// `start` is `None`, also returns `VersionNotFound` if the stream would no longer begin before `end`, and the
    /// errors of [`TableStream::start`].
    pub fn batch(&self, start: Option<&StreamOffset>, end: &StreamOffset) -> Result<StreamBatch> {
        self.located(|| {
            let until = self.position(end)?;
            let from = match start {
                Some(offset) => self.position(offset)?,
                None => self.first(end)?,
            };
            let place = |position: &Position| (position.version, position.index);
            if place(&from) > place(&until) || until.is_initial && !from.is_initial {
                return Err(Error::invalid_argument(format!(
                    "a batch cannot end at {end}, which is before its start in version {}",
                    from.version
                )));
            }
            Ok(StreamBatch::new(self.clone(), from, until))
        })
    }

    /// Drops the data that is only needed for batches that end at or before `end`. Call it once the rows of these
    /// batches have been processed.
    ///
    /// # Errors
    /// Returns errors only for a stream with schema tracking, after a batch that ends before a schema change:
    /// `SchemaMismatch`, because the stream ends there and must be opened again; `VersionNotFound` if the commit that
    /// changes the schema was deleted by a cleanup; and errors from the stores.
    pub fn release(&self, end: &StreamOffset) -> Result<()> {
        self.located(|| {
            let mut state = self.state();
            state.commits.release(end.version());
            if !end.is_initial() {
                state.initial = None;
            }
            self.pass_schema_change(&mut state, end)
        })
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.0.environment
    }

    pub(super) fn is_closed(&self) -> &AtomicBool {
        &self.0.is_closed
    }

    /// Returns whether the stream ends at a version that is already known.
    pub(super) fn is_bounded(&self) -> bool {
        matches!(self.state().bound, Bound::At(_))
    }

    /// Looks for new versions, unless the last look found none and was less than [`StreamOptions::pause`] ago.
    pub(super) fn look(&self, state: &mut State) -> Result<()> {
        state.commits.look(&self.0.environment, self.0.options.pause)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // After a panic, the state is still consistent, because each step changes only one part of it.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn table_id(&self) -> &str {
        &self.0.snapshot.metadata().id
    }

    pub(super) fn located<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        work().map_err(|error| error.in_table(self.0.snapshot.storage().url()))
    }

    pub(super) fn position(&self, offset: &StreamOffset) -> Result<Position> {
        offset.ensure_of(self.table_id())?;
        Ok(Position {
            version: offset.version(),
            index: Some(offset.index()),
            is_initial: offset.is_initial(),
        })
    }
}

impl fmt::Debug for TableStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TableStream")
            .field("snapshot", &self.0.snapshot)
            .field("options", &self.0.options)
            .finish()
    }
}
