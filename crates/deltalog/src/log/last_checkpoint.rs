//! `_last_checkpoint`, a hint that names the newest checkpoint. (PROTOCOL, "Last Checkpoint File", "Last Checkpoint
//! File Schema".)
//!
//! - A hint that is stale, truncated, too new or missing, or that has a wrong checksum, may cost another listing, but
//!   never causes a wrong result.
//! - A listing of the log starts at the hint's `version` and uses no other field. An invalid field is ignored without
//!   affecting the others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::LOG_DIRECTORY;
use super::canonical_json::json_checksum;
use super::take;
use crate::error::{Error, Result};
use crate::protocol::Sidecar;
use crate::protocol::log_name::LAST_CHECKPOINT;
use crate::storage::{FileState, Replacement, Storage};

/// The content of the hint.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastCheckpoint {
    /// The version of the checkpoint.
    pub version: u64,
    /// The number of actions in the checkpoint.
    pub size: i64,
    /// The number of parts, if the checkpoint has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<u32>,
    /// The size of the checkpoint in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_in_bytes: Option<i64>,
    /// The number of `add` actions in the checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_of_add_files: Option<i64>,
    /// The schema of the checkpoint files, written as a Delta schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_schema: Option<Value>,
    /// Free-form metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, Option<String>>>,
    /// The details of a V2 checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v2_checkpoint: Option<V2CheckpointHint>,
    /// The checksum of all other fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

/// The details of a V2 checkpoint that `_last_checkpoint` may repeat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct V2CheckpointHint {
    /// The name of the top-level file.
    pub path: String,
    /// The size of the top-level file in bytes.
    pub size_in_bytes: i64,
    /// The modification time of the top-level file in milliseconds since the epoch.
    pub modification_time: i64,
    /// The actions of the top-level file except file actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_file_actions: Option<Vec<Value>>,
    /// The sidecars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar_files: Option<Vec<Sidecar>>,
}

impl LastCheckpoint {
    fn path() -> String {
        format!("{LOG_DIRECTORY}/{LAST_CHECKPOINT}")
    }

