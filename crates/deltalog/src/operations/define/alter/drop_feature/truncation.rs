//! Deletes the part of the history that uses a feature. (PROTOCOL, "Metadata Cleanup".)
//!
//! ```text
//!     u  [c] ────────────────────────────────────────► V      u: the newest version that makes use of the feature
//!     └── deleted when c is older than the retention of truncated histories
//! ```
//!
//! - History is deleted only if this removes every use of the feature, so a drop that has to wait does not change the
//!   history. The JVM implementation first deletes the history that is older than the retention, and then looks for
//!   remaining uses.
//! - The retention is at least an hour, even if the property sets less. With a shorter retention, a writer that is
//!   about to create a version could find that a concurrent commit of this version has already been deleted. It
//!   would create the version again, and the concurrent commit would be lost. The JVM implementation also allows
//!   zero.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::log::{InCommitTimestamps, LogInventory};
use crate::protocol::TableFeature;
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::upkeep::truncate_log;

/// Deletes the log up to a checkpoint after `last`, the newest version that uses `feature`, if such a checkpoint is
/// old enough.
///
/// # Errors
/// Returns `InvalidArgument` if no checkpoint is old enough. Nothing has been deleted then, and the error says when
/// the drop will be possible. Also returns the errors of [`truncate_log`].
pub(super) fn truncate(
    base: &Snapshot,
    last: u64,
    feature: &TableFeature,
    environment: &Environment,
) -> Result<()> {
    match truncate_log(base, environment, base.truncated_history_retention()?, last)? {
        Some(_) => Ok(()),
        None => Err(too_young(base, last, feature, environment)?),
    }
}

/// Returns the error for a history that cannot be deleted up to `last` yet. The message says when it will be
/// possible.
///
/// # Errors
/// Returns `CorruptLog`, `Unsupported` for an invalid retention, and errors from the store.
fn too_young(base: &Snapshot, last: u64, feature: &TableFeature, environment: &Environment) -> Result<Error> {
    let retention = base.truncated_history_retention()?;
    let hint = match next_expiry_ms(base, last, retention, environment)? {
        Some(ready_ms) => {
            let ready = chrono::DateTime::from_timestamp_millis(ready_ms).map_or_else(
                || format!("{ready_ms} ms"),
                |time| time.format("%Y-%m-%dT%H:%M:00Z").to_string(),
            );
            format!(
                "drop the feature again at {ready} or later: the older log has then expired ({} after the checkpoint \
                 that replaces it, delta.dropFeatureTruncateHistory.retentionDuration)",
                shown(retention)
            )
        }
        // The expired checkpoints are damaged, or are protected because of a feature that this crate does not know.
        None => format!(
            "write a checkpoint, because no usable one replaces the older log, and drop the feature again {} later",
            shown(retention)
        ),
    };
    let others = match feature {
        TableFeature::CheckpointProtection => "",
        _ => ", or drop the feature without truncating the history",
    };
    Ok(Error::invalid_argument(format!(
        "the feature '{feature}' cannot be dropped yet: version {last} of the table, which can still be read, makes \
         use of it"
    ))
    .with_hint(format!("{hint}{others}")))
}

/// Returns the time at which the next checkpoint after `last` will expire, in milliseconds since the epoch. Skips
/// checkpoints that have already expired, because they turned out to be unusable.
fn next_expiry_ms(
    base: &Snapshot,
    last: u64,
    retention: Duration,
    environment: &Environment,
) -> Result<Option<i64>> {
    let inventory = LogInventory::read(base.storage())?;
    let in_commit = InCommitTimestamps::of(base.protocol(), base.metadata())?;
    let times = inventory.commit_times(base.storage(), in_commit);
    let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    let now_ms = environment.now_ms();
    let mut next: Option<i64> = None;
    for checkpoint in inventory.checkpoints() {
        if checkpoint.version <= last || times.commit(checkpoint.version).is_err() {
            continue;
        }
        // The message shows the time in whole minutes, so it is rounded up.
        let ready_ms = times.of(checkpoint.version)?.saturating_add(retention_ms).saturating_add(60_000);
        if ready_ms > now_ms {
            next = Some(next.map_or(ready_ms, |next| next.min(ready_ms)));
        }
    }
    Ok(next)
}

/// Formats a time span of at least an hour in hours and minutes.
fn shown(span: Duration) -> String {
    let minutes = span.as_secs() / 60;
    let counted = |count: u64, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
    match (counted(minutes / 60, "hour"), counted(minutes % 60, "minute")) {
        (hours, _) if minutes.is_multiple_of(60) => hours,
        (hours, minutes) => format!("{hours} and {minutes}"),
    }
}
