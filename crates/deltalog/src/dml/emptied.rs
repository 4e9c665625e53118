//! Files of which a statement deletes all rows, when another writer has moved these rows meanwhile.
//!
//! Such a file is removed, which needs no position of a row. If an OPTIMIZE was faster, the file is gone, and the rows
//! are in another one, beside rows that stay. Where they are follows from their positions in the old file
//! ([`crate::row_moves`]), so that these are needed after all.

use roaring::RoaringTreemap;

use super::listed::ListedFile;
use super::run::deletes_by_vectors;
use crate::error::Result;
use crate::parallel;
use crate::protocol::Add;
use crate::snapshot::Snapshot;
use crate::stats::num_records;
use crate::transaction::{Conflict, ConflictReason};
use crate::write::FOOTER_THREADS;

/// The most rows of all files together whose positions are held in memory: a bit each.
const MOST_ROWS: u64 = 1 << 28;

/// Returns whether `conflict` is about one of the files.
pub(super) fn is_about(conflict: &Conflict, files: &[ListedFile]) -> bool {
    match &conflict.reason {
        ConflictReason::ConcurrentDeleteRead { file } | ConflictReason::ConcurrentDeleteDelete { file } => {
            files.iter().any(|listed| listed.add.path == *file)
        }
        _ => false,
    }
}

/// Returns the files with the positions of all their rows; `None` if the table has no deletion vectors, if there are
/// too many rows, or if it is not certain how many.
pub(super) fn rows_of(base: &Snapshot, files: &[ListedFile]) -> Result<Option<Vec<(Add, RoaringTreemap)>>> {
    if !deletes_by_vectors(base)? {
        return Ok(None);
    }
    // The statistics may be those of others. Too few rows would leave some of them in the new file.
    let counted = match parallel::each(files, FOOTER_THREADS, |file| file.counted_in_footer(base)) {
        Ok(counted) => counted,
        Err(error) => {
            let table = base.storage().url();
            tracing::debug!(table, %error, "the rows of a removed file cannot be counted");
            return Ok(None);
        }
    };
    let rows = |add: &Add| add.stats.as_deref().and_then(num_records).unwrap_or(u64::MAX);
    let all = counted.iter().map(rows).fold(0, u64::saturating_add);
    let positions = |add: Add| {
        let mut positions = RoaringTreemap::new();
        positions.insert_range(0..rows(&add));
        (add, positions)
    };
    Ok((all <= MOST_ROWS).then(|| counted.into_iter().map(positions).collect()))
}
