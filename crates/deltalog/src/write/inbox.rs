//! Joins small batches of a partitioned table before their rows are grouped.
//!
//! Grouping has a cost for each batch and partition. With many small batches, that would exceed the cost of the rows
//! themselves.

use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use super::held::{bytes, detached};
use super::split::PartitionId;
use crate::error::{Error, Result};

/// A batch with at least this many rows is not small.
const ROWS: usize = 1024;

/// The maximum number of batches that are put together.
const BATCHES: usize = 64;

/// The memory of batches that are put together, in bytes.
const BYTES: usize = 1 << 20;

/// Small batches with the partition of each row.
#[derive(Default)]
pub(super) struct Inbox {
    batches: Vec<RecordBatch>,
    partitions: Vec<PartitionId>,
    bytes: usize,
}

impl Inbox {
    /// Returns whether the batch should be put together with others.
    pub(super) fn is_small(batch: &RecordBatch) -> bool {
        batch.num_rows() < ROWS && bytes(batch) < BYTES
    }

    /// Returns the memory of the batches, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.bytes
    }

    /// Adds a batch. Returns whether the inbox should be emptied.
    pub(super) fn add(&mut self, batch: RecordBatch, partitions: Vec<PartitionId>) -> Result<bool> {
        let batch = detached(batch)?;
        self.bytes += bytes(&batch);
        self.batches.push(batch);
        self.partitions.extend(partitions);
        Ok(self.partitions.len() >= ROWS || self.batches.len() >= BATCHES || self.bytes >= BYTES)
    }

    /// Removes all rows, in the order in which they were added.
    pub(super) fn take(&mut self, schema: &SchemaRef) -> Result<(RecordBatch, Vec<PartitionId>)> {
        let Self { batches, partitions, .. } = std::mem::take(self);
        let rows = concat_batches(schema, &batches).map_err(|error| {
            Error::schema_mismatch("the batches cannot be put together").with_source(error)
        })?;
        Ok((rows, partitions))
    }
}
