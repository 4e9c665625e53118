//! The `commitInfo` action. (PROTOCOL, "Commit Provenance Information".)
//!
//! - Any JSON object is a valid `commitInfo`, so reading one never fails: a known field of an unexpected type
//!   is kept among the unknown fields.
//! - Unknown fields are kept and written back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Information about a commit: who made it, when and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Value")]
#[non_exhaustive]
pub struct CommitInfo {
    /// The time of the commit by the writer's clock, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// The in-commit timestamp in milliseconds since the epoch, if the table has in-commit timestamps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_commit_timestamp: Option<i64>,
    /// The name of the operation, such as `WRITE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The parameters of the operation. Their values may have any JSON type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_parameters: Option<Map<String, Value>>,
    /// The table version that the writer has read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_version: Option<i64>,
    /// The isolation level of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation_level: Option<String>,
    /// Whether the writer has added files without reading any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_blind_append: Option<bool>,
    /// The metrics of the operation. Their values may have any JSON type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_metrics: Option<Map<String, Value>>,
    /// The program that made the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_info: Option<String>,
    /// The user who made the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// User-supplied metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<String>,
    /// The unique id of the transaction, by which a writer recognizes its own commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txn_id: Option<String>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl From<Value> for CommitInfo {
    fn from(value: Value) -> Self {
        let Value::Object(mut fields) = value else { return Self::default() };
        Self {
            timestamp: take(&mut fields, "timestamp"),
            in_commit_timestamp: take(&mut fields, "inCommitTimestamp"),
            operation: take(&mut fields, "operation"),
            operation_parameters: take(&mut fields, "operationParameters"),
            read_version: take(&mut fields, "readVersion"),
            isolation_level: take(&mut fields, "isolationLevel"),
            is_blind_append: take(&mut fields, "isBlindAppend"),
            operation_metrics: take(&mut fields, "operationMetrics"),
            engine_info: take(&mut fields, "engineInfo"),
            user_name: take(&mut fields, "userName"),
            user_metadata: take(&mut fields, "userMetadata"),
            txn_id: take(&mut fields, "txnId"),
            other: fields,
        }
    }
}

/// If the value of `key` in `fields` has the expected type, removes and returns it; otherwise leaves it there.
fn take<T: serde::de::DeserializeOwned>(fields: &mut Map<String, Value>, key: &str) -> Option<T> {
    let value = T::deserialize(fields.get(key)?).ok()?;
    fields.remove(key);
    Some(value)
}
