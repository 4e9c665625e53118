//! Deletes the part of the log that has expired. (PROTOCOL, "Metadata Cleanup", "VACUUM Protocol Check".)
//!
//! ```text
//!            cut-off: midnight UTC, `delta.logRetentionDuration` ago
//!                                     ▼
//!   0 … 9 [10] 11 … 19 [20] 21 … 25 26│27 … 31
//!   └── deleted ──────┘ └── retained ─┴───────
//! ```
//!
//! - Every version that is not older than the cut-off can still be read. This requires the newest checkpoint at or
//!   before the cut-off, so all versions from that checkpoint on are kept. If there is no such checkpoint, nothing is
//!   deleted.
//! - That checkpoint is read completely first. If it is damaged, it cannot replace earlier commits, and an older
//!   checkpoint is tried.
//! - A checkpoint may be written while the commit of its version is being deleted. A clean-up that a user has requested
//!   looks for such checkpoints at its end. A writer that completes its checkpoint even later notices that the commit
//!   is missing, and deletes the checkpoint.
//! - Files are deleted in the order of their versions, and sidecars come last. If the work is interrupted, the log
//!   looks as after an earlier clean-up. The deletion can be repeated, and several processes may do it at once.
//! - A file is only deleted if it is still the one that was listed, because this table may have been replaced by
//!   another one whose log files have the same names.
//! - Checkpoints, checksums, compactions and commits that were left incomplete by their writers are deleted after a
//!   day.
//! - The clean-up creates no checkpoint. Protected checkpoints are only deleted together with all history before the
//!   protected version, or if this crate could read and write every version that is deleted. (Table feature
//!   `checkpointProtection`.) If the protected version changes while files are deleted, the remaining files are kept.
//! - The table must be writable by this crate. No property overrides this.

mod after_commit;
mod plan;
mod protected;
mod sidecars;
mod temporary;

use std::time::Duration;

pub(super) use after_commit::{Pace, after_checkpoint, go_on};

use crate::error::{Error, Result};
use crate::log::{LOG_DIRECTORY, LogInventory};
use crate::protocol::log_name::LogFileName;
use crate::protocol::{TableFeature, ensure_writable, protected_before};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::storage::{FileMeta, Storage};

use plan::Plan;

const DAY_MS: i64 = 24 * 3600 * 1000;

const MINUTE_MS: i64 = 60 * 1000;

/// The maximum number of files that are deleted in a round. A commit deletes one round before it returns, and later
/// commits delete the rest.
const MOST_FILES_OF_ROUND: usize = 1000;

/// The result of cleaning up a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanedLog {
    /// The cut-off in milliseconds since the epoch. For [`clean_up_log`], it is a midnight in UTC.
    pub cutoff_ms: i64,
    /// The oldest version that remains readable; `None` if nothing has expired.
    pub oldest_version: Option<u64>,
    /// The paths of the deleted files relative to the table's root, in the order of deletion.
    pub files: Vec<String>,
}

/// Deletes the part of a table's log that is older than `delta.logRetentionDuration`, or 30 days if the property is not
/// set. With `dry_run`, returns what would be deleted.
///
/// Versions expire by whole days, and only versions before a checkpoint are deleted. Data files are not deleted. The
/// property `delta.enableExpiredLogCleanup` has no effect here, because it only controls the clean-up after a commit.
///
/// # Errors
/// `Unsupported` if the table cannot be written, is managed by a catalog, or has a retention that is not a time span in
/// weeks or smaller units; `CorruptLog`; also errors from the store, in which case some files may already have been
/// deleted.
pub fn clean_up_log(snapshot: &Snapshot, environment: &Environment, dry_run: bool) -> Result<CleanedLog> {
    let newest = snapshot.refresh()?;
    let clean = || {
        ensure_cleanable(&newest)?;
        let now_ms = environment.now_ms();
        let cutoff_ms = midnight(now_ms.saturating_sub(retention_ms(&newest)?));
        clean_up(&newest, now_ms, cutoff_ms, dry_run)
    };
    clean().map_err(|error: Error| error.in_table(newest.storage().url()))
}

/// Deletes the part of a table's log that is older than `retention`, as [`clean_up_log`] does, but by whole minutes.
/// This is only done if it deletes version `last` and all versions before it. Otherwise nothing is deleted, and `None`
/// is returned.
///
/// # Errors
/// Returns the same errors as [`clean_up_log`].
pub(crate) fn truncate_log(
    snapshot: &Snapshot,
    environment: &Environment,
    retention: Duration,
    last: u64,
) -> Result<Option<CleanedLog>> {
    let newest = snapshot.refresh()?;
    let clean = || {
        ensure_cleanable(&newest)?;
        let now_ms = environment.now_ms();
        let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
        let cutoff_ms = now_ms.saturating_sub(retention_ms);
        let cutoff_ms = cutoff_ms.saturating_sub(cutoff_ms.rem_euclid(MINUTE_MS));
        let inventory = LogInventory::read(newest.storage())?;
        let plan = Plan::find(&newest, &inventory, cutoff_ms, &never)?;
        let Some(plan) = plan.filter(|plan| plan.oldest_version > last) else { return Ok(None) };
        let plan = with_unused(Some(plan), &newest, &inventory, now_ms, true)?;
        plan.map(|plan| delete_all(&newest, plan, cutoff_ms)).transpose()
    };
    clean().map_err(|error: Error| error.in_table(newest.storage().url()))
}

