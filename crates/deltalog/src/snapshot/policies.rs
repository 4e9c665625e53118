//! The table properties for retention and for deleting rows.

use std::time::Duration;

use super::Snapshot;
use crate::error::{Error, Result};
use crate::protocol::properties::{TRUNCATED_HISTORY, interval_ms};
use crate::protocol::{IcebergCompat, TableFeature, ensure_removable};

const HOUR: Duration = Duration::from_secs(3600);

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Snapshot {
    /// Returns how long the commits of the log are kept: `delta.logRetentionDuration`, or 30 days if it is not set.
    ///
    /// # Errors
    /// `Unsupported` if the property is not a time span in weeks or smaller units.
    pub fn log_retention(&self) -> Result<Duration> {
        self.interval("delta.logRetentionDuration", 30 * DAY)
    }

    /// Returns how long commits are kept if dropping a feature truncates the history:
    /// `delta.dropFeatureTruncateHistory.retentionDuration`, or 24 hours if it is not set, but never less than an hour.
    ///
    /// The minimum protects a writer that pauses between reading a version and creating the next one. During the pause,
    /// another writer may commit that next version, and a clean-up may then delete it. The version would seem free, and
    /// the other writer's commit would be lost. The JVM implementation has no minimum; its documentation says that the
    /// time must be longer than the longest transaction.
    ///
    /// # Errors
    /// `Unsupported` if the property is not a time span in weeks or smaller units.
    pub(crate) fn truncated_history_retention(&self) -> Result<Duration> {
        Ok(self.interval(TRUNCATED_HISTORY, DAY)?.max(HOUR))
    }

    /// Returns how long data files are kept after they were removed from the table:
    /// `delta.deletedFileRetentionDuration`, or 7 days if it is not set.
    ///
    /// # Errors
    /// `Unsupported` if the property is not a time span in weeks or smaller units.
    pub fn deleted_file_retention(&self) -> Result<Duration> {
        self.interval("delta.deletedFileRetentionDuration", 7 * DAY)
    }

    /// Checks that rows may be removed or changed. (PROTOCOL, "Append-only Tables".)
    ///
    /// # Errors
    /// `InvalidArgument` if the table is append-only.
    pub fn ensure_removable(&self) -> Result<()> {
        ensure_removable(self.metadata()).map_err(|error| self.located(error))
    }

    /// Returns whether rows of the table are deleted with deletion vectors.
    ///
    /// # Errors
    /// `CorruptLog` for properties that contradict each other.
    pub fn deletes_by_vectors(&self) -> Result<bool> {
        let (protocol, metadata) = (self.protocol(), self.metadata());
        Ok(metadata.is_enabled("delta.enableDeletionVectors")
            && protocol.writer_features().contains(&TableFeature::DeletionVectors)
            && IcebergCompat::of(protocol, metadata)?.is_none_or(IcebergCompat::allows_vectors))
    }

    fn interval(&self, property: &str, default: Duration) -> Result<Duration> {
        let Some(text) = self.metadata().property(property) else { return Ok(default) };
        let span = interval_ms(text).and_then(|span| u64::try_from(span).ok());
        span.map(Duration::from_millis).ok_or_else(|| {
            self.located(
                Error::unsupported(format!("the table property {property} is '{text}'"))
                    .with_hint("set it to a time span such as 'interval 30 days', in weeks or smaller units"),
            )
        })
    }
}
