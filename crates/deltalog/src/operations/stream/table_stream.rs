//! A stream of one table.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::admission::{Admission, StreamLimits};
use super::batch::StreamBatch;
use super::commits::Commits;
use super::offset::{Index, StreamOffset};
use super::options::{StreamOptions, StreamStart};
use super::sorted::{MOST_MEMORY, SortedFiles};
use super::{initial, schema};
use crate::error::{Error, ErrorKind, Result};
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
/// let stream = TableStream::new(&snapshot, StreamOptions::new(), &Environment::system());
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
///     stream.release(&next);
///     done = Some(next);
/// }
/// assert_eq!(rows, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TableStream(Arc<Inner>);

struct Inner {
    snapshot: Snapshot,
    options: StreamOptions,
    environment: Environment,
    state: Mutex<State>,
}

struct State {
    commits: Commits,
    /// The files of the snapshot with which the stream begins, and its version.
    initial: Option<(u64, SortedFiles)>,
    /// Where the stream begins, once that is found out.
    start: Option<Position>,
    bound: Bound,
    /// Whether the schema of the version was checked from which the first batch is read.
    is_start_checked: bool,
}

/// How far the stream goes.
enum Bound {
    None,
    /// To the newest version at the next look.
    ToBeFound,
    At(u64),
}

/// A place in the stream. `None` is before the base of the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) version: u64,
    pub(super) index: Option<Index>,
    pub(super) is_initial: bool,
}

/// Files of a version, by their positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) version: u64,
    pub(super) is_initial: bool,
    pub(super) files: Range<usize>,
}

impl TableStream {
    /// Creates the stream. Its rows have the schema of `snapshot`, with whose rows it begins if the options do not say
    /// otherwise.
    pub fn new(snapshot: &Snapshot, options: StreamOptions, environment: &Environment) -> Self {
        let state = State {
            commits: Commits::new(snapshot),
            initial: None,
            start: None,
            bound: Bound::None,
            is_start_checked: false,
        };
        Self(Arc::new(Inner {
            snapshot: snapshot.clone(),
            options,
            environment: environment.clone(),
            state: Mutex::new(state),
        }))
    }

    /// Returns the snapshot whose schema the rows have.
    pub fn snapshot(&self) -> &Snapshot {
        &self.0.snapshot
    }

    pub(super) fn options(&self) -> &StreamOptions {
        &self.0.options
    }

    /// Ends the stream at the version that is the newest at the next call of [`TableStream::latest`].
    pub fn end_at_newest(&self) {
        self.state().bound = Bound::ToBeFound;
    }

    /// Returns the offset of the next batch, which begins at `start`, or where the stream begins: `start` itself if
    /// there is nothing new, or `None` if there is nothing at all yet.
    ///
    /// Costs one listing if all commits that were seen are behind `start`, but no more than one a second; and reads
    /// the commits that the batch needs.
    ///
    /// # Errors
    /// `VersionNotFound` for a start that is not in the log, and for a commit that was cleaned up. `TableReplaced` for
    /// an offset of another table. `Unsupported` for a commit that removes rows; see
    /// [`ChangeHandling`](super::ChangeHandling). `SchemaMismatch` for a commit whose rows cannot be read with the
    /// schema of the stream. `CorruptLog`, and errors of the store.
    pub fn latest(&self, start: Option<&StreamOffset>, limits: StreamLimits) -> Result<Option<StreamOffset>> {
        self.located(|| {
            let mut state = self.state();
            let from = match start {
                Some(offset) => self.position(offset)?,
                None => self.begin(&mut state)?,
            };
            if matches!(state.bound, Bound::ToBeFound) {
                state.commits.look(&self.0.environment)?;
                state.bound = Bound::At(state.commits.newest_version() + 1);
            }
            self.check_start(&mut state, from)?;
            let until = match state.bound {
                Bound::At(version) => Some((version, Index::Base)),
                Bound::None | Bound::ToBeFound => None,
            };
            let reached = self.walk(&mut state, from, until, &mut limits.admission(), &mut |_| ())?;
            Ok(match reached {
                None => start.cloned(),
                Some((version, index)) => {
                    let is_initial = from.is_initial && version == from.version;
                    Some(StreamOffset::new(self.table_id(), version, index, is_initial))
                }
            })
        })
    }

