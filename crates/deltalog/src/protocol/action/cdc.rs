//! The `cdc` action. (PROTOCOL, "Add CDC File".)

use serde::{Deserialize, Serialize};

use super::lenient::null_as_default;
use super::{Add, PartitionValues, Tags};

/// A change data file, which has the rows that a version has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddCdcFile {
    /// The URI of the change data file, spelled as in the log: percent-encoded, and either absolute or relative to the
    /// table's root.
    pub path: String,
    /// Partition values, keyed by physical column name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub partition_values: PartitionValues,
    /// Size of the file in bytes.
    pub size: i64,
    /// Always `false`, because change data files do not change the table's rows.
    #[serde(default, deserialize_with = "null_as_default")]
    pub data_change: bool,
    /// Free-form metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
}

impl AddCdcFile {
    /// The name of the directory of change data files, below the table's root.
    pub const DIRECTORY: &str = "_change_data";
}

impl From<Add> for AddCdcFile {
    /// Returns the action for a change data file. `add` describes the file as if it were a data file.
    fn from(file: Add) -> Self {
        Self {
            path: file.path,
            partition_values: file.partition_values,
            size: file.size,
            data_change: false,
            tags: None,
        }
    }
}
