//! `metaData`. (PROTOCOL, "Change Metadata".)

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::null_as_default;
use crate::Result;
use crate::protocol::schema::StructType;

/// The table's identity, schema, partitioning and configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Unique id of the table.
    pub id: String,
    /// Name that a user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description that a user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Encoding of the data files.
    pub format: Format,
    /// The schema as JSON, byte for byte as the writer left it.
    ///
    /// Required by the protocol, yet writers leave it out or `null` in a table without columns; then it is
    /// empty, and is left out again.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub schema_string: String,
    /// Logical names of the partition columns, in order.
    pub partition_columns: Vec<String>,
    /// When this action was made, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
    /// Table properties.
    #[serde(default, deserialize_with = "null_as_default")]
    pub configuration: BTreeMap<String, String>,
}

impl Metadata {
    /// The table's schema, parsed; without columns where there is no [`schema_string`](Self::schema_string).
    ///
    /// # Errors
    /// As [`StructType::from_json`].
    pub fn schema(&self) -> Result<StructType> {
        match self.schema_string.is_empty() {
            true => Ok(StructType::default()),
            false => StructType::from_json(&self.schema_string),
        }
    }

    /// The table property `key`, if set.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.configuration.get(key).map(String::as_str)
    }

    /// Whether the table property `key` is set to `true`, in any case, as Spark reads it.
    pub fn is_enabled(&self, key: &str) -> bool {
        self.property(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// Whether the table's policy is to have checkpoints by the V2 spec.
    pub fn wants_v2_checkpoints(&self) -> bool {
        self.property("delta.checkpointPolicy").is_some_and(|policy| policy.trim().eq_ignore_ascii_case("v2"))
    }
}

/// Encoding of the data files. (PROTOCOL, "Format Specification".)
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// Name of the encoding, `parquet` for every table of today.
    pub provider: String,
    /// Options of the encoding.
    #[serde(default, deserialize_with = "null_as_default")]
    pub options: BTreeMap<String, String>,
}

impl Default for Format {
    fn default() -> Self {
        Self { provider: "parquet".into(), options: BTreeMap::new() }
    }
}
