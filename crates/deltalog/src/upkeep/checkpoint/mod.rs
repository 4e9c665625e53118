//! Writing checkpoints. Protocol: "Checkpoints", "Checkpoint Naming Scheme", "V1 Spec", "V2 Spec".
//!
//! | file | what it does |
//! | --- | --- |
//! | `classic` | a checkpoint in one file, by the V1 spec |
//! | `v2` | a checkpoint by the V2 spec: its top-level file, which has the file actions or refers to sidecars |
//! | `sidecars` | writes sidecars, and chooses which sidecars of the previous checkpoint are used again |
//! | `file_actions`, `adds` | the file actions of a version, batch by batch, in the columns of a checkpoint |
//! | `table_actions` | all other actions |
//! | `action_file` | a Parquet file of actions |
//! | `hint` | `_last_checkpoint` |
//!
//! - Multi-part checkpoints are not written: the protocol deprecates them.
//! - A table whose policy is `v2` and that has the table feature gets checkpoints by the V2 spec, every other table
//!   classic ones by the V1 spec, which all readers know.
//! - A checkpoint holds the protocol, the metadata, every application's newest progress, every live domain,
//!   every live file, and the tombstones that have not expired. It holds no removed domains: those suppress
//!   domains of older commits, which a checkpoint replaces.
//! - Memory does not depend on the number of files: they pass through in batches, and a row group is written when
//!   it is full.
//! - No checkpoint is written for a version that the log no longer has, because it would stand alone, below the
//!   versions that a clean-up has left. This is checked before the last file is written, and once more afterwards.
//! - A checkpoint appears whole or not at all, and `_last_checkpoint` is written after it. A failed attempt only leaves
//!   files that readers ignore: temporary files, and sidecars without a head.
//! - The number of live files in it is compared with the checksum of the version, which was computed without counting.
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

/// Writes the checkpoint of `snapshot`, and the hint that points at it. In a table with checkpoints of the V2 spec, an
/// existing checkpoint of the version is kept, because a second one would get another name instead of replacing it.
///
/// # Errors
/// `VersionNotFound` if the log was cleaned up and no longer has the version, `CorruptLog`, `Unsupported` for a table
/// with an unknown feature, `InvalidArgument` for a version that its catalog has not published, and errors of the
/// store. They leave the table unchanged.
pub fn write_checkpoint(snapshot: &Snapshot, environment: &Environment) -> Result<()> {
    if !has_v2_checkpoint(snapshot).map_err(|error| snapshot.located(error))? {
        write_checkpoint_within(snapshot, &CheckpointLimits::default(), environment)?;
    }
    Ok(())
}

/// Returns whether the table has checkpoints of the V2 spec, and its log already has a readable checkpoint of the
/// version that is not in several parts. A checkpoint with the classic name, from another writer and perhaps of the V1
/// spec, is also good enough.
///
/// # Errors
/// `VersionNotFound` if the log no longer has the version: a checkpoint of it would stand alone, below the versions
/// that are left, and look like the beginning of a damaged log.
fn has_v2_checkpoint(snapshot: &Snapshot) -> Result<bool> {
    // Only the catalog knows such a commit. The check for that is made when the checkpoint is written.
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
        // A new checkpoint is preferred to a damaged one, because readers try one after the other.
        Err(error) if matches!(error.kind(), ErrorKind::CorruptLog | ErrorKind::FileNotFound) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The sizes that decide the form of a checkpoint of the V2 spec.
#[derive(Debug, Clone)]
#[doc(hidden)]
pub struct CheckpointLimits {
    /// The maximum number of file actions in a head. If there are more, they go into sidecars.
    pub inline_rows: u64,
    /// The maximum number of actions in a JSON head. A head with more is a Parquet file.
    pub json_actions: usize,
    /// The number of actions at which a sidecar is full. A sidecar that loses a file is rewritten as a whole.
    pub sidecar_rows: u64,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self { inline_rows: 4 * 1024, json_actions: 10_000, sidecar_rows: 16 * 1024 }
    }
}

/// Writes the checkpoint of `snapshot` like [`write_checkpoint`], with other limits.
///
/// # Errors
/// As [`write_checkpoint`].
#[doc(hidden)]
pub fn write_checkpoint_within(
    snapshot: &Snapshot,
    limits: &CheckpointLimits,
    environment: &Environment,
) -> Result<()> {
    write_in_own_form(snapshot, limits, environment).map(drop)
}

/// Writes a checkpoint in the form that the table requests. Returns the number of live files in it, if that is known.
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
/// that is known.
///
/// If another writer has written a checkpoint in the meantime, that is kept: readers that have listed it expect its
/// size, and fail if it is replaced by a file of another size.
///
/// # Errors
/// As [`write_checkpoint`].
pub(crate) fn of_version(base: &Snapshot, version: u64, environment: &Environment) -> Result<Option<u64>> {
    // A checkpoint must be of its own version, even if other writers have committed since.
    let snapshot = base.refresh()?.at_version(version)?;
    if snapshot.segment().checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.version == version) {
        return Ok(None);
    }
    write_in_own_form(&snapshot, &CheckpointLimits::default(), environment)
}

/// Returns the number of versions between two checkpoints of a table.
pub(crate) fn interval(base: &Snapshot) -> u64 {
    let interval = base.metadata().property("delta.checkpointInterval");
    let interval = interval.and_then(|interval| interval.trim().parse().ok());
    interval.filter(|interval| *interval > 0).unwrap_or(DEFAULT_INTERVAL)
}

/// Returns whether `version`, committed on top of `base`, is due for a checkpoint.
pub(crate) fn is_due(base: &Snapshot, version: u64) -> bool {
    version > 0 && version.is_multiple_of(interval(base))
}

/// Returns whether the table requests checkpoints of the V2 spec, and supports them.
fn is_v2(snapshot: &Snapshot) -> bool {
    snapshot.metadata().wants_v2_checkpoints() && has_v2_feature(snapshot)
}

fn has_v2_feature(snapshot: &Snapshot) -> bool {
    snapshot.protocol().reader_features().contains(&TableFeature::V2Checkpoint)
}

/// Writes a checkpoint with `form`, and then the hint that `form` returns. Returns the number of live files according
/// to the hint. If the checksum of the version has another number, it is not used any more.
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
        // The checkpoint is valid, whether the comparison succeeds or not.
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
    fn a_checkpoint_behind_a_commit_does_not_replace_that_of_another_writer() {
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
