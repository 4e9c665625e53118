//! The `add` action. (PROTOCOL, "Add File and Remove File".)

use serde::Serialize;

use super::{DeletionVectorDescriptor, PartitionValues, Tags};

/// A logical file: a data file together with its deletion vector, which hides some of its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Add {
    /// The URI of the data file, spelled as in the log: percent-encoded, and either absolute or relative to the table's
    /// root.
    pub path: String,
    /// Partition values, keyed by physical column name.
    pub partition_values: PartitionValues,
    /// Size of the data file in bytes.
    pub size: i64,
    /// The time when the logical file was created, in milliseconds since the epoch.
    pub modification_time: i64,
    /// Whether the action changes the table's rows; `false` if it only moves rows between files.
    pub data_change: bool,
    /// The file's statistics as JSON text. (PROTOCOL, "Per-file Statistics".)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// Free-form metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
    /// The deletion vector, which marks rows of the data file as deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
    /// The default row id of the file's first row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// The first table version in which a file with this path was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
    /// The name of the implementation that clustered the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clustering_provider: Option<String>,
}
