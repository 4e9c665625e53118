//! Which files a caller wants, decided while they are read.
//!
//! - A filter names the columns it looks at. In a checkpoint only those are decoded for every file; the rest
//!   is decoded for the files that are left.
//! - Filters come in order: what one turns down the next does not see.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;

use super::columns::FileColumns;
use crate::error::{Error, Result};

/// Says of each row of a batch whether the file may be wanted.
pub type Keep = dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync;

/// Turns down files by some of their columns.
#[derive(Clone)]
pub struct FileFilter {
    /// What it looks at.
    pub columns: FileColumns,
    /// If set, statistics may come as they stand in a checkpoint: a batch that has the column `stats_parsed`
    /// says there what `stats`, which is null then, would say. Of its fields only `numRecords`,
    /// `tightBounds`, and those below `minValues`, `maxValues` and `nullCount` at these paths (in the names
    /// of the log) are decoded; they are of the types of the checkpoint. Counts only if `columns` has
    /// `Stats`.
    pub parsed_stats: Option<Arc<[Vec<String>]>>,
    /// Gets batches in the form of the log. Must not depend on how files are put together to batches.
    pub keep: Arc<Keep>,
}

/// All that `filters` look at.
pub(super) fn columns_of(filters: &[FileFilter]) -> FileColumns {
    filters.iter().flat_map(|filter| filter.columns.iter()).fold(FileColumns::default(), FileColumns::with)
}

/// What `filters` leave of `batch`, which has the columns they look at.
pub(crate) fn apply(filters: &[FileFilter], batch: RecordBatch) -> Result<RecordBatch> {
    filters.iter().try_fold(batch, |batch, filter| {
        if batch.num_rows() == 0 {
            return Ok(batch);
        }
        let keep = (filter.keep)(&batch)?;
        if keep.true_count() == batch.num_rows() {
            return Ok(batch);
        }
        filter_record_batch(&batch, &keep)
            .map_err(|error| Error::corrupt_log("the file list cannot be filtered").with_source(error))
    })
}
