//! The commits that a stream reads. Their files are kept until the stream releases them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::Schema;

use super::options::{ChangeHandling, StreamOptions};
use super::schema;
use super::sorted::sizes;
use crate::error::{Error, ErrorKind, Result};
use crate::log::CommitFile;
use crate::log::replay::{Commit, FileColumn, changing, with_columns};
use crate::protocol::Protocol;
use crate::runtime::environment::Environment;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;

/// How long a stream without new versions waits before it checks the store again, in milliseconds.
const PAUSE_MS: i64 = 1000;

/// The most commits that are read ahead.
const AHEAD: usize = 64;

/// The columns that are kept of files.
pub(super) const COLUMNS: [FileColumn; 7] = [
    FileColumn::Path,
    FileColumn::Size,
    FileColumn::ModificationTime,
    FileColumn::PartitionValues,
    FileColumn::DeletionVector,
    FileColumn::BaseRowId,
    FileColumn::DefaultRowCommitVersion,
];

/// The files that a commit adds to a stream.
#[derive(Debug)]
pub(super) struct StreamCommit {
    /// The files in the order of the log, in its form.
    pub(super) files: RecordBatch,
    pub(super) sizes: Arc<[u64]>,
}

/// The commits of a table, as far as a stream has read them.
pub(super) struct Commits {
    /// The snapshot with whose schema the stream reads.
    read: Snapshot,
    /// The newest snapshot that was seen.
    newest: Snapshot,
    /// The time of the last check of the store, in milliseconds since the epoch; `None` if it found something new.
    looked_ms: Option<i64>,
    known: BTreeMap<u64, Arc<StreamCommit>>,
    /// Commits that were read ahead but not used yet.
    ahead: BTreeMap<u64, Commit>,
    /// The protocol of the last commit that was checked, if it has set one.
    protocol: Option<Protocol>,
}

impl Commits {
    pub(super) fn new(read: &Snapshot) -> Self {
        Self {
            read: read.clone(),
            newest: read.clone(),
            looked_ms: None,
            known: BTreeMap::new(),
            ahead: BTreeMap::new(),
            protocol: None,
        }
    }

    /// Returns the newest version that was seen.
    pub(super) fn newest_version(&self) -> u64 {
        self.newest.version()
    }

    /// Looks for newer versions, unless a very recent check found none.
    ///
    /// # Errors
    /// As [`Snapshot::refresh`].
    pub(super) fn look(&mut self, environment: &Environment) -> Result<()> {
        let now = environment.now_ms();
        // A clock that was set back makes no stream wait.
        if self.looked_ms.is_some_and(|looked| (0..PAUSE_MS).contains(&now.saturating_sub(looked))) {
            return Ok(());
        }
        let newest = self.newest.refresh()?;
        self.looked_ms = (newest.version() == self.newest.version()).then_some(now);
        self.newest = newest;
        Ok(())
    }

    /// Returns the commit of `version`, which is not after the newest.
    ///
    /// # Errors
    /// `Unsupported` for a commit that changes rows if the options do not say what that means; `SchemaMismatch`,
    /// `TableReplaced`; `VersionNotFound` for a commit that was cleaned up; `CorruptLog`; errors of the store.
    pub(super) fn commit(&mut self, version: u64, options: &StreamOptions) -> Result<Arc<StreamCommit>> {
        if let Some(known) = self.known.get(&version) {
            return Ok(Arc::clone(known));
        }
        let table = self.read.storage().url();
        let located = |error: Error| error.at_version(version).in_table(&table);
        let commit = match self.read_commit(version)? {
            Some(commit) => self.files_of(&commit, options).map_err(located)?,
            None if options.tolerates_loss => {
                tracing::warn!(
                    table,
                    version,
                    "a stream has passed over a commit that was cleaned up: its rows are lost"
                );
                StreamCommit {
                    files: in_log_order(&RecordBatch::new_empty(Arc::new(Schema::empty())), &[])?,
                    sizes: Arc::default(),
                }
            }
            None => {
                return Err(located(
                    Error::new(
                        ErrorKind::VersionNotFound,
                        "the commit no longer exists: it was cleaned up before the stream has read it",
                    )
                    .with_hint(
                        "begin with a new checkpoint, or go on without its rows (failOnDataLoss=false); keep commits \
                         longer than streams stand still (delta.logRetentionDuration)",
                    ),
                ));
            }
        };
        let commit = Arc::new(commit);
        self.known.insert(version, Arc::clone(&commit));
        Ok(commit)
    }

