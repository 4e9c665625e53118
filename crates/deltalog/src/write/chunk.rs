//! Where the rows of a file are cut into the chunks that are encoded at once.
//!
//! ```text
//!   rows of a file   0 ···· 1024 ···· 2048 ···· 3072 ···· 4096 ···
//!   weight             0.4 MiB   0.8 MiB   1.2 MiB
//!   chunks           |                         |
//! ```
//!
//! - The cuts follow from the rows alone, not from the batches in which they come. So do the encoder's pages and row
//!   groups, and the sizes at which files are closed: the same rows give the same files.
//! - A chunk ends at the first multiple of 1,024 rows at which it weighs 1 MiB. Rows so large that this would take much
//!   memory end it at a multiple of 32, and rows of many megabytes at any row.
//! - [`crate::runtime::row_bytes`] gives the weight of rows.

use arrow::record_batch::RecordBatch;

use crate::runtime::row_bytes::weight_of;

/// A number of rows at whose multiples a chunk may end, and the weight from which it does.
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

/// The place in a file after the rows that it has so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chunk {
    /// The rows of the file.
    rows: usize,
    /// The weight of the rows since the last cut.
    weight: usize,
}

impl Chunk {
    /// Returns how many of the first rows of `batch` complete the chunk, or `None` if all of them do not.
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
