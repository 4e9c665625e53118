//! Copies the remaining rows of a file to a new file when other rows of the file are removed.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{filter_record_batch, not};
use roaring::RoaringTreemap;

use super::finder::{Positions, read_file};
use super::listed::ListedFile;
use super::row_writer::RowWriter;
use crate::error::{Error, Result};
use crate::snapshot::Snapshot;

/// Copies those rows of a file of `base` that are not in `rows`. Passes the rows in `rows` to `chosen`, in batches
/// with their positions. Returns how many rows were copied.
///
/// # Errors
/// Returns the errors of `chosen`, `CorruptData`, and errors from the store.
pub(crate) fn copy_others(
    base: &Snapshot,
    writer: &mut RowWriter,
    file: &ListedFile,
    rows: &RoaringTreemap,
    mut chosen: impl FnMut(&mut RowWriter, &RecordBatch, &[u64]) -> Result<()>,
) -> Result<u64> {
    let mut copied = 0;
    let mut positions = Positions::of(base, file)?;
    for batch in read_file(writer.scan(), &file.file) {
        let batch = batch?;
        let taken = positions.take(batch.num_rows());
        let mask: Vec<bool> = taken.iter().map(|position| rows.contains(*position)).collect();
        let at: Vec<u64> = taken.iter().zip(&mask).filter(|(_, is)| **is).map(|(at, _)| *at).collect();
        let mask = BooleanArray::from(mask);
        if mask.has_false() {
            let others =
                not(&mask).and_then(|others| filter_record_batch(&batch, &others)).map_err(unfilterable)?;
            copied += others.num_rows() as u64;
            writer.copy(&others)?;
        }
        if mask.has_true() {
            chosen(writer, &filter_record_batch(&batch, &mask).map_err(unfilterable)?, &at)?;
        }
    }
    Ok(copied)
}

fn unfilterable(error: arrow::error::ArrowError) -> Error {
    Error::invalid_argument("rows cannot be selected").with_source(error)
}
