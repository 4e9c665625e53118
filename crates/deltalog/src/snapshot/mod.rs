//! A table at one version.
//!
//! - A snapshot is immutable and cheap to clone. Threads may share it.
//! - Opening a snapshot reads a listing of the log, the commits after the checkpoint, and from the checkpoint only what
//!   these commits do not contain.
//! - The list of files is not kept in memory. It is read on request, with only the requested columns.

mod checksum;
mod doubts;
mod file_totals;
pub(crate) mod history;
mod left_over;
mod newer;
mod open;
mod policies;
mod registry;
pub(crate) mod table;
pub(crate) mod verify;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::sum;
use arrow::datatypes::{Int64Type, SchemaRef};

use crate::error::{Error, ErrorKind, Result};
use crate::log::commit_actions::{CommitActions, Commits};
use crate::log::replay::{AddRequest, FileColumn, FileColumns, FileReplay, State, TableAction};
use crate::log::{CommitFile, CommitTimes, LogSegment, VersionChecksum, read_commit_info};
use crate::protocol::{
    Action, CLUSTERING_DOMAIN, CommitInfo, DomainMetadata, MappedSchema, Metadata, PathResolver, Protocol,
    SetTransaction, StructType, clustering_columns,
};
use crate::snapshot::history::{HistoryEntry, history};
use crate::snapshot::verify::{Verification, verify};
use crate::storage::Storage;

use open::Source;

pub(crate) use checksum::KnownChecksum;
pub(crate) use doubts::{doubt_checksums, is_checksum_doubted};
pub(crate) use left_over::{Expired, LeftOver, MOST_OWN_COMMITS};
pub use open::SnapshotBuilder;
pub use registry::forget_snapshots;

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

/// Information about a version, except its files. Clones of a snapshot share it.
struct Facts {
    protocol: Protocol,
    metadata: Metadata,
    schema: MappedSchema,
    totals: OnceLock<Totals>,
    /// If the inner value is `None`, the version has no checksum that can be trusted.
    checksum: OnceLock<Option<Box<VersionChecksum>>>,
    /// Whether the checksum turned out to contradict the version's list of files.
    is_checksum_wrong: AtomicBool,
}

/// The size of a table's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Totals {
    /// The number of live data files.
    pub files: u64,
    /// The total size of the live data files in bytes.
    pub bytes: u64,
}

impl Snapshot {
    /// Opens the version `version`, or the newest one.
    ///
    /// # Errors
    /// `NotATable`, `VersionNotFound`, `CorruptLog`, `Unsupported` for a feature that readers must support, and
    /// errors from the store.
    pub fn open(storage: &Storage, version: Option<u64>) -> Result<Self> {
        let builder = SnapshotBuilder::new(storage);
        version.into_iter().fold(builder, SnapshotBuilder::version).open()
    }

    /// Opens the version that was the newest at `timestamp_ms`, in milliseconds since the epoch.
    ///
    /// # Errors
    /// `VersionNotFound` for a time outside the range of readable versions, which the message states; otherwise as
    /// [`Snapshot::open`].
    pub fn open_at(storage: &Storage, timestamp_ms: i64) -> Result<Self> {
        SnapshotBuilder::new(storage).timestamp_ms(timestamp_ms).open()
    }

    /// Returns a builder with more options than [`Snapshot::open`].
    pub fn builder(storage: &Storage) -> SnapshotBuilder {
        SnapshotBuilder::new(storage)
    }

    fn of(source: Source, state: State, facts: Arc<Facts>) -> Self {
        Self(Arc::new(Inner { source, state, facts, memory: OnceLock::new() }))
    }

    /// Returns a copy without open files. It shares everything else that was read, and opens files itself when it needs
    /// them.
    #[doc(hidden)]
    #[must_use]
    pub fn without_open_files(&self) -> Self {
        let Inner { source, state, facts, .. } = &*self.0;
        Self::of(source.clone(), state.without_open_files(), Arc::clone(facts))
    }

    /// Returns whether both are clones of the same snapshot.
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

    /// Returns the protocol, that is, the requirements for readers and writers.
    pub fn protocol(&self) -> &Protocol {
        &self.0.facts.protocol
    }

    /// Returns the metadata, such as the table's name, partitioning and configuration.
    pub fn metadata(&self) -> &Metadata {
        &self.0.facts.metadata
    }

