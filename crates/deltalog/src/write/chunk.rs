//! Divides the rows of a file into chunks. Each chunk is encoded as one batch.
//!
//! ```text
//!   rows of a file   0 ···· 1024 ···· 2048 ···· 3072 ···· 4096 ···
//!   weight             0.4 MiB   0.8 MiB   1.2 MiB
//!   chunks           |                         |
//! ```
//!
//! - The ends of chunks depend only on the rows, not on the batches in which they arrive. This is also true of the
//!   encoder's pages and row groups, and of the sizes at which files are closed. The same rows therefore result in
//!   the same files.
//! - A chunk ends as soon as it weighs 1 MiB and the file's number of rows is a multiple of 1,024. If rows are so large
//!   that this would take much memory, the chunk already ends at a multiple of 32 rows. If single rows have many
//!   megabytes, it may end after any row.
//! - [`crate::runtime::row_bytes`] defines the weight of rows.

use arrow::record_batch::RecordBatch;

use crate::runtime::row_bytes::weight_of;

/// A rule for ending chunks: at multiples of this number of rows, once a chunk has at least this weight.
struct Cut {
    rows: usize,
    weight: usize,
}

/// The weight at which a chunk ends if its rows are of ordinary size.
pub(super) const WEIGHT: usize = 1 << 20;

const CUTS: [Cut; 3] = [
    Cut { rows: 1024, weight: WEIGHT },
    Cut { rows: 32, weight: 8 << 20 },
    Cut { rows: 1, weight: 128 << 20 },
];

/// The progress of a file's current chunk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chunk {
    /// The number of rows in the file so far.
    rows: usize,
    /// The weight of the rows in the current chunk.
    weight: usize,
}

impl Chunk {
    /// Returns how many of the first rows of `batch` complete the chunk; `None` if even the whole batch does not
    /// complete it.
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

    /// Adds all rows of `batch` to the chunk. They must not exceed the number that completes it.
    pub(super) fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows();
        self.weight += weight_of(batch, 0, batch.num_rows());
    }

    /// Returns whether the chunk is complete.
    pub(super) fn is_complete(&self) -> bool {
        CUTS.iter().any(|cut| self.rows.is_multiple_of(cut.rows) && self.weight >= cut.weight)
    }

    /// Begins the next chunk.
    pub(super) fn end(&mut self) {
        self.weight = 0;
    }
}
