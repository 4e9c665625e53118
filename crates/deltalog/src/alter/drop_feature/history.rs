//! What earlier versions, which can still be read, have of a feature.
//!
//! A client without the feature must be able to read each of them, by whichever checkpoint and commits. So the log must
//! not have a trace: neither in a commit nor in the oldest checkpoint, tombstones included, nor a checkpoint in a form
//! that only the feature allows. When the log has expired so far, it is clean by itself.

use super::traces::{has_vectors, use_in_metadata};
use crate::error::{Error, Result};
use crate::log::name::LogFileName;
use crate::log::{CheckpointKind, LogInventory};
use crate::protocol::TableFeature;
use crate::replay::{Commit, FileColumn, FileColumns, sidecars_of};
use crate::snapshot::Snapshot;

/// Refuses to drop `feature` while a version of the table that can be read makes use of it.
///
/// # Errors
/// `InvalidArgument` that names the newest such version and says what to wait for. `CorruptLog`, and errors of the
/// store.
pub(super) fn ensure_clean(base: &Snapshot, feature: &TableFeature) -> Result<()> {
    let Some(version) = newest_use(base, feature)? else { return Ok(()) };
    let retention = base.metadata().property("delta.logRetentionDuration").unwrap_or("interval 30 days");
    let next = version + 1;
    Err(Error::invalid_argument(format!(
        "the feature '{feature}' cannot be dropped yet: version {version} of the table, which can still be read, makes \
         use of it"
    ))
    .with_hint(format!(
        "write a checkpoint of version {next} or a later one, wait until the log before it has expired ({retention} \
         after its commit, delta.logRetentionDuration), clean up the log, and drop the feature then"
    )))
}

/// Returns the newest version whose log makes use of `feature`.
fn newest_use(base: &Snapshot, feature: &TableFeature) -> Result<Option<u64>> {
    let inventory = LogInventory::read(base.storage())?;
    let versions = inventory.files().filter_map(|(name, _)| match name {
        LogFileName::Commit(version) => Some(*version),
        _ => None,
    });
    let versions: Vec<u64> = versions.filter(|version| *version <= base.version()).collect();
    let mut newest = checkpoint_in_form_of(base, &inventory, feature)?;
    // The oldest version that can be read: the first one, or that of a checkpoint.
    let oldest = match versions.first() {
        Some(0) => 0,
        _ => inventory.checkpoints().last().map_or_else(|| base.version(), |checkpoint| checkpoint.version),
    };
    let oldest = oldest.min(base.version());
    let first = base.at_version(oldest)?;
    let mut is_in_metadata = use_in_metadata(feature, first.metadata(), first.schema())?.is_some();
    if is_in_metadata || is_in_files_of(&first, feature)? {
        newest = newest.max(Some(oldest));
    }
    for version in versions.into_iter().filter(|version| *version > oldest) {
        let path = LogFileName::Commit(version).path();
        // A commit that another clean-up has deleted meanwhile cannot be read any more.
        let Some(bytes) = base.storage().get(&path)? else { continue };
        let commit =
            Commit::parse(&bytes, version, 0).map_err(|error| error.at_path(path).at_version(version))?;
        if let Some(metadata) = &commit.metadata {
            is_in_metadata = use_in_metadata(feature, metadata, &metadata.schema()?)?.is_some();
        }
        let is_in_files = *feature == TableFeature::DeletionVectors
            && (has_vectors(&commit.adds) || has_vectors(&commit.removes));
        if is_in_metadata || is_in_files {
            newest = newest.max(Some(version));
        }
    }
    Ok(newest)
}

/// Returns whether the files of a version, or its tombstones, make use of `feature`.
fn is_in_files_of(snapshot: &Snapshot, feature: &TableFeature) -> Result<bool> {
    if *feature != TableFeature::DeletionVectors {
        return Ok(false);
    }
    let columns = FileColumns::of(&[FileColumn::Path, FileColumn::DeletionVector]);
    for batch in snapshot.replay_files(columns)? {
        if has_vectors(&batch?) {
            return Ok(true);
        }
    }
    for batch in snapshot.replay_removes()? {
        if has_vectors(&batch?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the version of the newest checkpoint whose form only `feature` allows.
fn checkpoint_in_form_of(
    base: &Snapshot,
    inventory: &LogInventory,
    feature: &TableFeature,
) -> Result<Option<u64>> {
    if *feature != TableFeature::V2Checkpoint {
        return Ok(None);
    }
    for checkpoint in inventory.checkpoints() {
        // A checkpoint with a classic name may have sidecars as well.
        let is_v2 = match checkpoint.kind {
            CheckpointKind::MultiPart => false,
            CheckpointKind::Classic => !sidecars_of(base.storage(), base.resolver(), &checkpoint)?.is_empty(),
            _ => true,
        };
        if is_v2 {
            return Ok(Some(checkpoint.version));
        }
    }
    Ok(None)
}
