//! Reads and writes `_delta_log/_last_vacuum_info`, which records the version up to which removed files have been
//! deleted. The JVM implementation introduced this file; the protocol does not define it.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::log::LOG_DIRECTORY;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

const NAME: &str = "_last_vacuum_info";

#[derive(Debug, Default, Serialize, Deserialize)]
struct LastVacuum {
    #[serde(rename = "latestCommitVersionOutsideOfRetentionWindow", skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
}

/// Returns the recorded version; `None` if the file does not exist, cannot be parsed, or contains no version.
///
/// # Errors
/// Returns errors from the store.
pub(super) fn read(snapshot: &Snapshot) -> Result<Option<u64>> {
    let Some(bytes) = snapshot.storage().get(&path())? else { return Ok(None) };
    let found: LastVacuum = serde_json::from_slice(bytes.trim_ascii()).unwrap_or_default();
    // If the version is newer than the snapshot, it was recorded for another table that was at this location before.
    Ok(found.version.filter(|version| *version <= snapshot.version()))
}

/// Records the version, unless a later version is already recorded.
pub(super) fn record(snapshot: &Snapshot, version: u64) {
    let recorded = read(snapshot).and_then(|found| match found {
        Some(found) if found >= version => Ok(()),
        _ => write(snapshot.storage(), version),
    });
    if let Err(error) = recorded {
        // Without the record, the next VACUUM that only reads the log reads more commits, but has the same result.
        let table = snapshot.storage().url();
        tracing::warn!(table, %error, "the version that VACUUM has reached could not be recorded");
    }
}

fn write(storage: &Storage, version: u64) -> Result<()> {
    let text = serde_json::json!({ "latestCommitVersionOutsideOfRetentionWindow": version }).to_string();
    storage.put(&path(), format!("{text}\n").into())
}

fn path() -> String {
    format!("{LOG_DIRECTORY}/{NAME}")
}
