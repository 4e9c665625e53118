//! Joins small batches of a partitioned table into larger ones before their rows are grouped by partition.
//!
//! Grouping has a fixed cost for each batch and partition. With many small batches, this cost would exceed the cost
//! of the rows themselves.

use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use super::held::{bytes, detached};
use super::split::PartitionId;
use crate::error::{Error, Result};

/// A batch with at least this number of rows is not small.
const ROWS: usize = 1024;

/// The maximum number of batches that are joined.
const BATCHES: usize = 64;

/// The memory in bytes at which the collected batches are joined.
const BYTES: usize = 1 << 20;

/// Small batches that wait to be joined, and the partition of each of their rows.
#[derive(Default)]
pub(super) struct Inbox {
    batches: Vec<RecordBatch>,
    partitions: Vec<PartitionId>,
    bytes: usize,
}

impl Inbox {
    /// Returns whether the batch is so small that it should be joined with others.
    pub(super) fn is_small(batch: &RecordBatch) -> bool {
        batch.num_rows() < ROWS && bytes(batch) < BYTES
    }

    /// Returns the memory of the waiting batches, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.bytes
    }

    /// Adds a batch. Returns whether the collected batches should now be joined.
    pub(super) fn add(&mut self, batch: RecordBatch, partitions: Vec<PartitionId>) -> Result<bool> {
        let batch = detached(batch)?;
        self.bytes += bytes(&batch);
        self.batches.push(batch);
        self.partitions.extend(partitions);
        Ok(self.partitions.len() >= ROWS || self.batches.len() >= BATCHES || self.bytes >= BYTES)
    }

    /// Removes all rows, and returns them in the order in which they were added.
    pub(super) fn take(&mut self, schema: &SchemaRef) -> Result<(RecordBatch, Vec<PartitionId>)> {
        let Self { batches, partitions, .. } = std::mem::take(self);
        let rows = concat_batches(schema, &batches).map_err(|error| {
            Error::schema_mismatch("the batches cannot be put together").with_source(error)
        })?;
        Ok((rows, partitions))
    }
}
