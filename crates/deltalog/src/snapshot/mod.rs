//! A table at one version.
//!
//! - Immutable and cheap to clone; threads may share it.
//! - Opening reads the listing, the commits after the checkpoint, and of the checkpoint only what the commits
//!   do not say.
//! - The file list is not held: it is replayed when asked for, with the columns that were asked for.

mod checksum;
mod file_totals;
pub(crate) mod history;
mod left_over;
mod open;
mod policies;
pub(crate) mod table;
pub(crate) mod verify;

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::sum;
use arrow::datatypes::{Int64Type, SchemaRef};

use crate::error::{Error, ErrorKind, Result};
use crate::log::commit_actions::{CommitActions, Commits};
use crate::log::replay::{AddRequest, Commit, FileColumn, FileColumns, FileReplay, State, TableAction};
use crate::log::{
    CommitFile, CommitTimes, LogSegment, Look, Newer, NewerVersions, StagedCommit, VersionChecksum,
    read_commit_info,
};
use crate::protocol::{
    Action, CLUSTERING_DOMAIN, CommitInfo, DomainMetadata, MappedSchema, Metadata, PathResolver, Protocol,
    SetTransaction, StructType, clustering_columns,
};
use crate::snapshot::history::{HistoryEntry, history};
use crate::snapshot::verify::{Verification, verify};
use crate::storage::Storage;

use open::Source;

pub(crate) use checksum::KnownChecksum;
pub(crate) use left_over::{Expired, LeftOver, MOST_OWN_COMMITS, note_doubt, was_doubted};
pub use open::SnapshotBuilder;

/// A table at one version.
///
/// ```
/// use deltalog::Snapshot;
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// let newest = Snapshot::open(&storage, None)?;
/// assert_eq!((newest.version(), newest.totals()?.files), (1, 2));
///
/// let first = Snapshot::open(&storage, Some(0))?;
/// assert_eq!(first.totals()?.files, 1);
/// assert_eq!(first.refresh()?.version(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Snapshot(Arc<Inner>);

struct Inner {
    source: Source,
    state: State,
    facts: Arc<Facts>,
    /// See [`Snapshot::memory`].
    memory: OnceLock<u64>,
}

/// What is known about a version except for its files. Copies of a snapshot share it.
struct Facts {
    protocol: Protocol,
    metadata: Metadata,
    schema: MappedSchema,
    totals: OnceLock<Totals>,
    /// `None` inside: there is no checksum that can be trusted.
    checksum: OnceLock<Option<Box<VersionChecksum>>>,
    /// Whether the checksum turned out to contradict the files of the version.
    is_checksum_wrong: AtomicBool,
}

