//! Opens a snapshot at a version or a time, either by its path alone or with the response of a catalog.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use url::Url;

use super::checksum::{believable, understood};
use super::{Facts, LeftOver, Snapshot};
use crate::error::{Error, ErrorKind, Result};
use crate::log::replay::{State, TableAction};
use crate::log::{
    CommitTimes, InCommitTimestamps, LogSegment, SegmentSource, StagedCommit, VersionChecksum, replaced,
};
use crate::protocol::TableHeader;
use crate::protocol::{
    Action, ColumnMappingMode, MappedSchema, Metadata, PathResolver, Protocol, TableFeature, ensure_readable,
    ensure_readable_with_catalog,
};
use crate::storage::{Storage, parse_location};

/// Options for opening a snapshot. See [`Snapshot::builder`].
#[derive(Debug, Clone)]
pub struct SnapshotBuilder {
    pub(super) storage: Storage,
    version: Option<u64>,
    timestamp_ms: Option<i64>,
    staged: Option<Vec<StagedCommit>>,
    pub(super) roots: Vec<Url>,
    table_id: Option<String>,
}

impl SnapshotBuilder {
    pub(super) fn new(storage: &Storage) -> Self {
        Self {
            storage: storage.clone(),
            version: None,
            timestamp_ms: None,
            staged: None,
            roots: Vec::new(),
            table_id: None,
        }
    }

    /// Opens this version.
    #[must_use]
    pub fn version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Opens the newest version that was committed at or before `timestamp_ms`, in milliseconds since the epoch.
    #[must_use]
    pub fn timestamp_ms(mut self, timestamp_ms: i64) -> Self {
        self.timestamp_ms = Some(timestamp_ms);
        self
    }

    /// Passes all commits that the table's catalog has accepted but not published yet. There may be none. A table that
    /// is managed by a catalog can only be opened if this is called.
    #[must_use]
    pub fn staged_commits(mut self, commits: impl IntoIterator<Item = StagedCommit>) -> Self {
        self.staged = Some(commits.into_iter().collect());
        self
    }

    /// Also allows data files and deletion vectors below `location`, a path or a URL. A shallow clone needs this,
    /// because it has files outside its own directory. Other files outside the table are refused when they are about to
    /// be read.
    ///
    /// # Errors
    /// `InvalidArgument` if `location` is not valid.
    pub fn allow_root(mut self, location: &str) -> Result<Self> {
        self.roots.push(parse_location(location)?);
        Ok(self)
    }

    /// Opens the table only if the id in its metadata is `id`. Pass the id of the table that was opened before, to be
    /// sure that it is still the same one.
    #[doc(hidden)]
    #[must_use]
    pub fn table_id(mut self, id: &str) -> Self {
        self.table_id = Some(id.to_owned());
        self
    }

    /// Returns whether the newest version of any table at this location is requested.
    pub(super) fn is_of_newest(&self) -> bool {
        self.version.is_none()
            && self.timestamp_ms.is_none()
            && self.staged.is_none()
            && self.table_id.is_none()
    }

    /// Opens the snapshot.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::open`] and [`Snapshot::open_at`]. Returns `InvalidArgument` if both a
    /// version and a time are set, if two staged commits have the same version, or if staged commits are passed for a
    /// table that is not managed by a catalog. Returns `TableReplaced` if the table does not have the requested id.
    pub fn open(mut self) -> Result<Snapshot> {
        let id = self.table_id.take();
        let newest = Self { version: None, timestamp_ms: None, ..self.clone() };
        let wanted = self.version;
        let found = self.open_any();
        let Some(id) = id else { return found };
        let other = match &found {
            Ok(snapshot) => Some(snapshot.clone()),
            // If another table is now at this location, it may not have the requested version.
            Err(error) if error.kind() == ErrorKind::VersionNotFound => newest.open_any().ok(),
            Err(_) => None,
        };
        match other.filter(|other| other.metadata().id != id) {
            Some(other) => Err(replaced(other.storage(), wanted.unwrap_or_else(|| other.version()))),
            None => found,
        }
    }

    fn open_any(self) -> Result<Snapshot> {
        if self.version.is_some() && self.timestamp_ms.is_some() {
            return Err(Error::invalid_argument("a table is read at a version or at a time, not at both")
                .in_table(self.storage.url()));
        }
        let own = PathResolver::new(self.storage.root())?;
        let resolver = self.roots.iter().try_fold(own, PathResolver::allow)?;
        let source = Source::new(&self.storage, resolver, self.staged)?;
        let Some(timestamp_ms) = self.timestamp_ms else {
            return Snapshot::load(&source, source.find(self.version)?, None);
        };
        Snapshot::load_at(&source, timestamp_ms)
    }
}

