//! Keeps waiting rows in memory, in batches that several partitions share.
//!
//! ```text
//! batch    ···a··· ···b··· ··c··        counted until its last piece is gone
//! pieces   of a    of b    of c         a few bytes each, however many partitions there are
//! ```
//!
//! A piece is a range of rows in a batch. The rows are copied only when there are enough of them, or when the memory
//! is needed. Thousands of partitions with a few rows in each batch therefore need neither arrays nor copies of their
//! own.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::Array;
use arrow::compute::{concat_batches, interleave_record_batch};
use arrow::record_batch::RecordBatch;

use crate::error::{Error, Result};
use crate::runtime::row_bytes::weight_of;

/// The approximate memory of an array in addition to its values, in bytes.
const ARRAY_OVERHEAD: usize = 256;

/// The maximum ratio of the memory that rows keep alive to the memory that their own values need.
const MOST_KEPT: usize = 3;

/// The memory in bytes of all batches that are kept.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldMemory(Arc<AtomicUsize>);

/// A batch that is kept in memory as long as there are pieces of it.
struct Held {
    rows: RecordBatch,
    bytes: usize,
    memory: HeldMemory,
}

/// Adjacent rows of a batch that is kept in memory.
#[derive(Clone)]
pub(super) struct Piece {
    batch: Arc<Held>,
    start: u32,
    rows: u32,
}

/// A batch from which pieces can be taken. Its memory is counted once the first piece exists.
pub(super) struct Source {
    rows: RecordBatch,
    held: Option<Arc<Held>>,
    memory: HeldMemory,
}

impl HeldMemory {
    pub(super) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Source {
    pub(super) fn new(rows: RecordBatch, memory: HeldMemory) -> Self {
        Self { rows, held: None, memory }
    }

    pub(super) fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// Returns a range of the rows as a piece. The range must have fewer than 2³² rows.
    pub(super) fn piece(&mut self, rows: Range<usize>) -> Result<Piece> {
        let batch = match self.held.take() {
            Some(held) => held,
            None => {
                let rows = detached(self.rows.clone())?;
                let needed = bytes(&rows);
                let bytes = kept(&rows).clamp(needed, MOST_KEPT * needed);
                self.memory.0.fetch_add(bytes, Ordering::Relaxed);
                Arc::new(Held { rows, bytes, memory: self.memory.clone() })
            }
        };
        self.held = Some(Arc::clone(&batch));
        Ok(Piece { batch, start: rows.start as u32, rows: rows.len() as u32 })
    }
}

impl Piece {
    pub(super) fn num_rows(&self) -> usize {
        self.rows as usize
    }

    fn range(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.num_rows()
    }

    /// Returns the rows of the piece, without copying them.
    pub(super) fn rows(&self) -> RecordBatch {
        self.batch.rows.slice(self.start as usize, self.num_rows())
    }

    /// Estimates the memory of a row, in bytes.
    pub(super) fn bytes_per_row(&self) -> usize {
        self.batch.bytes / self.batch.rows.num_rows().max(1)
    }

    /// Divides the piece into its first rows, at most `rows` of them, and the remaining rows.
    pub(super) fn cut(self, rows: usize) -> (Self, Option<Self>) {
        if rows >= self.num_rows() {
            return (self, None);
        }
        let rows = rows as u32;
        let rest = Self { batch: Arc::clone(&self.batch), start: self.start + rows, rows: self.rows - rows };
        (Self { rows, ..self }, Some(rest))
    }
}

/// Returns the rows of `pieces`, in their order, as one batch. There must be at least one piece. The rows of several
/// pieces are copied.
pub(super) fn gather(pieces: &[Piece]) -> Result<RecordBatch> {
    if let [only] = pieces {
        return Ok(only.rows());
    }
    let mut numbers: HashMap<*const Held, usize> = HashMap::new();
    let mut batches: Vec<&RecordBatch> = Vec::new();
    let mut rows: Vec<(usize, usize)> = Vec::with_capacity(pieces.iter().map(Piece::num_rows).sum());
    for piece in pieces {
        let number = *numbers.entry(Arc::as_ptr(&piece.batch)).or_insert_with(|| {
            batches.push(&piece.batch.rows);
            batches.len() - 1
        });
        rows.extend(piece.range().map(|row| (number, row)));
    }
    interleave_record_batch(&batches, &rows).map_err(|error| {
        Error::schema_mismatch("rows that wait in memory could not be put together").with_source(error)
    })
}

/// Returns the memory of the rows in `batch` in bytes, without the parts of shared buffers that belong to other rows.
pub(crate) fn bytes(batch: &RecordBatch) -> usize {
    weight_of(batch, 0, batch.num_rows()) + ARRAY_OVERHEAD * batch.num_columns()
}

/// Returns the memory in bytes that cannot be freed as long as `batch` exists.
fn kept(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| column.get_array_memory_size()).sum()
}