/// How much there is in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Totals {
    /// Live data files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Snapshot {
    /// Opens `version`, or the newest.
    ///
    /// # Errors
    /// `NotATable`, `VersionNotFound`, `CorruptLog`, `Unsupported` for a feature that readers must support, and
    /// errors of the store.
    pub fn open(storage: &Storage, version: Option<u64>) -> Result<Self> {
        let builder = SnapshotBuilder::new(storage);
        version.into_iter().fold(builder, SnapshotBuilder::version).open()
    }

    /// Opens the newest version that was committed at or before `timestamp_ms`, milliseconds since the epoch.
    ///
    /// # Errors
    /// `VersionNotFound` for a time outside the range of the readable versions, which the message gives; otherwise as
    /// [`Snapshot::open`].
    pub fn open_at(storage: &Storage, timestamp_ms: i64) -> Result<Self> {
        SnapshotBuilder::new(storage).timestamp_ms(timestamp_ms).open()
    }

    /// Returns a builder for what [`Snapshot::open`] has no parameter for.
    pub fn builder(storage: &Storage) -> SnapshotBuilder {
        SnapshotBuilder::new(storage)
    }

    /// Opens another version of the same table. If a catalog manages the table, the commits that it named are
    /// included.
    ///
    /// # Errors
    /// `TableReplaced` if the table was dropped and another one was created in its place; otherwise as
    /// [`Snapshot::open`].
    pub fn at_version(&self, version: u64) -> Result<Self> {
        if version == self.version() {
            return Ok(self.clone());
        }
        self.of_same_table(|| Self::load(&self.0.source, self.0.source.find(Some(version))?, None))
    }

    /// Finds the files of this version again, as the log is now.
    ///
    /// # Errors
    /// As [`LogSegment::find`].
    pub(crate) fn found_again(&self) -> Result<LogSegment> {
        self.0.source.find(Some(self.version()))
    }

    /// Checks that the log still has this version, unchanged. A file of it that is written from now on appears in that
    /// log.
    ///
    /// # Errors
    /// `VersionNotFound` if the version was cleaned up; otherwise as [`Snapshot::refresh`].
    pub(crate) fn check_still_there(&self) -> Result<()> {
        if self.segment().newer_versions_in(self.0.source.segments())?.is_none() {
            self.refresh()?;
            self.found_again()?;
        }
        Ok(())
    }

    /// Opens another version with `open`, and checks that the table is still the same.
    fn of_same_table(&self, open: impl FnOnce() -> Result<Self>) -> Result<Self> {
        let opened = open();
        // The result, or the error, may belong to another table.
        self.newest_version()?;
        opened
    }

    /// Opens the version of the same table that was the newest at `timestamp_ms`, in milliseconds since the epoch.
    /// If a catalog manages the table, the commits that it named are included.
    ///
    /// # Errors
    /// `TableReplaced` if the table was dropped and another one was created in its place; otherwise as
    /// [`Snapshot::open_at`].
    pub fn at_timestamp_ms(&self, timestamp_ms: i64) -> Result<Self> {
        self.of_same_table(|| Self::load_at(&self.0.source, timestamp_ms))
    }

    /// Returns the newest version, or a clone of `self` if it is the newest. Costs one listing and reading the new
    /// commits.
    ///
    /// If a catalog manages the table, these are the published versions and those that the catalog named before.
    ///
    /// # Errors
    /// `TableReplaced` if the table was dropped and another one was created in its place, or if a commit has replaced
    /// it and the commits since this version were cleaned up, which looks the same; otherwise as [`Snapshot::open`].
    pub fn refresh(&self) -> Result<Self> {
        self.refresh_from(&self.0.source)
    }

    /// Refreshes the snapshot with the commits that the table's catalog has accepted and not yet published.
    ///
    /// # Errors
    /// As [`SnapshotBuilder::open`].
    pub fn refresh_with(&self, staged: impl IntoIterator<Item = StagedCommit>) -> Result<Self> {
        self.refresh_from(&Source::new(
            &self.0.source.storage,
            self.resolver().clone(),
            Some(staged.into_iter().collect()),
        )?)
    }

    fn refresh_from(&self, source: &Source) -> Result<Self> {
        let look = if self.0.state.has_lost_checkpoint() { Look::Lost } else { Look::Newest };
        if let Some(newest) = self.newest_in(source, look)? {
            return Ok(newest);
        }
        let newest = Self::load(source, source.find(None)?, None)?;
        if newest.version() < self.version() || newest.metadata().id != self.metadata().id {
            return Err(self.segment().replaced(self.storage()));
        }
        Ok(newest)
    }

    /// Returns the newest version, with all that was read for this one. It begins with the newest checkpoint, so that
    /// the commits before that are forgotten, and may be deleted. Returns `None` if only the metadata shows whether the
    /// table is the same.
    fn newest_in(&self, source: &Source, look: Look) -> Result<Option<Self>> {
        let Inner { source: own, state, facts, .. } = &*self.0;
        let knows_all = |segment: &LogSegment| {
            segment.version == self.version() && segment.checksum == self.segment().checksum
        };
        match self.segment().newer_in(source.segments(), look)? {
            Newer::Unchanged => Ok(Some(self.clone())),
            Newer::Segment(segment) if knows_all(&segment) => {
                let state = own.state(*segment, Some(state))?;
                Ok(Some(Self::of(own.clone(), state, Arc::clone(facts))))
            }
            Newer::Segment(segment) => Self::load(source, *segment, Some((state, Some(self)))).map(Some),
            Newer::Unknown => Ok(None),
        }
    }

    fn of(source: Source, state: State, facts: Arc<Facts>) -> Self {
        Self(Arc::new(Inner { source, state, facts, memory: OnceLock::new() }))
    }

    /// Returns `version`, which a caller who has this snapshot has committed, or a later version with the same rows,
    /// protocol and metadata, as after an OPTIMIZE. Returns a clone of `self` if it is not older.
    ///
    /// Changes of other writers since then are left out, unless the log was cleaned up and no longer has such a
    /// version: then it is the newest.
    ///
    /// # Errors
    /// As [`Snapshot::refresh`] and [`Snapshot::at_version`].
    #[doc(hidden)]
    pub fn after_commit(&self, version: u64) -> Result<Self> {
        if self.version() >= version {
            return Ok(self.clone());
        }
        let newest = self.refresh()?;
        match newest.at_version(newest.unchanged_since(version, &[])?) {
            Err(error) if error.kind() == ErrorKind::VersionNotFound && newest.version() > version => {
                Ok(newest)
            }
            found => found,
        }
    }

    /// Returns the last version before the changes of other writers since `seen`, if the later versions `own` come from
    /// the caller. If the rows up to `seen` were read, it is what an overwrite replaces.
    ///
    /// # Errors
    /// Errors of the store, and `CorruptLog`.
    #[doc(hidden)]
    pub fn unchanged_since(&self, seen: u64, own: &[u64]) -> Result<u64> {
        let mut last = seen;
        while last < self.version() && (own.contains(&(last + 1)) || self.only_moves_rows(last + 1)?) {
            last += 1;
        }
        Ok(last)
    }

    /// Returns whether a commit changes neither rows nor the protocol nor the metadata.
    fn only_moves_rows(&self, version: u64) -> Result<bool> {
        let known = self.0.state.commits().find(|commit| commit.version == version);
        if let Some(commit) = known {
            return Ok(!commit.changes_table());
        }
        match Commit::read_without_stats(self.storage(), CommitFile::named(version)) {
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(false),
            commit => Ok(!commit?.changes_table()),
        }
    }

    /// Opens the newest version of the table that is now at this location. Reuses what was read for this version if
    /// the commits that are listed still have the same sizes and times.
    ///
    /// Costs one listing, and reading the commits that are new. Unlike [`Snapshot::refresh`], it opens a table that
    /// was dropped and created again.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    #[doc(hidden)]
    pub fn reopen(&self) -> Result<Self> {
        let source = &self.0.source;
        match self.newest_in(source, Look::Place) {
            Ok(Some(newest)) => Ok(newest),
            Err(error) if !matches!(error.kind(), ErrorKind::TableReplaced | ErrorKind::NotATable) => {
                Err(error)
            }
            Ok(None) | Err(_) => Self::load(source, source.find(None)?, None),
        }
    }

    /// Returns a copy without open files. It shares everything else that was read, and opens files on its own.
    #[doc(hidden)]
    #[must_use]
    pub fn without_open_files(&self) -> Self {
        let Inner { source, state, facts, .. } = &*self.0;
        Self::of(source.clone(), state.without_open_files(), Arc::clone(facts))
    }

    /// Returns whether both are clones of one snapshot.
    #[doc(hidden)]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Estimates the memory in bytes that a snapshot without open files keeps.
    #[doc(hidden)]
    pub fn memory(&self) -> u64 {
        let checksum = self.segment().checksum.as_ref().map_or(0, |file| file.size);
        *self.0.memory.get_or_init(|| self.0.state.memory() + checksum)
    }

    /// Returns the number of the newest version of the same table. Costs one listing; new commits are not read.
    ///
    /// # Errors
    /// As [`Snapshot::refresh`].
    pub(crate) fn newest_version(&self) -> Result<u64> {
        self.newer_versions().map(|newer| newer.newest)
    }

    /// Returns the newer versions of the same table. Costs one listing; new commits are not read.
    ///
    /// # Errors
    /// As [`Snapshot::refresh`].
    pub(crate) fn newer_versions(&self) -> Result<NewerVersions> {
        match self.segment().newer_versions_in(self.0.source.segments())? {
            Some(newer) => Ok(newer),
            None => Ok(NewerVersions { newest: self.refresh()?.version(), entries: BTreeMap::new() }),
        }
    }

    /// Returns the storage of the table.
    pub fn storage(&self) -> &Storage {
        &self.0.source.storage
    }

    /// Returns the version.
    pub fn version(&self) -> u64 {
        self.segment().version
    }

    /// Returns the files of the log that make up this version.
    #[doc(hidden)]
    pub fn segment(&self) -> &LogSegment {
        self.0.state.segment()
    }

    /// Returns what readers and writers must support.
    pub fn protocol(&self) -> &Protocol {
        &self.0.facts.protocol
    }

    /// Returns the name, the partitioning and the configuration.
    pub fn metadata(&self) -> &Metadata {
        &self.0.facts.metadata
    }

    /// Returns the schema with the types of the protocol.
    pub fn schema(&self) -> &StructType {
        self.0.facts.schema.logical()
    }

    /// Returns the schema with the column names of files, partition values and statistics.
    #[doc(hidden)]
    pub fn mapped_schema(&self) -> &MappedSchema {
        &self.0.facts.schema
    }

    /// Returns the Arrow schema, including partition columns, in the order of the table.
    pub fn arrow_schema(&self) -> &SchemaRef {
        self.0.facts.schema.arrow()
    }

    /// Returns the resolver for paths in this table's log.
    #[doc(hidden)]
    pub fn resolver(&self) -> &PathResolver {
        self.0.source.resolver()
    }

    /// Returns `error` with the table and the version, unless it names others.
    #[doc(hidden)]
    pub fn located(&self, error: Error) -> Error {
        error.in_table(self.storage().url()).at_version(self.version())
    }

    /// Returns when this version was committed, in milliseconds since the epoch.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn timestamp_ms(&self) -> Result<i64> {
        self.commit_times(Some(self.version()))?.of(self.version())
    }

    /// Returns the times of the commits up to `end`, or of all commits. This version's properties determine where the
    /// times are recorded.
    ///
    /// # Errors
    /// `CorruptLog` for invalid properties, and errors of the store.
    #[doc(hidden)]
    pub fn commit_times(&self, end: Option<u64>) -> Result<CommitTimes> {
        open::commit_times(&self.0.source, &self.0.state, &self.0.facts.protocol, &self.0.facts.metadata, end)
    }

    /// Returns up to `limit` commits up to this version, newest first, without those that were cleaned up.
    ///
    /// # Errors
    /// `CorruptLog`, and errors of the store.
    pub fn history(&self, limit: Option<usize>) -> Result<Vec<HistoryEntry>> {
        history(self, &self.commit_times(Some(self.version()))?, limit)
    }

    /// Returns the actions of the versions `start` to `end`, or to this version, unchanged from the log.
    ///
    /// # Errors
    /// `VersionNotFound` for commits that were cleaned up or do not exist yet, `CorruptLog` for a commit that is
    /// missing between others, `InvalidArgument` if `end` is before `start`. Errors of reading come with the batches.
    pub fn commit_actions(&self, start: u64, end: Option<u64>) -> Result<CommitActions> {
        let end = end.unwrap_or_else(|| self.version());
        let times = self.commit_times(Some(self.version()))?;
        CommitActions::new(self.storage(), self.resolver(), times, start, end)
    }

    /// Returns the commits from version `start` on, up to the newest of the log, even if this snapshot is older. There
    /// are none if `start` is the version after the newest.
    ///
    /// # Errors
    /// `VersionNotFound` for a commit that was cleaned up or is after the version that follows the newest, `CorruptLog`
    /// for a gap between commits, `TableReplaced`. The iterator returns the errors of reading a commit.
    pub fn commits(&self, start: u64) -> Result<Commits> {
        let newest = self.refresh()?;
        Commits::since(self.storage(), self.resolver(), newest.commit_times(Some(newest.version()))?, start)
    }

    /// Returns the provenance of this version, if its commit still exists.
    pub(crate) fn commit_info(&self) -> Result<Option<CommitInfo>> {
        if let Some(info) = self.known_commit_info(self.version()) {
            return Ok(Some(info));
        }
        let published = || CommitFile::named(self.version());
        let file = self.segment().commits.last().copied().unwrap_or_else(published);
        match read_commit_info(self.storage(), file) {
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(None),
            info => info,
        }
    }

    /// Returns the in-commit timestamp of this version, if its commit has one. If the commit was cleaned up, the
    /// timestamp comes from the checksum.
    pub(crate) fn in_commit_timestamp(&self) -> Result<Option<i64>> {
        match self.commit_info()? {
            Some(info) => Ok(info.in_commit_timestamp),
            None => Ok(self.checksum()?.and_then(|checksum| checksum.in_commit_timestamp)),
        }
    }

    /// Returns the provenance of `version` if its commit was read; it is empty if the writer recorded none.
    pub(crate) fn known_commit_info(&self, version: u64) -> Option<CommitInfo> {
        let commit = self.0.state.commits().find(|commit| commit.version == version)?;
        Some(commit.commit_info.clone().unwrap_or_default())
    }

    /// The live files in the form of the log, with `columns`, beginning with the newest commits.
    ///
    /// # Errors
    /// `CorruptLog`; errors of reading come with the batches.
    #[doc(hidden)]
    pub fn replay_files(&self, columns: FileColumns) -> Result<FileReplay> {
        self.replay(AddRequest::new(columns))
    }

    /// As [`Snapshot::replay_files`], with the other options in `request`.
    ///
    /// # Errors
    /// As [`Snapshot::replay_files`].
    #[doc(hidden)]
    pub fn replay(&self, request: AddRequest) -> Result<FileReplay> {
        self.0.state.files(request)
    }

    /// The tombstones in the form of the log, expired ones included, beginning with the newest commits.
    pub(crate) fn replay_removes(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send> {
        self.0.state.removes()
    }

    /// Returns what upkeep has left to later commits. All snapshots that come from this one share it.
    pub(crate) fn left_over(&self) -> &LeftOver {
        &self.0.source.left_over
    }

    /// Returns the replayed log, for writers of checkpoints.
    pub(crate) fn state(&self) -> &State {
        &self.0.state
    }

    /// How many files, how many bytes: from the version's checksum file, if it has one, else counted. Found
    /// out once.
    ///
    /// # Errors
    /// As [`Snapshot::replay_files`].
    pub fn totals(&self) -> Result<Totals> {
        if let Some(totals) = self.0.facts.totals.get() {
            return Ok(*totals);
        }
        if let Some(checksum) = self.checksum()? {
            let totals = Totals { files: checksum.num_files, bytes: checksum.table_size_bytes };
            return Ok(*self.0.facts.totals.get_or_init(|| totals));
        }
        let mut totals = Totals::default();
        for batch in self.replay_files(FileColumns::of(&[FileColumn::Size]))? {
            let batch = batch?;
            totals.files += batch.num_rows() as u64;
            let bytes = batch
                .column_by_name(FileColumn::Size.name())
                .and_then(|sizes| sum(sizes.as_primitive::<Int64Type>()));
            totals.bytes += u64::try_from(bytes.unwrap_or_default()).unwrap_or_default();
        }
        Ok(*self.0.facts.totals.get_or_init(|| totals))
    }

    /// The version's checksum file, if it has one that can be believed. Read once.
    fn checksum(&self) -> Result<Option<&VersionChecksum>> {
        if self.0.facts.checksum.get().is_none() {
            let found = checksum::understood(self.storage(), self.segment())?;
            let found = found
                .filter(|found| checksum::believable(self.storage(), &self.0.state, self.version(), found))
                .map(Box::new);
            self.0.facts.checksum.get_or_init(|| found);
        }
        let is_wrong = self.0.facts.is_checksum_wrong.load(Ordering::Relaxed);
        Ok(self.0.facts.checksum.get().and_then(|checksum| checksum.as_deref()).filter(|_| !is_wrong))
    }

    /// Compares this version with its checksum file, field by field.
    ///
    /// # Errors
    /// The errors of replaying the log. A difference is part of the result, not an error.
    pub fn verify(&self) -> Result<Verification> {
        verify(self)
    }

    /// Path and content of the checksum file of this version, whether it can be trusted or not.
    pub(crate) fn checksum_file(&self) -> Result<Option<(String, VersionChecksum)>> {
        let found = checksum::understood(self.storage(), self.segment())?;
        Ok(found.map(|found| (checksum::path(self.segment()), found)))
    }

    /// Protocol and metadata by the log alone.
    pub(crate) fn replay_table_actions(&self) -> Result<(Protocol, Metadata)> {
        let located = |error| self.located(error);
        open::find_table_actions(&self.0.state, None, &mut || Ok(None)).map_err(located)
    }

    /// The progress of an application, if it ever recorded one. Protocol: "Transaction Identifiers".
    ///
    /// # Errors
    /// `CorruptLog`, and errors of the store.
    pub fn app_transaction(&self, app_id: &str) -> Result<Option<SetTransaction>> {
        Ok(self.app_transactions()?.into_iter().find(|transaction| transaction.app_id == app_id))
    }

    /// The newest progress of each application.
    ///
    /// # Errors
    /// `CorruptLog`, and errors of the store.
    pub fn app_transactions(&self) -> Result<Vec<SetTransaction>> {
        let mut newest: Vec<SetTransaction> = Vec::new();
        let mut seen = HashSet::new();
        let transactions =
            self.0.state.table_actions(&[TableAction::Transaction])?.into_iter().filter_map(|action| {
                match action {
                    Action::Txn(transaction) => Some(transaction),
                    _ => None,
                }
            });
        for transaction in transactions {
            if seen.insert(transaction.app_id.clone()) {
                newest.push(transaction);
            }
        }
        Ok(newest)
    }

    /// The configuration of each metadata domain that is not removed. Protocol: "Domain Metadata".
    ///
    /// # Errors
    /// `CorruptLog`, and errors of the store.
    pub fn domain_metadata(&self) -> Result<Vec<DomainMetadata>> {
        let mut newest: Vec<DomainMetadata> = Vec::new();
        let mut seen = HashSet::new();
        let domains =
            self.0.state.table_actions(&[TableAction::Domain])?.into_iter().filter_map(
                |action| match action {
                    Action::DomainMetadata(domain) => Some(domain),
                    _ => None,
                },
            );
        for domain in domains {
            if seen.insert(domain.domain.clone()) {
                newest.push(domain);
            }
        }
        newest.retain(|domain| !domain.removed);
        Ok(newest)
    }

    /// The paths of the columns that the table is clustered by, in order; none if it is not clustered.
    /// Protocol: "Clustered Table".
    ///
    /// # Errors
    /// As [`Snapshot::domain_metadata`]; `CorruptLog` too for a missing column.
    pub fn clustering_columns(&self) -> Result<Vec<Vec<String>>> {
        let domain = self.domain_metadata()?.into_iter().find(|domain| domain.domain == CLUSTERING_DOMAIN);
        let columns =
            domain.map(|domain| clustering_columns(&domain.configuration, &self.0.facts.schema)).transpose();
        columns.map(Option::unwrap_or_default).map_err(|error| self.located(error))
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("table", &self.storage().url())
            .field("version", &self.version())
            .finish()
    }
}
