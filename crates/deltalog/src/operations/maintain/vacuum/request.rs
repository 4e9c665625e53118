//! The options of a VACUUM, and their checks against the table.

use std::time::Duration;

use arrow::array::RecordBatchReader;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::protocol::{TableFeature, ensure_writable};
use crate::snapshot::Snapshot;

/// The source in which VACUUM finds the files that may be deleted.
#[non_exhaustive]
pub enum VacuumSource {
    /// A listing of the table's directory.
    Listing,
    /// The log, which shows the files that were removed since the last VACUUM. Files that were never part of a
    /// version are not found.
    Log,
    /// An inventory of the store, for tables whose listing would take too long. It has the columns `path`, `length`,
    /// `isDir` and `modificationTime`. The paths are full paths that are not encoded. The times are timestamps, or
    /// milliseconds since the epoch. Rows for paths outside of the table's directory are ignored.
    Inventory(Box<dyn RecordBatchReader + Send>),
}

impl std::fmt::Debug for VacuumSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Listing => "Listing",
            Self::Log => "Log",
            Self::Inventory(_) => "Inventory",
        })
    }
}

/// A request to delete the files that a table no longer needs.
#[derive(Debug)]
pub struct VacuumRequest {
    pub(super) source: VacuumSource,
    retention: Option<Duration>,
    pub(super) enforces_retention: bool,
    pub(super) kept_versions: Vec<u64>,
    pub(super) custom_metadata: Map<String, Value>,
}

impl Default for VacuumRequest {
    fn default() -> Self {
        Self::new(VacuumSource::Listing)
    }
}

/// How long files are kept after they were removed or written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention {
    /// The retention in the request, if it has one.
    pub(super) specified_ms: Option<i64>,
    /// The retention of the table: `delta.deletedFileRetentionDuration`.
    pub(super) configured_ms: i64,
}

impl Retention {
    pub(super) fn ms(self) -> i64 {
        self.specified_ms.unwrap_or(self.configured_ms)
    }
}

impl VacuumRequest {
    /// Requests to delete the files that `source` finds, with the table's own retention.
    pub fn new(source: VacuumSource) -> Self {
        Self {
            source,
            retention: None,
            enforces_retention: true,
            kept_versions: Vec::new(),
            custom_metadata: Map::new(),
        }
    }

    /// Sets how long files are kept after they were removed from the table or, if they never belonged to it, after
    /// they were written. By default, this is the table's `delta.deletedFileRetentionDuration`, which is 7 days if it
    /// is not set.
    ///
    /// The retention must be longer than the longest write, and longer than the longest query of an old version,
    /// because only the age of their files protects them.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Sets whether to refuse a retention that is shorter than the table's. By default, it is refused.
    #[must_use]
    pub fn enforce_retention(mut self, enforces: bool) -> Self {
        self.enforces_retention = enforces;
        self
    }

    /// Keeps the files of these versions, regardless of their age.
    #[must_use]
    pub fn keep_versions(mut self, versions: impl Into<Vec<u64>>) -> Self {
        self.kept_versions = versions.into();
        self
    }

    /// Adds fields to the `commitInfo` of the commits `VACUUM START` and `VACUUM END`. They may include
    /// `userMetadata`.
    #[must_use]
    pub fn custom_metadata(mut self, fields: Map<String, Value>) -> Self {
        self.custom_metadata = fields;
        self
    }

    /// Checks that the table may be vacuumed with this retention.
    ///
    /// # Errors
    /// Returns `Unsupported` for a table that cannot be written, is managed by a catalog, or has a retention that
    /// cannot be parsed, and `InvalidArgument` for a retention that is too short.
    pub(super) fn check(&self, snapshot: &Snapshot) -> Result<Retention> {
        let specified_ms = self.retention.map(milliseconds);
        check(snapshot, specified_ms, self.enforces_retention)
    }
}

/// Makes the same checks as [`VacuumRequest::check`], given only the requested retention.
pub(super) fn check(snapshot: &Snapshot, specified_ms: Option<i64>, enforces: bool) -> Result<Retention> {
    let protocol = snapshot.protocol();
    // VACUUM is prohibited unless the catalog permits it. (PROTOCOL, "Maintenance Operations on Catalog-managed
    // Tables".)
    if protocol.writer_features().contains(&TableFeature::CatalogManaged) {
        return Err(Error::unsupported(
            "the files of a table that a catalog manages are deleted by its catalog",
        ));
    }
    // This check applies to all tables. (PROTOCOL, "Writer Requirements for Vacuum Protocol Check".)
    ensure_writable(protocol, snapshot.metadata())?;
    let configured_ms = milliseconds(snapshot.deleted_file_retention()?);
    let retention = Retention { specified_ms, configured_ms };
    if enforces && retention.ms() < configured_ms {
        return Err(Error::invalid_argument(format!(
            "the retention {} is shorter than the table's, {} (delta.deletedFileRetentionDuration)",
            hours(retention.ms()),
            hours(configured_ms)
        ))
        .with_hint(
            "choose a longer one. If you are certain that no write, query or stream has been running for longer than \
             that, pass enforce_retention_duration=False, or in Spark set \
             spark.databricks.delta.retentionDurationCheck.enabled to false",
        ));
    }
    Ok(retention)
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn hours(ms: i64) -> String {
    const HOUR_MS: i64 = 3_600_000;
    match ms % HOUR_MS {
        0 if ms == HOUR_MS => "of 1 hour".to_owned(),
        0 => format!("of {} hours", ms / HOUR_MS),
        _ => format!("of {ms} milliseconds"),
    }
}