/// Returns the same rows, copied if they are only a small part of the buffers that they keep alive.
pub(super) fn detached(rows: RecordBatch) -> Result<RecordBatch> {
    if kept(&rows) <= MOST_KEPT * bytes(&rows) {
        return Ok(rows);
    }
    // The empty slice is needed because `concat_batches` would not copy a single batch. `take` is not used, because it
    // would reserve room for all values of the lists.
    concat_batches(rows.schema_ref(), &[rows.slice(0, 0), rows.clone()])
        .map_err(|error| Error::schema_mismatch("rows could not be copied").with_source(error))
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array, ListArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn source(values: Range<i64>, memory: &HeldMemory) -> Source {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        Source::new(RecordBatch::try_from_iter([("x", values)]).unwrap(), memory.clone())
    }

    #[test]
    fn the_memory_of_a_batch_is_counted_while_it_has_pieces() {
        let memory = HeldMemory::default();
        let mut source = source(0..100, &memory);
        assert_eq!(memory.bytes(), 0);
        let (first, second) = (source.piece(0..10).unwrap(), source.piece(90..100).unwrap());
        assert_eq!(memory.bytes(), 800 + ARRAY_OVERHEAD);
        drop((source, first));
        assert_eq!(memory.bytes(), 800 + ARRAY_OVERHEAD);
        drop(second);
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn pieces_are_gathered_in_their_order() {
        let memory = HeldMemory::default();
        let (mut low, mut high) = (source(0..10, &memory), source(10..20, &memory));
        let (first, rest) = high.piece(0..4).unwrap().cut(1);
        let pieces = [first, low.piece(3..5).unwrap(), rest.unwrap(), low.piece(0..1).unwrap()];
        let found = gather(&pieces).unwrap();
        assert_eq!(found.column(0).as_primitive::<Int64Type>().values(), &[10, 3, 4, 11, 12, 13, 0]);
        assert_eq!(gather(&pieces[1..2]).unwrap().num_rows(), 2);
        assert!(pieces[0].clone().cut(1).1.is_none());
    }

    /// A few rows must not keep the buffers of their whole batch alive, and a few lists must not keep all values
    /// alive.
    #[test]
    fn a_few_rows_do_not_keep_their_whole_batch_in_memory() {
        let memory = HeldMemory::default();
        let lists = (0..1000).map(|row| Some(vec![Some(row); 100]));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
        let batch = RecordBatch::try_from_iter([("x", lists)]).unwrap();
        let few = detached(batch.slice(500, 2)).unwrap();
        assert!(few.get_array_memory_size() < 10_000, "{}", few.get_array_memory_size());
        assert_eq!(few, batch.slice(500, 2));
        let most = batch.slice(0, 900);
        assert_eq!(detached(most.clone()).unwrap().get_array_memory_size(), most.get_array_memory_size());

        let mut source = Source::new(batch.slice(10, 20), memory.clone());
        let piece = source.piece(5..7).unwrap();
        assert_eq!(piece.rows(), batch.slice(15, 2));
        assert!(
            memory.bytes() < 20_000
                && source.piece(0..1).unwrap().batch.rows.get_array_memory_size() < 40_000
        );
    }
}
