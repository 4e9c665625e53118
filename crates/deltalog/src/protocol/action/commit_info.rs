//! `commitInfo`: who committed what.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Provenance of a commit. Protocol: "Commit Provenance Information". Every field is optional, and whatever else stands there is kept in `extra`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitInfo {
    /// Commit time by the in-commit clock, milliseconds since the epoch. Protocol: "In-Commit Timestamps".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_commit_timestamp: Option<i64>,
    /// The writer's clock, milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// Such as `WRITE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Its parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_parameters: Option<Map<String, Value>>,
    /// The version that the transaction read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_version: Option<i64>,
    /// Such as `WriteSerializable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation_level: Option<String>,
    /// Whether it only added, and read nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_blind_append: Option<bool>,
    /// Its figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_metrics: Option<Map<String, Value>>,
    /// Which software wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_info: Option<String>,
    /// The user's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<String>,
    /// What tells this commit from every other, so that a writer knows its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub txn_id: Option<String>,
    /// Every other field.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
