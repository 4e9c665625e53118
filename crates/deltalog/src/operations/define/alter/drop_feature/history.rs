//! Finds traces of a feature in earlier versions of a table that can still be read.
//!
//! ```text
//!   listing ──► the versions that can be read, each from its commit, the first one from its checkpoint
//!                   │ only those that were not looked at before
//!                   ▼
//!               what each of them has of the feature ──► the newest version that makes use of it
//! ```
//!
//! - A client without the feature can read a version if the part of the log that it reads contains no trace of the
//!   feature, regardless of the checkpoint from which it starts. This means that no commit and no file of the oldest
//!   checkpoint uses the feature, and no checkpoint has a format that only the feature allows. If all versions that
//!   use the feature have expired, nothing needs to be truncated.
//! - A commit never changes, so it is examined only once, however often a drop starts over. A checkpoint is also
//!   examined only once, unless it was replaced.

use std::collections::BTreeMap;

use super::traces::use_in_metadata;
use crate::error::Result;
use crate::log::replay::{
    Commit, FileColumn, FileColumns, FileSet, filtered, has_vectors, sidecars_of, visit_commits, with_vectors,
};
use crate::log::{CheckpointFiles, CheckpointKind, CommitFile, LogInventory};
use crate::protocol::{TableFeature, protected_before};
use crate::snapshot::Snapshot;

/// The traces of a feature in those versions of a table that have been examined.
pub(super) struct History<'a> {
    feature: &'a TableFeature,
    /// The traces found in commits, by version.
    commits: BTreeMap<u64, Traces>,
    /// The traces found in versions that are read from a checkpoint, by version.
    checkpoints: BTreeMap<u64, Traces>,
    /// The data files for which the log has `remove` actions with deletion vectors.
    removed: FileSet,
    /// The first version that is examined. Some earlier versions cannot be read.
    first: u64,
    /// The checkpoints with a classic name that are known to have no sidecars.
    classic: Vec<CheckpointFiles>,
}

/// The traces of a feature in one version.
#[derive(Debug, Clone, Copy)]
struct Traces {
    are_in_files: bool,
    /// Whether the metadata uses the feature; `None` if the metadata is the same as in the previous version.
    are_in_metadata: Option<bool>,
}

/// The part of the log from which a version is read.
enum Source {
    Commit(CommitFile),
    Checkpoint(u64),
}

impl Source {
    fn version(&self) -> u64 {
        match self {
            Self::Commit(commit) => commit.version,
            Self::Checkpoint(version) => *version,
        }
    }
}

impl<'a> History<'a> {
    /// Creates the history of `feature` in the table of `base`. No version has been examined yet.
    pub(super) fn of(feature: &'a TableFeature, base: &Snapshot) -> Self {
        let removed = FileSet::of_paths(base.resolver());
        let (commits, checkpoints) = (BTreeMap::new(), BTreeMap::new());
        Self { feature, commits, checkpoints, removed, first: 0, classic: Vec::new() }
    }

    /// Returns the newest readable version up to `base` whose part of the log uses the feature. For the feature
    /// `checkpointProtection`, returns the newest version whose history is protected.
    ///
    /// # Errors
    /// Returns `Unsupported` for a version that this crate cannot read, `CorruptLog`, and errors from the store.
    pub(super) fn newest_use(&mut self, base: &Snapshot) -> Result<Option<u64>> {
        let mut inventory = LogInventory::read(base.storage())?;
        loop {
            let failure = match self.newest_use_in(&inventory, base) {
                Ok(found) => return Ok(found),
                Err(failure) => failure,
            };
            // Metadata cleanup may have deleted the listed files. The later versions must then be read from a
            // checkpoint.
            let now = LogInventory::read(base.storage())?;
            if !inventory.has_lost_files(&now) {
                return Err(failure);
            }
            inventory = now;
        }
    }