    /// Returns the batch from `start`, or from where the stream begins, to `end`. Its files are found when it is
    /// read, so that a batch costs nothing until then.
    ///
    /// # Errors
    /// `TableReplaced` for an offset of another table; `InvalidArgument` for offsets in the wrong order.
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

    /// Drops the data that is only needed for batches that end at `end` or before it.
    pub fn release(&self, end: &StreamOffset) {
        let mut state = self.state();
        state.commits.release(end.version());
        if !end.is_initial() {
            state.initial = None;
        }
    }

    /// Returns how many versions there are after the offset, as far as they have been seen.
    pub fn versions_behind(&self, offset: &StreamOffset) -> u64 {
        let next = self.state().commits.newest_version() + 1;
        // An offset in the middle of a version, or of the snapshot, is behind by the rest of it.
        let done = offset.version() + u64::from(offset.is_initial());
        next.saturating_sub(done)
    }

    /// Returns the parts of the batch between two places.
    pub(super) fn parts(&self, from: Position, until: Position) -> Result<Vec<Part>> {
        self.located(|| {
            let mut state = self.state();
            self.check_start(&mut state, from)?;
            let mut parts = Vec::new();
            let until = (until.version, until.index.unwrap_or(Index::Base));
            let mut admission = StreamLimits::unlimited().admission();
            self.walk(&mut state, from, Some(until), &mut admission, &mut |part| parts.push(part))?;
            Ok(parts)
        })
    }

