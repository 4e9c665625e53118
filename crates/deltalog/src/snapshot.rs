//! A table at one version.
//!
//! - Immutable and cheap to clone; threads may share it.
//! - Opening reads the listing, the commits after the checkpoint, and of the checkpoint only what the commits do not say.
//! - The file list is not held: it is replayed when asked for, with the columns that were asked for.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::array::AsArray;
use arrow::compute::sum;
use arrow::datatypes::{Int64Type, SchemaRef};

use crate::error::{Error, ErrorKind, Result};
use crate::log::{CommitFile, CommitTimes, LogSegment};
use crate::protocol::{Action, DomainMetadata, Metadata, PathResolver, Protocol, SetTransaction, StructType, ensure_readable};
use crate::replay::{CheckpointReader, Commit, FileColumn, FileColumns, FileReplay, TableAction, Tail, read_table_actions};
use crate::storage::Storage;

/// A table at one version.
#[derive(Clone)]
pub struct Snapshot(Arc<Inner>);

struct Inner {
    storage: Storage,
    segment: LogSegment,
    /// Those after the checkpoint, newest first.
    commits: Vec<Arc<Commit>>,
    protocol: Protocol,
    metadata: Metadata,
    schema: StructType,
    arrow_schema: SchemaRef,
    resolver: PathResolver,
    tail: OnceLock<Arc<Tail>>,
    totals: OnceLock<Totals>,
}