/// A table's log, together with the response of its catalog.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) storage: Storage,
    resolver: PathResolver,
    pub(super) staged: Arc<[StagedCommit]>,
    has_catalog: bool,
    /// Work on the log that is left for later commits.
    pub(super) left_over: Arc<LeftOver>,
}

impl Source {
    pub(super) fn new(
        storage: &Storage,
        resolver: PathResolver,
        staged: Option<Vec<StagedCommit>>,
    ) -> Result<Self> {
        let has_catalog = staged.is_some();
        let mut staged = staged.unwrap_or_default();
        staged.sort_by_key(StagedCommit::version);
        if let Some(pair) =
            staged.windows(2).find(|pair| matches!(pair, [a, b] if a.version() == b.version()))
        {
            let version = pair.first().map_or(0, StagedCommit::version);
            return Err(Error::invalid_argument(format!("two staged commits have version {version}"))
                .in_table(storage.url()));
        }
        let storage = storage.holding(staged.iter().filter_map(StagedCommit::inline_file));
        Ok(Self { resolver, storage, staged: staged.into(), has_catalog, left_over: Arc::default() })
    }

    pub(super) fn segments(&self) -> SegmentSource<'_> {
        SegmentSource { staged: &self.staged, ..SegmentSource::new(&self.storage) }
    }

    pub(super) fn find(&self, version: Option<u64>) -> Result<LogSegment> {
        LogSegment::find_in(self.segments(), version)
    }

    pub(super) fn state(&self, segment: LogSegment, older: Option<&State>) -> Result<State> {
        State::load(&self.storage, &self.resolver, &self.staged, segment, older, &[])
    }

    fn located(&self, error: Error, state: &State) -> Error {
        error.in_table(self.storage.url()).at_version(state.segment().version)
    }

    fn ensure_readable(&self, protocol: &Protocol, metadata: &Metadata) -> Result<()> {
        if !self.has_catalog {
            return ensure_readable(protocol, metadata);
        }
        ensure_readable_with_catalog(protocol, metadata)?;
        if !self.staged.is_empty() && !protocol.reader_features().contains(&TableFeature::CatalogManaged) {
            return Err(Error::invalid_argument(
                "staged commits were passed for a table that is not managed by a catalog",
            )
            .with_hint("open it without them"));
        }
        Ok(())
    }
}

impl Snapshot {
    /// Opens the version of `source` that was the newest at `timestamp_ms`.
    pub(super) fn load_at(source: &Source, timestamp_ms: i64) -> Result<Self> {
        // The newest version determines whether commits contain their time, even if that version itself cannot be read.
        let newest = source.find(None)?;
        let state = source.state(newest, None)?;
        let (protocol, metadata) = find_table_actions(&state, None, &mut || Ok(None))
            .map_err(|error| source.located(error, &state))?;
        let version = commit_times(source, &state, &protocol, &metadata, None)?.version_at(timestamp_ms)?;
        let segment = if version == state.segment().version {
            state.segment().clone()
        } else {
            source.find(Some(version))?
        };
        Self::load(source, segment, Some((&state, None)))
    }

    /// Builds the snapshot of `segment`. What `older` has already read is not read again. If no newer commit sets the
    /// protocol or the metadata, they are taken from `older`.
    pub(super) fn load(
        source: &Source,
        segment: LogSegment,
        older: Option<(&State, Option<&Self>)>,
    ) -> Result<Self> {
        let (older_state, older) = older.map_or((None, None), |(state, snapshot)| (Some(state), snapshot));
        let state = source.state(segment, older_state)?;
        let storage = &source.storage;
        let located = |error: Error| source.located(error, &state);
        let mut checksum = None;
        let mut from_checksum = || {
            let version = state.segment().version;
            let found = understood(storage, state.segment())?
                .filter(|found| believable(storage, &state, version, found));
            let actions =
                found.as_ref().and_then(|found| Some((found.protocol.clone()?, found.metadata.clone()?)));
            checksum = Some(found.map(Box::new));
            Ok(actions)
        };
        let (protocol, metadata) = find_table_actions(&state, older, &mut from_checksum).map_err(located)?;
        // The protocol is checked first, because everything else may only be readable with the features that it lists.
        source.ensure_readable(&protocol, &metadata).map_err(located)?;
        let checksum = checksum.map_or_else(OnceLock::new, OnceLock::from);
        let facts = Facts::new(protocol, metadata, checksum).map_err(located)?;
        Ok(Self::of(source.clone(), state, Arc::new(facts)))
    }

