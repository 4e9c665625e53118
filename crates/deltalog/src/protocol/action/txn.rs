//! The `txn` action. (PROTOCOL, "Transaction Identifiers".)

use serde::{Deserialize, Serialize};

/// The progress of an application, recorded in the same commit as its changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SetTransaction {
    /// The unique id of the application.
    pub app_id: String,
    /// The application's own version number.
    pub version: i64,
    /// The time when this action was created, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<i64>,
}

impl SetTransaction {
    /// Creates a record, without a time, that the application `app_id` has reached `version`.
    pub fn new(app_id: impl Into<String>, version: i64) -> Self {
        Self { app_id: app_id.into(), version, last_updated: None }
    }
}
