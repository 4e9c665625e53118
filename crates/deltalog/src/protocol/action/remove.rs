//! `remove`. (PROTOCOL, "Add File and Remove File".)

use serde::Serialize;

use super::{DeletionVectorDescriptor, PartitionValues, Tags};

/// The tombstone of a logical file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remove {
    /// The data file's URI as spelled in the log: relative to the table's root or absolute; percent-encoded.
    pub path: String,
    /// When the file was removed, in milliseconds since the epoch; if absent, it expires as if removed at
    /// time 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<i64>,
    /// Whether the action changes the table's rows; `false` if it only rearranges them.
    pub data_change: bool,
    /// Whether `partitionValues`, `size` and `tags` are present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_file_metadata: Option<bool>,
    /// Partition values, keyed by physical column name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_values: Option<PartitionValues>,
    /// Size of the data file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Statistics as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// Free-form metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
    /// The deletion vector that was part of the logical file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
    /// The default row id of the file's first row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// The first version that added this path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
}
