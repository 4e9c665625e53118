//! Holds the rows of the source of a MERGE in memory, in batches.
//!
//! ```text
//!   row   0 ··· 4 | 5 ··· 9 | 10 ··· 12        numbered through all batches
//! ```

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_empty_array};
use arrow::compute::{concat_batches, interleave, take};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::error::{Error, Result};
use crate::protocol::StructType;
use crate::runtime::row_bytes::{BatchBytes, weight, weight_of, widest};
use crate::write::fit;

/// The maximum number of small batches. Taking rows touches all batches, which costs time for each batch.
const MOST_SMALL: usize = 64;

/// A batch is small if it has fewer rows and fewer bytes than this. Joining [`MOST_SMALL`] small batches results in a
/// batch of ordinary size.
const SMALL: (usize, usize) = (8192, 512 << 10);

fn is_small(batch: &RecordBatch) -> bool {
    batch.num_rows() < SMALL.0 && weight_of(batch, 0, batch.num_rows()) < SMALL.1
}

/// The rows of the source of a MERGE, converted to types that tables can have.
#[derive(Debug, Clone)]
pub struct MergeSource {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// The number of the first row of each batch.
    starts: Vec<u32>,
    rows: u32,
}

impl MergeSource {
    /// Collects the rows of a source.
    ///
    /// # Errors
    /// Returns `SchemaMismatch` for a type that tables do not have, and `InvalidArgument` for too many rows.
    pub fn new(schema: &SchemaRef, batches: impl IntoIterator<Item = Result<RecordBatch>>) -> Result<Self> {
        let schema: SchemaRef = StructType::types_from_arrow(schema)?.to_arrow()?.into();
        let mut source = Self { schema, batches: Vec::new(), starts: Vec::new(), rows: 0 };
        // The number of small batches at the end of the list.
        let mut small = 0;
        for batch in batches {
            // The arrays of a table have 32-bit offsets, so a large batch is divided into pieces.
            for piece in BatchBytes::default().pieces(&batch?) {
                source.add(fit(&piece, &source.schema)?)?;
                small = if source.batches.last().is_some_and(is_small) { small + 1 } else { 0 };
                if small == MOST_SMALL {
                    source.join(MOST_SMALL)?;
                    small = usize::from(source.batches.last().is_some_and(is_small));
                }
            }
        }
        Ok(source)
    }

    /// Joins the last `count` batches, which are small, into a single batch.
    fn join(&mut self, count: usize) -> Result<()> {
        let first = self.batches.len().saturating_sub(count);
        let joined = concat_batches(&self.schema, &self.batches.split_off(first)).map_err(|error| {
            Error::invalid_argument("batches of the source cannot be put together").with_source(error)
        })?;
        self.starts.truncate(first + 1);
        self.batches.push(joined);
        Ok(())
    }

    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = u32::try_from(batch.num_rows()).ok().and_then(|rows| self.rows.checked_add(rows));
        let too_many = || {
            Error::invalid_argument(
                "the source of a MERGE has 4,294,967,296 rows or more, which cannot be held",
            )
            .with_hint("merge it in parts")
        };
        self.starts.push(std::mem::replace(&mut self.rows, rows.ok_or_else(too_many)?));
        self.batches.push(batch);
        Ok(())
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn num_rows(&self) -> usize {
        self.rows as usize
    }

    pub(super) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Returns the index of the batch that contains a row, and the row's index in that batch.
    fn place(&self, row: u32) -> (usize, usize) {
        let batch = self.starts.partition_point(|start| *start <= row).saturating_sub(1);
        (batch, (row - self.starts.get(batch).copied().unwrap_or_default()) as usize)
    }

    /// Returns one column of the given rows.
    ///
    /// # Errors
    /// Fails if the values need more memory than an Arrow array can have.
    pub(super) fn column(&self, column: usize, rows: &[u32]) -> Result<ArrayRef, ArrowError> {
        match self.batches.as_slice() {
            [] => Ok(new_empty_array(self.schema.field(column).data_type())),
            [only] => take(only.column(column), &UInt32Array::from(rows.to_vec()), None),
            batches => {
                let arrays: Vec<&dyn Array> =
                    batches.iter().map(|batch| batch.column(column).as_ref()).collect();
                let places: Vec<(usize, usize)> = rows.iter().map(|row| self.place(*row)).collect();
                interleave(&arrays, &places)
            }
        }
    }

    /// Returns the given rows.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for rows that need more memory than an Arrow array can have.
    pub(super) fn taken(&self, rows: &[u32]) -> Result<RecordBatch> {
        let columns = (0..self.schema.fields().len()).map(|column| self.column(column, rows));
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        columns
            .collect::<Result<Vec<_>, _>>()
            .and_then(|columns| RecordBatch::try_new_with_options(self.schema.clone(), columns, &options))
            .map_err(|error| {
                Error::invalid_argument("rows of the source cannot be put together").with_source(error)
            })
    }

    /// Returns the size in bytes of one row in `columns`.
    pub(super) fn bytes(&self, row: u32, columns: &[usize]) -> usize {
        let (batch, row) = self.place(row);
        let Some(batch) = self.batches.get(batch) else { return 0 };
        let arrays = columns.iter().filter_map(|column| batch.columns().get(*column));
        arrays.map(|array| weight(array, row, 1)).sum()
    }

    /// Returns the size of the largest value in each column, in bytes.
    pub(super) fn widest(&self) -> Vec<usize> {
        let of_column = |column: usize| {
            let arrays = self.batches.iter().filter_map(|batch| batch.columns().get(column));
            arrays.map(|array| widest([array])).max().unwrap_or_default()
        };
        (0..self.schema.fields().len()).map(of_column).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn rows(numbers: std::ops::Range<i64>, length: usize) -> RecordBatch {
        let texts = numbers.clone().map(|number| number.to_string().repeat(length));
        let columns: [(&str, ArrayRef, bool); 2] = [
            ("number", Arc::new(Int64Array::from_iter_values(numbers.clone())), true),
            ("text", Arc::new(StringArray::from_iter_values(texts)), true),
        ];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    /// Taking rows touches all batches, which costs time for each batch, even for a batch without rows.
    #[test]
    fn many_small_batches_become_few() {
        let (mut batches, mut next) = (Vec::new(), 0);
        for (count, rows_of_each, length) in
            [(3_000, 1, 1), (1, 9_000, 1), (50, 3, 1), (1, 20, 40_000), (500, 2, 1)]
        {
            for _ in 0..count {
                batches.push(Ok(rows(next..next + rows_of_each, length)));
                next += rows_of_each;
            }
        }
        let source = MergeSource::new(&rows(0..0, 0).schema(), batches).unwrap();
        assert_eq!(source.num_rows() as i64, next);
        assert!(source.batches().len() <= 200, "{}", source.batches().len());
        for first in 0..7 {
            let wanted: Vec<u32> = (first..u32::try_from(next).unwrap()).step_by(7).collect();
            let found = source.taken(&wanted).unwrap();
            let numbers = found.column(0).as_primitive::<Int64Type>().values();
            assert!(numbers.iter().map(|number| *number as u32).eq(wanted));
        }
    }
}
