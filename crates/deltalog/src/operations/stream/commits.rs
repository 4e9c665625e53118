//! Reads the commits of a stream. Their files are kept in memory until the stream releases them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::Schema;

use super::options::{ChangeHandling, StreamOptions};
use super::schema;
use super::sorted::sizes;
use super::tracking::TrackedSchema;
use crate::error::{Error, ErrorKind, Result};
use crate::log::replay::{Commit, FileColumn, changing, with_columns};
use crate::log::{CommitFile, CommitKind, CommitTimes};
use crate::protocol::Protocol;
use crate::runtime::environment::Environment;
use crate::runtime::parallel;
use crate::scan::changes::ChangeSequence;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// The maximum number of commits that are read ahead.
const AHEAD: usize = 64;

/// The columns that are kept for each file.
pub(super) const COLUMNS: [FileColumn; 7] = [
    FileColumn::Path,
    FileColumn::Size,
    FileColumn::ModificationTime,
    FileColumn::PartitionValues,
    FileColumn::DeletionVector,
    FileColumn::BaseRowId,
    FileColumn::DefaultRowCommitVersion,
];

/// A commit, reduced to the information that a stream needs.
#[derive(Debug)]
pub(super) struct StreamCommit {
    pub(super) content: Content,
    /// Whether a stream with schema tracking stops before the files of this commit.
    pub(super) is_barrier: bool,
}

/// The contents of a commit that matter to a stream.
#[derive(Debug)]
pub(super) enum Content {
    /// The files that the commit adds, as rows with the columns of the log, in the order of the commit.
    Files { files: RecordBatch, sizes: Arc<[u64]> },
    /// The changes that the change data feed shows.
    Changes(ChangeSequence),
}

impl Content {
    fn nothing() -> Result<Self> {
        let files = in_log_order(&RecordBatch::new_empty(Arc::new(Schema::empty())), &[])?;
        Ok(Self::Files { files, sizes: Arc::default() })
    }

    /// Returns the sizes of the files in bytes, in their order.
    pub(super) fn sizes(&self) -> &Arc<[u64]> {
        match self {
            Self::Files { sizes, .. } => sizes,
            Self::Changes(changes) => changes.sizes(),
        }
    }
}

/// The commits of a table that a stream has read so far.
pub(super) struct Commits {
    /// The snapshot with the schema that all rows of the stream have.
    read: Snapshot,
    /// The newest snapshot that was seen.
    newest: Snapshot,
    /// The time at which the stream last looked for new versions, in milliseconds since the epoch. `None` if it has
    /// not looked yet, or if it found a new version.
    looked_ms: Option<i64>,
    known: BTreeMap<u64, Arc<StreamCommit>>,
    /// Commits that were read ahead and have not been used yet.
    ahead: BTreeMap<u64, Commit>,
    /// The protocol that the last checked commit with a `protocol` action has set.
    protocol: Option<Protocol>,
    /// The schemas that the stream has recorded, if it tracks schemas.
    tracked: Option<TrackedSchema>,
}

impl Commits {
    /// Creates an empty set of commits for a stream that was opened with `table`, and whose rows have the schema of
    /// `read`.
    pub(super) fn new(table: &Snapshot, read: &Snapshot, tracked: Option<TrackedSchema>) -> Self {
        Self {
            read: read.clone(),
            newest: table.clone(),
            looked_ms: None,
            known: BTreeMap::new(),
            ahead: BTreeMap::new(),
            protocol: None,
            tracked,
        }
    }

    /// Returns the recorded schemas, if the stream tracks schemas.
    pub(super) fn tracked(&self) -> Option<&TrackedSchema> {
        self.tracked.as_ref()
    }

    /// Returns the recorded schemas, so that another one can be recorded. Drops the commits that were read, because
    /// they were checked against the old schema.
    pub(super) fn tracked_mut(&mut self) -> Option<&mut TrackedSchema> {
        self.known.clear();
        self.tracked.as_mut()
    }

    /// Returns the newest version that was seen.
    pub(super) fn newest_version(&self) -> u64 {
        self.newest.version()
    }

    /// Looks for new versions. Does nothing if the last call found none and was made less than `pause` ago.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::refresh`].
    pub(super) fn look(&mut self, environment: &Environment, pause: Duration) -> Result<()> {
        let now = environment.now_ms();
        let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        // If the clock was set back, the difference is negative. The stream then looks at once: it must not wait until
        // the clock has caught up.
        if self.looked_ms.is_some_and(|looked| (0..pause_ms).contains(&now.saturating_sub(looked))) {
            return Ok(());
        }
        let newest = self.newest.refresh()?;
        self.looked_ms = (newest.version() == self.newest.version()).then_some(now);
        self.newest = newest;
        Ok(())
    }

