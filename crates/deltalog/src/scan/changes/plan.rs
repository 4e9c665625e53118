//! Plans a read of the change data feed: finds the files that changed in a range of versions.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

use super::commits::FeedCommit;
use super::files::{ChangeFile, ChangeFiles};
use super::pruner::FeedPruner;
use super::range::{ChangeBound, Wanted};
use super::schema::{Shape, change_fields, with_change_fields};
use super::{COMMIT_TIMESTAMP, COMMIT_VERSION, PROPERTY};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::{BoundPredicate, Predicate};
use crate::log::CommitFile;
use crate::log::replay::Commit;
use crate::protocol::{ColumnMappingMode, MappedSchema, Metadata, Protocol, ensure_readable_with_catalog};
use crate::runtime::parallel;
use crate::scan::{PartitionColumns, RowScan, RowStream};
use crate::snapshot::Snapshot;

/// A request for the changes of a table.
///
/// ```
/// use deltalog::{ChangeBound, ChangeFeed, Snapshot};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// let snapshot = Snapshot::open(&storage, None)?;
/// let changes = ChangeFeed::new(&snapshot).from(ChangeBound::Version(1)).plan()?;
/// let mut rows = 0;
/// for batch in changes.read(None)? {
///     rows += batch?.num_rows();
/// }
/// assert_eq!(rows, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ChangeFeed {
    snapshot: Snapshot,
    wanted: Wanted,
    predicate: Option<Asked>,
}

/// The predicate of a request.
#[derive(Debug, Clone)]
enum Asked {
    Exactly(Predicate),
    /// Only used to skip files; the caller filters the rows.
    OfFiles(Predicate),
}

impl Asked {
    fn bind(&self, schema: &Schema) -> Result<BoundPredicate> {
        match self {
            Self::Exactly(predicate) => predicate.bind(schema),
            Self::OfFiles(predicate) => Ok(predicate.bind_for_pruning(schema)),
        }
    }
}

impl ChangeFeed {
    /// Requests all changes of the snapshot's table, from version 0 to the newest version, which may be newer than
    /// `snapshot`.
    pub fn new(snapshot: &Snapshot) -> Self {
        let wanted = Wanted { start: ChangeBound::Version(0), end: None, may_be_empty: false };
        Self { snapshot: snapshot.clone(), wanted, predicate: None }
    }

    /// Sets the start of the range.
    #[must_use]
    pub fn from(mut self, start: ChangeBound) -> Self {
        self.wanted.start = start;
        self
    }

    /// Sets the end of the range. The default is the newest version, and an end after the newest version means the
    /// newest version.
    #[must_use]
    pub fn to(mut self, end: ChangeBound) -> Self {
        self.wanted.end = Some(end);
        self
    }

    /// Sets whether a range that starts after the newest version, or ends before it starts, counts as empty.
    /// Otherwise it is an error.
    #[must_use]
    pub fn allow_out_of_range(mut self, allow: bool) -> Self {
        self.wanted.may_be_empty = allow;
        self
    }

    /// Returns only changes for which `predicate` is true. It may refer to the columns of the feed.
    #[must_use]
    pub fn predicate(mut self, predicate: Predicate) -> Self {
        self.predicate = Some(Asked::Exactly(predicate));
        self
    }

    /// Finds the changed files, except those that cannot contain a row for which the predicate is true.
    ///
    /// # Errors
    /// Returns `VersionNotFound` for versions without a commit and for versions at which the feed was off; the
    /// message names the versions that can be read. Returns `InvalidArgument` for a range that ends before it starts,
    /// and for a predicate that does not match the schema. Returns `SchemaMismatch` if the rows of a version cannot
    /// be read with the schema of the last version: since then, a column was dropped or renamed, its type changed to
    /// one that is not wider, it became NOT NULL, or the partition columns changed. Returns `Unsupported` if a
    /// version has a feature that is not implemented. Also returns the errors of [`Snapshot::open`].
    pub fn plan(self) -> Result<ChangePlan> {
        let storage = self.snapshot.storage();
        let located = |error: Error| error.in_table(storage.url());
        let newest = self.snapshot.refresh()?;
        let times = newest.commit_times(Some(newest.version()))?;
        let Some(versions) = self.wanted.versions(&times).map_err(located)? else {
            return ChangePlan::new(newest, None, self.predicate.as_ref());
        };
        let last = newest.at_version(*versions.end())?;
        let mut plan = ChangePlan::new(last, Some(versions.clone()), self.predicate.as_ref())?;
        let pruner = plan
            .predicate
            .clone()
            .map(|predicate| FeedPruner::new(&plan.snapshot, predicate))
            .transpose()
            .map_err(located)?;
        let read_file = match pruner.as_ref().is_some_and(FeedPruner::reads_statistics) {
            true => Commit::read_with_all_stats,
            false => Commit::read_without_stats,
        };
        let read = |file: &CommitFile| -> Result<(State, FeedCommit)> {
            let commit = read_file(storage, *file)?;
            let state = (commit.version, commit.protocol.clone(), commit.metadata.clone());
            let timestamp_ms = times.shown(file, commit.commit_info.as_ref());
            let commit = FeedCommit::new(commit, timestamp_ms, pruner.as_ref())
                .map_err(|error| located(error.at_version(file.version)))?;
            Ok((state, commit))
        };
        let files = times.commits_of(versions.clone()).map_err(located)?;
        let (states, commits): (Vec<_>, Vec<_>) =
            parallel::each(&files, storage.readers(files.len()), read)?.into_iter().unzip();
        FeedLog::new(&plan.snapshot, states).check(&versions).map_err(located)?;
        plan.commits = Arc::new(commits);
        Ok(plan)
    }
}

