//! Finds the byte ranges of the columns of a Parquet file, for readers of remote files.

use std::ops::Range;

use parquet::arrow::arrow_reader::RowSelection;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use super::ranges::joined;

/// Returns the ranges of the leaf columns `leaves` in each of the row groups `groups`. If `selection` is given, pages
/// without selected rows are left out, provided that the page locations are known. The positions in `selection` count
/// only the rows of these groups.
pub(crate) fn column_ranges(
    metadata: &ParquetMetaData,
    groups: &[usize],
    leaves: &[usize],
    mut selection: Option<RowSelection>,
) -> Vec<Vec<Range<u64>>> {
    let mut units = Vec::with_capacity(groups.len());
    for index in groups {
        let Some(group) = metadata.row_groups().get(*index) else { continue };
        let of_group = selection
            .as_mut()
            .map(|selection| selection.split_off(usize::try_from(group.num_rows()).unwrap_or_default()));
        let of_leaf = |leaf: &usize| {
            let chunk = chunk(group, *leaf)?;
            let pages = metadata.offset_index()?.get(*index)?.get(*leaf);
            Some(match (&of_group, pages) {
                (Some(selection), Some(pages)) if !pages.page_locations().is_empty() => {
                    let pages = pages.page_locations();
                    let first = pages.iter().filter_map(|page| u64::try_from(page.offset).ok()).min();
                    let mut ranges = selection.scan_ranges(pages);
                    // The dictionary comes before the pages.
                    ranges.push(chunk.start..first.unwrap_or(chunk.end).clamp(chunk.start, chunk.end));
                    // Adjacent pages of a column are read in one range.
                    joined(ranges, 0, u64::MAX)
                }
                _ => vec![chunk],
            })
        };
        let whole = |leaf: &usize| chunk(group, *leaf).into_iter().collect();
        units.push(leaves.iter().flat_map(|leaf| of_leaf(leaf).unwrap_or_else(|| whole(leaf))).collect());
    }
    units
}

/// Returns the range of a column in a row group. Returns `None` if it is not plausible, because a damaged footer may
/// contain any numbers.
fn chunk(group: &RowGroupMetaData, leaf: usize) -> Option<Range<u64>> {
    let column = group.columns().get(leaf)?;
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let start = u64::try_from(start).ok()?;
    Some(start..start.checked_add(u64::try_from(column.compressed_size()).ok()?)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelector};
    use parquet::file::metadata::PageIndexPolicy;
    use parquet::file::properties::WriterProperties;

    use super::*;

    /// Returns the metadata of a file that has two row groups of 100 rows in pages of 10 rows. Its columns are numbers
    /// without a dictionary and strings with one.
    fn metadata() -> ArrowReaderMetadata {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..200));
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..200).map(|row| format!("text {}", row % 7))));
        let batch = RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(100))
            .set_data_page_row_count_limit(10)
            .set_write_batch_size(10)
            .set_column_dictionary_enabled("n".into(), false)
            .build();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Required);
        ArrowReaderMetadata::load(&bytes::Bytes::from(file), options).unwrap()
    }

    #[test]
    fn a_whole_column_is_read_as_its_chunk() {
        let metadata = metadata();
        let ranges = column_ranges(metadata.metadata(), &[1, 0], &[0, 1], None);
        for (unit, group) in ranges.iter().zip([1, 0]) {
            let chunks: Vec<_> = metadata
                .metadata()
                .row_group(group)
                .columns()
                .iter()
                .map(|column| {
                    let (start, length) = column.byte_range();
                    start..start + length
                })
                .collect();
            assert_eq!(*unit, chunks);
        }
    }

    #[test]
    fn only_the_dictionary_and_pages_with_selected_rows_are_read() {
        let metadata = metadata();
        // Row 55 of the first group is selected, and no row of the second group.
        let selection =
            RowSelection::from(vec![RowSelector::skip(55), RowSelector::select(1), RowSelector::skip(144)]);
        let ranges = column_ranges(metadata.metadata(), &[0, 1], &[0, 1], Some(selection));
        let pages =
            |leaf: usize| metadata.metadata().offset_index().unwrap()[0][leaf].page_locations()[5].clone();
        let of_page = |leaf: usize| {
            let page = pages(leaf);
            page.offset as u64..page.offset as u64 + page.compressed_page_size as u64
        };
        let read =
            |unit: usize| ranges[unit].iter().filter(|range| !range.is_empty()).cloned().collect::<Vec<_>>();
        let dictionary = metadata.metadata().row_group(0).column(1).dictionary_page_offset().unwrap() as u64;
        let first = read(0);
        assert_eq!(first.len(), 3, "{first:?}");
        assert!(first.contains(&of_page(0)) && first.contains(&of_page(1)), "{first:?}");
        assert!(first.iter().any(|range| range.start == dictionary), "{first:?}");
        // Of the second group, only the dictionary is read.
        assert_eq!(read(1).len(), 1);
    }
}