    /// Returns the commit of `version`, which must not be newer than the newest version seen.
    ///
    /// # Errors
    /// Returns `Unsupported` for a commit that changes or deletes rows, unless the options say how to treat it.
    /// Returns `SchemaMismatch`, `TableReplaced`, `VersionNotFound` for a commit that was deleted by a cleanup,
    /// `CorruptLog`, and errors from the store.
    pub(super) fn commit(&mut self, version: u64, options: &StreamOptions) -> Result<Arc<StreamCommit>> {
        if let Some(known) = self.known.get(&version) {
            return Ok(Arc::clone(known));
        }
        let table = self.read.storage().url();
        let located = |error: Error| error.at_version(version).in_table(&table);
        let commit = match self.read_commit(version)? {
            Some(commit) => self.content_of(commit, options).map_err(located)?,
            None if options.tolerates_loss => {
                tracing::warn!(
                    table,
                    version,
                    "a stream has passed over a commit that was cleaned up: its rows are lost"
                );
                StreamCommit { content: Content::nothing()?, is_barrier: false }
            }
            None => {
                return Err(located(
                    Error::new(
                        ErrorKind::VersionNotFound,
                        "the commit no longer exists: it was cleaned up before the stream read it",
                    )
                    .with_hint(
                        "begin with a new checkpoint, or go on without its rows (failOnDataLoss=false); keep commits \
                         longer than streams pause (delta.logRetentionDuration)",
                    ),
                ));
            }
        };
        let commit = Arc::new(commit);
        self.known.insert(version, Arc::clone(&commit));
        Ok(commit)
    }

    /// Reads a commit again, with the statistics of its files. If the commit's file no longer exists, returns the
    /// commit without statistics.
    ///
    /// # Errors
    /// Returns the same errors as [`Commits::commit`].
    pub(super) fn with_statistics(
        &mut self,
        version: u64,
        options: &StreamOptions,
    ) -> Result<Arc<StreamCommit>> {
        let kept = self.commit(version, options)?;
        let storage = self.read.storage();
        let read = match &kept.content {
            // The commit adds no files to the stream, so there are no statistics to read.
            Content::Files { sizes, .. } if sizes.is_empty() => return Ok(kept),
            Content::Changes(changes) if changes.is_recorded() => return Ok(kept),
            Content::Files { .. } => {
                staged_or_published(self.file_of(version), |file| Commit::read(storage, file))
            }
            Content::Changes(_) => {
                staged_or_published(self.file_of(version), |file| Commit::read_with_all_stats(storage, file))
            }
        };
        let commit = match read {
            Err(error) if error.kind() == ErrorKind::FileNotFound => return Ok(kept),
            read => read?,
        };
        let content = match &kept.content {
            Content::Changes(_) => ChangeSequence::of_commit(commit).map(Content::Changes),
            Content::Files { sizes, .. } => changing(&commit.adds)
                .and_then(|adds| in_log_order(&adds, &[FileColumn::Stats]))
                .map(|files| Content::Files { files, sizes: Arc::clone(sizes) }),
        };
        let content = content.map_err(|error| error.at_version(version).in_table(storage.url()))?;
        Ok(Arc::new(StreamCommit { content, is_barrier: kept.is_barrier }))
    }

    /// Returns the times of all commits up to the newest version that was seen.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::commit_times`].
    pub(super) fn times(&self) -> Result<CommitTimes> {
        self.newest.commit_times(Some(self.newest.version()))
    }

    /// Returns the commits from `version` on that were read and are still kept.
    pub(super) fn read_from(&self, version: u64) -> impl Iterator<Item = (u64, &StreamCommit)> {
        self.known.range(version..).map(|(version, commit)| (*version, commit.as_ref()))
    }

    /// Drops the commits before `version`.
    pub(super) fn release(&mut self, version: u64) {
        self.known = self.known.split_off(&version);
        self.ahead = self.ahead.split_off(&version);
    }

    /// Reads a commit and, concurrently, some of the commits after it. Returns `None` if the commit no longer exists.
    fn read_commit(&mut self, version: u64) -> Result<Option<Commit>> {
        if let Some(commit) = self.ahead.remove(&version) {
            return Ok(Some(commit));
        }
        let newest = self.newest.version();
        let count = usize::try_from(newest.saturating_sub(version)).unwrap_or(usize::MAX).min(AHEAD - 1) + 1;
        let files: Vec<_> = (version..).take(count).map(|version| self.file_of(version)).collect();
        let storage = self.read.storage();
        let read = |file: &CommitFile| match read_lean(storage, *file) {
            Ok(commit) => Ok(Some(commit)),
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(None),
            Err(error) => Err(error),
        };
        let found = match parallel::each(&files, storage.readers(files.len()), read) {
            Ok(found) => found,
            // If a later commit is damaged, the stream must not fail before it reaches that commit. Only the first
            // commit is therefore read again.
            Err(_) => files.first().map(read).into_iter().collect::<Result<Vec<_>>>()?,
        };
        let mut found = found.into_iter();
        let first = found.next().flatten();
        self.ahead.extend(found.flatten().map(|commit| (commit.version, commit)));
        Ok(first)
    }

    /// Reads a commit without the statistics of its files. The result is not kept.
    ///
    /// # Errors
    /// Returns `FileNotFound` for a commit that was deleted by a cleanup, `CorruptLog`, and errors from the store.
    pub(super) fn read(&self, version: u64) -> Result<Commit> {
        read_lean(self.read.storage(), self.file_of(version))
    }

