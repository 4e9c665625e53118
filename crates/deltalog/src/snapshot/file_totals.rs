//! Counts the live files of a version from its file list.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use super::Snapshot;
use crate::error::{Error, Result};
use crate::log::replay::{DeletionVectorColumn, FileColumn, FileColumns};
use crate::log::{Change, FileSizeHistogram, FileTotals};

impl Snapshot {
    /// Counts the live files from the log alone, without a checksum file. Their sizes are counted in the bins of
    /// `sizes`, an empty histogram.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::replay_files`], and `CorruptLog` for a file with an impossible size.
    pub(crate) fn count_files(&self, sizes: FileSizeHistogram) -> Result<FileTotals> {
        let located = |error| self.located(error);
        let mut totals = FileTotals::empty(sizes);
        let columns = FileColumns::of(&[FileColumn::Size, FileColumn::DeletionVector]);
        for batch in self.replay_files(columns)? {
            let batch = batch?;
            let sizes = batch
                .column_by_name(FileColumn::Size.name())
                .and_then(|sizes| sizes.as_primitive_opt::<Int64Type>())
                .ok_or_else(|| located(Error::corrupt_log("an add action lacks its size")))?;
            let vectors = DeletionVectorColumn::of_log(&batch).map_err(located)?;
            for (row, size) in sizes.values().iter().enumerate() {
                let deleted = vectors.get(row).map_err(located)?.map(|vector| vector.cardinality);
                totals.count(Change::Added, *size, deleted).ok_or_else(|| {
                    located(Error::corrupt_log("an add action has an impossible size or deletion vector"))
                })?;
            }
        }
        Ok(totals)
    }
}
