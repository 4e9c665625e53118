//! Filters that select files while the log is read.
//!
//! - A filter declares the columns that it reads. In a checkpoint, only these columns are decoded for every file; the
//!   other columns are decoded for the files that pass the filters.
//! - Filters run in order: a filter does not see the files that an earlier filter has rejected.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;

use super::columns::FileColumns;
use crate::error::{Error, Result};

/// A function that decides for each row of a batch whether to keep the file in that row.
pub type Keep = dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync;

/// A filter on files by some of their columns.
#[derive(Clone)]
pub struct FileFilter {
    /// The columns that the filter reads.
    pub columns: FileColumns,
    /// If set, the filter accepts the statistics of a checkpoint as a struct in the column `stats_parsed`; `stats` is
    /// then null. Of this struct, only `numRecords`, `tightBounds` and the fields at these paths below `minValues`,
    /// `maxValues` and `nullCount` are decoded. The paths use the column names of the log, and the values have the
    /// types of the checkpoint. This only has an effect if `columns` contains `Stats`.
    pub parsed_stats: Option<Arc<[Vec<String>]>>,
    /// Whether the struct is used only for row groups in which the checkpoint has no `stats` text.
    pub prefers_text: bool,
    /// Decides for each row of a batch whether to keep the file. The batch has the log's columns. The result must not
    /// depend on how files are grouped into batches.
    pub keep: Arc<Keep>,
}

/// Returns all columns that `filters` read.
pub(super) fn columns_of(filters: &[FileFilter]) -> FileColumns {
    filters.iter().flat_map(|filter| filter.columns.iter()).fold(FileColumns::default(), FileColumns::with)
}

/// Returns the rows of `batch` that pass `filters`. The batch must have the columns that the filters read.
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