/// How much there is in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    /// `NotATable`, `VersionNotFound`, `CorruptLog`, `Unsupported` for a feature that readers must know, and the store's own.
    pub fn open(storage: &Storage, version: Option<u64>) -> Result<Self> {
        let segment = LogSegment::find(storage, version)?;
        Self::load(storage, segment, None)
    }

    /// Opens the newest version that was committed at or before `timestamp_ms`, milliseconds since the epoch.
    ///
    /// # Errors
    /// `VersionNotFound` outside of the times of the readable versions, which it lists; else as [`Snapshot::open`].
    pub fn open_at(storage: &Storage, timestamp_ms: i64) -> Result<Self> {
        let version = CommitTimes::read(storage, None)?.version_at(timestamp_ms)?;
        Self::open(storage, Some(version))
    }

    /// The newest version; costs one listing and the new commits. A clone of `self` if there is nothing new.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn refresh(&self) -> Result<Self> {
        match self.0.segment.refresh(&self.0.storage)? {
            None => Ok(self.clone()),
            Some(segment) => Self::load(&self.0.storage, segment, Some(self)),
        }
    }

    fn load(storage: &Storage, segment: LogSegment, older: Option<&Self>) -> Result<Self> {
        let known = |file: &CommitFile| {
            let commits = &older?.0.commits;
            // Newest first.
            let index = commits.binary_search_by(|commit| file.version.cmp(&commit.version)).ok()?;
            commits.get(index).cloned()
        };
        let commits = read_commits(storage, &segment.commits, known)?;
        let found = find_table_actions(storage, &segment, &commits, older);
        let (protocol, metadata) = found.map_err(|error| error.in_table(storage.url()).at_version(segment.version))?;
        let located = |error: Error| error.in_table(storage.url()).at_version(segment.version);
        // The protocol is looked at first: what it asks for may be needed to understand the rest.
        ensure_readable(&protocol, &metadata).map_err(located)?;
        let schema = metadata.schema().map_err(located)?;
        let arrow_schema = Arc::new(schema.to_arrow().map_err(located)?);
        if let Some(missing) = metadata.partition_columns.iter().find(|column| arrow_schema.field_with_name(column).is_err()) {
            return Err(located(Error::corrupt_log(format!("the partition column '{missing}' is not in the schema"))));
        }
        let resolver = PathResolver::new(storage.root())?;
        Ok(Self(Arc::new(Inner {
            storage: storage.clone(),
            segment,
            commits,
            protocol,
            metadata,
            schema,
            arrow_schema,
            resolver,
            tail: OnceLock::new(),
            totals: OnceLock::new(),
        })))
    }

    /// Where the table lies.
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// This version.
    pub fn version(&self) -> u64 {
        self.0.segment.version
    }

    /// The files of the log that make this version.
    pub fn segment(&self) -> &LogSegment {
        &self.0.segment
    }

    /// What readers and writers must support.
    pub fn protocol(&self) -> &Protocol {
        &self.0.protocol
    }

    /// Name, partitioning, configuration.
    pub fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }

    /// The schema in the protocol's terms.
    pub fn schema(&self) -> &StructType {
        &self.0.schema
    }

    /// The schema in Arrow's terms, partition columns included, in the table's order.
    pub fn arrow_schema(&self) -> &SchemaRef {
        &self.0.arrow_schema
    }

    /// Decodes the paths of this table's log.
    pub fn resolver(&self) -> &PathResolver {
        &self.0.resolver
    }

    /// When this version was committed, milliseconds since the epoch.
    ///
    /// # Errors
    /// The store's own.
    pub fn timestamp_ms(&self) -> Result<i64> {
        CommitTimes::read(&self.0.storage, Some(self.version()))?.of(self.version())
    }

    /// The live files in the form of the log, with `columns`; those of the newest commits first.
    ///
    /// # Errors
    /// `CorruptLog`; what goes wrong while reading comes with the batches.
    pub fn replay_files(&self, columns: FileColumns) -> Result<FileReplay> {
        let tail = self.tail()?;
        let read = FileReplay::columns_for(&tail, columns);
        let checkpoint = self.0.segment.checkpoint.as_ref().map(|checkpoint| CheckpointReader::adds(&self.0.storage, checkpoint, read));
        Ok(FileReplay::new(tail, checkpoint, columns, self.0.resolver.clone()))
    }

    /// The files and tombstones of the commits after the checkpoint, reconciled.
    pub(crate) fn tail(&self) -> Result<Arc<Tail>> {
        if let Some(tail) = self.0.tail.get() {
            return Ok(Arc::clone(tail));
        }
        let tail = Tail::reconcile(&self.0.commits, &self.0.resolver).map_err(|error| error.in_table(self.0.storage.url()))?;
        Ok(Arc::clone(self.0.tail.get_or_init(|| Arc::new(tail))))
    }

    /// How many files, how many bytes. Read once.
    ///
    /// # Errors
    /// As [`Snapshot::replay_files`].
    pub fn totals(&self) -> Result<Totals> {
        if let Some(totals) = self.0.totals.get() {
            return Ok(*totals);
        }
        let mut totals = Totals::default();
        for batch in self.replay_files(FileColumns::of(&[FileColumn::Size]))? {
            let batch = batch?;
            totals.files += batch.num_rows() as u64;
            let bytes = batch.column_by_name(FileColumn::Size.name()).and_then(|sizes| sum(sizes.as_primitive::<Int64Type>()));
            totals.bytes += u64::try_from(bytes.unwrap_or_default()).unwrap_or_default();
        }
        Ok(*self.0.totals.get_or_init(|| totals))
    }

    /// The progress of an application, if it ever recorded one. Protocol: "Transaction Identifiers".
    ///
    /// # Errors
    /// `CorruptLog`, and the store's own.
    pub fn app_transaction(&self, app_id: &str) -> Result<Option<SetTransaction>> {
        Ok(self.app_transactions()?.into_iter().find(|transaction| transaction.app_id == app_id))
    }

    /// The newest progress of each application.
    pub(crate) fn app_transactions(&self) -> Result<Vec<SetTransaction>> {
        let mut newest: Vec<SetTransaction> = Vec::new();
        let mut seen = HashSet::new();
        let from_commits = self.0.commits.iter().flat_map(|commit| commit.transactions.iter().cloned());
        let from_checkpoint = self.checkpoint_actions(TableAction::Transaction)?.into_iter().filter_map(|action| match action {
            Action::Txn(transaction) => Some(transaction),
            _ => None,
        });
        for transaction in from_commits.chain(from_checkpoint) {
            if seen.insert(transaction.app_id.clone()) {
                newest.push(transaction);
            }
        }
        Ok(newest)
    }

    /// The configuration of each metadata domain that is not removed. Protocol: "Domain Metadata".
    ///
    /// # Errors
    /// `CorruptLog`, and the store's own.
    pub fn domain_metadata(&self) -> Result<Vec<DomainMetadata>> {
        let mut newest: Vec<DomainMetadata> = Vec::new();
        let mut seen = HashSet::new();
        let from_commits = self.0.commits.iter().flat_map(|commit| commit.domains.iter().cloned());
        let from_checkpoint = self.checkpoint_actions(TableAction::Domain)?.into_iter().filter_map(|action| match action {
            Action::DomainMetadata(domain) => Some(domain),
            _ => None,
        });
        for domain in from_commits.chain(from_checkpoint) {
            if seen.insert(domain.domain.clone()) {
                newest.push(domain);
            }
        }
        newest.retain(|domain| !domain.removed);
        Ok(newest)
    }

    fn checkpoint_actions(&self, kind: TableAction) -> Result<Vec<Action>> {
        match &self.0.segment.checkpoint {
            Some(checkpoint) => read_table_actions(&self.0.storage, checkpoint, &[kind]),
            None => Ok(Vec::new()),
        }
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("table", &self.0.storage.url()).field("version", &self.version()).finish()
    }
}

