//! Schema tracking: a stream records the schemas with which it reads, so that it can continue after any schema change.
//!
//! ```text
//! version   4: files │ 5: a column is renamed, files │ 6: files
//! offsets            └─ (5, -20)  (5, -19)
//!                        release ──► the new schema is recorded, and the stream fails
//!                                    a newly opened stream reads version 5 with the new schema
//! ```
//!
//! - A batch ends before each commit that changes the schema, the partition columns, table properties that begin with
//!   `delta.`, or the protocol. All rows of a batch therefore have the same schema.
//! - When the reader has processed all rows before the change ([`TableStream::release`]), the new schema is recorded.
//!   The stream then ends with an error, because the following rows have a different schema.
//! - A stream that is opened again reads with the schema that was recorded last. If this schema drops, renames or
//!   widens columns of the previous schema, the user must have allowed it.
//! - Files and offsets have the format that the JVM connector uses for its option `schemaTrackingLocation`.

mod difference;
mod entry;
mod log;

#[cfg(test)]
mod tests;

use std::str::FromStr;

use difference::Differences;
use entry::Entry;
use log::SchemaLog;

use super::commits::Commits;
use super::offset::{Index, StreamOffset};
use super::table_stream::{State, TableStream};
use super::walk::Position;
use crate::error::{Error, ErrorKind, Result};
use crate::log::replay::Commit;
use crate::protocol::{Metadata, Protocol};
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// Where a stream records the schemas with which it reads, and after which schema changes it may continue.
#[derive(Debug, Clone)]
pub struct SchemaTracking {
    location: Storage,
    id: Option<String>,
    source: Option<String>,
    allowed: Vec<(SchemaChange, AllowedVersion)>,
}

/// A kind of schema change that may break the consumer of a stream, so that the user must allow it. The JVM connector
/// has an option for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaChange {
    /// A column was renamed: `allowSourceColumnRename`.
    Rename,
    /// A column was dropped: `allowSourceColumnDrop`.
    Drop,
    /// The type of a column was widened: `allowSourceColumnTypeChange`.
    TypeChange,
}

impl SchemaChange {
    fn option(self) -> &'static str {
        match self {
            Self::Rename => "allowSourceColumnRename",
            Self::Drop => "allowSourceColumnDrop",
            Self::TypeChange => "allowSourceColumnTypeChange",
        }
    }
}

/// The versions that may change the schema. In text form, it is `always` or the number of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllowedVersion {
    /// Any version.
    Always,
    /// Only this version.
    Of(u64),
}

impl FromStr for AllowedVersion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.trim() {
            word if word.eq_ignore_ascii_case("always") => Ok(Self::Always),
            number => number.parse().map(Self::Of).map_err(|error| {
                Error::invalid_argument(format!("a change of the schema cannot be allowed for '{text}'"))
                    .with_source(error)
                    .with_hint("pass 'always', or the version that changed the schema")
            }),
        }
    }
}

impl SchemaTracking {
    /// Records schemas below `location`, which is usually the directory of the stream's checkpoint.
    pub fn new(location: &Storage) -> Self {
        Self { location: location.clone(), id: None, source: None, allowed: Vec::new() }
    }

    /// Sets an id that distinguishes streams which read the same table and record schemas at the same location:
    /// `streamingSourceTrackingId`.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Sets the path that Spark gives to the source within the query's checkpoint. If the path is set, the stream
    /// refuses a schema log of another source, and schema changes that were not allowed. Do not set it for a stream
    /// that is only opened to find out its schema.
    #[must_use]
    pub fn source(mut self, path: &str) -> Self {
        self.source = Some(path.to_owned());
        self
    }

    /// Allows a kind of schema change, in one version or in all versions.
    #[must_use]
    pub fn allow(mut self, change: SchemaChange, version: AllowedVersion) -> Self {
        self.allowed.push((change, version));
        self
    }

    fn allows(&self, change: SchemaChange, version: u64) -> bool {
        let is_meant = |allowed: AllowedVersion| match allowed {
            AllowedVersion::Always => true,
            AllowedVersion::Of(allowed) => allowed == version,
        };
        self.allowed.iter().any(|(allowed, version)| *allowed == change && is_meant(*version))
    }
}

