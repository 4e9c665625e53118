//! `_last_checkpoint`: where the newest checkpoint may be.
//!
//! Protocol: "Last Checkpoint File". It is a hint: stale, torn, too new or missing, it may cost a listing, never a wrong answer.

use serde::{Deserialize, Serialize};

use super::LOG_DIRECTORY;
use super::name::LAST_CHECKPOINT;
use crate::error::Result;
use crate::storage::Storage;

/// What the hint says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastCheckpoint {
    /// The checkpoint's version.
    pub version: u64,
    /// Actions in the checkpoint.
    pub size: i64,
    /// Files of the checkpoint, if more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<u32>,
    /// Bytes of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_in_bytes: Option<i64>,
    /// `add` actions in the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_of_add_files: Option<i64>,
}

impl LastCheckpoint {
    fn path() -> String {
        format!("{LOG_DIRECTORY}/{LAST_CHECKPOINT}")
    }

    /// Reads the hint; `None` if there is none that can be understood.
    pub(crate) fn read(storage: &Storage) -> Result<Option<Self>> {
        let Some(bytes) = storage.get(&Self::path())? else { return Ok(None) };
        match serde_json::from_slice(&bytes) {
            Ok(hint) => Ok(Some(hint)),
            Err(error) => {
                tracing::warn!(table = storage.url(), %error, "_last_checkpoint cannot be read and is passed over");
                Ok(None)
            }
        }
    }

    /// Writes the hint.
    pub(crate) fn write(&self, storage: &Storage) -> Result<()> {
        let json =
            serde_json::to_vec(self).map_err(|error| crate::Error::invalid_argument("the hint cannot be written").with_source(error))?;
        storage.put(&Self::path(), json.into())
    }
}
