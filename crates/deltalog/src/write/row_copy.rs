//! Copies rows unchanged from one file to another. Protocol: "Row Tracking".
//!
//! - With row tracking, rows keep their ids and commit versions: the new files store them in hidden columns, although
//!   the files also get new ids like all files.
//! - If the feature is supported but not enabled, rows have no ids to keep.

use crate::error::Result;
use crate::protocol::{MaterializedRowTracking, Metadata, Protocol, tracks_rows};
use crate::scan::RowScan;
use crate::snapshot::Snapshot;
use crate::write::TableWriteSpec;

/// How rows of a table are copied.
pub(crate) struct RowCopy {
    /// Returns the rows, with their ids if the table tracks rows.
    pub(crate) scan: RowScan,
    /// The spec for the writer of the copies. It has no rules, because the rows have already been checked.
    pub(crate) spec: TableWriteSpec,
}

impl RowCopy {
    /// Returns how rows of `base` are copied to files that otherwise follow `spec`.
    ///
    /// # Errors
    /// `InvalidArgument` for a table with row tracking that has a column with the name of a scan's row id column.
    /// `CorruptLog` if the table does not name the columns for row ids.
    pub(crate) fn of(base: &Snapshot, spec: TableWriteSpec) -> Result<Self> {
        let (scan, spec) = (RowScan::of(base)?, spec.without_rules());
        if !tracks_rows(base.protocol(), base.metadata()) {
            return Ok(Self { scan, spec });
        }
        let materialized = materialized(base)?;
        Ok(Self { scan: scan.with_row_ids(&materialized)?, spec: spec.with_row_ids(&materialized) })
    }

    /// Returns `spec` for a writer of rows of `base`. If the table tracks rows, the rows include their ids, or NULL to
    /// get new ones.
    ///
    /// # Errors
    /// `CorruptLog` if the table does not name the columns for the ids.
    pub(crate) fn with_ids(base: &Snapshot, spec: TableWriteSpec) -> Result<TableWriteSpec> {
        with_ids(base.protocol(), base.metadata(), spec).map_err(|error| base.located(error))
    }
}

/// Returns `spec` for a writer of rows of a table. If the table tracks rows, the rows include their ids, or NULL to get
/// new ones.
///
/// # Errors
/// `CorruptLog` if the table does not name the columns for the ids.
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