    /// Returns the schema with Delta's own types.
    pub fn schema(&self) -> &StructType {
        self.0.facts.schema.logical()
    }

    /// Returns the schema with the column names used in files, partition values and statistics.
    #[doc(hidden)]
    pub fn mapped_schema(&self) -> &MappedSchema {
        &self.0.facts.schema
    }

    /// Returns the Arrow schema. It includes the partition columns, in the order of the table's schema.
    pub fn arrow_schema(&self) -> &SchemaRef {
        self.0.facts.schema.arrow()
    }

    /// Returns the resolver for the paths in this table's log.
    #[doc(hidden)]
    pub fn resolver(&self) -> &PathResolver {
        self.0.source.resolver()
    }

    /// Returns `error` with the table and the version added, unless it already has others.
    #[doc(hidden)]
    pub fn located(&self, error: Error) -> Error {
        error.in_table(self.storage().url()).at_version(self.version())
    }

    /// Returns the time at which this version was committed, in milliseconds since the epoch.
    ///
    /// # Errors
    /// Errors from the store.
    pub fn timestamp_ms(&self) -> Result<i64> {
        self.commit_times(Some(self.version()))?.of(self.version())
    }

    /// Returns the times of all commits, or of the commits up to `end`. The properties of this version determine where
    /// a commit's time is recorded.
    ///
    /// # Errors
    /// `CorruptLog` for invalid properties, and errors from the store.
    #[doc(hidden)]
    pub fn commit_times(&self, end: Option<u64>) -> Result<CommitTimes> {
        open::commit_times(&self.0.source, &self.0.state, &self.0.facts.protocol, &self.0.facts.metadata, end)
    }

    /// Returns at most `limit` commits up to this version, newest first. Commits that were cleaned up are left out.
    ///
    /// # Errors
    /// `CorruptLog`, and errors from the store.
    pub fn history(&self, limit: Option<usize>) -> Result<Vec<HistoryEntry>> {
        history(self, &self.commit_times(Some(self.version()))?, limit)
    }

    /// Returns the actions of the versions from `start` to `end`, or to this version, exactly as they are in the log.
    ///
    /// # Errors
    /// `VersionNotFound` for commits that were cleaned up or do not exist yet, `CorruptLog` for a commit that is
    /// missing between others, `InvalidArgument` if `end` is before `start`. Errors of reading come with the batches.
    pub fn commit_actions(&self, start: u64, end: Option<u64>) -> Result<CommitActions> {
        let end = end.unwrap_or_else(|| self.version());
        let times = self.commit_times(Some(self.version()))?;
        CommitActions::new(self.storage(), self.resolver(), times, start, end)
    }

    /// Returns the commits from version `start` on, up to the newest version of the log, even if this snapshot is
    /// older. There are none if `start` is the version after the newest one.
    ///
    /// # Errors
    /// `VersionNotFound` if the commit of `start` was cleaned up or if `start` is beyond the version after the newest
    /// one; `CorruptLog` for a gap between commits; `TableReplaced`. If reading a commit fails, the iterator returns
    /// the error.
    pub fn commits(&self, start: u64) -> Result<Commits> {
        let newest = self.refresh()?;
        Commits::since(self.storage(), self.resolver(), newest.commit_times(Some(newest.version()))?, start)
    }

    /// Returns the `commitInfo` of this version, if its commit still exists.
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
    /// timestamp is taken from the checksum.
    pub(crate) fn in_commit_timestamp(&self) -> Result<Option<i64>> {
        match self.commit_info()? {
            Some(info) => Ok(info.in_commit_timestamp),
            None => Ok(self.checksum()?.and_then(|checksum| checksum.in_commit_timestamp)),
        }
    }

    /// Returns the `commitInfo` of `version`, or `None` if its commit was not read. It is empty if the writer did not
    /// record one.
    pub(crate) fn known_commit_info(&self, version: u64) -> Option<CommitInfo> {
        let commit = self.0.state.commits().find(|commit| commit.version == version)?;
        Some(commit.commit_info.clone().unwrap_or_default())
    }