/// A version, and the protocol and metadata that its commit sets.
type State = (u64, Option<Protocol>, Option<Metadata>);

/// The protocol and metadata actions in a range of commits.
struct FeedLog<'a> {
    last: &'a Snapshot,
    /// The versions whose commits set the protocol or the metadata.
    states: Vec<State>,
    /// The versions at which the feed was turned off, each with the version at which it was turned on again.
    off: Vec<(u64, Option<u64>)>,
}

impl<'a> FeedLog<'a> {
    fn new(last: &'a Snapshot, states: Vec<State>) -> Self {
        let sets_one = |(_, protocol, metadata): &State| protocol.is_some() || metadata.is_some();
        Self { last, states: states.into_iter().filter(sets_one).collect(), off: Vec::new() }
    }

    /// Checks that the feed was on at each of `versions`, and that their rows can be read with the schema of the last
    /// version.
    fn check(&mut self, versions: &RangeInclusive<u64>) -> Result<()> {
        let (mut protocol, mut metadata) = self.before_and_at(*versions.start())?;
        let states = std::mem::take(&mut self.states);
        let mut changes =
            states.into_iter().skip_while(|(version, ..)| version <= versions.start()).peekable();
        let (mut version, mut checked) = (*versions.start(), Ok(()));
        loop {
            self.record_switch(version, &metadata);
            checked = checked.and_then(|()| {
                self.check_version(version, &protocol, &metadata).map_err(|error| error.at_version(version))
            });
            let Some((next, new_protocol, new_metadata)) = changes.next() else { break };
            version = next;
            protocol = new_protocol.unwrap_or(protocol);
            metadata = new_metadata.unwrap_or(metadata);
        }
        // If the feed was off, the error that says so is more helpful.
        self.ensure_on(versions).and(checked)
    }

    /// Returns the protocol and metadata of the version `start`.
    fn before_and_at(&self, start: u64) -> Result<(Protocol, Metadata)> {
        let at_start = self.states.first().filter(|(version, ..)| *version == start);
        if let Some((_, Some(protocol), Some(metadata))) = at_start {
            return Ok((protocol.clone(), metadata.clone()));
        }
        // If no later commit set them, they are the same as in the last version.
        if self.states.iter().all(|(version, ..)| *version == start) {
            return Ok((self.last.protocol().clone(), self.last.metadata().clone()));
        }
        let first = self.last.at_version(start)?;
        Ok((first.protocol().clone(), first.metadata().clone()))
    }

    fn record_switch(&mut self, version: u64, metadata: &Metadata) {
        match (metadata.has_change_feed(), self.off.last_mut()) {
            (true, Some((_, on @ None))) => *on = Some(version),
            (false, None | Some((_, Some(_)))) => self.off.push((version, None)),
            _ => {}
        }
    }

    fn check_version(&self, version: u64, protocol: &Protocol, metadata: &Metadata) -> Result<()> {
        // If a catalog had to be queried, this was done when the snapshot was opened.
        ensure_readable_with_catalog(protocol, metadata)?;
        let schema = MappedSchema::new(metadata.schema()?, ColumnMappingMode::of(protocol, metadata)?)?;
        let shape = Shape { schema: &schema, partition_columns: &metadata.partition_columns };
        let last = Shape {
            schema: self.last.mapped_schema(),
            partition_columns: &self.last.metadata().partition_columns,
        };
        match shape.obstacle(&last) {
            None => Ok(()),
            Some(obstacle) => Err(Error::schema_mismatch(format!(
                "the changes of version {version} cannot be read with the schema of version {}: {obstacle}",
                self.last.version()
            ))
            .with_hint("read the changes before and after the change of the schema separately")),
        }
    }

    fn ensure_on(&self, versions: &RangeInclusive<u64>) -> Result<()> {
        let Some((off, _)) = self.off.first() else { return Ok(()) };
        let mut on = Vec::new();
        let mut from = Some(*versions.start());
        for (off, again) in &self.off {
            on.extend(from.filter(|from| from < off).map(|from| (from, off - 1)));
            from = *again;
        }
        on.extend(from.map(|from| (from, *versions.end())));
        let on: Vec<_> = on.into_iter().map(|(from, to)| format!("{from} to {to}")).collect();
        let readable = if on.is_empty() { "none of them".to_owned() } else { on.join(", ") };
        Err(Error::new(
            ErrorKind::VersionNotFound,
            format!(
                "the change data feed was off at version {off}; in versions {} to {}, it can be read for {readable}",
                versions.start(),
                versions.end()
            ),
        )
        .at_version(*off)
        .with_hint(format!("choose versions at which the table property '{PROPERTY}' was true")))
    }
}