    fn file_of(&self, version: u64) -> CommitFile {
        let listed = self
            .newest
            .segment()
            .commits
            .iter()
            .find(|file| file.version == version && file.start() == version);
        listed.copied().unwrap_or_else(|| CommitFile::named(version))
    }

    fn content_of(&mut self, commit: Commit, options: &StreamOptions) -> Result<StreamCommit> {
        let is_barrier = self.check(&commit, options)?;
        let content = match options.is_change_feed {
            true => ChangeSequence::of_commit(commit).map(Content::Changes)?,
            false => files_of(&commit, options)?,
        };
        Ok(StreamCommit { content, is_barrier })
    }

    /// Checks that the rows of a commit can be read. Returns whether the stream stops before the commit, because its
    /// rows have a different schema.
    fn check(&mut self, commit: &Commit, options: &StreamOptions) -> Result<bool> {
        if let Some(protocol) = &commit.protocol {
            self.protocol = Some(protocol.clone());
        }
        let (protocol, metadata) = (commit.protocol.as_ref(), commit.metadata.as_ref());
        if options.is_change_feed
            && let Some(metadata) = metadata
        {
            schema::ensure_change_feed(commit.version, metadata)?;
        }
        if let Some(tracked) = self.tracked.as_ref().filter(|tracked| tracked.is_active()) {
            if let Some(metadata) = metadata {
                schema::ensure_same_table(&self.read, commit.version, metadata)?;
            }
            return tracked.is_changed_by(&self.read, commit.version, protocol, metadata);
        }
        if let Some(metadata) = metadata {
            let protocol = self.protocol.as_ref().unwrap_or_else(|| self.read.protocol());
            schema::check(&self.read, commit.version, protocol, metadata)?;
        }
        Ok(false)
    }
}

fn read_lean(storage: &Storage, file: CommitFile) -> Result<Commit> {
    staged_or_published(file, |file| Commit::read_without_stats(storage, file))
}

/// Reads a commit. If the stream saw the commit while it was staged, the commit may have been published since, and
/// its staged file deleted. In this case, reads the published file.
fn staged_or_published(file: CommitFile, read: impl Fn(CommitFile) -> Result<Commit>) -> Result<Commit> {
    match read(file) {
        Err(error)
            if error.kind() == ErrorKind::FileNotFound && matches!(file.kind, CommitKind::Staged(_)) =>
        {
            read(CommitFile::named(file.version))
        }
        commit => commit,
    }
}

/// Returns the files that a commit adds to a stream of rows.
fn files_of(commit: &Commit, options: &StreamOptions) -> Result<Content> {
    let adds = changing(&commit.adds)?;
    let removes = changing(&commit.removes)?;
    let removed =
        removes.column_by_name(FileColumn::Path.name()).and_then(|paths| paths.as_string_opt::<i32>());
    // The actions are ordered from the newest to the oldest, as replay needs them. The last row is therefore the
    // first `remove` action of the commit.
    let removed = removed.filter(|_| removes.num_rows() > 0).map(|paths| paths.value(removes.num_rows() - 1));
    let files = match (removed, options.changes) {
        (None, _) | (Some(_), ChangeHandling::Ignore) => adds,
        (Some(_), ChangeHandling::Skip) => adds.slice(0, 0),
        (Some(_), ChangeHandling::IgnoreDeletes) if adds.num_rows() == 0 => adds,
        (Some(path), _) => return Err(refused(commit, path, adds.num_rows() > 0)),
    };
    let files = in_log_order(&files, &[])?;
    Ok(Content::Files { sizes: sizes(&files)?.into(), files })
}

/// Returns files in the order of the commit, with the columns [`COLUMNS`] and `more`. In `files`, the order is
/// reversed.
fn in_log_order(files: &RecordBatch, more: &[FileColumn]) -> Result<RecordBatch> {
    let columns = COLUMNS.iter().chain(more);
    let files = with_columns(files, columns.map(|column| column.field()).collect())?;
    let order = UInt32Array::from_iter_values((0..u32::try_from(files.num_rows()).unwrap_or(u32::MAX)).rev());
    take_record_batch(&files, &order).map_err(invalid)
}

fn refused(commit: &Commit, removed: &str, adds: bool) -> Error {
    let operation = commit.commit_info.as_ref().and_then(|info| info.operation.as_deref());
    let by = operation.map(|operation| format!(" ({operation})")).unwrap_or_default();
    let (what, hint) = match adds {
        true => (
            "changes rows",
            "leave out such commits (skipChangeCommits), read all rows of rewritten files again (ignoreChanges), \
             or read the change data feed",
        ),
        false => (
            "deletes rows",
            "go on without them (ignoreDeletes), leave out such commits (skipChangeCommits), or read the change \
             data feed",
        ),
    };
    Error::unsupported(format!(
        "the commit{by} {what}, which a stream of appended rows cannot show: it removes {removed}"
    ))
    .with_hint(hint)
}

fn invalid(error: arrow::error::ArrowError) -> Error {
    Error::corrupt_log("file actions do not have the columns of the log").with_source(error)
}
