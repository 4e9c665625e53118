//! Removing the part of the log that has expired. (PROTOCOL, "Metadata Cleanup", "VACUUM Protocol Check".)
//!
//! ```text
//!            cut-off: midnight UTC, `delta.logRetentionDuration` ago
//!                                     ▼
//!   0 … 9 [10] 11 … 19 [20] 21 … 25 26│27 … 31
//!   └── deleted ──────┘ └── retained ─┴───────
//! ```
//!
//! - Every version that is not older than the cut-off stays readable, and so does each version since the checkpoint
//!   that they need. Without such a checkpoint nothing is deleted.
//! - That checkpoint is read first, whole: a damaged one replaces nothing, and an older one is tried.
//! - Files are deleted in the order of their versions, and sidecars last. If the work is interrupted, what remains
//!   is the log of an earlier clean-up. Deleting can be repeated, also by several processes at once.
//! - Files are deleted for two seconds at a time. Before that, the table is asked whether it still wants it. A commit
//!   that cleans up before it returns does this once. Behind a commit it goes on, but makes way for a checkpoint of the
//!   same table. What remains follows after the next commits on the same snapshot and on those that are refreshed from
//!   it ([`LeftOver`](super::LeftOver)), or after the first checkpoint of a later hour.
//! - A file is only deleted if it is the one that was listed. Another table may have been created in the place of this
//!   one, whose files have the same names.
//! - Checkpoints, checksums and compactions that their writers did not complete are deleted after a day.
//! - No checkpoint is created. Protected ones are deleted together with all history before the version that they
//!   belong to, or if every version that is deleted could be read and written here. (Table feature
//!   `checkpointProtection`.)
//! - The table must be writable by this crate, whatever its properties say.

mod plan;
mod protected;
mod sidecars;
mod temporary;

use std::collections::VecDeque;
use std::time::Duration;

use super::duties::Duties;
use super::left_over::Expired;
use crate::background::Turn;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::log::name::LogFileName;
use crate::log::{LOG_DIRECTORY, LogInventory};
use crate::protocol::{TableFeature, ensure_writable};
use crate::snapshot::Snapshot;
use crate::storage::{FileMeta, Storage};

use plan::Plan;

const DAY_MS: i64 = 24 * 3600 * 1000;

const HOUR_MS: i64 = 3600 * 1000;

const MINUTE_MS: i64 = 60 * 1000;

/// The most files of a round. A commit deletes one round before it returns, and the rest follows after later commits.
const MOST_FILES_OF_ROUND: usize = 1000;

/// The time in milliseconds after which a round begins no further deletion.
const MOST_MS_OF_ROUND: i64 = 2000;

/// For how long a clean-up may go on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace<'a> {
    /// A commit waits for it.
    Brief,
    /// Nobody waits for it, but it makes way for other work on the table.
    Behind(&'a Turn<'a>),
}

impl Pace<'_> {
    /// Returns whether no further round may begin.
    fn is_over(self) -> bool {
        match self {
            Self::Brief => true,
            Self::Behind(turn) => turn.is_over(),
        }
    }
}

/// The result of cleaning up a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanedLog {
    /// The cut-off in milliseconds since the epoch: a midnight, UTC.
    pub cutoff_ms: i64,
    /// The oldest version that remains readable; `None` if nothing has expired.
    pub oldest_version: Option<u64>,
    /// The paths of the deleted files relative to the table's root, in the order of deletion.
    pub files: Vec<String>,
}

/// Deletes the part of a table's log that is older than its retention, `delta.logRetentionDuration`; 30 days if the
/// table does not say. With `dry_run`, returns what would be deleted.
///
/// Versions are expired by whole days, and only up to a checkpoint. Data files are not deleted. The property
/// `delta.enableExpiredLogCleanup` is not asked: it decides about the clean-up after a commit.
///
/// # Errors
/// `Unsupported` if the table cannot be written, is managed by a catalog, or has a retention that is not a time span
/// in weeks or smaller units; `CorruptLog`; also errors of the store, before which some files may have been deleted.
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

