//! What earlier versions, which can still be read, have of a feature.
//!
//! A client without the feature can read a version if the log has no trace of the feature, by whichever checkpoint and
//! commits: neither in a commit nor in the files of the oldest checkpoint, nor a checkpoint in a form that only the
//! feature allows. A log that has expired so far is clean by itself.

use std::collections::{BTreeMap, BTreeSet};

use super::traces::use_in_metadata;
use crate::error::Result;
use crate::log::{CheckpointKind, CommitFile, LogInventory};
use crate::protocol::{TableFeature, protected_before};
use crate::replay::{
    Commit, FileColumn, FileColumns, FileSet, filtered, has_vectors, sidecars_of, with_vectors,
};
use crate::snapshot::Snapshot;

/// Returns the newest version that can be read and whose log makes use of `feature`; of `checkpointProtection`, the
/// newest one whose history it protects.
///
/// # Errors
/// `Unsupported` for a version that cannot be read here; `CorruptLog`, and errors of the store.
pub(super) fn newest_use(base: &Snapshot, feature: &TableFeature) -> Result<Option<u64>> {
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
    if *feature == TableFeature::CheckpointProtection {
        return newest_protected(inventory, base);
    }
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

/// Returns the newest version before the one up to which checkpoints are protected, if there is one in the log.
fn newest_protected(inventory: &LogInventory, base: &Snapshot) -> Result<Option<u64>> {
    let end = protected_before(base.protocol(), base.metadata())?;
    let commits = inventory.commits().map(|commit| commit.version);
    let checkpoints = inventory.checkpoints().into_iter().map(|checkpoint| checkpoint.version);
    Ok(commits.chain(checkpoints).filter(|version| *version < end).max())
}

/// Returns whether the files of a version make use of `feature`. Tombstones with vectors only count if their data file
/// is live: readers that do not know the feature know a file by its path alone.
fn is_in_files_of(snapshot: &Snapshot, feature: &TableFeature) -> Result<bool> {
    if *feature != TableFeature::DeletionVectors {
        return Ok(false);
    }
    let removed = removed_with_vectors(snapshot)?;
    for batch in snapshot.replay_files(FileColumns::of(&[FileColumn::Path, FileColumn::DeletionVector]))? {
        let batch = batch?;
        if has_vectors(&batch) || removed.find(&batch)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the data files of which the log has tombstones with deletion vectors. A file of them that is live again, as
/// after a restore of an earlier version, seems to be removed to readers that do not know the feature.
pub(super) fn removed_with_vectors(snapshot: &Snapshot) -> Result<FileSet> {
    let mut removed = FileSet::of_paths(snapshot.resolver());
    for batch in snapshot.replay_removes()? {
        let batch = batch?;
        removed.insert(&filtered(&batch, &with_vectors(&batch))?)?;
    }
    Ok(removed)
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