    /// Returns the files of a commit with their statistics, read again, or the kept ones if the commit no longer
    /// exists.
    ///
    /// # Errors
    /// As [`Commits::commit`].
    pub(super) fn with_statistics(&mut self, version: u64, options: &StreamOptions) -> Result<RecordBatch> {
        let kept = self.commit(version, options)?;
        let storage = self.read.storage();
        match Commit::read(storage, self.file_of(version)) {
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(kept.files.clone()),
            Err(error) => Err(error),
            Ok(commit) => in_log_order(&changing(&commit.adds)?, &[FileColumn::Stats])
                .map_err(|error| error.at_version(version).in_table(storage.url())),
        }
    }

    /// Forgets the commits before `version`.
    pub(super) fn release(&mut self, version: u64) {
        self.known = self.known.split_off(&version);
        self.ahead = self.ahead.split_off(&version);
    }

    /// Reads a commit, and some after it. Returns `None` for one that no longer exists.
    fn read_commit(&mut self, version: u64) -> Result<Option<Commit>> {
        if let Some(commit) = self.ahead.remove(&version) {
            return Ok(Some(commit));
        }
        let newest = self.newest.version();
        let count = usize::try_from(newest.saturating_sub(version)).unwrap_or(usize::MAX).min(AHEAD - 1) + 1;
        let files: Vec<_> = (version..).take(count).map(|version| self.file_of(version)).collect();
        let storage = self.read.storage();
        let read = |file: &CommitFile| match Commit::read_without_stats(storage, *file) {
            Ok(commit) => Ok(Some(commit)),
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(None),
            Err(error) => Err(error),
        };
        let found = match parallel::each(&files, storage.readers(files.len()), read) {
            Ok(found) => found,
            // A later commit may be damaged. The stream stops there, not here.
            Err(_) => files.first().map(read).into_iter().collect::<Result<Vec<_>>>()?,
        };
        let mut found = found.into_iter();
        let first = found.next().flatten();
        self.ahead.extend(found.flatten().map(|commit| (commit.version, commit)));
        Ok(first)
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

    fn files_of(&mut self, commit: &Commit, options: &StreamOptions) -> Result<StreamCommit> {
        if let Some(protocol) = &commit.protocol {
            self.protocol = Some(protocol.clone());
        }
        if let Some(metadata) = &commit.metadata {
            let protocol = self.protocol.as_ref().unwrap_or_else(|| self.read.protocol());
            schema::check(&self.read, commit.version, protocol, metadata)?;
        }
        let adds = changing(&commit.adds)?;
        let removes = changing(&commit.removes)?;
        let removed =
            removes.column_by_name(FileColumn::Path.name()).and_then(|paths| paths.as_string_opt::<i32>());
        // Newest first, as everywhere in the replay.
        let removed =
            removed.filter(|_| removes.num_rows() > 0).map(|paths| paths.value(removes.num_rows() - 1));
        let files = match (removed, options.changes) {
            (None, _) | (Some(_), ChangeHandling::Ignore) => adds,
            (Some(_), ChangeHandling::Skip) => adds.slice(0, 0),
            (Some(_), ChangeHandling::IgnoreDeletes) if adds.num_rows() == 0 => adds,
            (Some(path), _) => return Err(refused(commit, path, adds.num_rows() > 0)),
        };
        let files = in_log_order(&files, &[])?;
        Ok(StreamCommit { sizes: sizes(&files)?.into(), files })
    }
}

/// Returns files that come newest first in the order of the log, with the columns that are kept and `more`.
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
