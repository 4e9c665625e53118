//! `checkpointMetadata` and `sidecar`: actions that stand in V2 checkpoints only.

use serde::{Deserialize, Serialize};

use super::StringMap;

/// About a V2 checkpoint. Protocol: "Checkpoint Metadata".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointMetadata {
    /// The version that the checkpoint holds.
    pub version: i64,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<StringMap>,
}

/// A file with actions of a V2 checkpoint. Protocol: "Sidecar File Information".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sidecar {
    /// URI-encoded name of the file in `_delta_log/_sidecars`.
    pub path: String,
    /// Bytes of the file.
    pub size_in_bytes: i64,
    /// Milliseconds since the epoch.
    pub modification_time: i64,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<StringMap>,
}
