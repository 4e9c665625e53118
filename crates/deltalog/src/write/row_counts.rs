//! Determines the exact number of rows in files, which is needed to assign row ids. (PROTOCOL, "Row Tracking",
//! "Writer Requirements for Row Tracking".)
//!
//! - Statistics that this crate has computed are trusted. Statistics of other writers are compared with the file's
//!   footer ([`crate::values::stats::is_own`]): if a file had more rows than its statistics state, two rows would get
//!   the same id.

use crate::error::{Error, Result};
use crate::protocol::Add;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;
use crate::values::stats::{is_own, num_records, with_num_records};
use crate::write::{FOOTER_THREADS, read_footer};

/// A file whose rows are to be counted.
pub(crate) struct Counted<'a> {
    /// The action that needs the number of rows.
    pub(crate) add: Add,
    /// The file's path, as the snapshot's log spells it.
    pub(crate) path: &'a str,
}

/// Returns the actions of `files`, which belong to `snapshot`, with exact numbers of rows. Actions that already have
/// row ids are returned unchanged.
///
/// # Errors
/// Returns `CorruptData` for a file that is not Parquet, or whose number of rows differs from its statistics. Also
/// returns errors from the store.
pub(crate) fn with_certain_counts(snapshot: &Snapshot, files: &[Counted<'_>]) -> Result<Vec<Add>> {
    parallel::each(files, FOOTER_THREADS, |Counted { add, path }| {
        if add.base_row_id.is_some() || has_certain_count(add) {
            return Ok(add.clone());
        }
        with_num_records(add.clone(), rows_in_footer(snapshot, path)?)
    })
}

/// Returns whether the statistics of a file state its number of rows and were computed by this crate.
pub(crate) fn has_certain_count(add: &Add) -> bool {
    add.stats.as_deref().is_some_and(|stats| is_own(stats) && num_records(stats).is_some())
}

/// Returns the number of rows that the footer of a file states.
///
/// # Errors
/// Returns `CorruptData` for a file that is not Parquet, and errors from the store.
pub(crate) fn rows_in_footer(snapshot: &Snapshot, path: &str) -> Result<u64> {
    let located = |error: Error| error.at_path(path);
    let file = snapshot.storage().open_log_path(&snapshot.resolver().parse(path)?)?;
    let footer = read_footer(&file).map_err(located)?;
    u64::try_from(footer.file_metadata().num_rows())
        .map_err(|_| located(Error::corrupt_data("the footer has a negative number of rows")))
}