/// The files that changed in a range of versions, ready to be read.
#[derive(Debug, Clone)]
pub struct ChangePlan {
    snapshot: Snapshot,
    versions: Option<RangeInclusive<u64>>,
    commits: Arc<Vec<FeedCommit>>,
    schema: SchemaRef,
    predicate: Option<BoundPredicate>,
}

impl ChangePlan {
    /// Creates a plan that does not contain commits yet.
    fn new(
        snapshot: Snapshot,
        versions: Option<RangeInclusive<u64>>,
        predicate: Option<&Asked>,
    ) -> Result<Self> {
        let located = |error: Error| error.in_table(snapshot.storage().url());
        let schema = with_change_fields(snapshot.arrow_schema()).map_err(located)?;
        let predicate = predicate.map(|predicate| predicate.bind(&schema)).transpose().map_err(located)?;
        Ok(Self { snapshot, versions, commits: Arc::default(), schema, predicate })
    }

    /// Creates a plan for these commits. The rows will have the schema of `snapshot`.
    ///
    /// # Errors
    /// `Unsupported` if a column has the same name as a column of the feed.
    pub(crate) fn of_commits(snapshot: &Snapshot, commits: Vec<FeedCommit>) -> Result<Self> {
        let versions = match (commits.first(), commits.last()) {
            (Some(first), Some(last)) => Some(first.version..=last.version),
            _ => None,
        };
        Ok(Self { commits: Arc::new(commits), ..Self::new(snapshot.clone(), versions, None)? })
    }

    /// Returns the range of versions; `None` if it is empty.
    pub fn versions(&self) -> Option<RangeInclusive<u64>> {
        self.versions.clone()
    }

    /// Returns the same changes without the files that cannot contain a row for which `predicate` is true. The rows
    /// themselves are not filtered, and parts of the predicate that are not understood are ignored: this method is
    /// for engines that filter the rows themselves. Reads the commits again.
    ///
    /// # Errors
    /// Returns the same errors as [`ChangeFeed::plan`].
    pub fn pruned(&self, predicate: Predicate) -> Result<Self> {
        let Some(versions) = &self.versions else { return Ok(self.clone()) };
        let (start, end) = (ChangeBound::Version(*versions.start()), ChangeBound::Version(*versions.end()));
        let feed = ChangeFeed {
            predicate: Some(Asked::OfFiles(predicate)),
            ..ChangeFeed::new(&self.snapshot).from(start).to(end)
        };
        // The caller filters the rows.
        Ok(Self { predicate: None, ..feed.plan()? })
    }

    /// Returns the snapshot of the last version, whose schema the rows have.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the schema of the rows: the table's columns, followed by `_change_type`, `_commit_version` and
    /// `_commit_timestamp`.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the changed files that may contain a requested row, ordered by version.
    ///
    /// # Errors
    /// `CorruptLog` if a partition column is invalid; errors of single actions are returned with the files.
    pub fn files(&self) -> Result<ChangeFiles> {
        Ok(ChangeFiles {
            storage: self.snapshot.storage().clone(),
            resolver: self.snapshot.resolver().clone(),
            partitions: PartitionColumns::of(&self.snapshot)?,
            commits: Arc::clone(&self.commits),
            next: 0,
            current: Vec::new().into_iter(),
        })
    }

    /// Reads the given `columns` of the changed rows, or all columns if `columns` is `None`. `columns` may include the
    /// feed's own columns, such as `_change_type`.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown column; errors while reading are returned with the batches.
    pub fn read(&self, columns: Option<&[String]>) -> Result<RowStream> {
        let snapshot = &self.snapshot;
        // A condition on columns that are the same in all rows of a file is evaluated without reading rows.
        let given = [COMMIT_VERSION, COMMIT_TIMESTAMP].map(str::to_owned);
        let constants: Vec<_> = snapshot.metadata().partition_columns.iter().cloned().chain(given).collect();
        let in_files = snapshot.mapped_schema().physical_arrow();
        let in_files: Vec<_> =
            in_files.fields().iter().cloned().chain(change_fields().map(Arc::new)).collect();
        let mut scan = RowScan::new(snapshot.storage().clone(), &self.schema, &constants)?
            .with_physical_schema(&Arc::new(Schema::new(in_files)))?
            .with_resolver(snapshot.resolver().clone())
            .at_version(snapshot.version());
        if let Some(columns) = columns {
            scan = scan.with_projection(columns)?;
        }
        if let Some(predicate) = &self.predicate {
            scan = scan.with_predicate(predicate)?;
        }
        Ok(scan.read(self.files()?.map(|file: Result<ChangeFile>| file.map(|file| file.file))))
    }
}
