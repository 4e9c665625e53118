//! `metaData`: the table's metadata as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{StringMap, null_as_default};

/// The table's metadata. Protocol: "Change Metadata".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The table's unique id.
    pub id: String,
    /// The user's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The user's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How the data files are encoded.
    pub format: Format,
    /// The schema as JSON, byte for byte as in the log.
    pub schema_string: String,
    /// Names of the columns that the table is partitioned by.
    #[serde(default, deserialize_with = "null_as_default")]
    pub partition_columns: Vec<String>,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
    /// Table properties.
    #[serde(default, deserialize_with = "null_as_default")]
    pub configuration: BTreeMap<String, String>,
}

/// How data files are encoded. Protocol: "Format Specification".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// Always `parquet`.
    pub provider: String,
    /// Options of the provider.
    #[serde(default, deserialize_with = "null_as_default")]
    pub options: StringMap,
}

impl Default for Format {
    fn default() -> Self {
        Self { provider: "parquet".to_owned(), options: StringMap::new() }
    }
}
