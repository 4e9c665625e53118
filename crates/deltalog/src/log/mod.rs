//! The files of the transaction log: their names, their listing, and their formats.

mod canonical_json;
mod checkpoint_files;
mod checksum;
pub(crate) mod commit_actions;
mod commit_files;
pub(crate) mod deletion_vector;
mod extent;
mod file_totals;
mod inventory;
mod last_checkpoint;
mod listing;
pub(crate) mod replay;
mod segment;
mod staged;
mod times;

use crate::error::Result;
use crate::protocol::log_name::LogFileName;
use crate::storage::Storage;

pub use checkpoint_files::{CheckpointFiles, CheckpointKind};
pub use checksum::VersionChecksum;
pub use commit_files::{CommitFile, CommitKind};
pub use file_totals::FileSizeHistogram;
pub use last_checkpoint::{LastCheckpoint, V2CheckpointHint};
pub use segment::LogSegment;
pub use staged::StagedCommit;
pub use times::{CommitTimes, InCommitTimestamps};

pub(crate) use file_totals::{Change, FileTotals};
pub(crate) use inventory::LogInventory;
pub(crate) use listing::SegmentSource;
pub(crate) use segment::{Fate, Look, Newer, NewerVersions, replaced};
pub(crate) use times::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION, read_commit_info};

pub use crate::protocol::log_name::LOG_DIRECTORY;

/// Returns whether `storage` has a log, that is, any commit, checkpoint or other file that belongs to a version.
pub(crate) fn is_table(storage: &Storage) -> Result<bool> {
    let files = storage.list_directory_after(LOG_DIRECTORY, "")?;
    Ok(files.iter().filter_map(|file| LogFileName::parse(&file.name)).any(|name| name.version().is_some()))
}

/// Removes `key` from the fields of a small log file, and returns its value if it has the type `T`.
fn take<T: serde::de::DeserializeOwned>(
    fields: &mut serde_json::Map<String, serde_json::Value>,
    key: &str,
) -> Option<T> {
    serde_json::from_value(fields.remove(key)?).ok()
}