/// Reads and parses commits on all cores; newest first.
fn read_commits(storage: &Storage, files: &[CommitFile], known: impl Fn(&CommitFile) -> Option<Arc<Commit>>) -> Result<Vec<Arc<Commit>>> {
    let known: Vec<_> = files.iter().rev().map(|file| (*file, known(file))).collect();
    let missing = known.iter().filter(|(_, commit)| commit.is_none()).count();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(missing.div_ceil(8));
    if threads <= 1 {
        return known.into_iter().map(|(file, commit)| commit.map_or_else(|| Commit::read(storage, file).map(Arc::new), Ok)).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<Arc<Commit>>>>> = Mutex::new(known.iter().map(|(_, commit)| commit.clone().map(Ok)).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((file, commit)) = known.get(index) else { break };
                    if commit.is_none() {
                        let result = Commit::read(storage, *file).map(Arc::new);
                        if let Some(place) = results.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index) {
                            *place = Some(result);
                        }
                    }
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().map(|result| result.unwrap_or_else(|| Err(Error::new(ErrorKind::Unavailable, "a commit was not read")))).collect()
}

/// The newest protocol and metadata: from the commits, else what an older snapshot knew, else from the checkpoint.
fn find_table_actions(
    storage: &Storage,
    segment: &LogSegment,
    commits: &[Arc<Commit>],
    older: Option<&Snapshot>,
) -> Result<(Protocol, Metadata)> {
    let mut protocol = commits.iter().find_map(|commit| commit.protocol.clone());
    let mut metadata = commits.iter().find_map(|commit| commit.metadata.clone());
    // An older snapshot's word counts only if every commit since is among `commits`.
    let first = segment.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version + 1);
    if let Some(older) = older
        && first <= older.version() + 1
    {
        protocol = protocol.or_else(|| Some(older.protocol().clone()));
        metadata = metadata.or_else(|| Some(older.metadata().clone()));
    }
    if let Some(checkpoint) = &segment.checkpoint {
        let kinds: Vec<_> = [(protocol.is_none(), TableAction::Protocol), (metadata.is_none(), TableAction::Metadata)]
            .into_iter()
            .filter_map(|(needed, kind)| needed.then_some(kind))
            .collect();
        for action in if kinds.is_empty() { Vec::new() } else { read_table_actions(storage, checkpoint, &kinds)? } {
            match action {
                Action::Protocol(found) => protocol = Some(found),
                Action::Metadata(found) => metadata = Some(found),
                _ => {}
            }
        }
    }
    let missing = |what: &str| {
        Error::corrupt_log(format!("the log has no '{what}' action")).with_hint("a table's first commit must hold protocol and metaData")
    };
    Ok((protocol.ok_or_else(|| missing("protocol"))?, metadata.ok_or_else(|| missing("metaData"))?))
}