/// Deletes the part of a table's log that is older than `retention`, by whole minutes, as [`clean_up_log`] does.
///
/// # Errors
/// As [`clean_up_log`].
pub(crate) fn truncate_log(
    snapshot: &Snapshot,
    environment: &Environment,
    retention: Duration,
) -> Result<CleanedLog> {
    let newest = snapshot.refresh()?;
    let clean = || {
        ensure_cleanable(&newest)?;
        let now_ms = environment.now_ms();
        let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
        let cutoff_ms = now_ms.saturating_sub(retention_ms);
        clean_up(&newest, now_ms, cutoff_ms.saturating_sub(cutoff_ms.rem_euclid(MINUTE_MS)), false)
    };
    clean().map_err(|error: Error| error.in_table(newest.storage().url()))
}

/// Deletes what has expired at `now_ms`: versions up to `cutoff_ms`. With `dry_run`, returns what would be deleted.
fn clean_up(newest: &Snapshot, now_ms: i64, cutoff_ms: i64, dry_run: bool) -> Result<CleanedLog> {
    let Some(plan) = find(newest, now_ms, cutoff_ms, true)? else {
        return Ok(CleanedLog { cutoff_ms, oldest_version: None, files: Vec::new() });
    };
    if !dry_run {
        plan.files.iter().try_for_each(|file| delete(newest.storage(), file))?;
    }
    Ok(CleanedLog {
        cutoff_ms,
        oldest_version: Some(plan.oldest_version),
        files: plan.files.iter().map(|file| path_of(&file.name)).collect(),
    })
}

/// Cleans up the log after a checkpoint was written, if the table allows it.
///
/// This lists the whole log, so that only the first checkpoint of an hour does it. The new checkpoint itself replaces
/// nothing yet.
pub(super) fn after_checkpoint(duties: &Duties, pace: Pace<'_>) -> Result<()> {
    if matches!(pace, Pace::Behind(turn) if turn.is_last()) {
        return Ok(());
    }
    let Duties { base, version, environment, .. } = duties;
    let hour = |time_ms: i64| time_ms.div_euclid(HOUR_MS);
    let former = base.segment().checkpoint.as_ref().and_then(|checkpoint| checkpoint.files.first());
    if former.is_none_or(|former| hour(former.modified_ms) == hour(environment.now_ms())) {
        return Ok(());
    }
    // The commit itself may have changed the retention, and a listing that lags behind does not show it.
    let newest = base.refresh()?;
    if newest.version() < *version {
        return Ok(());
    }
    if !is_wanted(&newest) {
        return Ok(());
    }
    // One clock that is ahead must not delete the history of all: the commit has the time of the store.
    let path = LogFileName::Commit(*version).path();
    let Some(commit) = base.storage().head(&path)? else { return Ok(()) };
    let now_ms = environment.now_ms().min(commit.modified_ms);
    let retention_ms = retention_ms(&newest)?;
    // A writer that has lost a version and pauses must not find the next one deleted, and free again.
    let cutoff_ms = midnight(now_ms.saturating_sub(retention_ms.max(DAY_MS)));
    let Some(plan) = find(&newest, now_ms, cutoff_ms, false)? else { return Ok(()) };
    delete_some(duties, Expired { files: plan.files.into(), retention_ms }, pace)
}

/// Returns whether a commit may clean up the log of this table.
fn is_wanted(snapshot: &Snapshot) -> bool {
    let is_off = |value: &str| value.trim().eq_ignore_ascii_case("false");
    !snapshot.metadata().property("delta.enableExpiredLogCleanup").is_some_and(is_off)
        && ensure_cleanable(snapshot).is_ok()
}

/// Goes on with what a clean-up after an earlier commit has left.
pub(super) fn go_on(duties: &Duties, pace: Pace<'_>) -> Result<()> {
    let expired = duties.base.left_over().take();
    delete_some(duties, expired, pace)
}

/// Returns whether what has expired may be deleted. The properties may have changed, so that it is to be kept.
fn is_still_wanted(snapshot: &Snapshot, expired: &Expired) -> Result<bool> {
    Ok(is_wanted(snapshot) && retention_ms(snapshot)? <= expired.retention_ms)
}

