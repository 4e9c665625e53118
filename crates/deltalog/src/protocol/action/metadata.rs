//! The `metaData` action. (PROTOCOL, "Change Metadata".)

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::null_as_default;
use crate::error::Result;
use crate::protocol::schema::StructType;

/// The table's identity, schema, partitioning and configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Metadata {
    /// The unique id of the table.
    pub id: String,
    /// The name that a user has given the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The description that a user has given the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The encoding of the data files.
    pub format: Format,
    /// The schema as JSON text, byte for byte as it was written.
    ///
    /// The protocol requires a schema, but some writers omit it, or write `null`, for a table without columns. This
    /// field is then empty, and is omitted when the action is written again.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub schema_string: String,
    /// The logical names of the partition columns, in order.
    pub partition_columns: Vec<String>,
    /// The time when this action was created, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
    /// The table properties.
    #[serde(default, deserialize_with = "null_as_default")]
    pub configuration: BTreeMap<String, String>,
}

impl Metadata {
    /// Returns the parsed schema of the table. It has no columns if [`schema_string`](Self::schema_string) is empty.
    ///
    /// # Errors
    /// Returns the same errors as [`StructType::from_json`].
    pub fn schema(&self) -> Result<StructType> {
        match self.schema_string.is_empty() {
            true => Ok(StructType::default()),
            false => StructType::from_json(&self.schema_string),
        }
    }

    /// Returns the table property `key`, if set.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.configuration.get(key).map(String::as_str)
    }

    /// Returns whether the table property `key` is `true`. Case is ignored, as in Spark.
    pub fn is_enabled(&self, key: &str) -> bool {
        self.property(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// Returns whether the table has a change data feed. (PROTOCOL, "Change Data Files".)
    pub fn has_change_feed(&self) -> bool {
        self.is_enabled("delta.enableChangeDataFeed")
    }

    /// Returns whether the table's checkpoint policy requires V2 checkpoints.
    pub fn wants_v2_checkpoints(&self) -> bool {
        self.property("delta.checkpointPolicy").is_some_and(|policy| policy.trim().eq_ignore_ascii_case("v2"))
    }
}

/// The format of the data files. (PROTOCOL, "Format Specification".)
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Format {
    /// The name of the format, which is `parquet` for all tables today.
    pub provider: String,
    /// The options of the format.
    #[serde(default, deserialize_with = "null_as_default")]
    pub options: BTreeMap<String, String>,
}

impl Default for Format {
    fn default() -> Self {
        Self { provider: "parquet".into(), options: BTreeMap::new() }
    }
}
