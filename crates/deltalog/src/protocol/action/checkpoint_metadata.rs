//! `checkpointMetadata`. (PROTOCOL, "Checkpoint Metadata".)

use serde::{Deserialize, Serialize};

use super::Tags;

/// What a V2 checkpoint says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointMetadata {
    /// The version of the table in the checkpoint.
    pub version: i64,
    /// Free-form metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
}
