//! The checkpoints that a drop needs. (The section "Checkpoint Protection" that is proposed for the protocol.)
//!
//! ```text
//!   keep the history:      … u  [u+1] [u+2] [u+3]  V [V]     u: the newest version that makes use of the feature
//!   truncate the history:    u  [u+1]             V          V: the first version without it
//!                            └── deleted when u + 1 is old enough
//! ```
//!
//! - Readers that do not know the feature read version V and the later ones from a checkpoint that has no trace of it.
//!   There are several of them, because readers try an older checkpoint if they fail to read one.
//! - A checkpoint is of an empty commit, unless there are checkpoints after `u` already. So a drop that was interrupted
//!   writes only what is missing.

use crate::checkpoint;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::log::{InCommitTimestamps, LogInventory};
use crate::protocol::TableFeature;
use crate::snapshot::Snapshot;
use crate::transaction::{Committed, Operation, Transaction};
use crate::upkeep::truncate_log;

/// The number of checkpoints before the version without the feature, as in the JVM implementation.
const BARRIERS: usize = 3;

/// Makes sure that there is a checkpoint after `version`. Returns whether a commit was made for it.
///
/// # Errors
/// `CommitConflict`, `CommitStateUnknown`, `CorruptLog`, and errors of the store.
pub(super) fn ensure_after(base: &Snapshot, version: u64, environment: &Environment) -> Result<bool> {
    ensure(base, version, 1, environment)
}

/// Makes sure that there are as many checkpoints after `version` as hide the versions before from readers. Returns
/// whether a commit was made for one.
///
/// # Errors
/// As [`ensure_after`].
pub(super) fn ensure_barriers(base: &Snapshot, version: u64, environment: &Environment) -> Result<bool> {
    ensure(base, version, BARRIERS, environment)
}

fn ensure(base: &Snapshot, after: u64, count: usize, environment: &Environment) -> Result<bool> {
    let inventory = LogInventory::read(base.storage())?;
    let mut versions: Vec<u64> =
        inventory.checkpoints().iter().map(|checkpoint| checkpoint.version).collect();
    versions.retain(|version| *version > after);
    versions.dedup();
    let missing = count.saturating_sub(versions.len());
    // A checkpoint that a commit is due for is written before the commit returns, and not once more behind it.
    let environment = &environment.without_background();
    for _ in 0..missing {
        let newest = base.refresh()?;
        let empty = Transaction::new(&newest, Operation::new("Empty Commit"), environment)?;
        let committed = empty.commit_or_fail()?;
        checkpoint::of_version(&newest, committed.version, environment)?;
    }
    Ok(missing > 0)
}

/// Writes the checkpoint of the first version without the feature, so that readers need no commit that has it. The
/// checkpoints before do without it.
pub(super) fn write_last(base: &Snapshot, committed: &Committed, environment: &Environment) {
    if let Err(error) = checkpoint::of_version(base, committed.version, &environment.without_background()) {
        let (table, version) = (base.storage().url(), committed.version);
        tracing::warn!(table, version, %error, "the feature was dropped, but its checkpoint could not be written");
    }
}

/// Deletes the part of the log that is older than a truncated history is kept.
///
/// # Errors
/// As [`truncate_log`].
pub(super) fn truncate(base: &Snapshot, environment: &Environment) -> Result<()> {
    truncate_log(base, environment, base.truncated_history_retention()?).map(drop)
}

/// Returns the error for a history that is not old enough to be deleted up to `version`: it says when it will be.
///
/// # Errors
/// `CorruptLog`, `Unsupported` for an invalid retention, and errors of the store.
pub(super) fn too_young(base: &Snapshot, version: u64, feature: &TableFeature) -> Result<Error> {
    let retention = base.truncated_history_retention()?;
    let inventory = LogInventory::read(base.storage())?;
    let times =
        inventory.commit_times(base.storage(), InCommitTimestamps::of(base.protocol(), base.metadata())?);
    let checkpoints = inventory.checkpoints();
    let replacing = checkpoints.iter().map(|checkpoint| checkpoint.version).filter(|at| *at > version).min();
    let hint = match replacing {
        Some(checkpoint) => {
            let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
            // What has expired is looked for by whole minutes.
            let ready_ms = times.of(checkpoint)?.saturating_add(retention_ms).saturating_add(60_000);
            let ready = chrono::DateTime::from_timestamp_millis(ready_ms).map_or_else(
                || format!("{ready_ms} ms"),
                |time| time.format("%Y-%m-%dT%H:%M:00Z").to_string(),
            );
            format!("do the same again from {ready} on")
        }
        None => "do the same again".to_owned(),
    };
    let others = match feature {
        TableFeature::CheckpointProtection => String::new(),
        _ => ", or drop the feature without truncating the history".to_owned(),
    };
    Ok(Error::invalid_argument(format!(
        "the feature '{feature}' cannot be dropped yet: version {version} of the table, which can still be read, makes \
         use of it"
    ))
    .with_hint(format!(
        "{hint}, when the log before has expired ({} after the checkpoint that replaces it, \
         delta.dropFeatureTruncateHistory.retentionDuration){others}",
        shown(retention)
    )))
}

/// Returns a time span in hours and minutes.
fn shown(span: std::time::Duration) -> String {
    let minutes = span.as_secs() / 60;
    match (minutes / 60, minutes % 60) {
        (hours, 0) => format!("{hours} hours"),
        (0, minutes) => format!("{minutes} minutes"),
        (hours, minutes) => format!("{hours} hours and {minutes} minutes"),
    }
}