/// Deletes the versions up to `cutoff_ms`, which have expired at the time `now_ms`. With `dry_run`, returns what would
/// be deleted.
fn clean_up(newest: &Snapshot, now_ms: i64, cutoff_ms: i64, dry_run: bool) -> Result<CleanedLog> {
    match find(newest, now_ms, cutoff_ms, true, &never)? {
        None => Ok(CleanedLog { cutoff_ms, oldest_version: None, files: Vec::new() }),
        Some(plan) if dry_run => Ok(cleaned(plan.files, plan.oldest_version, cutoff_ms)),
        Some(plan) => delete_all(newest, plan, cutoff_ms),
    }
}

/// Deletes the files of `plan`. Stops if the protected version of the table changes in the meantime.
fn delete_all(newest: &Snapshot, plan: Plan, cutoff_ms: i64) -> Result<CleanedLog> {
    let Plan { oldest_version, mut files, .. } = plan;
    let protected = |snapshot: &Snapshot| protected_before(snapshot.protocol(), snapshot.metadata());
    let before = protected(newest)?;
    let mut deleted = 0;
    let mut newest = newest.clone();
    for round in files.chunks(MOST_FILES_OF_ROUND) {
        if deleted > 0 {
            newest = newest.refresh()?;
            ensure_cleanable(&newest)?;
            if protected(&newest)? > before {
                break;
            }
        }
        round.iter().try_for_each(|file| delete(newest.storage(), file))?;
        deleted += round.len();
    }
    if deleted == files.len() && files.iter().any(is_commit) {
        let late = plan::checkpoints_before(&LogInventory::read(newest.storage())?, oldest_version);
        late.iter().try_for_each(|file| delete(newest.storage(), file))?;
        deleted += late.len();
        files.extend(late);
    }
    Ok(cleaned(files.into_iter().take(deleted), oldest_version, cutoff_ms))
}

fn cleaned(files: impl IntoIterator<Item = FileMeta>, oldest_version: u64, cutoff_ms: i64) -> CleanedLog {
    let files = files.into_iter().map(|file| path_of(&file.name)).collect();
    CleanedLog { cutoff_ms, oldest_version: Some(oldest_version), files }
}

/// Returns false: the time of a clean-up without a time limit is never over.
fn never() -> bool {
    false
}

/// Deletes a file of the log, unless another file now has its name. That happens if another table was created in place
/// of this one.
fn delete(storage: &Storage, file: &FileMeta) -> Result<()> {
    let path = path_of(&file.name);
    match storage.head(&path)? {
        Some(found) if found.is_same_object(file) => storage.delete(&path),
        _ => Ok(()),
    }
}

/// Returns the files of the versions up to `cutoff_ms`, which have expired at the time `now_ms`. Sidecars are only
/// included if a checkpoint has expired or if `all_sidecars` is set, because all checkpoints must be read to find them.
fn find(
    snapshot: &Snapshot,
    now_ms: i64,
    cutoff_ms: i64,
    all_sidecars: bool,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<Plan>> {
    let inventory = LogInventory::read(snapshot.storage())?;
    let plan = Plan::find(snapshot, &inventory, cutoff_ms, is_over)?;
    with_unused(plan, snapshot, &inventory, now_ms, all_sidecars)
}

/// Adds the expired files that do not belong to any version.
fn with_unused(
    plan: Option<Plan>,
    snapshot: &Snapshot,
    inventory: &LogInventory,
    now_ms: i64,
    all_sidecars: bool,
) -> Result<Option<Plan>> {
    // Protocol: "preserve files that are less than a day old (as of midnight UTC)".
    let youngest_ms = midnight(now_ms).saturating_sub(DAY_MS);
    let mut unused = temporary::incomplete(inventory, youngest_ms);
    if all_sidecars || plan.as_ref().is_some_and(|plan| plan.has_checkpoints) {
        let oldest_version = plan.as_ref().map_or(0, |plan| plan.oldest_version);
        unused.extend(sidecars::orphans(snapshot, inventory, oldest_version, youngest_ms)?);
    }
    let plan = match plan {
        None if unused.is_empty() => None,
        plan => Some(plan.unwrap_or_else(|| Plan::nothing(inventory))),
    };
    Ok(plan.map(|mut plan| {
        plan.files.extend(unused);
        plan
    }))
}

fn is_commit(file: &FileMeta) -> bool {
    matches!(LogFileName::parse(&file.name), Some(LogFileName::Commit(_)))
}

/// Returns the path of a file of the log, relative to the table's root.
fn path_of(name: &str) -> String {
    format!("{LOG_DIRECTORY}/{name}")
}

/// Refuses a table whose log this crate must not clean up.
fn ensure_cleanable(snapshot: &Snapshot) -> Result<()> {
    let protocol = snapshot.protocol();
    // "Maintenance Operations on Catalog-managed Tables": a clean-up is prohibited unless the catalog permits it.
    if protocol.writer_features().contains(&TableFeature::CatalogManaged) {
        return Err(Error::unsupported(
            "the log of a table that a catalog manages is cleaned up by its catalog",
        ));
    }
    ensure_writable(protocol, snapshot.metadata())
}

/// Returns how long the commits of the log are kept.
fn retention_ms(snapshot: &Snapshot) -> Result<i64> {
    snapshot.log_retention().map(|retention| i64::try_from(retention.as_millis()).unwrap_or(i64::MAX))
}

/// Returns the last midnight in UTC at or before a time.
fn midnight(time_ms: i64) -> i64 {
    time_ms.saturating_sub(time_ms.rem_euclid(DAY_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn midnights() {
        for (time, expected) in [(0, 0), (1, 0), (DAY_MS - 1, 0), (DAY_MS, DAY_MS), (-1, -DAY_MS)] {
            assert_eq!(midnight(time), expected, "{time}");
        }
    }
}
