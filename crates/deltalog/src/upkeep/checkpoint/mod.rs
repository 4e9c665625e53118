//! Writes checkpoints. Protocol: "Checkpoints", "Checkpoint Naming Scheme", "V1 Spec", "V2 Spec".
//!
//! | file | what it does |
//! | --- | --- |
//! | `classic` | a checkpoint in one file, by the V1 spec |
//! | `v2` | a checkpoint by the V2 spec: a top-level file (the head) with the file actions or references to sidecars |
//! | `sidecars` | writes sidecars, and chooses which sidecars of the previous checkpoint are used again |
//! | `file_actions`, `adds` | the file actions of a version, batch by batch, as columns of a checkpoint |
//! | `table_actions` | all other actions |
//! | `action_file` | a Parquet file of actions |
//! | `hint` | `_last_checkpoint` |
//!
//! - Multi-part checkpoints are not written, because the protocol deprecates them.
//! - Checkpoints follow the V2 spec if the table's policy is `v2` and the table has the table feature. Otherwise they
//!   follow the V1 spec, which all readers know.
//! - A checkpoint contains the protocol, the metadata, the newest progress of every application, every live domain,
//!   every live file, and the tombstones that have not expired. It does not contain removed domains: they only cancel
//!   domains in older commits, which the checkpoint replaces.
//! - Memory does not depend on the number of files: files are processed in batches, and a row group is written when it
//!   is full.
//! - No checkpoint is written for a version that a clean-up has deleted from the log, because it would be isolated
//!   below the remaining versions. This is checked before the last file is written, and again afterwards.
//! - A checkpoint becomes visible completely or not at all, and `_last_checkpoint` is written after it. A failed
//!   attempt only leaves files that readers ignore: temporary files, and sidecars to which no head refers.
//! - The number of live files in the checkpoint is compared with the checksum of the version, which was derived without
//!   counting files.
//! - Checkpoints are an optimization: failing to write one after a commit is logged and never fails the commit.

mod action_file;
mod adds;
mod classic;
mod file_actions;
mod hint;
mod sidecars;
mod table_actions;
mod v2;

use crate::error::{Error, ErrorKind, Result};
use crate::log::replay::check_checkpoint;
use crate::log::{CheckpointKind, CommitKind, LastCheckpoint};
use crate::protocol::{TableFeature, ensure_checkpointable};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;

use file_actions::FileActions;

const DEFAULT_INTERVAL: u64 = 10;

/// Writes the checkpoint of `snapshot`, and `_last_checkpoint`, which then names it. If the table has checkpoints of
/// the V2 spec, an existing checkpoint of the version is kept, because a second one would have another name and would
/// not replace it.
///
/// # Errors
/// `VersionNotFound` if a clean-up has deleted the version from the log, `CorruptLog`, `Unsupported` for a table with
/// an unknown feature, `InvalidArgument` for a version that its catalog did not publish, and errors from the store.
/// After any of these errors, the table is unchanged.
pub fn write_checkpoint(snapshot: &Snapshot, environment: &Environment) -> Result<()> {
    if !has_v2_checkpoint(snapshot).map_err(|error| snapshot.located(error))? {
        write_checkpoint_within(snapshot, &CheckpointLimits::default(), environment)?;
    }
    Ok(())
}

/// Returns whether the table has checkpoints of the V2 spec and its log already has a readable checkpoint of the
/// version that is not a multi-part one. A checkpoint with the classic name also counts; another writer may have
/// written it by the V1 spec.
///
/// # Errors
/// `VersionNotFound` if a clean-up has deleted the version from the log: a checkpoint of it would be isolated below the
/// remaining versions, and would look like the beginning of a damaged log.
fn has_v2_checkpoint(snapshot: &Snapshot) -> Result<bool> {
    // Only the catalog knows a commit that is not published yet. This is checked when the checkpoint is written.
    if matches!(snapshot.segment().commits.last().map(|commit| commit.kind), Some(CommitKind::Staged(_))) {
        return Ok(false);
    }
    let found = snapshot.found_again()?;
    let Some(checkpoint) = found.checkpoint.filter(|found| found.version == snapshot.version()) else {
        return Ok(false);
    };
    if checkpoint.kind == CheckpointKind::MultiPart || !is_v2(snapshot) {
        return Ok(false);
    }
    match check_checkpoint(snapshot.storage(), snapshot.resolver(), &checkpoint) {
        Ok(()) => Ok(true),
        // If the existing checkpoint is damaged, a new one is written, because readers try one after the other.
        Err(error) if matches!(error.kind(), ErrorKind::CorruptLog | ErrorKind::FileNotFound) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The limits that determine the form of a checkpoint of the V2 spec.
#[derive(Debug, Clone)]
#[doc(hidden)]
pub struct CheckpointLimits {
    /// The maximum number of file actions in the head. If there are more, they are written to sidecars.
    pub inline_rows: u64,
    /// The maximum number of actions in a JSON head. A head with more actions is a Parquet file.
    pub json_actions: usize,
    /// The number of actions at which a sidecar is full. If one file in a sidecar is removed, the whole sidecar has to
    /// be rewritten.
    pub sidecar_rows: u64,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self { inline_rows: 4 * 1024, json_actions: 10_000, sidecar_rows: 16 * 1024 }
    }
}

/// Writes the checkpoint of `snapshot` as [`write_checkpoint`] does, with other limits.
///
/// # Errors
/// Returns the same errors as [`write_checkpoint`].
#[doc(hidden)]
pub fn write_checkpoint_within(
    snapshot: &Snapshot,
    limits: &CheckpointLimits,
    environment: &Environment,
) -> Result<()> {
    write_in_own_form(snapshot, limits, environment).map(drop)
}

/// Writes a checkpoint by the spec that the table requires. Returns the number of live files in it, if it is known.
fn write_in_own_form(
    snapshot: &Snapshot,
    limits: &CheckpointLimits,
    environment: &Environment,
) -> Result<Option<u64>> {
    write(snapshot, environment, |actions| match is_v2(snapshot) {
        true => v2::write(snapshot, actions, limits, environment),
        false => classic::write(snapshot, actions, environment),
    })
}

/// Writes the checkpoint of `version`, which was committed on top of `base`. Returns the number of live files in it, if
/// it is known.
///
/// If another writer has written a checkpoint of the version in the meantime, that one is kept. Readers that have
/// listed it expect its size, and fail if a file of another size replaces it.
///
/// # Errors
/// Returns the same errors as [`write_checkpoint`].
pub(crate) fn of_version(base: &Snapshot, version: u64, environment: &Environment) -> Result<Option<u64>> {
    // The checkpoint must contain the state of exactly this version, even if other writers have committed since.
    let snapshot = base.refresh()?.at_version(version)?;
    if snapshot.segment().checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.version == version) {
        return Ok(None);
    }
    write_in_own_form(&snapshot, &CheckpointLimits::default(), environment)
}

