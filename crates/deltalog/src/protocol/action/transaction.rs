//! `txn`: an application's progress.

use serde::{Deserialize, Serialize};

/// How far an application has come. Protocol: "Transaction Identifiers".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetTransaction {
    /// The application.
    pub app_id: String,
    /// Its own number.
    pub version: i64,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<i64>,
}
