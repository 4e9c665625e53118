//! Skips pages by the page index of a file (Parquet, "Page Index").
//!
//! The pages of different columns contain different numbers of rows. The predicate is therefore evaluated once per
//! column, as if the bounds of all other columns were unknown. A row is read if no column excludes its page.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array};
use parquet::arrow::arrow_reader::RowSelection;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::ParquetMetaData;

use super::places::{Place, Places};
use crate::error::Result;
use crate::expression::predicate::{BoundPredicate, ColumnPath, FileBounds, prune};

/// Returns the rows of `group` in the pages that must be read for `predicate`; `None` if that is all rows. `places`
/// are the locations of the predicate's columns.
///
/// # Errors
/// Returns the same errors as [`prune`].
pub(super) fn matching_pages(
    predicate: &BoundPredicate,
    places: &Places,
    metadata: &ParquetMetaData,
    group: usize,
) -> Result<Option<RowSelection>> {
    let mut selected: Option<RowSelection> = None;
    let Some(rows) =
        metadata.row_groups().get(group).and_then(|group| usize::try_from(group.num_rows()).ok())
    else {
        return Ok(None);
    };
    for leaf in places.leaves() {
        let Some(pages) = page_rows(metadata, group, leaf, rows) else { continue };
        let keep = prune(predicate, &PageBounds { places, metadata, group, leaf, pages: &pages })?;
        if keep.true_count() < pages.len() {
            let kept =
                pages.into_iter().enumerate().filter(|(page, _)| keep.value(*page)).map(|(_, rows)| rows);
            let kept = RowSelection::from_consecutive_ranges(kept, rows);
            selected = Some(match selected {
                Some(selected) => selected.intersection(&kept),
                None => kept,
            });
        }
    }
    Ok(selected)
}

/// Returns the row numbers of each page of a column; `None` if they are unknown or invalid.
fn page_rows(
    metadata: &ParquetMetaData,
    group: usize,
    leaf: usize,
    rows: usize,
) -> Option<Vec<Range<usize>>> {
    let pages = metadata.offset_index()?.get(group)?.get(leaf)?.page_locations();
    let first = pages
        .iter()
        .map(|page| usize::try_from(page.first_row_index).ok())
        .collect::<Option<Vec<usize>>>()?;
    let ends = first.iter().skip(1).copied().chain([rows]);
    let pages: Vec<_> = first.iter().zip(ends).map(|(start, end)| *start..end).collect();
    (first.first() == Some(&0) && pages.iter().all(|page| page.start < page.end)).then_some(pages)
}

/// The bounds of a leaf column's pages, in which each page is treated as a file.
struct PageBounds<'a> {
    places: &'a Places,
    metadata: &'a ParquetMetaData,
    group: usize,
    leaf: usize,
    pages: &'a [Range<usize>],
}

impl PageBounds<'_> {
    /// Returns whether `column` is the column of these pages, or has the same value in the whole file.
    fn is_known(&self, column: &ColumnPath) -> bool {
        self.places
            .find(column)
            .is_some_and(|(_, place)| !matches!(place, Place::Leaf(leaf, _) if *leaf != self.leaf))
    }

    /// Returns `array` if it has exactly one value for each page.
    fn complete<A: Array>(&self, array: A) -> Option<A> {
        (array.len() == self.pages.len()).then_some(array)
    }
}

impl FileBounds for PageBounds<'_> {
    fn num_files(&self) -> usize {
        self.pages.len()
    }

    fn num_records(&self) -> Option<Int64Array> {
        self.pages
            .iter()
            .map(|rows| i64::try_from(rows.len()).ok())
            .collect::<Option<Vec<i64>>>()
            .map(Int64Array::from)
    }

    fn min(&self, column: &ColumnPath) -> Option<ArrayRef> {
        let (columns, offsets) = (self.metadata.column_index()?, self.metadata.offset_index()?);
        let min = |leaf: &StatisticsConverter<'_>| {
            self.complete(leaf.data_page_mins(columns, offsets, [&self.group]).ok()?)
        };
        self.is_known(column)
            .then(|| self.places.bounds(column, self.pages.len(), self.metadata, min))
            .flatten()
    }

    fn max(&self, column: &ColumnPath) -> Option<ArrayRef> {
        let (columns, offsets) = (self.metadata.column_index()?, self.metadata.offset_index()?);
        let max = |leaf: &StatisticsConverter<'_>| {
            self.complete(leaf.data_page_maxes(columns, offsets, [&self.group]).ok()?)
        };
        self.is_known(column)
            .then(|| self.places.bounds(column, self.pages.len(), self.metadata, max))
            .flatten()
    }

    fn without_nan(&self, column: &ColumnPath) -> Option<BooleanArray> {
        self.places.without_nan(column, self.pages.len(), self.max(column).as_ref())
    }

    fn null_count(&self, column: &ColumnPath) -> Option<Int64Array> {
        let (columns, offsets) = (self.metadata.column_index()?, self.metadata.offset_index()?);
        let count = |leaf: &StatisticsConverter<'_>| {
            self.complete(leaf.data_page_null_counts(columns, offsets, [&self.group]).ok()?)
        };
        self.is_known(column)
            .then(|| self.places.null_counts(column, self.num_records(), self.metadata, count))
            .flatten()
    }
}