    /// Returns the live files as batches with the log's columns, restricted to `columns`. Files of the newest commits
    /// come first.
    ///
    /// # Errors
    /// `CorruptLog`; errors of reading come with the batches.
    #[doc(hidden)]
    pub fn replay_files(&self, columns: FileColumns) -> Result<FileReplay> {
        self.replay(AddRequest::new(columns))
    }

    /// Does the same as [`Snapshot::replay_files`], with the options in `request`.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::replay_files`].
    #[doc(hidden)]
    pub fn replay(&self, request: AddRequest) -> Result<FileReplay> {
        self.0.state.files(request)
    }

    /// Returns the tombstones, including expired ones, as batches with the log's columns. Tombstones from the newest
    /// commits come first.
    pub(crate) fn replay_removes(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send> {
        self.0.state.removes()
    }

    /// Returns the work on the log that is left for later commits. All snapshots that were refreshed from this one
    /// share it.
    pub(crate) fn left_over(&self) -> &LeftOver {
        &self.0.source.left_over
    }

    /// Returns the replayed log, which is needed for writing checkpoints.
    pub(crate) fn state(&self) -> &State {
        &self.0.state
    }

    /// Returns the number of live files and their total size. They are taken from the version's checksum file if it has
    /// one, otherwise counted. The result is kept.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::replay_files`].
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

    /// Returns the number of live files, if it is known without reading anything.
    pub(crate) fn known_files(&self) -> Option<u64> {
        let facts = &self.0.facts;
        let checksum = || facts.checksum.get()?.as_ref().map(|checksum| checksum.num_files);
        facts.totals.get().map(|totals| totals.files).or_else(checksum)
    }

    /// Returns the version's checksum file, if it has one that can be trusted. The file is read only once.
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

    /// Returns the path and content of the checksum file of this version, whether or not it can be trusted.
    pub(crate) fn checksum_file(&self) -> Result<Option<(String, VersionChecksum)>> {
        let found = checksum::understood(self.storage(), self.segment())?;
        Ok(found.map(|found| (checksum::path(self.segment()), found)))
    }

    /// Returns the protocol and the metadata from the log alone, without using the checksum file.
    pub(crate) fn replay_table_actions(&self) -> Result<(Protocol, Metadata)> {
        let located = |error| self.located(error);
        open::find_table_actions(&self.0.state, None, &mut || Ok(None)).map_err(located)
    }

    /// Returns the progress of an application, if it has recorded any. Protocol: "Transaction Identifiers".
    ///
    /// # Errors
    /// `CorruptLog`, and errors from the store.
    pub fn app_transaction(&self, app_id: &str) -> Result<Option<SetTransaction>> {
        Ok(self.app_transactions()?.into_iter().find(|transaction| transaction.app_id == app_id))
    }

    /// Returns the newest recorded progress of each application.
    ///
    /// # Errors
    /// `CorruptLog`, and errors from the store.
    pub fn app_transactions(&self) -> Result<Vec<SetTransaction>> {
        let transaction = |action| match action {
            Action::Txn(transaction) => Some(transaction),
            _ => None,
        };
        self.newest_actions(TableAction::Transaction, transaction, |transaction| &transaction.app_id)
    }

    /// Returns the configuration of each metadata domain that was not removed. Protocol: "Domain Metadata".
    ///
    /// # Errors
    /// `CorruptLog`, and errors from the store.
    pub fn domain_metadata(&self) -> Result<Vec<DomainMetadata>> {
        let domain = |action| match action {
            Action::DomainMetadata(domain) => Some(domain),
            _ => None,
        };
        let mut newest = self.newest_actions(TableAction::Domain, domain, |domain| &domain.domain)?;
        newest.retain(|domain| !domain.removed);
        Ok(newest)
    }

    /// Returns, for each `key`, the newest of the actions of one kind that have this key.
    fn newest_actions<T>(
        &self,
        kind: TableAction,
        of: impl Fn(Action) -> Option<T>,
        key: impl Fn(&T) -> &str,
    ) -> Result<Vec<T>> {
        let mut seen = HashSet::new();
        let actions = self.0.state.table_actions(&[kind])?.into_iter().filter_map(of);
        Ok(actions.filter(|action| seen.insert(key(action).to_owned())).collect())
    }

    /// Returns the paths of the columns by which the table is clustered, in order; none if the table is not clustered.
    /// Protocol: "Clustered Table".
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::domain_metadata`], and `CorruptLog` for a missing column.
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
