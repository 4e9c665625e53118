//! `add`, `remove` and `cdc`: what happens to files.

use serde::{Deserialize, Serialize};

use super::{StringMap, null_as_default};

/// A data file, or another deletion vector of one, becomes part of the table. Protocol: "Add File and Remove File".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Add {
    /// URI-encoded path, relative to the table's root or absolute.
    pub path: String,
    /// Partition column (physical name) to serialized value.
    #[serde(default, deserialize_with = "null_as_default")]
    pub partition_values: StringMap,
    /// Bytes of the file.
    pub size: i64,
    /// Milliseconds since the epoch.
    #[serde(default, deserialize_with = "null_as_default")]
    pub modification_time: i64,
    /// False if the rows were in the table before.
    pub data_change: bool,
    /// Statistics as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// Anything writers note about the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<StringMap>,
    /// The rows that are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
    /// Row id of the first row. Protocol: "Row IDs".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// Commit version of rows that carry none. Protocol: "Row Commit Versions".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
    /// Who clustered the file. Protocol: "Clustered Table".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustering_provider: Option<String>,
}

/// A data file leaves the table. Protocol: "Add File and Remove File".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remove {
    /// URI-encoded path, as in the `add`.
    pub path: String,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<i64>,
    /// False if the rows stay in the table in other files.
    pub data_change: bool,
    /// Whether the three following are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_file_metadata: Option<bool>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_values: Option<StringMap>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<StringMap>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
}

/// A file of row-level changes. Protocol: "Add CDC File".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddCdcFile {
    /// URI-encoded path.
    pub path: String,
    /// As in the `add`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub partition_values: StringMap,
    /// Bytes of the file.
    pub size: i64,
    /// Always false.
    pub data_change: bool,
    /// Anything writers note about the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<StringMap>,
}

/// Where a deletion vector is. Protocol: "Deletion Vector Descriptor Schema".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionVectorDescriptor {
    /// `u` relative, `p` absolute, `i` inline.
    pub storage_type: String,
    /// By storage type: prefix and base85 UUID, path, or base85 data.
    pub path_or_inline_dv: String,
    /// Start of the data in the file; not with `i`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i32>,
    /// Bytes of the serialized vector.
    pub size_in_bytes: i32,
    /// Rows deleted.
    pub cardinality: i64,
}

impl DeletionVectorDescriptor {
    /// What tells vectors apart, half of the key of a logical file. Protocol: "Derived Fields".
    pub fn unique_id(&self) -> String {
        match self.offset {
            Some(offset) => format!("{}{}@{offset}", self.storage_type, self.path_or_inline_dv),
            None => format!("{}{}", self.storage_type, self.path_or_inline_dv),
        }
    }
}
