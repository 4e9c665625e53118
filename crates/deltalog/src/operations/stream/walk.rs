//! Walks through the files of a stream in order: first through the snapshot, and then through each commit.

use std::ops::Range;
use std::sync::Arc;

use super::admission::Admission;
use super::commits::{Content, StreamCommit};
use super::initial;
use super::offset::Index;
use super::seen::ensure_seen;
use super::sorted::{MOST_MEMORY, SortedFiles};
use super::table_stream::{State, TableStream};
use crate::error::{Error, ErrorKind, Result};

/// A position in the stream. If `index` is `None`, this is the beginning of the version, before [`Index::Base`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) version: u64,
    pub(super) index: Option<Index>,
    pub(super) is_initial: bool,
}

/// A range of the files in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) version: u64,
    pub(super) is_initial: bool,
    pub(super) files: Range<usize>,
}

impl TableStream {
    pub(super) fn initial<'s>(&self, state: &'s mut State, version: u64) -> Result<&'s mut SortedFiles> {
        let found = match state.initial.take() {
            Some((found, files)) if found == version => files,
            _ => initial::sorted(self.snapshot(), version, MOST_MEMORY)?,
        };
        Ok(&mut state.initial.insert((version, found)).1)
    }

    /// Walks from the position `from` through the files, and calls `found` for each version that has files. Stops at
    /// the position `until`, when a limit of the batch is reached, or after the newest version. Returns the position
    /// at which it stopped, or `None` if that is still `from`.
    pub(super) fn walk(
        &self,
        state: &mut State,
        from: Position,
        until: Option<(u64, Index)>,
        way: Way,
        admission: &mut Admission,
        found: &mut dyn FnMut(Part),
    ) -> Result<Option<(u64, Index)>> {
        let is_beyond = |place: (u64, Index)| until.is_some_and(|until| place > until);
        let Position { mut version, mut is_initial, .. } = from;
        let mut after = from.index;
        let mut reached = None;
        loop {
            // The walk ends before the first file of this version, so its commit does not have to be read.
            if until.is_some_and(|until| (version, Index::AfterSchemaChange) >= until) {
                return Ok(reached);
            }
            // Like the JVM connector, a change feed does not read the next commit once a limit is reached.
            if self.options().is_change_feed && !admission.has_room() {
                return Ok(reached);
            }
            let sequence = if is_initial {
                Sequence::of_files(self.initial(state, version)?.sizes())
            } else {
                match way {
                    Way::Again => ensure_seen(state, version, self.environment())?,
                    Way::Ahead if version > state.commits.newest_version() => self.look(state)?,
                    Way::Ahead => (),
                }
                if version > state.commits.newest_version() {
                    return Ok(reached);
                }
                match state.commits.commit(version, self.options()) {
                    Ok(commit) => Sequence::of(commit.as_ref()),
                    // The batch ends before this commit. The next batch will begin with it, and fail.
                    Err(error) if way == Way::Ahead && reached.is_some() && is_refusal(&error) => {
                        return Ok(reached);
                    }
                    Err(error) => return Err(error),
                }
            };
            let first = match after {
                None | Some(Index::Base | Index::SchemaChange | Index::AfterSchemaChange) => 0,
                Some(Index::File(index)) => usize::try_from(index).unwrap_or(usize::MAX).saturating_add(1),
                Some(Index::End) => usize::MAX,
            };
            if sequence.is_barrier && after <= Some(Index::Base) {
                return match way {
                    Way::Ahead => Ok(Some((version, Index::SchemaChange))),
                    Way::Again => Err(Error::schema_mismatch(
                        "the schema changes within the batch, so its rows do not have a common schema",
                    )
                    .at_version(version)
                    .with_hint("begin with a new checkpoint")),
                };
            }
            let rest = sequence.sizes.get(first..).unwrap_or_default();
            if sequence.is_indivisible {
                // Like the JVM connector, count the positions directly before and after the files of a commit as files.
                let places = match sequence.has_end {
                    true => 1 + u64::from(after.is_none() && version > from.version),
                    false => 0,
                };
                let files = rest.len() as u64 + places;
                let bytes = rest.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
                if files > 0 && !admission.admits_all(files, bytes) {
                    return Ok(reached);
                }
            }
            if after.is_none() {
                reached = Some((version, Index::Base));
            }
            let mut end = first.min(sequence.sizes.len());
            let mut is_whole = true;
            for size in rest {
                let is_admitted = sequence.is_indivisible || admission.admits(*size);
                if is_beyond((version, Index::File(end as u64))) || !is_admitted {
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
            if sequence.has_end {
                reached = Some((version, Index::End));
            }
            (version, is_initial, after) = (version + 1, false, None);
        }
    }
}

/// Returns whether a commit was refused because of its contents, and not because it could not be read.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::SchemaMismatch)
}

/// The purpose of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// To find the end of the next batch.
    Ahead,
    /// To find the files of a batch whose end is already known.
    Again,
}

/// The files of a version, in the order in which a stream reads them.
struct Sequence {
    sizes: Arc<[u64]>,
    /// Whether all files must be in the same batch.
    is_indivisible: bool,
    /// Whether the version has a position after its last file. Versions with change data files do not have one, as in
    /// the JVM connector.
    has_end: bool,
    /// Whether the stream stops before the files, because their schema differs from its own.
    is_barrier: bool,
}

impl Sequence {
    fn of_files(sizes: &Arc<[u64]>) -> Self {
        Self { sizes: Arc::clone(sizes), is_indivisible: false, has_end: true, is_barrier: false }
    }

    fn of(commit: &StreamCommit) -> Self {
        let files = Self::of_files(commit.content.sizes());
        let changes = match &commit.content {
            Content::Files { .. } => return Self { is_barrier: commit.is_barrier, ..files },
            Content::Changes(changes) => changes,
        };
        Self {
            is_barrier: commit.is_barrier,
            is_indivisible: changes.is_indivisible(),
            has_end: !changes.is_recorded(),
            ..files
        }
    }
}
