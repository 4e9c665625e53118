//! Where a table keeps the ids of its rows. (PROTOCOL, "Row Tracking".)

use super::action::{Metadata, Protocol};
use super::features::TableFeature;
use crate::{Error, Result};

/// The columns of data files, hidden from users, that hold what rows have brought along from other files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaterializedRowTracking {
    /// Name of the column with row ids.
    pub row_id: String,
    /// Name of the column with row commit versions.
    pub row_commit_version: String,
}

impl MaterializedRowTracking {
    /// Those of a table.
    ///
    /// # Errors
    /// `InvalidArgument` if the table does not have row tracking enabled: only then its rows are sure to have
    /// ids. `CorruptLog` if it has, but does not name the columns.
    pub fn of(protocol: &Protocol, metadata: &Metadata) -> Result<Self> {
        if !protocol.writer_features().contains(&TableFeature::RowTracking)
            || !metadata.is_enabled("delta.enableRowTracking")
        {
            return Err(Error::invalid_argument(
                "the rows of the table have no ids: row tracking is not enabled",
            )
            .with_hint("the table property 'delta.enableRowTracking' enables it"));
        }
        let name = |key: &str| {
            let named = metadata.property(key).filter(|name| !name.is_empty());
            named.map(str::to_owned).ok_or_else(|| {
                Error::corrupt_log(format!(
                    "row tracking is enabled, but the table property '{key}' is not set"
                ))
            })
        };
        Ok(Self {
            row_id: name("delta.rowTracking.materializedRowIdColumnName")?,
            row_commit_version: name("delta.rowTracking.materializedRowCommitVersionColumnName")?,
        })
    }
}