/// The schema log of an open stream.
pub(super) struct TrackedSchema {
    settings: SchemaTracking,
    log: SchemaLog,
    /// The version of the recorded schema with which the stream was opened; `None` if no schema was recorded.
    opened_with: Option<u64>,
}

impl TrackedSchema {
    /// Reads the log. Returns it together with the table as the stream sees it: the files of `snapshot`, with the
    /// schema that was recorded last.
    ///
    /// # Errors
    /// Returns `SchemaMismatch` if the last change is not allowed, `InvalidArgument` for the log of another source,
    /// `CorruptLog`, and errors from the store.
    pub(super) fn open(settings: &SchemaTracking, snapshot: &Snapshot) -> Result<(Self, Snapshot)> {
        let log = SchemaLog::open(&settings.location, &snapshot.metadata().id, settings.id.as_deref())?;
        let mut tracked = Self { settings: settings.clone(), log, opened_with: None };
        let Some(current) = tracked.log.current() else { return Ok((tracked, snapshot.clone())) };
        let read = snapshot.seen_with(&current.header(snapshot)?)?;
        let version = current.delta_commit_version;
        if let Some(source) = &settings.source {
            current.ensure_of(source)?;
            if let Some(earlier) = tracked.log.previous()? {
                let earlier = earlier.header(snapshot)?;
                tracked
                    .ensure_allowed(&Differences::between(&earlier, &current.header(snapshot)?)?, version)?;
            }
        }
        tracked.opened_with = Some(version);
        Ok((tracked, read))
    }

    fn ensure_allowed(&self, differences: &Differences, version: u64) -> Result<()> {
        if let Some(column) = &differences.incompatible {
            return Err(Error::schema_mismatch(format!(
                "the stream cannot go on after version {version}: the type of column '{column}' has changed to one \
                 that is not wider"
            ))
            .at_version(version)
            .with_hint("begin with a new checkpoint and a new location for schemas"));
        }
        let found = differences.found();
        let blocked: Vec<_> =
            found.iter().filter(|(change, _)| !self.settings.allows(*change, version)).collect();
        if blocked.is_empty() {
            return Ok(());
        }
        let what: Vec<_> = blocked.iter().map(|(_, what)| what.as_str()).collect();
        let options: Vec<_> = blocked.iter().map(|(change, _)| change.option()).collect();
        Err(Error::schema_mismatch(format!(
            "the stream has reached a change of the schema in version {version}, which has not been allowed: {}",
            what.join("; ")
        ))
        .at_version(version)
        .with_hint(format!(
            "check that what reads the stream can handle this, and set {} to {version}, or to 'always'",
            options.join(" and ")
        )))
    }

    /// Returns whether a schema has been recorded, so that the stream stops where the schema changes.
    pub(super) fn is_active(&self) -> bool {
        self.log.current().is_some()
    }

    /// Returns whether a commit changes the schema, properties or protocol with which the stream reads. `read` has
    /// the current ones.
    ///
    /// # Errors
    /// Returns `CorruptLog` for an invalid schema.
    pub(super) fn is_changed_by(
        &self,
        read: &Snapshot,
        version: u64,
        protocol: Option<&Protocol>,
        metadata: Option<&Metadata>,
    ) -> Result<bool> {
        // A recorded schema applies to the rows of all versions up to its own.
        if self.opened_with.is_some_and(|opened_with| version <= opened_with) {
            return Ok(false);
        }
        let has_other_protocol = protocol.is_some_and(|protocol| protocol != read.protocol());
        let has_other = |metadata| difference::is_other(metadata, read.metadata());
        Ok(has_other_protocol || metadata.map(has_other).transpose()?.unwrap_or_default())
    }

    /// Records a schema as the newest entry of the log. If it `replaces` the last entry, that entry no longer counts
    /// as the previous schema.
    fn note(&mut self, version: u64, protocol: &Protocol, metadata: &Metadata, replaces: bool) -> Result<()> {
        let source = self.settings.source.clone().unwrap_or_else(|| self.settings.location.url());
        self.log.append(Entry::new(version, protocol, metadata, &source)?, replaces)
    }
}

fn ended(version: u64) -> Error {
    Error::schema_mismatch(format!(
        "version {version} changes the schema, the properties or the protocol of the table; the stream has recorded \
         the new schema"
    ))
    .at_version(version)
    .with_hint("start the stream again: it continues with the new schema")
}

