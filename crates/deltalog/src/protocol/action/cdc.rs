//! `cdc`. (PROTOCOL, "Add CDC File".)

use serde::{Deserialize, Serialize};

use super::lenient::null_as_default;
use super::{Add, PartitionValues, Tags};

/// A change data file: the rows that a version changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddCdcFile {
    /// The change data file's URI: relative to the table's root or absolute; percent-encoded.
    pub path: String,
    /// Partition values, keyed by physical column name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub partition_values: PartitionValues,
    /// Size of the file in bytes.
    pub size: i64,
    /// Always `false`: change data files do not change the table's rows.
    #[serde(default, deserialize_with = "null_as_default")]
    pub data_change: bool,
    /// Free-form metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
}

impl AddCdcFile {
    /// The directory of change data files in a table's root.
    pub const DIRECTORY: &str = "_change_data";
}

impl From<Add> for AddCdcFile {
    /// Describes a file that was written like a data file.
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
