//! `txn`. (PROTOCOL, "Transaction Identifiers".)

use serde::{Deserialize, Serialize};

/// The progress of an application, recorded together with its changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetTransaction {
    /// The unique id of the application.
    pub app_id: String,
    /// The application's own version number.
    pub version: i64,
    /// When this action was created, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<i64>,
}
