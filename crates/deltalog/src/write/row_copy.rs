//! Copies rows from one file to another without changing them. (Protocol: "Row Tracking".)
//!
//! - With row tracking, rows keep their row ids and commit versions: the new files store them in hidden columns. The
//!   files themselves also get new ids, like all files.
//! - If the table supports row tracking but has not enabled it, rows have no ids to keep.

use crate::error::Result;
use crate::protocol::{MaterializedRowTracking, Metadata, Protocol, tracks_rows};
use crate::scan::RowScan;
use crate::snapshot::Snapshot;
use crate::write::TableWriteSpec;

/// The scan and the writer's spec for copying rows of a table.
pub(crate) struct RowCopy {
    /// A scan that returns the rows, with their row ids if row tracking is enabled.
    pub(crate) scan: RowScan,
    /// The spec for the writer of the copies. It contains no rules, because the rows have already been checked.
    pub(crate) spec: TableWriteSpec,
}

impl RowCopy {
    /// Returns how to copy rows of `base` to files that follow `spec`.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if row tracking is enabled and a column of the table has the same name as a scan's row
    /// id column. Returns `CorruptLog` if the table's metadata does not name the columns that store row ids.
    pub(crate) fn of(base: &Snapshot, spec: TableWriteSpec) -> Result<Self> {
        let (scan, spec) = (RowScan::of(base)?, spec.without_rules());
        if !tracks_rows(base.protocol(), base.metadata()) {
            return Ok(Self { scan, spec });
        }
        let materialized = materialized(base)?;
        Ok(Self { scan: scan.with_row_ids(&materialized)?, spec: spec.with_row_ids(&materialized) })
    }

    /// Returns `spec` for a writer of rows of `base`. If row tracking is enabled, the rows must include their ids, or
    /// NULL to get new ids.
    ///
    /// # Errors
    /// Returns `CorruptLog` if the table's metadata does not name the columns that store row ids.
    pub(crate) fn with_ids(base: &Snapshot, spec: TableWriteSpec) -> Result<TableWriteSpec> {
        with_ids(base.protocol(), base.metadata(), spec).map_err(|error| base.located(error))
    }
}

/// Returns `spec` for a writer of rows of a table. If row tracking is enabled, the rows must include their ids, or
/// NULL to get new ids.
///
/// # Errors
/// Returns `CorruptLog` if the table's metadata does not name the columns that store row ids.
pub(crate) fn with_ids(
    protocol: &Protocol,
    metadata: &Metadata,
    spec: TableWriteSpec,
) -> Result<TableWriteSpec> {
    match tracks_rows(protocol, metadata) {
        true => Ok(spec.with_row_ids(&MaterializedRowTracking::of(protocol, metadata)?)),
        false => Ok(spec),
    }
}

fn materialized(base: &Snapshot) -> Result<MaterializedRowTracking> {
    MaterializedRowTracking::of(base.protocol(), base.metadata()).map_err(|error| base.located(error))
}
