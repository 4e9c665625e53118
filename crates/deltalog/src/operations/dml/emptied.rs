//! Removes files from which a statement deletes all rows, even if another writer moves these rows to other files at
//! the same time.
//!
//! Removing such a file does not require the positions of its rows. But if a concurrent OPTIMIZE commits first, the
//! file no longer exists, and its rows are in another file together with rows that must stay. The new positions of
//! the rows can be derived from their positions in the old file ([`crate::commit::row_moves`]). The positions are
//! therefore computed after all, for files that the newest version no longer has.

use roaring::RoaringTreemap;

use crate::commit::{Conflict, ConflictReason};
use crate::error::Result;
use crate::operations::rewrite::{ListedFile, current_actions};
use crate::protocol::Add;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;
use crate::values::stats::num_records;
use crate::write::FOOTER_THREADS;

/// The maximum total number of rows whose positions are kept in memory, with one bit for each row.
const MOST_ROWS: u64 = 1 << 28;

/// The files that lose all their rows.
#[derive(Debug)]
pub(super) struct Emptied {
    /// The files to remove.
    pub(super) removed: Vec<Add>,
    /// Files whose rows another writer has moved, with the positions of all their rows. The rows are deleted at their
    /// new positions.
    pub(super) rows: Vec<(Add, RoaringTreemap)>,
}

impl Emptied {
    /// Returns the files to remove, assuming that no other writer has moved their rows.
    pub(super) fn unmoved(files: &[ListedFile]) -> Self {
        Self { removed: files.iter().map(|file| file.add.clone()).collect(), rows: Vec::new() }
    }

    /// Returns what to do after another writer has removed some of the files, which has caused `conflict`. Returns
    /// `None` if the conflict has another cause, if the table has no deletion vectors, or if the files have too many
    /// rows or an unknown number of rows.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store.
    pub(super) fn moved(base: &Snapshot, files: &[ListedFile], conflict: &Conflict) -> Result<Option<Self>> {
        if !is_about(conflict, files) || !base.deletes_by_vectors()? {
            return Ok(None);
        }
        let (live, gone) = apart(base, files)?;
        // The rows are counted from the footers, because the statistics may come from another writer. If the number
        // were too low, some rows in the new file would not be deleted.
        let counted = match parallel::each(&gone, FOOTER_THREADS, |file| file.counted_in_footer(base)) {
            Ok(counted) => counted,
            Err(error) => {
                let table = base.storage().url();
                tracing::debug!(table, %error, "the rows of a removed file cannot be counted");
                return Ok(None);
            }
        };
        let rows = |add: &Add| add.stats.as_deref().and_then(num_records).unwrap_or(u64::MAX);
        if counted.iter().map(rows).fold(0, u64::saturating_add) > MOST_ROWS {
            return Ok(None);
        }
        let positions = |add: Add| {
            let mut positions = RoaringTreemap::new();
            positions.insert_range(0..rows(&add));
            (add, positions)
        };
        let removed = live.into_iter().map(|file| file.add.clone()).collect();
        Ok(Some(Self { removed, rows: counted.into_iter().map(positions).collect() }))
    }
}

/// Returns whether `conflict` is about one of the files.
fn is_about(conflict: &Conflict, files: &[ListedFile]) -> bool {
    match &conflict.reason {
        ConflictReason::ConcurrentDeleteRead { file } | ConflictReason::ConcurrentDeleteDelete { file } => {
            files.iter().any(|listed| listed.add.path == *file)
        }
        _ => false,
    }
}

/// Divides the files into those that the newest version still contains, and those that it does not contain.
fn apart<'f>(base: &Snapshot, files: &'f [ListedFile]) -> Result<(Vec<&'f ListedFile>, Vec<&'f ListedFile>)> {
    let newest = base.refresh()?;
    let adds: Vec<Add> = files.iter().map(|file| file.add.clone()).collect();
    let found = current_actions(&newest, &adds)?;
    let (mut live, mut gone) = (Vec::new(), Vec::new());
    for file in files {
        let place = if found.contains_key(&file.file.path) { &mut live } else { &mut gone };
        place.push(file);
    }
    Ok((live, gone))
}
