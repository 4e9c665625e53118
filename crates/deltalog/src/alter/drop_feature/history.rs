//! What earlier versions, which can still be read, have of a feature.
//!
//! A client without the feature must be able to read each of them, by whichever checkpoint and commits. So the log must
//! not have a trace: neither in a commit nor in the oldest checkpoint, tombstones included, nor a checkpoint in a form
//! that only the feature allows. When the log has expired so far, it is clean by itself.

use std::collections::{BTreeMap, BTreeSet};

use super::traces::use_in_metadata;
use crate::error::{Error, Result};
use crate::log::{CheckpointKind, CommitFile, LogInventory};
use crate::protocol::TableFeature;
use crate::replay::{Commit, FileColumn, FileColumns, has_vectors, sidecars_of};
use crate::snapshot::Snapshot;

/// Refuses to drop `feature` while a version of the table that can be read makes use of it.
///
/// # Errors
/// `InvalidArgument` that names the newest such version and says what to wait for. `CorruptLog`, and errors of the
/// store.
pub(super) fn ensure_clean(base: &Snapshot, feature: &TableFeature) -> Result<()> {
    let Some(version) = newest_use(base, feature)? else { return Ok(()) };
    let retention = base.metadata().property("delta.logRetentionDuration").unwrap_or("interval 30 days");
    // A checkpoint of the newest version is of no use if that version makes use of the feature.
    let checkpoint = match version < base.version() {
        true => "write a checkpoint",
        false => "commit another version, write a checkpoint of it",
    };
    // A checkpoint has the tombstones that have not expired, with their vectors.
    let tombstones = match feature {
        TableFeature::DeletionVectors => {
            "when files with deletion vectors that were removed have expired (delta.deletedFileRetentionDuration), "
        }
        _ => "",
    };
    Err(Error::invalid_argument(format!(
        "the feature '{feature}' cannot be dropped yet: version {version} of the table, which can still be read, makes \
         use of it"
    ))
    .with_hint(format!(
        "{tombstones}{checkpoint}, wait until the log before it has expired ({retention} after its commit, \
         delta.logRetentionDuration), clean up the log, and drop the feature then"
    )))
}

/// Returns the newest version whose log makes use of `feature`.
fn newest_use(base: &Snapshot, feature: &TableFeature) -> Result<Option<u64>> {
    let mut inventory = LogInventory::read(base.storage())?;
    loop {
        let failure = match newest_use_in(&inventory, base, feature) {
            Ok(found) => return Ok(found),
            Err(failure) => failure,
        };
        // A clean-up may have deleted what was listed. What the versions after it have must be read from a checkpoint.
        let now = LogInventory::read(base.storage())?;
        if !inventory.has_lost_files(&now) {
            return Err(failure);
        }
        inventory = now;
    }
}

/// Returns the newest version that makes use of `feature`, of those whose commits and checkpoints were listed.
///
/// # Errors
/// `CorruptLog`, and errors of the store, also if one of these files is gone.
fn newest_use_in(inventory: &LogInventory, base: &Snapshot, feature: &TableFeature) -> Result<Option<u64>> {
    let mut newest = checkpoint_in_form_of(base, inventory, feature)?;
    let commits: BTreeMap<u64, CommitFile> =
        inventory.commits().map(|commit| (commit.version, commit)).collect();
    let checkpoints: BTreeSet<u64> =
        inventory.checkpoints().iter().map(|checkpoint| checkpoint.version).collect();
    let versions: BTreeSet<u64> = commits.keys().chain(&checkpoints).copied().collect();
    // The version after the one before, and whether the metadata of the one before make use of the feature.
    let (mut next, mut is_in_metadata) = (0, false);
    for version in versions.range(..=base.version()).copied() {
        let is_in_files = match commits.get(&version).filter(|_| version == next) {
            Some(commit) => {
                let commit = Commit::read_without_stats(base.storage(), *commit)?;
                if let Some(metadata) = &commit.metadata {
                    is_in_metadata = use_in_metadata(feature, metadata, &metadata.schema()?)?.is_some();
                }
                *feature == TableFeature::DeletionVectors
                    && (has_vectors(&commit.adds) || has_vectors(&commit.removes))
            }
            None if checkpoints.contains(&version) => {
                // `base` may still have what was cleaned up since it was opened.
                let snapshot = Snapshot::open(base.storage(), Some(version))?;
                is_in_metadata = use_in_metadata(feature, snapshot.metadata(), snapshot.schema())?.is_some();
                is_in_files_of(&snapshot, feature)?
            }
            // A commit after a gap, with no checkpoint before it, belongs to no version that can be read.
            None => continue,
        };
        next = version + 1;
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
