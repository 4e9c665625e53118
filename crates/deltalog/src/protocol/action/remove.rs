//! The `remove` action. (PROTOCOL, "Add File and Remove File".)

use serde::Serialize;

use super::{DeletionVectorDescriptor, PartitionValues, Tags};

/// The tombstone of a logical file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remove {
    /// The URI of the data file, spelled as in the log: percent-encoded, and either absolute or relative to the table's
    /// root.
    pub path: String,
    /// The time when the file was removed, in milliseconds since the epoch. If it is absent, the file counts as removed
    /// at time 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<i64>,
    /// Whether the action changes the table's rows; `false` if it only moves rows between files.
    pub data_change: bool,
    /// Whether `partitionValues`, `size` and `tags` are present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_file_metadata: Option<bool>,
    /// Partition values, keyed by physical column name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_values: Option<PartitionValues>,
    /// The size of the data file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// The file's statistics as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// Free-form metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
    /// The deletion vector that the logical file had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
    /// The default row id of the file's first row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// The first table version in which a file with this path was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
}
