//! The columns in which a table keeps row ids. (PROTOCOL, "Row Tracking".)

use super::action::{Metadata, Protocol};
use super::features::TableFeature;
use crate::error::{Error, Result};

/// The metadata domain with the high water mark of row ids.
pub(crate) const ROW_TRACKING_DOMAIN: &str = "delta.rowTracking";

/// The table property with the name of the column for row ids.
pub(crate) const ROW_ID_COLUMN: &str = "delta.rowTracking.materializedRowIdColumnName";

/// The table property with the name of the column for row commit versions.
pub(crate) const ROW_COMMIT_VERSION_COLUMN: &str = "delta.rowTracking.materializedRowCommitVersionColumnName";

/// The tag of `commitInfo` that says whether updated and copied rows have kept their ids.
pub(crate) const PRESERVED_TAG: &str = "delta.rowTracking.preserved";

/// Returns whether row tracking is enabled. If so, all rows of the table have ids.
pub(crate) fn tracks_rows(protocol: &Protocol, metadata: &Metadata) -> bool {
    protocol.writer_features().contains(&TableFeature::RowTracking)
        && metadata.is_enabled("delta.enableRowTracking")
}

/// The hidden columns of data files for the ids and commit versions of rows that were moved from other files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaterializedRowTracking {
    /// The name of the column with row ids.
    pub row_id: String,
    /// The name of the column with row commit versions.
    pub row_commit_version: String,
}

impl MaterializedRowTracking {
    /// Returns the names of these columns in a table.
    ///
    /// # Errors
    /// `InvalidArgument` if row tracking is not enabled for the table, because some of its rows may then have no ids.
    /// `CorruptLog` if it is enabled but the properties do not name the columns.
    pub fn of(protocol: &Protocol, metadata: &Metadata) -> Result<Self> {
        if !tracks_rows(protocol, metadata) {
            return Err(Error::invalid_argument(
                "the rows of the table have no ids: row tracking is not enabled",
            )
            .with_hint("enable it with the table property 'delta.enableRowTracking'"));
        }
        let name = |key: &str| {
            let named = metadata.property(key).filter(|name| !name.is_empty());
            named.map(str::to_owned).ok_or_else(|| {
                Error::corrupt_log(format!(
                    "row tracking is enabled, but the table property '{key}' is not set"
                ))
            })
        };
        Ok(Self { row_id: name(ROW_ID_COLUMN)?, row_commit_version: name(ROW_COMMIT_VERSION_COLUMN)? })
    }
}