    /// Records that a version up to `base` cannot be read. All versions up to `base` then count as using the feature,
    /// and only later versions are examined.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store.
    pub(super) fn give_up_to(&mut self, base: &Snapshot) -> Result<()> {
        let traces = Traces { are_in_files: true, ..self.traces_of_state(base)? };
        self.commits.insert(base.version(), traces);
        self.checkpoints.insert(base.version(), traces);
        self.first = base.version();
        Ok(())
    }

    /// Returns the newest version that uses the feature, considering only the commits and checkpoints in `inventory`.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store, also if a file in `inventory` no longer exists.
    fn newest_use_in(&mut self, inventory: &LogInventory, base: &Snapshot) -> Result<Option<u64>> {
        if *self.feature == TableFeature::CheckpointProtection {
            return newest_protected(inventory, base);
        }
        let mut sources = sources(inventory, base.version());
        sources.retain(|source| source.version() >= self.first);
        self.look_at(&sources, base)?;
        let (mut newest, mut is_in_metadata) = (self.checkpoint_in_own_form(inventory, base)?, false);
        for source in &sources {
            let version = source.version();
            let traces = match source {
                Source::Commit(_) => self.commits.get(&version),
                Source::Checkpoint(_) => self.checkpoints.get(&version),
            };
            is_in_metadata = traces.and_then(|traces| traces.are_in_metadata).unwrap_or(is_in_metadata);
            if is_in_metadata || traces.is_some_and(|traces| traces.are_in_files) {
                newest = newest.max(Some(version));
            }
        }
        Ok(newest)
    }

    /// Examines those `sources` that have not been examined before, the oldest first.
    fn look_at(&mut self, sources: &[Source], base: &Snapshot) -> Result<()> {
        let mut commits = Vec::new();
        for source in sources {
            match source {
                Source::Commit(commit) if self.commits.contains_key(&commit.version) => {}
                Source::Commit(commit) => commits.push(*commit),
                Source::Checkpoint(version) if self.checkpoints.contains_key(version) => {}
                Source::Checkpoint(version) => {
                    self.look_at_commits(&std::mem::take(&mut commits), base)?;
                    // The version is opened again, because `base` may list files that cleanup has deleted in the
                    // meantime.
                    let traces = self.traces_of_state(&Snapshot::open(base.storage(), Some(*version))?)?;
                    self.checkpoints.insert(*version, traces);
                }
            }
        }
        self.look_at_commits(&commits, base)
    }

    fn look_at_commits(&mut self, commits: &[CommitFile], base: &Snapshot) -> Result<()> {
        visit_commits(base.storage(), commits, |file, commit| {
            let located = |error: crate::error::Error| error.at_path(file.path()).at_version(file.version);
            let traces = self.traces_of_commit(&commit?).map_err(located)?;
            self.commits.insert(file.version, traces);
            Ok(true)
        })
    }

    /// Returns the traces of the feature in a commit. An action on a file for which there are `remove` actions with
    /// deletion vectors also counts as a use of deletion vectors: a client that identifies files by path alone would
    /// consider the file removed.
    fn traces_of_commit(&mut self, commit: &Commit) -> Result<Traces> {
        let Commit { adds, removes, metadata, .. } = commit;
        let mut are_in_files = false;
        if *self.feature == TableFeature::DeletionVectors {
            are_in_files = has_vectors(adds)
                || has_vectors(removes)
                || self.removed.find(adds)?.is_some()
                || self.removed.find(removes)?.is_some();
            if has_vectors(removes) {
                self.removed.insert(&filtered(removes, &with_vectors(removes))?)?;
            }
        }
        let are_in_metadata = metadata.as_ref().map(|metadata| {
            use_in_metadata(self.feature, metadata, &metadata.schema()?).map(|found| found.is_some())
        });
        Ok(Traces { are_in_files, are_in_metadata: are_in_metadata.transpose()? })
    }