    /// Returns this version with the protocol and metadata in `header`. A statement that changes the schema uses the
    /// result to read and write rows with the new schema. The log has no such version; transactions are based on
    /// `self`.
    ///
    /// # Errors
    /// `CorruptLog` for an invalid schema.
    pub(crate) fn seen_with(&self, header: &TableHeader) -> Result<Self> {
        let facts = Facts::new(header.protocol.clone(), header.metadata.clone(), OnceLock::from(None));
        let facts = facts.map_err(|error| self.located(error))?;
        Ok(Self::of(self.0.source.clone(), self.0.state.clone(), Arc::new(facts)))
    }
}

impl Facts {
    fn new(
        protocol: Protocol,
        metadata: Metadata,
        checksum: OnceLock<Option<Box<VersionChecksum>>>,
    ) -> Result<Self> {
        let mode = ColumnMappingMode::of(&protocol, &metadata)?;
        let schema = metadata.schema()?;
        // Type changes are only checked if the table has the feature. After the feature was dropped, none of the
        // table's files has an older type, so recorded type changes have no meaning.
        let widening = [TableFeature::TypeWidening, TableFeature::TypeWideningPreview];
        if protocol.reader_features().iter().any(|feature| widening.contains(feature)) {
            schema.check_type_changes()?;
        }
        let schema = MappedSchema::new(schema, mode)?;
        if let Some(missing) =
            metadata.partition_columns.iter().find(|column| schema.physical_name(column).is_none())
        {
            return Err(Error::corrupt_log(format!("the partition column '{missing}' is not in the schema")));
        }
        Ok(Self {
            protocol,
            metadata,
            schema,
            totals: OnceLock::new(),
            checksum,
            is_checksum_wrong: AtomicBool::new(false),
        })
    }
}

impl Source {
    pub(super) fn resolver(&self) -> &PathResolver {
        &self.resolver
    }
}

/// Returns the times of all commits, or of the commits up to `end`. Times that `state` has already read are reused.
pub(super) fn commit_times(
    source: &Source,
    state: &State,
    protocol: &Protocol,
    metadata: &Metadata,
    end: Option<u64>,
) -> Result<CommitTimes> {
    let in_commit =
        InCommitTimestamps::of(protocol, metadata).map_err(|error| source.located(error, state))?;
    let times = state
        .commits()
        .filter_map(|commit| Some((commit.version, commit.commit_info.as_ref()?.in_commit_timestamp?)));
    CommitTimes::read_in(source.segments(), end, in_commit, times.collect::<BTreeMap<_, _>>())
}

/// Returns the newest protocol and metadata. They are taken from the commits, otherwise from an older snapshot,
/// otherwise from the checksum file, otherwise from the checkpoint.
pub(super) fn find_table_actions(
    state: &State,
    older: Option<&Snapshot>,
    from_checksum: &mut dyn FnMut() -> Result<Option<(Protocol, Metadata)>>,
) -> Result<(Protocol, Metadata)> {
    let mut protocol = state.newest_actions().find_map(|actions| actions.protocol.clone());
    let mut metadata = state.newest_actions().find_map(|actions| actions.metadata.clone());
    // An older snapshot can only be used if all commits after it were read.
    let first = state.segment().checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version + 1);
    if let Some(older) = older
        && first <= older.version() + 1
    {
        protocol = protocol.or_else(|| Some(older.protocol().clone()));
        metadata = metadata.or_else(|| Some(older.metadata().clone()));
    }
    // Reading the checksum file takes less time than reading a checkpoint. It is only read if the checkpoint would
    // otherwise have to be read.
    if (protocol.is_none() || metadata.is_none())
        && state.segment().checkpoint.is_some()
        && let Some((found_protocol, found_metadata)) = from_checksum()?
    {
        protocol = protocol.or(Some(found_protocol));
        metadata = metadata.or(Some(found_metadata));
    }
    let kinds: Vec<_> =
        [(protocol.is_none(), TableAction::Protocol), (metadata.is_none(), TableAction::Metadata)]
            .into_iter()
            .filter_map(|(needed, kind)| needed.then_some(kind))
            .collect();
    for action in if kinds.is_empty() { Vec::new() } else { state.table_actions(&kinds)? } {
        match action {
            Action::Protocol(found) => protocol = protocol.or(Some(found)),
            Action::Metadata(found) => metadata = metadata.or(Some(found)),
            _ => {}
        }
    }
    let missing = |what: &str| {
        Error::corrupt_log(format!("the log has no '{what}' action"))
            .with_hint("a table's first commit must hold protocol and metaData")
    };
    Ok((protocol.ok_or_else(|| missing("protocol"))?, metadata.ok_or_else(|| missing("metaData"))?))
}
