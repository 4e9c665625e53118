//! Finds sidecars to which no checkpoint refers any more. (PROTOCOL, "Metadata Cleanup", "Sidecar Files".)

use std::collections::HashSet;

use super::path_of;
use crate::error::{ErrorKind, Result};
use crate::log::replay::sidecars_of;
use crate::log::{CheckpointKind, LogInventory};
use crate::protocol::log_name::LogFileName;
use crate::snapshot::Snapshot;
use crate::storage::FileMeta;

/// Returns the sidecars that were modified before `youngest_ms`, and to which no checkpoint of version `oldest` or
/// later refers. Checkpoints with a UUID in their names are checked as well. Newer sidecars may belong to a checkpoint
/// that is being written.
///
/// If a checkpoint cannot be read, it is unknown to which sidecars it refers, so no sidecars are returned.
pub(super) fn orphans(
    snapshot: &Snapshot,
    inventory: &LogInventory,
    oldest: u64,
    youngest_ms: i64,
) -> Result<Vec<FileMeta>> {
    let sidecars = inventory.files().filter(|(name, _)| matches!(name, LogFileName::Sidecar(_)));
    let mut candidates: Vec<FileMeta> =
        sidecars.filter(|(_, file)| file.modified_ms < youngest_ms).map(|(_, file)| file.clone()).collect();
    if candidates.is_empty() {
        return Ok(candidates);
    }
    let mut referenced = HashSet::new();
    for checkpoint in inventory.checkpoints().into_iter().chain(inventory.unknown_heads()) {
        if checkpoint.version < oldest || checkpoint.kind == CheckpointKind::MultiPart {
            continue;
        }
        match sidecars_of(snapshot.storage(), snapshot.resolver(), &checkpoint) {
            Ok(paths) => referenced.extend(paths),
            Err(error) if matches!(error.kind(), ErrorKind::CorruptLog | ErrorKind::FileNotFound) => {
                tracing::warn!(
                    table = snapshot.storage().url(),
                    version = checkpoint.version,
                    %error,
                    "unused sidecars are kept because a checkpoint that may refer to them cannot be read"
                );
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        }
    }
    candidates.retain(|file| !referenced.contains(&path_of(&file.name)));
    Ok(candidates)
}