/// Returns the checkpoint interval of a table, in versions.
pub(crate) fn interval(base: &Snapshot) -> u64 {
    let interval = base.metadata().property("delta.checkpointInterval");
    let interval = interval.and_then(|interval| interval.trim().parse().ok());
    interval.filter(|interval| *interval > 0).unwrap_or(DEFAULT_INTERVAL)
}

/// Returns whether a checkpoint is due after the commit of `version` on top of `base`.
pub(crate) fn is_due(base: &Snapshot, version: u64) -> bool {
    version > 0 && version.is_multiple_of(interval(base))
}

/// Returns whether the table requires checkpoints of the V2 spec and supports them.
fn is_v2(snapshot: &Snapshot) -> bool {
    snapshot.metadata().wants_v2_checkpoints() && has_v2_feature(snapshot)
}

fn has_v2_feature(snapshot: &Snapshot) -> bool {
    snapshot.protocol().reader_features().contains(&TableFeature::V2Checkpoint)
}

/// Writes a checkpoint by calling `form`, and then the hint that `form` returns. Returns the number of live files that
/// the hint states. If the checksum of the version has another number, the checksum is no longer used.
fn write(
    snapshot: &Snapshot,
    environment: &Environment,
    form: impl FnOnce(&FileActions) -> Result<LastCheckpoint>,
) -> Result<Option<u64>> {
    let write = || -> Result<Option<u64>> {
        ensure_checkpointable(snapshot.protocol())?;
        check_published(snapshot)?;
        let actions = FileActions::of(snapshot, environment.now_ms())?;
        let hint = form(&actions)?;
        hint::advance(snapshot.storage(), &hint)?;
        let files = hint.num_of_add_files.and_then(|files| u64::try_from(files).ok());
        // The checkpoint is valid, even if this comparison fails.
        if let Some(error) = files.and_then(|files| snapshot.compare_checksum_with(files).err()) {
            let (table, version) = (snapshot.storage().url(), snapshot.version());
            tracing::warn!(table, version, %error, "a checkpoint could not be compared with its checksum");
        }
        Ok(files)
    };
    write().map_err(|error| snapshot.located(error))
}

/// Checks that the version has its commit file: "Checkpoints for a given version must only be created after the
/// associated delta file has been successfully written".
fn check_published(snapshot: &Snapshot) -> Result<()> {
    match snapshot.segment().commits.last().map(|commit| commit.kind) {
        Some(CommitKind::Staged(_)) => Err(Error::invalid_argument(
            "the version cannot have a checkpoint before its catalog has published it",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::log_name::LogFileName;
    use crate::storage::Storage;

    #[test]
    fn a_checkpoint_after_a_commit_does_not_replace_one_of_another_writer() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("_delta_log");
        std::fs::create_dir(&log).unwrap();
        let first = concat!(
            r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#,
            "\n",
            r#"{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"partitionColumns":[],"#,
            r#""configuration":{},"schemaString":"{\"type\":\"struct\",\"fields\":[]}"}}"#
        );
        for (version, text) in [(0, first), (1, r#"{"commitInfo":{}}"#)] {
            std::fs::write(log.join(LogFileName::Commit(version).to_string()), text).unwrap();
        }
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        let (base, environment) = (Snapshot::open(&storage, Some(0)).unwrap(), Environment::system());
        let written = || storage.head(&LogFileName::ClassicCheckpoint(1).path()).unwrap();
        assert_eq!(of_version(&base, 1, &environment).unwrap(), Some(0));
        let first = written().unwrap();
        assert_eq!(of_version(&base, 1, &environment).unwrap(), None);
        assert_eq!(written(), Some(first.clone()));
        // A user who requests a checkpoint may want to replace a damaged one.
        write_checkpoint(&Snapshot::open(&storage, None).unwrap(), &environment).unwrap();
        assert_ne!(written(), Some(first));
    }
}