/// Deletes the first of the expired files, and leaves the others to later commits. If one cannot be deleted, none is
/// left: the next clean-up finds them again. Before each round the table is asked whether it still wants that.
fn delete_some(duties: &Duties, mut expired: Expired, pace: Pace<'_>) -> Result<()> {
    let mut newest = duties.base.clone();
    while !expired.files.is_empty() {
        newest = newest.refresh()?;
        // A listing that lags behind may not show what the commit itself has changed.
        if newest.version() < duties.version {
            break;
        }
        if !is_still_wanted(&newest, &expired)? {
            return Ok(());
        }
        delete_round(duties, &mut expired.files, pace)?;
        // Whether a sidecar is referred to must be found out just before it is deleted.
        expired.files.retain(|file| !file.name.starts_with("_sidecars/"));
        if pace.is_over() {
            break;
        }
    }
    duties.base.left_over().put(expired);
    Ok(())
}

/// Deletes the first of some files, at least one of them, unless the turn is over.
fn delete_round(duties: &Duties, files: &mut VecDeque<FileMeta>, pace: Pace<'_>) -> Result<()> {
    let now_ms = || duties.environment.now_ms();
    let began_ms = now_ms();
    let mut deleted = 0;
    while let Some(file) = files.front() {
        let is_full = deleted >= MOST_FILES_OF_ROUND || now_ms().saturating_sub(began_ms) >= MOST_MS_OF_ROUND;
        if (is_full && deleted > 0) || matches!(pace, Pace::Behind(turn) if turn.is_over()) {
            break;
        }
        delete(duties.storage(), file)?;
        files.pop_front();
        deleted += 1;
    }
    Ok(())
}

/// Deletes a file of the log, unless another one has its name: that of a table that was created in the place of this.
fn delete(storage: &Storage, file: &FileMeta) -> Result<()> {
    let path = path_of(&file.name);
    match storage.head(&path)? {
        Some(found) if found.is_same_object(file) => storage.delete(&path),
        _ => Ok(()),
    }
}

/// Returns what has expired at `now_ms`: versions up to `cutoff_ms`. Sidecars are looked at if a checkpoint has
/// expired, or if `all_sidecars` says so, because that means reading all checkpoints.
fn find(snapshot: &Snapshot, now_ms: i64, cutoff_ms: i64, all_sidecars: bool) -> Result<Option<Plan>> {
    let inventory = LogInventory::read(snapshot.storage())?;
    let plan = Plan::find(snapshot, &inventory, cutoff_ms)?;
    // "preserve files that are less than a day old (as of midnight UTC)".
    let youngest_ms = midnight(now_ms).saturating_sub(DAY_MS);
    let mut unused = temporary::incomplete(&inventory, youngest_ms);
    if all_sidecars || plan.as_ref().is_some_and(|plan| plan.has_checkpoints) {
        let oldest_version = plan.as_ref().map_or(0, |plan| plan.oldest_version);
        unused.extend(sidecars::orphans(snapshot, &inventory, oldest_version, youngest_ms)?);
    }
    let plan = match plan {
        None if unused.is_empty() => None,
        plan => Some(plan.unwrap_or_else(|| Plan::nothing(&inventory))),
    };
    Ok(plan.map(|mut plan| {
        plan.files.extend(unused);
        plan
    }))
}

/// Returns the path of a file of the log relative to the table's root.
fn path_of(name: &str) -> String {
    format!("{LOG_DIRECTORY}/{name}")
}

/// Refuses tables whose log must not be cleaned up by this crate.
fn ensure_cleanable(snapshot: &Snapshot) -> Result<()> {
    let protocol = snapshot.protocol();
    // "Maintenance Operations on Catalog-managed Tables": prohibited unless the catalog permits them.
    if protocol.writer_features().contains(&TableFeature::CatalogManaged) {
        return Err(Error::unsupported(
            "the log of a table that a catalog manages is cleaned up by its catalog",
        ));
    }
    ensure_writable(protocol, snapshot.metadata())
}

/// Returns how long commits are kept.
fn retention_ms(snapshot: &Snapshot) -> Result<i64> {
    snapshot.log_retention().map(|retention| i64::try_from(retention.as_millis()).unwrap_or(i64::MAX))
}

/// Returns the last midnight, UTC, at or before a time.
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