impl TableStream {
    /// Records the first schema of a stream. This is necessary if no schema was recorded before, or if the stream
    /// begins again with a newer snapshot.
    ///
    /// # Errors
    /// Returns `SchemaMismatch` if the stream was opened with a different schema.
    pub(super) fn begin_tracking(&self, state: &mut State, from: Position, is_first: bool) -> Result<()> {
        let Some(tracked) = state.commits.tracked() else { return Ok(()) };
        let is_active = tracked.is_active();
        if is_active && !(is_first && from.is_initial) {
            return Ok(());
        }
        // A position before the first file of a version comes after the whole previous version.
        let is_after = !is_first && !from.is_initial && from.index == Some(Index::Base);
        let version = if is_after { from.version.saturating_sub(1) } else { from.version };
        if version > state.commits.newest_version() {
            return Ok(());
        }
        let first = self.table().at_version(version)?;
        let (protocol, metadata) = (first.protocol(), first.metadata());
        let tracked = state.commits.tracked_mut();
        let Some(tracked) = tracked else { return Ok(()) };
        let is_changed = tracked.is_changed_by(self.snapshot(), version, Some(protocol), Some(metadata))?;
        if !is_active || is_changed {
            tracked.note(version, protocol, metadata, is_active)?;
        }
        if is_changed { Err(ended(version)) } else { Ok(()) }
    }

    /// Returns the next offset of a stream that has reached a schema change. The stream stays there until it is
    /// opened again.
    ///
    /// # Errors
    /// Returns the same errors as [`TableStream::latest`].
    pub(super) fn blocked_at(&self, state: &State, from: Position) -> Result<Option<(u64, Index)>> {
        let Some(tracked) = state.commits.tracked().filter(|tracked| tracked.is_active()) else {
            return Ok(None);
        };
        match from.index {
            // Spark records that the rows before the change were processed only when it gets a different offset.
            Some(Index::SchemaChange) => Ok(Some((from.version, Index::AfterSchemaChange))),
            Some(Index::AfterSchemaChange) => {
                let is_changed = self.changed_in(&state.commits, tracked, from.version)?.is_some();
                Ok(is_changed.then_some((from.version, Index::AfterSchemaChange)))
            }
            _ => Ok(None),
        }
    }

    /// Records the new schema if `end` is directly before a schema change, because the reader has then processed all
    /// rows before the change.
    ///
    /// # Errors
    /// Returns `SchemaMismatch` if there is such a change, because the stream ends there.
    pub(super) fn pass_schema_change(&self, state: &mut State, end: &StreamOffset) -> Result<()> {
        if !matches!(end.index(), Index::SchemaChange | Index::AfterSchemaChange) {
            return Ok(());
        }
        let version = end.version();
        let Some(tracked) = state.commits.tracked().filter(|tracked| tracked.is_active()) else {
            return Ok(());
        };
        let Some(commit) = self.changed_in(&state.commits, tracked, version)? else { return Ok(()) };
        let protocol = commit.protocol.as_ref().unwrap_or_else(|| self.snapshot().protocol());
        let metadata = commit.metadata.as_ref().unwrap_or_else(|| self.snapshot().metadata());
        if let Some(tracked) = state.commits.tracked_mut() {
            tracked.note(version, protocol, metadata, false)?;
        }
        Err(ended(version))
    }

    /// Returns the commit of `version` if it changes the schema, properties or protocol with which the stream reads.
    fn changed_in(&self, commits: &Commits, tracked: &TrackedSchema, version: u64) -> Result<Option<Commit>> {
        let commit = commits.read(version).map_err(|error| match error.kind() {
            ErrorKind::FileNotFound => Error::new(
                ErrorKind::VersionNotFound,
                "the commit that changes the schema was cleaned up before the stream reached it",
            )
            .with_hint("begin with a new checkpoint and a new location for schemas")
            .at_version(version),
            _ => error,
        })?;
        let (protocol, metadata) = (commit.protocol.as_ref(), commit.metadata.as_ref());
        let is_changed = tracked.is_changed_by(self.snapshot(), version, protocol, metadata)?;
        Ok(is_changed.then_some(commit))
    }
}