    /// Returns the files of a part in the form of the log; with statistics, if they are requested and still available.
    pub(super) fn files(&self, part: &Part, with_statistics: bool) -> Result<Vec<arrow::array::RecordBatch>> {
        self.located(|| {
            let mut state = self.state();
            if part.is_initial {
                return self.initial(&mut state, part.version)?.files(part.files.clone());
            }
            let files = match with_statistics {
                true => state.commits.with_statistics(part.version, &self.0.options)?,
                false => state.commits.commit(part.version, &self.0.options)?.files.clone(),
            };
            Ok(vec![files.slice(part.files.start, part.files.len())])
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state after a panic is still consistent, because each step changes one thing.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_id(&self) -> &str {
        &self.0.snapshot.metadata().id
    }

    fn located<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        work().map_err(|error| error.in_table(self.0.snapshot.storage().url()))
    }

    fn position(&self, offset: &StreamOffset) -> Result<Position> {
        offset.ensure_of(self.table_id())?;
        Ok(Position {
            version: offset.version(),
            index: Some(offset.index()),
            is_initial: offset.is_initial(),
        })
    }

    /// Returns where the stream begins.
    fn begin(&self, state: &mut State) -> Result<Position> {
        if let Some(start) = state.start {
            return Ok(start);
        }
        let tail = |version: u64| Position { version, index: None, is_initial: false };
        let start = match self.0.options.start {
            StreamStart::Snapshot => {
                Position { version: self.0.snapshot.version(), index: None, is_initial: true }
            }
            StreamStart::Latest => {
                state.commits.look(&self.0.environment)?;
                tail(state.commits.newest_version() + 1)
            }
            StreamStart::Version(version) => {
                self.ensure_there(version)?;
                tail(version)
            }
            StreamStart::Timestamp(timestamp_ms) => {
                let times = self.0.snapshot.refresh()?.commit_times(None)?;
                times.check_known(timestamp_ms)?;
                match times.first_at_or_after(timestamp_ms)? {
                    Some(version) => tail(version),
                    None => {
                        return Err(Error::new(
                            ErrorKind::VersionNotFound,
                            format!("the stream is to start after the newest version: {}", times.span()?),
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
        let times = self.0.snapshot.refresh()?.commit_times(None)?;
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

    /// Returns where the first batch begins, which ends at `end`: before this process it may have been begun already.
    fn first(&self, end: &StreamOffset) -> Result<Position> {
        let initial = |version: u64| Position { version, index: None, is_initial: true };
        match self.0.options.start {
            StreamStart::Snapshot if end.is_initial() => Ok(initial(end.version())),
            StreamStart::Snapshot => {
                // It has passed the end of the snapshot. The snapshot before its last version has the same rows as an
                // earlier one and the commits between them.
                end.version().checked_sub(1).map(initial).ok_or_else(|| {
                    Error::invalid_argument(format!(
                        "no first batch that begins with a snapshot ends at {end}"
                    ))
                })
            }
            _ => {
                let start = self.begin(&mut self.state())?;
                if start.version > end.version() {
                    return Err(Error::new(
                        ErrorKind::VersionNotFound,
                        format!(
                            "the first batch of the stream was not finished, and where it began is not known any more: \
                             it ends at {end}, but the next commit is version {}",
                            start.version
                        ),
                    )
                    .with_hint("begin with a new checkpoint, and with a version instead of the next commit"));
                }
                Ok(start)
            }
        }
    }

    /// Checks once that the rows of the version from which the stream is read first can be read with its schema.
    fn check_start(&self, state: &mut State, from: Position) -> Result<()> {
        if state.is_start_checked {
            return Ok(());
        }
        // The snapshot of an initial batch is checked when its files are sorted.
        if !from.is_initial && from.version < self.0.snapshot.version() {
            match self.0.snapshot.at_version(from.version) {
                Ok(first) => {
                    schema::check(&self.0.snapshot, first.version(), first.protocol(), first.metadata())?
                }
                // A commit may exist without the files that are needed to read its version.
                Err(error) if error.kind() == ErrorKind::VersionNotFound => {}
                Err(error) => return Err(error),
            }
        }
        state.is_start_checked = true;
        Ok(())
    }

    fn initial<'s>(&self, state: &'s mut State, version: u64) -> Result<&'s mut SortedFiles> {
        let found = match state.initial.take() {
            Some((found, files)) if found == version => files,
            _ => initial::sorted(&self.0.snapshot, version, MOST_MEMORY)?,
        };
        Ok(&mut state.initial.insert((version, found)).1)
    }

    /// Advances from one place to another one, to the limits of the batch, or to the newest version. Returns the place
    /// that was reached, if it is a different one.
    fn walk(
        &self,
        state: &mut State,
        from: Position,
        until: Option<(u64, Index)>,
        admission: &mut Admission,
        found: &mut dyn FnMut(Part),
    ) -> Result<Option<(u64, Index)>> {
        let is_beyond = |place: (u64, Index)| until.is_some_and(|until| place > until);
        let Position { mut version, mut is_initial, .. } = from;
        let mut after = from.index;
        let mut reached = None;
        loop {
            // There is nothing in a version up to its base, so it is not read for that.
            if until.is_some_and(|until| (version, Index::Base) >= until) {
                return Ok(reached);
            }
            let sizes = if is_initial {
                Arc::clone(self.initial(state, version)?.sizes())
            } else {
                if version > state.commits.newest_version() {
                    state.commits.look(&self.0.environment)?;
                }
                if version > state.commits.newest_version() {
                    return Ok(reached);
                }
                Arc::clone(&state.commits.commit(version, &self.0.options)?.sizes)
            };
            if after.is_none() {
                reached = Some((version, Index::Base));
            }
            let first = match after {
                None | Some(Index::Base) => 0,
                Some(Index::File(index)) => usize::try_from(index).unwrap_or(usize::MAX).saturating_add(1),
                Some(Index::End) => usize::MAX,
            };
            let mut end = first.min(sizes.len());
            let mut is_whole = true;
            for size in sizes.iter().skip(first) {
                if is_beyond((version, Index::File(end as u64))) || !admission.admits(*size) {
                    is_whole = false;
                    break;
                }
                reached = Some((version, Index::File(end as u64)));
                end += 1;
            }
            if first < end {
                found(Part { version, is_initial, files: first..end });
            }
            if !is_whole || is_beyond((version, Index::End)) {
                return Ok(reached);
            }
            reached = Some((version, Index::End));
            (version, is_initial, after) = (version + 1, false, None);
        }
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
