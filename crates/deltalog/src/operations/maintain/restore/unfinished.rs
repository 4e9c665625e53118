//! Finds VACUUMs that have begun but have not recorded their end. They may be deleting files that a RESTORE needs
//! again.
//!
//! - A VACUUM that begins after the base of a RESTORE conflicts with the commit of the RESTORE. But a VACUUM that
//!   began earlier may still delete files that exist when the RESTORE checks them.
//! - A VACUUM deletes only files that were removed before its cut-off, which is determined by the time and the
//!   retention in its commit. A RESTORE of a version within the retention of all VACUUMs is therefore never in
//!   danger.
//! - A VACUUM that began at or before the version to restore treats the files of that version as live, and keeps
//!   them.
//! - A process may die during a VACUUM. A VACUUM that began longer ago than [`LONGEST_VACUUM_MS`] is therefore
//!   ignored.

use serde_json::Value;

use crate::commit::ConflictReason;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{CommitFile, read_commit_info};
use crate::operations::maintain::vacuum::Retained;
use crate::protocol::{CommitInfo, LogPath};
use crate::runtime::parallel;
use crate::snapshot::Snapshot;

/// The maximum time that a VACUUM is expected to take.
const LONGEST_VACUUM_MS: i64 = 24 * 3600 * 1000;

/// A VACUUM that may still be deleting files.
struct Vacuum {
    version: u64,
    /// Files that were removed from the table before this time may be deleted.
    cutoff_ms: i64,
}

/// Refuses to restore `files` of the version `earlier` if a VACUUM in the log of `base` may still be deleting them.
///
/// # Errors
/// Returns `CommitConflict`, `CorruptLog`, and errors from the store.
pub(super) fn ensure_none_deletes(
    files: &[Vec<LogPath>],
    base: &Snapshot,
    earlier: &Snapshot,
    now_ms: i64,
) -> Result<()> {
    let unfinished = unfinished(base, earlier.version(), now_ms)?;
    let Some(vacuum) = unfinished.iter().max_by_key(|vacuum| vacuum.cutoff_ms) else { return Ok(()) };
    let retained = Retained::of(base, vacuum.cutoff_ms)?;
    // VACUUM only deletes files in the table's directory.
    let may_go = |path: &LogPath| matches!(path, LogPath::Relative(path) if !retained.keeps(path));
    let count = files.iter().filter(|needed| needed.iter().any(may_go)).count();
    if count == 0 {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::CommitConflict,
        format!(
            "version {} cannot be restored now: the VACUUM that has begun with version {} has not recorded its end, \
             and may still be deleting {count} of its files",
            earlier.version(),
            vacuum.version
        ),
    )
    .at_version(vacuum.version)
    .with_reason(ConflictReason::FilesVacuumed.name())
    .with_hint(
        "nothing was committed; repeat the RESTORE when the history shows its VACUUM END. If that VACUUM has died, \
         ignore missing files, or repeat the RESTORE a day after it has begun",
    )
    .in_table(base.storage().url()))
}

/// Returns the VACUUMs of the last [`LONGEST_VACUUM_MS`] after version `after` that have not recorded their end.
/// Commits do not say which VACUUM has ended, so each end is assigned to the oldest VACUUM that is still open.
fn unfinished(base: &Snapshot, after: u64, now_ms: i64) -> Result<Vec<Vacuum>> {
    let times = base.commit_times(Some(base.version()))?;
    let Some(first) = times.first_at_or_after(now_ms.saturating_sub(LONGEST_VACUUM_MS))? else {
        return Ok(Vec::new());
    };
    let is_young = |commit: &&CommitFile| commit.version > after && commit.version >= first;
    let commits: Vec<CommitFile> = times.commits_of_log().iter().filter(is_young).copied().collect();
    let threads = base.storage().readers(commits.len());
    let infos = parallel::each(&commits, threads, |commit| match base.known_commit_info(commit.version) {
        Some(info) => Ok(info),
        None => match read_commit_info(base.storage(), *commit) {
            // The commit file has been deleted by a cleanup since it was listed.
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(CommitInfo::default()),
            info => Ok::<_, Error>(info?.unwrap_or_default()),
        },
    })?;
    let mut unfinished = Vec::new();
    for (commit, info) in commits.iter().zip(&infos) {
        match info.operation.as_deref() {
            Some("VACUUM START") => {
                let started_ms = times.shown(commit, Some(info)).max(info.timestamp.unwrap_or(i64::MIN));
                let cutoff_ms = started_ms.saturating_add(1).saturating_sub(retention_ms(info));
                unfinished.push(Vacuum { version: commit.version, cutoff_ms });
            }
            Some("VACUUM END") if !unfinished.is_empty() => {
                unfinished.remove(0);
            }
            _ => {}
        }
    }
    Ok(unfinished)
}

/// Returns the retention that the commit `VACUUM START` states; 0 if it does not state a retention.
fn retention_ms(info: &CommitInfo) -> i64 {
    let named = |name: &str| match info.operation_parameters.as_ref()?.get(name)? {
        Value::Number(ms) => ms.as_i64(),
        Value::String(ms) => ms.parse().ok(),
        _ => None,
    };
    named("specifiedRetentionMillis").or_else(|| named("defaultRetentionMillis")).unwrap_or_default()
}
