//! Skips row groups by the statistics in a file's footer.

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array};
use parquet::file::metadata::ParquetMetaData;

use super::places::Places;
use crate::error::Result;
use crate::expression::predicate::{BoundPredicate, ColumnPath, FileBounds, prune};

/// Returns the row groups of a file that must be read for `predicate`. `places` are the locations of its columns.
///
/// # Errors
/// Returns the same errors as [`prune`].
pub(super) fn matching_groups(
    predicate: &BoundPredicate,
    places: &Places,
    metadata: &ParquetMetaData,
) -> Result<Vec<usize>> {
    let keep = prune(predicate, &GroupBounds { places, metadata })?;
    Ok((0..metadata.num_row_groups()).filter(|group| keep.is_valid(*group) && keep.value(*group)).collect())
}

/// The bounds of a file's row groups, in which each row group is treated as a file.
pub(super) struct GroupBounds<'a> {
    pub(super) places: &'a Places,
    pub(super) metadata: &'a ParquetMetaData,
}

impl FileBounds for GroupBounds<'_> {
    fn num_files(&self) -> usize {
        self.metadata.num_row_groups()
    }

    fn num_records(&self) -> Option<Int64Array> {
        Some(self.metadata.row_groups().iter().map(|group| group.num_rows()).collect::<Vec<_>>().into())
    }

    fn min(&self, column: &ColumnPath) -> Option<ArrayRef> {
        let groups = self.metadata.row_groups();
        self.places.bounds(column, groups.len(), self.metadata, |leaf| leaf.row_group_mins(groups).ok())
    }

    fn max(&self, column: &ColumnPath) -> Option<ArrayRef> {
        let groups = self.metadata.row_groups();
        self.places.bounds(column, groups.len(), self.metadata, |leaf| leaf.row_group_maxes(groups).ok())
    }

    fn without_nan(&self, column: &ColumnPath) -> Option<BooleanArray> {
        self.places.without_nan(column, self.num_files(), self.max(column).as_ref())
    }

    fn null_count(&self, column: &ColumnPath) -> Option<Int64Array> {
        let groups = self.metadata.row_groups();
        self.places.null_counts(column, self.num_records(), self.metadata, |leaf| {
            leaf.row_group_null_counts(groups).ok()
        })
    }
}
