//! The `sidecar` action. (PROTOCOL, "Sidecar File Information".)

use serde::{Deserialize, Serialize};

use super::Tags;

/// A file in `_delta_log/_sidecars` that contains file actions of a V2 checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sidecar {
    /// The file's name, percent-encoded.
    pub path: String,
    /// The size of the file in bytes.
    pub size_in_bytes: i64,
    /// The time when the file was created, in milliseconds since the epoch.
    pub modification_time: i64,
    /// Free-form metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
}