    /// Returns the traces of the feature in the whole state of a version. A `remove` action with a deletion vector
    /// only counts if its data file is live.
    fn traces_of_state(&mut self, snapshot: &Snapshot) -> Result<Traces> {
        let mut are_in_files = false;
        if *self.feature == TableFeature::DeletionVectors {
            let removed = removed_with_vectors(snapshot)?;
            let columns = FileColumns::of(&[FileColumn::Path, FileColumn::DeletionVector]);
            for batch in snapshot.replay_files(columns)? {
                let batch = batch?;
                are_in_files |= has_vectors(&batch) || removed.find(&batch)?.is_some();
            }
            for batch in snapshot.replay_removes()? {
                let batch = batch?;
                self.removed.insert(&filtered(&batch, &with_vectors(&batch))?)?;
            }
        }
        let found = use_in_metadata(self.feature, snapshot.metadata(), snapshot.schema())?;
        Ok(Traces { are_in_files, are_in_metadata: Some(found.is_some()) })
    }

    /// Returns the version of the newest checkpoint that has a format which only the feature allows.
    fn checkpoint_in_own_form(&mut self, inventory: &LogInventory, base: &Snapshot) -> Result<Option<u64>> {
        if *self.feature != TableFeature::V2Checkpoint {
            return Ok(None);
        }
        for checkpoint in inventory.checkpoints() {
            match checkpoint.kind {
                CheckpointKind::MultiPart => {}
                CheckpointKind::UuidParquet | CheckpointKind::UuidJson => {
                    return Ok(Some(checkpoint.version));
                }
                // Even a checkpoint with a classic name may have sidecars.
                CheckpointKind::Classic => {
                    if self.classic.iter().any(|known| known.is_same(&checkpoint)) {
                        continue;
                    }
                    if !sidecars_of(base.storage(), base.resolver(), &checkpoint)?.is_empty() {
                        return Ok(Some(checkpoint.version));
                    }
                    self.classic.push(checkpoint);
                }
            }
        }
        Ok(None)
    }
}

/// Returns the versions up to `end` that can be read, the oldest first, and the part of the log that each is read
/// from.
fn sources(inventory: &LogInventory, end: u64) -> Vec<Source> {
    let mut listed: BTreeMap<u64, Option<CommitFile>> = BTreeMap::new();
    listed.extend(inventory.checkpoints().iter().map(|checkpoint| (checkpoint.version, None)));
    let with_checkpoint: Vec<u64> = listed.keys().copied().collect();
    listed.extend(inventory.commits().map(|commit| (commit.version, Some(commit))));
    let (mut sources, mut next) = (Vec::new(), 0);
    for (version, commit) in listed.into_iter().take_while(|(version, _)| *version <= end) {
        match commit.filter(|_| version == next) {
            Some(commit) => sources.push(Source::Commit(commit)),
            None if with_checkpoint.binary_search(&version).is_ok() => {
                sources.push(Source::Checkpoint(version));
            }
            // This version cannot be read, because commits before it are missing and it has no checkpoint.
            None => continue,
        }
        next = version + 1;
    }
    sources
}

/// Returns the newest version in the log that is earlier than the version up to which checkpoints are protected.
fn newest_protected(inventory: &LogInventory, base: &Snapshot) -> Result<Option<u64>> {
    let end = protected_before(base.protocol(), base.metadata())?;
    let commits = inventory.commits().map(|commit| commit.version);
    let checkpoints = inventory.checkpoints().into_iter().map(|checkpoint| checkpoint.version);
    Ok(commits.chain(checkpoints).filter(|version| *version < end).max())
}

/// Returns the data files for which the log has `remove` actions with deletion vectors. If such a file is live again,
/// for example after a RESTORE, readers that do not know the feature consider it removed.
pub(super) fn removed_with_vectors(snapshot: &Snapshot) -> Result<FileSet> {
    let mut removed = FileSet::of_paths(snapshot.resolver());
    for batch in snapshot.replay_removes()? {
        let batch = batch?;
        removed.insert(&filtered(&batch, &with_vectors(&batch))?)?;
    }
    Ok(removed)
}
