//! The rows of a row group that are not deleted. With them, a predicate can be evaluated on all rows, including deleted
//! ones.
//!
//! If many separate rows are deleted, it takes less time to evaluate the predicate on these rows, too, than to leave
//! them out first, which copies the columns. The rows that the predicate selects are then intersected with the rows
//! that are not deleted, and only the other columns are read without the deleted rows.
//!
//! In a deleted row, even a value that does not fit in the table is allowed. For example, a column may be NOT NULL now
//! that all rows with NULL have been deleted. If a batch cannot be evaluated, it is therefore evaluated again without
//! its deleted rows.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use parquet::arrow::arrow_reader::RowSelection;

use super::batches::{malformed, uneven};
use super::masks::composed;
use crate::error::Result;

/// The rows of a row group that are not deleted, as one bit for each row.
#[derive(Debug)]
pub(super) struct Live {
    rows: BooleanBuffer,
    /// The number of rows that have been read.
    done: usize,
}

/// The rows of a batch that a predicate selects.
#[derive(Debug)]
pub(super) struct Matching {
    /// The predicate's columns. They may lack deleted rows of the batch.
    pub(super) columns: RecordBatch,
    /// Whether each row of `columns` is selected.
    pub(super) rows: BooleanArray,
    /// Whether each row of the batch is selected.
    pub(super) of_batch: BooleanBuffer,
}

impl Live {
    /// Returns the rows that `selection` selects in a row group of `rows` rows. Returns `None` if it is better to leave
    /// out the other rows first, because they are in only a few places, or because they are more than half of all rows.
    pub(super) fn of(selection: &RowSelection, rows: u64) -> Option<Self> {
        let mask = selection.as_mask().filter(|mask| mask.len() as u64 == rows)?;
        (mask.count_set_bits() >= mask.len() / 2).then(|| Self { rows: mask.clone(), done: 0 })
    }

    /// Evaluates a predicate on the next batch of the row group. `evaluate` returns the columns of a batch in the
    /// table's types, and whether the predicate is true in each row.
    ///
    /// # Errors
    /// Returns the errors of `evaluate`, and `CorruptData` if the row group has more rows than its footer states.
    pub(super) fn matching(
        &mut self,
        batch: &RecordBatch,
        mut evaluate: impl FnMut(&RecordBatch) -> Result<(RecordBatch, BooleanArray)>,
    ) -> Result<Matching> {
        let count = batch.num_rows();
        if self.rows.len() - self.done < count {
            return Err(uneven());
        }
        let live = self.rows.slice(self.done, count);
        self.done += count;
        if let Ok((columns, rows)) = evaluate(batch) {
            let of_batch = rows.values() & &live;
            return Ok(Matching { columns, rows: BooleanArray::from(of_batch.clone()), of_batch });
        }
        let kept = filter_record_batch(batch, &BooleanArray::from(live.clone())).map_err(malformed)?;
        let (columns, rows) = evaluate(&kept)?;
        let of_batch = composed(&live, rows.values());
        Ok(Matching { columns, rows, of_batch })
    }
}
