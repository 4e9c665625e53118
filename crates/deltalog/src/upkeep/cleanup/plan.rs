//! Determines the expired parts of a log.

use super::protected::Protection;
use crate::error::{ErrorKind, Result};
use crate::log::replay::check_checkpoint;
use crate::log::{CheckpointFiles, InCommitTimestamps, LogInventory};
use crate::protocol::log_name::LogFileName;
use crate::snapshot::Snapshot;
use crate::storage::FileMeta;

/// The expired files.
#[derive(Debug)]
pub(super) struct Plan {
    /// The version of the checkpoint that replaces the expired versions.
    pub(super) oldest_version: u64,
    /// The expired files from the listing of the log, in the order in which they are deleted.
    pub(super) files: Vec<FileMeta>,
    /// Whether some of the files belong to checkpoints.
    pub(super) has_checkpoints: bool,
}

impl Plan {
    /// Finds the newest checkpoint that is not newer than the cut-off and that may become the oldest one in this table,
    /// and the files that it replaces. Returns `None` if no files have expired.
    pub(super) fn find(
        snapshot: &Snapshot,
        inventory: &LogInventory,
        cutoff_ms: i64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Self>> {
        let in_commit = InCommitTimestamps::of(snapshot.protocol(), snapshot.metadata())?;
        let times = inventory.commit_times(snapshot.storage(), in_commit);
        // "The newest commit not newer than the cutOffTimestamp is the cutoffCommit."
        let Some(cutoff) = times.last_at_or_before(cutoff_ms)? else { return Ok(None) };
        let protection = Protection::of(snapshot, inventory, is_over)?;
        for checkpoint in inventory.checkpoints().iter().filter(|checkpoint| checkpoint.version <= cutoff) {
            let mut plan = Self::before(inventory, checkpoint.version);
            if plan.files.is_empty() {
                // Older checkpoints would replace even fewer files.
                return Ok(None);
            }
            if protection.allows(checkpoint.version)? && is_readable(snapshot, checkpoint)? {
                protection.order(&mut plan);
                return Ok(Some(plan));
            }
        }
        Ok(None)
    }

    /// Returns a plan for which nothing is deleted.
    pub(super) fn nothing(inventory: &LogInventory) -> Self {
        let oldest_version = inventory.oldest_readable().unwrap_or(0);
        Self { oldest_version, files: Vec::new(), has_checkpoints: false }
    }

    /// Returns all files that a checkpoint of `version` replaces. Returns no files if neither commits nor checkpoints
    /// are among them. The commit of `version` itself is kept, because a checkpoint does not contain its `commitInfo`.
    fn before(inventory: &LogInventory, version: u64) -> Self {
        let mut plan = Self { oldest_version: version, files: Vec::new(), has_checkpoints: false };
        let mut has_commits = false;
        for (name, file) in inventory.files() {
            let is_expired = match name {
                LogFileName::Commit(of)
                | LogFileName::Checksum(of)
                | LogFileName::ClassicCheckpoint(of)
                | LogFileName::CheckpointPart { version: of, .. }
                | LogFileName::UuidCheckpoint { version: of, .. } => *of < version,
                LogFileName::Compaction { start, .. } => *start <= version,
                LogFileName::StagedCommit { version: of, .. } => *of <= version,
                LogFileName::LastCheckpoint | LogFileName::Sidecar(_) => false,
            };
            if is_expired {
                plan.files.push(file.clone());
                has_commits |= matches!(name, LogFileName::Commit(_));
                plan.has_checkpoints |= is_checkpoint(name);
            }
        }
        if !has_commits && !plan.has_checkpoints {
            plan.files.clear();
        }
        plan
    }
}

/// Returns the files of all checkpoints of versions before `version`.
pub(super) fn checkpoints_before(inventory: &LogInventory, version: u64) -> Vec<FileMeta> {
    let is_before = |name: &LogFileName| match name {
        LogFileName::ClassicCheckpoint(of)
        | LogFileName::CheckpointPart { version: of, .. }
        | LogFileName::UuidCheckpoint { version: of, .. } => *of < version,
        _ => false,
    };
    inventory.files().filter(|(name, _)| is_before(name)).map(|(_, file)| file.clone()).collect()
}

/// Returns whether a file belongs to a checkpoint.
pub(super) fn is_checkpoint(name: &LogFileName) -> bool {
    matches!(
        name,
        LogFileName::ClassicCheckpoint(_)
            | LogFileName::CheckpointPart { .. }
            | LogFileName::UuidCheckpoint { .. }
    )
}

/// Returns whether a checkpoint can be read completely. This matters because other sources of its version are about to
/// be deleted.
fn is_readable(snapshot: &Snapshot, checkpoint: &CheckpointFiles) -> Result<bool> {
    match check_checkpoint(snapshot.storage(), snapshot.resolver(), checkpoint) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::CorruptLog | ErrorKind::FileNotFound) => {
            tracing::warn!(
                table = snapshot.storage().url(),
                version = checkpoint.version,
                %error,
                "the log before a checkpoint is kept because the checkpoint cannot be read"
            );
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::environment::Environment;
    use crate::storage::Storage;
    use crate::upkeep::checkpoint::write_checkpoint;

    /// PROTOCOL, "In-Commit Timestamps": the files of the log may be copies, so their modification times are
    /// meaningless.
    #[test]
    fn in_commit_timestamps_are_the_times_of_commits() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("_delta_log");
        std::fs::create_dir(&log).unwrap();
        let feature = r#"["inCommitTimestamp"]"#;
        let protocol = format!(
            r#"{{"protocol":{{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":{feature}}}}}"#
        );
        let properties = r#"{"delta.enableInCommitTimestamps":"true"}"#;
        let head = r#"{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":"","#;
        let metadata = format!(r#"{head}"partitionColumns":[],"configuration":{properties}}}}}"#);
        for version in 0..8 {
            let mut lines = vec![format!(r#"{{"commitInfo":{{"inCommitTimestamp":{}}}}}"#, version * 100)];
            if version == 0 {
                lines.extend([protocol.clone(), metadata.clone()]);
            }
            std::fs::write(log.join(format!("{version:020}.json")), lines.join("\n")).unwrap();
        }
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        for version in [2, 5] {
            write_checkpoint(&Snapshot::open(&storage, Some(version)).unwrap(), &Environment::system())
                .unwrap();
        }
        let snapshot = Snapshot::open(&storage, None).unwrap();
        let inventory = LogInventory::read(&storage).unwrap();
        for (cutoff, oldest) in
            [(-1, None), (199, None), (200, Some(2)), (499, Some(2)), (500, Some(5)), (9999, Some(5))]
        {
            let plan = Plan::find(&snapshot, &inventory, cutoff, &|| false).unwrap();
            assert_eq!(plan.map(|plan| plan.oldest_version), oldest, "{cutoff}");
        }
    }
}