    /// Parses the text of a hint.
    ///
    /// # Errors
    /// `CorruptLog` if it is not a JSON object with a version, or if its checksum does not match its content.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Error::corrupt_log("the hint is not UTF-8").with_source(error))?;
        let mut fields: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| Error::corrupt_log("the hint is not a JSON object").with_source(error))?;
        let checksum: Option<String> = take(&mut fields, "checksum");
        if let Some(checksum) = &checksum {
            let found = json_checksum(text)
                .map_err(|error| Error::corrupt_log("the hint has no canonical form").with_source(error))?;
            if !checksum.eq_ignore_ascii_case(&found) {
                return Err(Error::corrupt_log(format!(
                    "the hint has the checksum {checksum}, but its content has the checksum {found}"
                )));
            }
        }
        let version = take(&mut fields, "version").filter(|version| i64::try_from(*version).is_ok());
        Ok(Self {
            version: version.ok_or_else(|| Error::corrupt_log("the hint has no version"))?,
            size: take(&mut fields, "size").unwrap_or_default(),
            parts: take(&mut fields, "parts"),
            size_in_bytes: take(&mut fields, "sizeInBytes"),
            num_of_add_files: take(&mut fields, "numOfAddFiles"),
            checkpoint_schema: fields.remove("checkpointSchema").filter(|schema| !schema.is_null()),
            tags: take(&mut fields, "tags"),
            v2_checkpoint: take(&mut fields, "v2Checkpoint"),
            checksum: checksum.map(|checksum| checksum.to_ascii_lowercase()),
        })
    }

    /// Reads the hint of a table. Returns `None` if there is no hint or it is invalid.
    pub(crate) fn read(storage: &Storage) -> Result<Option<Self>> {
        Ok(storage.get(&Self::path())?.and_then(|bytes| Self::understood(storage, &bytes)))
    }

    /// Reads the hint of a table, and the state of the hint's file. The hint is `None` if it is missing or invalid.
    pub(crate) fn read_with_state(storage: &Storage) -> Result<(Option<Self>, Option<FileState>)> {
        let Some((bytes, state)) = storage.get_with_state(&Self::path())? else { return Ok((None, None)) };
        Ok((Self::understood(storage, &bytes), Some(state)))
    }

    fn understood(storage: &Storage, bytes: &[u8]) -> Option<Self> {
        match Self::parse(bytes) {
            Ok(hint) => Some(hint),
            Err(error) => {
                tracing::warn!(table = storage.url(), file = Self::path(), %error, "an invalid hint is ignored");
                None
            }
        }
    }

    /// Writes the hint with its checksum if its file still has the state `read`; `None` means that the file does not
    /// exist.
    pub(crate) fn write_over(&self, storage: &Storage, read: Option<&FileState>) -> Result<Replacement> {
        let failed = |error: serde_json::Error| {
            Error::invalid_argument("the hint cannot be written").with_source(error)
        };
        let bare = serde_json::to_string(&Self { checksum: None, ..self.clone() }).map_err(failed)?;
        let whole = Self { checksum: Some(json_checksum(&bare).map_err(failed)?), ..self.clone() };
        let bytes = serde_json::to_vec(&whole).map_err(failed)?;
        storage.put_if_unchanged(&Self::path(), bytes.into(), read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_never_gives_a_different_hint_with_a_valid_checksum() {
        let bare = concat!(
            r#"{"version":8,"size":11,"parts":3,"tags":{"a":"b"},"#,
            r#""checkpointSchema":{"type":"struct","fields":[1]}}"#
        );
        let text = bare.replacen('{', &format!("{{\"checksum\":\"{}\",", json_checksum(bare).unwrap()), 1);
        let hint = LastCheckpoint::parse(text.as_bytes()).unwrap();
        for at in 0..text.len() {
            assert!(LastCheckpoint::parse(&text.as_bytes()[..at]).is_err(), "cut at {at}");
            for byte in 0..=u8::MAX {
                let mut changed = text.clone().into_bytes();
                changed[at] = byte;
                // If the changed byte is in the key `checksum` itself, no checksum is checked. The text has no empty
                // objects and arrays, because the canonical form leaves them out.
                if let Ok(found) = LastCheckpoint::parse(&changed)
                    && found.checksum.is_some()
                {
                    assert_eq!(found, hint, "byte {byte} at {at}");
                }
            }
        }
    }

    #[test]
    fn every_field_is_parsed_and_written() {
        let text = r#"{"version":8,"size":11,"parts":3,"sizeInBytes":5,"numOfAddFiles":7,
            "checkpointSchema":{"type":"struct","fields":[]},"tags":{"a":null},
            "v2Checkpoint":{"path":"x.json","sizeInBytes":1,"modificationTime":2,"nonFileActions":[{"txn":{}}],
            "sidecarFiles":[{"path":"y.parquet","sizeInBytes":3,"modificationTime":4}]},"later":1}"#;
        let hint = LastCheckpoint::parse(text.as_bytes()).unwrap();
        let again = LastCheckpoint::parse(&serde_json::to_vec(&hint).unwrap()).unwrap();
        assert_eq!(hint, again);
        assert_eq!(
            (hint.version, hint.size, hint.parts, hint.size_in_bytes, hint.num_of_add_files),
            (8, 11, Some(3), Some(5), Some(7))
        );
        assert_eq!(hint.v2_checkpoint.unwrap().sidecar_files.unwrap()[0].size_in_bytes, 3);
    }

    #[test]
    fn an_invalid_field_does_not_affect_other_fields() {
        let text = r#"{"version":8,"size":"many","parts":-1,"tags":[],"v2Checkpoint":7}"#;
        assert_eq!(
            LastCheckpoint::parse(text.as_bytes()).unwrap(),
            LastCheckpoint { version: 8, ..LastCheckpoint::default() }
        );
    }

    /// "Last checkpoint file readers are encouraged to validate the checksum, if present".
    #[test]
    fn a_wrong_checksum_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        std::fs::create_dir(directory.path().join(LOG_DIRECTORY)).unwrap();
        let hint =
            LastCheckpoint { version: 10, size: 3, num_of_add_files: Some(1), ..LastCheckpoint::default() };
        assert_eq!(hint.write_over(&storage, None).unwrap(), Replacement::Done);
        let text = String::from_utf8(storage.read(&LastCheckpoint::path()).unwrap().to_vec()).unwrap();
        assert!(LastCheckpoint::parse(text.as_bytes()).unwrap().checksum.is_some());
        assert!(LastCheckpoint::parse(text.replace("10", "11").as_bytes()).is_err());
        assert!(
            LastCheckpoint::parse(
                br#"{"version":1,"version":1,"size":2,"checksum":"6a92d155a59bf2eecbd4b4ec7fd1f875"}"#
            )
            .is_err()
        );
    }
}
