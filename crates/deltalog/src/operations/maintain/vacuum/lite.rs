//! Finds the files that may be deleted by reading only the log: the files that commits have removed since the last
//! VACUUM.
//!
//! ```text
//!   0 … 40 │ 41 … 57 │ 58 … 63
//!          │         └ committed since the cut-off
//!          └ looked at: their `remove` and `cdc` actions
//!   └ looked at by the last VACUUM: _last_vacuum_info
//! ```
//!
//! - If commits are missing that no VACUUM has read, that is an error, because the files that they removed would
//!   never be found.
//! - If a commit is old enough but one of the files that it removed is not, the next VACUUM finds that file, because
//!   this VACUUM only records the version before that commit.

use std::collections::HashSet;

use arrow::array::{Array, AsArray, Int64Array};
use arrow::datatypes::Int64Type;

use super::candidates::{Candidates, VacuumReason};
use super::last;
use super::listing::Found;
use super::retained::{Files, Retained, deletion_times, is_expired};
use super::visible::Visible;
use crate::error::{Error, ErrorKind, Result};
use crate::log::CommitTimes;
use crate::log::replay::{Commit, visit_commits};
use crate::protocol::LogPath;
use crate::snapshot::Snapshot;
use crate::storage::FileMeta;

/// Reads the commits of `snapshot` that are older than `cutoff_ms`.
///
/// # Errors
/// Returns `VersionNotFound` if the log does not reach back to the last VACUUM, `CorruptLog`, and errors from the
/// store.
pub(super) fn find(snapshot: &Snapshot, retained: &Retained, cutoff_ms: i64) -> Result<Found> {
    let nothing = Found { directories: 1, ..Found::default() };
    let times = snapshot.commit_times(Some(snapshot.version()))?;
    let Some(end) = times.last_at_or_before(cutoff_ms)? else { return Ok(nothing) };
    let last = last::read(snapshot)?;
    let start = last.map_or(0, |last| last + 1);
    if start > end {
        return Ok(Found { searched_up_to: last, ..nothing });
    }
    check_reach(snapshot, &times, start, last)?;
    let commits = times.commits_of(start..=end)?;
    let mut search = Search::new(snapshot, retained, cutoff_ms);
    visit_commits(snapshot.storage(), &commits, |file, commit| {
        search.look_at(&commit?).map_err(|error| error.at_version(file.version))?;
        Ok(true)
    })?;
    let searched_up_to = match search.postponed {
        Some(version) => version.checked_sub(1),
        None => Some(end),
    };
    let files = search.candidates.finish_beside(snapshot, Vec::new())?;
    Ok(Found { files, searched_up_to, ..nothing })
}

/// Refuses a log whose oldest commit is newer than the version `start`.
fn check_reach(snapshot: &Snapshot, times: &CommitTimes, start: u64, last: Option<u64>) -> Result<()> {
    let oldest = times.commits_of_log().first().map_or(u64::MAX, |commit| commit.version);
    if oldest <= start {
        return Ok(());
    }
    let message = match last {
        Some(last) => format!(
            "the last VACUUM has looked at the versions up to {last}, but the log begins with version {oldest}"
        ),
        None => format!(
            "no VACUUM has recorded the version that it has reached, and the log begins with version {oldest}"
        ),
    };
    Err(Error::new(
        ErrorKind::VersionNotFound,
        format!("VACUUM cannot find files by the log alone: {message}"),
    )
    .in_table(snapshot.storage().url())
    .with_hint("run a full VACUUM, which lists the files; it records the version for the next one"))
}

/// A search for removed files in commits.
struct Search<'a> {
    snapshot: &'a Snapshot,
    retained: &'a Retained,
    visible: Visible,
    cutoff_ms: i64,
    candidates: Candidates,
    /// The files that were already listed, because several actions may refer to the same file.
    seen: HashSet<String>,
    /// The first version that removed a file which is not old enough to delete.
    postponed: Option<u64>,
}

impl<'a> Search<'a> {
    fn new(snapshot: &'a Snapshot, retained: &'a Retained, cutoff_ms: i64) -> Self {
        Self {
            snapshot,
            retained,
            visible: Visible::of(snapshot),
            cutoff_ms,
            candidates: Candidates::default(),
            seen: HashSet::new(),
            postponed: None,
        }
    }

    fn look_at(&mut self, commit: &Commit) -> Result<()> {
        let removes = &commit.removes;
        let files = Files::of(removes, self.snapshot.resolver())?;
        let times = deletion_times(removes);
        let sizes = removes.column_by_name("size").and_then(|sizes| sizes.as_primitive_opt::<Int64Type>());
        for row in 0..removes.num_rows() {
            if !is_expired(times, row, self.cutoff_ms) {
                self.postponed.get_or_insert(commit.version);
                continue;
            }
            let value = |column: Option<&Int64Array>| {
                column.filter(|column| column.is_valid(row)).map_or(0, |column| column.value(row))
            };
            let removed_ms = value(times);
            let size = u64::try_from(value(sizes)).unwrap_or_default();
            self.add(&files.data_file(row)?, size, removed_ms, VacuumReason::Removed);
            if let Some(file) = files.vector_file(row)? {
                self.add(&file, 0, removed_ms, VacuumReason::DeletionVector);
            }
        }
        for file in &commit.cdc {
            let path = self.snapshot.resolver().parse(&file.path)?;
            let size = u64::try_from(file.size).unwrap_or_default();
            self.add(&path, size, commit.timestamp_ms(), VacuumReason::ChangeData);
        }
        Ok(())
    }

    /// Adds a file to the list if it may be deleted. Only files that a listing would find are added, because the
    /// actions in a log may refer to files that must never be deleted, such as the files of the log itself.
    fn add(&mut self, file: &LogPath, size: u64, modified_ms: i64, reason: VacuumReason) {
        let LogPath::Relative(path) = file else { return };
        if !self.visible.shows_path(path) || self.retained.keeps(path) || !self.seen.insert(path.clone()) {
            return;
        }
        let file = FileMeta { name: path.clone(), size, modified_ms, tag: None };
        self.candidates.push(&file, reason);
    }
}
