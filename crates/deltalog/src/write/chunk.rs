//! Decides where the rows of a file are cut into chunks, which are encoded at once.
//!
//! ```text
//!   rows of a file   0 ···· 1024 ···· 2048 ···· 3072 ···· 4096 ···
//!   weight             0.4 MiB   0.8 MiB   1.2 MiB
//!   chunks           |                         |
//! ```
//!
//! - The cuts depend only on the rows, not on the batches in which they arrive. The same is true of the encoder's pages
//!   and row groups, and of the sizes at which files are closed, so the same rows result in the same files.
//! - A chunk ends at the first multiple of 1,024 rows at which it weighs 1 MiB. If rows are so large that this would
//!   take much memory, it ends at a multiple of 32, and with rows of many megabytes after any row.
//! - [`crate::runtime::row_bytes`] gives the weight of rows.

use arrow::record_batch::RecordBatch;

use crate::runtime::row_bytes::weight_of;

/// Chunks may end at multiples of this number of rows, once they have at least this weight.
struct Cut {
    rows: usize,
    weight: usize,
}

/// The weight at which a chunk of rows of the usual size ends.
pub(super) const WEIGHT: usize = 1 << 20;

const CUTS: [Cut; 3] = [
    Cut { rows: 1024, weight: WEIGHT },
    Cut { rows: 32, weight: 8 << 20 },
    Cut { rows: 1, weight: 128 << 20 },
];

/// How far a file's current chunk has got.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chunk {
    /// The rows of the file.
    rows: usize,
    /// The weight of the rows since the last cut.
    weight: usize,
}

impl Chunk {
    /// Returns how many of the first rows of `batch` complete the chunk, or `None` if the whole batch is not enough.
    pub(super) fn missing(&self, batch: &RecordBatch) -> Option<usize> {
        CUTS.iter().filter_map(|cut| self.missing_to(cut, batch)).min()
    }

    fn missing_to(&self, cut: &Cut, batch: &RecordBatch) -> Option<usize> {
        let first = cut.rows - self.rows % cut.rows;
        let places = (batch.num_rows() + cut.rows - first) / cut.rows;
        let (mut low, mut high) = (0, places);
        while low < high {
            let middle = low.midpoint(high);
            match self.weight + weight_of(batch, 0, first + middle * cut.rows) < cut.weight {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        (low < places).then_some(first + low * cut.rows)
    }

    /// Counts all rows of `batch`, which must not go beyond the end of the chunk.
    pub(super) fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows();
        self.weight += weight_of(batch, 0, batch.num_rows());
    }

    /// Returns whether the chunk ends here.
    pub(super) fn is_complete(&self) -> bool {
        CUTS.iter().any(|cut| self.rows.is_multiple_of(cut.rows) && self.weight >= cut.weight)
    }

    /// Begins the next chunk.
    pub(super) fn end(&mut self) {
        self.weight = 0;
    }
}
