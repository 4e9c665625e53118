//! The `checkpointMetadata` action. (PROTOCOL, "Checkpoint Metadata".)

use serde::{Deserialize, Serialize};

use super::Tags;

/// The description of a V2 checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointMetadata {
    /// The table version whose state the checkpoint contains.
    pub version: i64,
    /// Free-form metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
}
