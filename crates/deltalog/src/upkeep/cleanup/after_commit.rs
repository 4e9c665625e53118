//! Cleans up the log after commits. (PROTOCOL, "Metadata Cleanup".)
//!
//! - Files are deleted in rounds of at most two seconds. Before each round, the table's properties are read again. If a
//!   commit waits for the clean-up, there is only one round. In the background, rounds continue, but let a checkpoint
//!   of the same table go first. The remaining files are deleted after the next commits on the same snapshot and on
//!   snapshots that are refreshed from it ([`LeftOver`](crate::snapshot::LeftOver)), or after the first checkpoint of a
//!   later hour.

use std::collections::VecDeque;

use super::{DAY_MS, MOST_FILES_OF_ROUND, delete, ensure_cleanable, find, midnight, retention_ms};
use crate::error::Result;
use crate::protocol::log_name::LogFileName;
use crate::protocol::protected_before;
use crate::runtime::background::Turn;
use crate::runtime::environment::Environment;
use crate::snapshot::Expired;
use crate::snapshot::Snapshot;
use crate::storage::FileMeta;
use crate::upkeep::duties::Duties;

const HOUR_MS: i64 = 3600 * 1000;

/// The time in milliseconds after which no further file is deleted in a round.
const MOST_MS_OF_ROUND: i64 = 2000;

/// How long a clean-up may continue.
#[derive(Debug, Clone, Copy)]
pub(in crate::upkeep) enum Pace<'a> {
    /// The clean-up does one round, because a commit waits for it.
    Brief,
    /// The clean-up takes as long as it needs, because no caller waits for it. Other work on the table goes first.
    Behind(&'a Turn<'a>),
}

impl Pace<'_> {
    /// Returns whether work that began at `began_ms` has used up its time.
    fn is_over_since(self, began_ms: i64, environment: &Environment) -> bool {
        match self {
            Self::Brief => environment.now_ms().saturating_sub(began_ms) >= MOST_MS_OF_ROUND,
            Self::Behind(turn) => turn.is_over(),
        }
    }

    /// Returns whether no further round may begin.
    fn is_over(self) -> bool {
        match self {
            Self::Brief => true,
            Self::Behind(turn) => turn.is_over(),
        }
    }
}

/// If the table allows it, cleans up the log after a checkpoint was written.
///
/// This lists the whole log, so it is only done for the first checkpoint of an hour. The new checkpoint itself does not
/// make any commits expire, because it is newer than the cut-off.
pub(in crate::upkeep) fn after_checkpoint(duties: &Duties, pace: Pace<'_>) -> Result<()> {
    if matches!(pace, Pace::Behind(turn) if turn.is_last()) {
        return Ok(());
    }
    let Duties { base, version, environment, .. } = duties;
    let hour = |time_ms: i64| time_ms.div_euclid(HOUR_MS);
    let former = base.segment().checkpoint.as_ref().and_then(|checkpoint| checkpoint.files.first());
    if former.is_none_or(|former| hour(former.modified_ms) == hour(environment.now_ms())) {
        return Ok(());
    }
    // The commit itself may have changed the retention, and a listing that lags behind may not show the commit yet.
    let newest = base.refresh()?;
    if newest.version() < *version {
        return Ok(());
    }
    if !is_wanted(&newest) {
        return Ok(());
    }
    // If the clock of this machine is ahead, no history may be deleted because of that. So the time is not later than
    // the modification time of the commit's file, which comes from the store's clock.
    let path = LogFileName::Commit(*version).path();
    let Some(commit) = base.storage().head(&path)? else { return Ok(()) };
    let now_ms = environment.now_ms().min(commit.modified_ms);
    let retention_ms = retention_ms(&newest)?;
    // A writer that has lost a version may be pausing before it puts the next one. That next version must not be
    // committed and deleted in the meantime, because the writer would find it free.
    let cutoff_ms = midnight(now_ms.saturating_sub(retention_ms.max(DAY_MS)));
    let began_ms = environment.now_ms();
    let is_over = || pace.is_over_since(began_ms, environment);
    let Some(plan) = find(&newest, now_ms, cutoff_ms, false, &is_over)? else { return Ok(()) };
    let protected_before = protected_before(newest.protocol(), newest.metadata())?;
    delete_some(duties, Expired { files: plan.files.into(), retention_ms, protected_before }, pace)
}

/// Returns whether the log of this table may be cleaned up by a commit.
fn is_wanted(snapshot: &Snapshot) -> bool {
    let is_off = |value: &str| value.trim().eq_ignore_ascii_case("false");
    !snapshot.metadata().property("delta.enableExpiredLogCleanup").is_some_and(is_off)
        && ensure_cleanable(snapshot).is_ok()
}

/// Continues with the files that a clean-up after an earlier commit has left.
pub(in crate::upkeep) fn go_on(duties: &Duties, pace: Pace<'_>) -> Result<()> {
    let expired = duties.base.left_over().take();
    delete_some(duties, expired, pace)
}

/// Returns whether the expired files may still be deleted. The table's properties may have been changed to keep them.
fn is_still_wanted(snapshot: &Snapshot, expired: &Expired) -> Result<bool> {
    Ok(is_wanted(snapshot)
        && retention_ms(snapshot)? <= expired.retention_ms
        && protected_before(snapshot.protocol(), snapshot.metadata())? <= expired.protected_before)
}

/// Deletes the first of the expired files, and leaves the others for later commits. If a file cannot be deleted, the
/// rest is skipped, and the next clean-up finds these files again. Before each round, the table's properties are read
/// again.
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
        // Later rounds delete no sidecars, because right before a sidecar is deleted, it must be checked that no
        // checkpoint refers to it.
        expired.files.retain(|file| !file.name.starts_with("_sidecars/"));
        if pace.is_over() {
            break;
        }
    }
    duties.base.left_over().put(expired);
    Ok(())
}

/// Deletes files from the front of the list until the round is full or the turn is over. Even a slow round has at least
/// one file.
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
