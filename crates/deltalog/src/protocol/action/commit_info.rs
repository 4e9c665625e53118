//! `commitInfo`. (PROTOCOL, "Commit Provenance Information".)
//!
//! - Any JSON is a valid `commitInfo`, so reading one never fails: a known field of an unexpected type stays
//!   among the unknown ones.
//! - Unknown fields are kept and written back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who committed what, and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Value")]
pub struct CommitInfo {
    /// When the writer says it committed, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// The commit's timestamp where in-commit timestamps are enabled, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_commit_timestamp: Option<i64>,
    /// Name of the operation, such as `WRITE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Parameters of the operation; values of any JSON type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_parameters: Option<Map<String, Value>>,
    /// The version that the writer had read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_version: Option<i64>,
    /// Isolation level of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation_level: Option<String>,
    /// Whether the writer added files without reading any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_blind_append: Option<bool>,
    /// Figures about the operation; values of any JSON type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_metrics: Option<Map<String, Value>>,
    /// The program that committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_info: Option<String>,
    /// The user that committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// What the user wanted to say about the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<String>,
    /// Unique id of the transaction, by which a writer knows its own commit again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txn_id: Option<String>,
    /// Every other field.
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

/// Takes `key` out of `fields` when it has the expected type; leaves it where it is otherwise.
fn take<T: serde::de::DeserializeOwned>(fields: &mut Map<String, Value>, key: &str) -> Option<T> {
    let value = T::deserialize(fields.get(key)?).ok()?;
    fields.remove(key);
    Some(value)
}
