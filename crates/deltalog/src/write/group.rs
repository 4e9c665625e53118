//! Groups the rows of a batch by partition.
//!
//! ```text
//! partitions of the rows    b b a c a b
//! direct: b                 b b b         rows 0, 1, 5
//! shared: a, c              a a c         rows 2, 4, 3
//! ```
//!
//! - The rows of a partition are a range, either of the batch itself or of a reordered copy. A batch is copied at
//!   most once, for all partitions together, so that the cost per row does not depend on the order of the rows.
//! - *Direct* rows go to files that are being written. *Shared* rows wait in memory. Shared rows are copied, so that
//!   they do not keep a whole batch of mostly direct rows in memory.

use std::ops::Range;

use arrow::array::UInt32Array;
use arrow::compute::take_record_batch;
use arrow::record_batch::RecordBatch;
use hashbrown::HashMap;

use super::split::PartitionId;
use crate::error::{Error, Result};

/// Rows that are grouped by partition.
pub(super) struct Groups {
    /// The row numbers to copy, in this order. If `None`, the ranges refer to the batch itself.
    order: Option<Vec<u32>>,
    /// The range of rows of each partition, ordered by their first rows in the batch.
    pub(super) ranges: Vec<(PartitionId, Range<usize>)>,
}

/// A sequence of adjacent rows that belong to the same partition.
struct Run {
    partition: PartitionId,
    rows: Range<usize>,
}

/// Groups the rows of a batch. `partitions` has the partition of each row, and row numbers must fit in a u32. Returns
/// the groups of direct rows and the groups of shared rows.
pub(super) fn group(partitions: &[PartitionId], is_direct: impl Fn(PartitionId) -> bool) -> (Groups, Groups) {
    let mut runs: Vec<Run> = Vec::new();
    for (row, partition) in partitions.iter().enumerate() {
        match runs.last_mut() {
            Some(last) if last.partition == *partition => last.rows.end += 1,
            _ => runs.push(Run { partition: *partition, rows: row..row + 1 }),
        }
    }
    let (direct, shared): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| is_direct(run.partition));
    let shared_rows: usize = shared.iter().map(|run| run.rows.len()).sum();
    (Groups::of(&direct, true), Groups::of(&shared, shared_rows * 2 >= partitions.len()))
}

impl Groups {
    /// Groups the rows of `runs`. If the rows are already grouped, they are not copied, unless `may_stay` is false.
    fn of(runs: &[Run], may_stay: bool) -> Self {
        let mut places: HashMap<PartitionId, usize> = HashMap::new();
        let mut counts: Vec<(PartitionId, usize)> = Vec::new();
        for run in runs {
            let place = *places.entry(run.partition).or_insert(counts.len());
            match counts.get_mut(place) {
                Some((_, count)) => *count += run.rows.len(),
                None => counts.push((run.partition, run.rows.len())),
            }
        }
        if may_stay && counts.len() == runs.len() {
            let ranges = runs.iter().map(|run| (run.partition, run.rows.clone())).collect();
            return Self { order: None, ranges };
        }
        let mut end = 0;
        let ranges: Vec<(PartitionId, Range<usize>)> = counts
            .into_iter()
            .map(|(partition, count)| {
                end += count;
                (partition, end - count..end)
            })
            .collect();
        let mut next: Vec<usize> = ranges.iter().map(|(_, rows)| rows.start).collect();
        let mut order = vec![0; end];
        for run in runs {
            let Some(next) = places.get(&run.partition).and_then(|place| next.get_mut(*place)) else {
                continue;
            };
            for (to, row) in order.iter_mut().skip(*next).zip(run.rows.clone()) {
                *to = row as u32;
            }
            *next += run.rows.len();
        }
        Self { order: Some(order), ranges }
    }

    /// Returns the rows that the ranges refer to. `batch` must be the batch that was grouped.
    pub(super) fn rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        match self.order.take() {
            None => Ok(batch.clone()),
            Some(order) => take_record_batch(batch, &UInt32Array::from(order)).map_err(|error| {
                Error::schema_mismatch("the batch cannot be split by its partition values").with_source(error)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, UInt64Array};
    use arrow::datatypes::UInt64Type;
    use proptest::prelude::*;

    use super::*;

    fn numbered(rows: usize) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..rows as u64));
        RecordBatch::try_from_iter([("row", numbers)]).unwrap()
    }

    #[test]
    fn grouped_rows_are_not_copied() {
        let batch = numbered(6);
        let (mut direct, mut shared) = group(&[3, 3, 1, 1, 1, 0], |partition| partition != 3);
        assert_eq!(direct.ranges, [(1, 2..5), (0, 5..6)]);
        assert_eq!(direct.rows(&batch).unwrap().num_rows(), 6);
        assert_eq!(shared.ranges, [(3, 0..2)]);
        assert_eq!(shared.rows(&batch).unwrap().num_rows(), 2, "the batch is not kept for two rows");
        let (_, mut shared) = group(&[3, 3, 1, 1, 1, 0], |_| false);
        assert_eq!(shared.rows(&batch).unwrap().num_rows(), 6);
    }

    proptest! {
        /// Each row is in exactly one group, which is the group of its partition. The rows of a partition keep their
        /// order.
        #[test]
        fn groups_hold_the_rows_in_order(
            partitions in prop::collection::vec(0usize..6, 0..60),
            direct in prop::collection::vec(any::<bool>(), 6),
        ) {
            let batch = numbered(partitions.len());
            let (first, second) = group(&partitions, |partition| direct[partition]);
            let mut found: Vec<Vec<u64>> = vec![Vec::new(); 6];
            for (mut groups, is_direct) in [(first, true), (second, false)] {
                let rows = groups.rows(&batch).unwrap();
                let rows = rows.column(0).as_primitive::<UInt64Type>();
                for (partition, range) in groups.ranges {
                    prop_assert_eq!(direct[partition], is_direct);
                    found[partition].extend(&rows.values()[range]);
                }
            }
            let of = |wanted| (0u64..).zip(&partitions).filter(move |(_, at)| **at == wanted).map(|(row, _)| row);
            prop_assert_eq!(found, (0..6).map(|wanted| of(wanted).collect()).collect::<Vec<Vec<u64>>>());
        }
    }
}
