//! Finds the complete checkpoints in a listing of the log. (PROTOCOL, "Checkpoint Naming Scheme".)
//!
//! - A multi-part checkpoint is complete only if all its parts exist. Parts of one version belong to different
//!   checkpoints if their names state different numbers of parts ("Problems with multi-part checkpoints").
//! - All checkpoints of one version are equivalent; the one that is cheapest to read is used.
//! - An empty file is not treated as a checkpoint: its writer failed before it wrote the content.

use std::collections::BTreeMap;

use crate::protocol::log_name::{CheckpointFormat, LogFileName};
use crate::storage::FileMeta;

/// A complete checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointFiles {
    /// The version of the checkpoint.
    pub version: u64,
    /// The naming scheme.
    pub kind: CheckpointKind,
    /// The files in order, with names relative to `_delta_log`. Sidecars are not included; the top-level file
    /// lists them.
    pub files: Vec<FileMeta>,
}

/// The naming scheme of a checkpoint. If a version has checkpoints of several kinds, the kind that is declared first is
/// preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckpointKind {
    /// One Parquet file. Its content may follow the V2 spec.
    Classic,
    /// The V2 spec with a top-level Parquet file.
    UuidParquet,
    /// Several Parquet files, the parts.
    MultiPart,
    /// The V2 spec with a top-level file of JSON lines.
    UuidJson,
}

impl CheckpointFiles {
    /// Returns whether both consist of the same objects in the store. For a classic checkpoint, equal names are not
    /// enough: "If two checkpoint writers race to create the same classic checkpoint, the latest writer wins", and the
    /// two files may differ in form.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.is(other) && self.files.iter().zip(&other.files).all(|(own, other)| own.is_same_object(other))
    }

    /// Returns whether both have the same version and file names. Sizes and times may differ.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.version == other.version
            && self.files.iter().map(|file| &file.name).eq(other.files.iter().map(|file| &file.name))
    }
}

/// The checkpoint files of a listing, including incomplete checkpoints.
#[derive(Debug, Default)]
pub(super) struct CheckpointCandidates {
    whole: Vec<CheckpointFiles>,
    /// The parts of multi-part checkpoints, by version and number of parts.
    parts: BTreeMap<(u64, u32), BTreeMap<u32, FileMeta>>,
}

impl CheckpointCandidates {
    pub(super) fn add(&mut self, name: &LogFileName, file: &FileMeta) {
        if file.size == 0 {
            return;
        }
        let (version, kind) = match *name {
            LogFileName::ClassicCheckpoint(version) => (version, CheckpointKind::Classic),
            LogFileName::UuidCheckpoint { version, format: CheckpointFormat::Parquet, .. } => {
                (version, CheckpointKind::UuidParquet)
            }
            LogFileName::UuidCheckpoint { version, format: CheckpointFormat::Json, .. } => {
                (version, CheckpointKind::UuidJson)
            }
            LogFileName::CheckpointPart { version, part, parts } => {
                self.parts.entry((version, parts)).or_default().insert(part, file.clone());
                return;
            }
            _ => return,
        };
        self.whole.push(CheckpointFiles { version, kind, files: vec![file.clone()] });
    }

    fn complete(&self) -> impl Iterator<Item = CheckpointFiles> {
        let in_parts = self.parts.iter().filter(|((_, parts), files)| files.len() == *parts as usize).map(
            |((version, _), files)| CheckpointFiles {
                version: *version,
                kind: CheckpointKind::MultiPart,
                files: files.values().cloned().collect(),
            },
        );
        self.whole.iter().cloned().chain(in_parts)
    }

    /// Returns the newest complete checkpoint that is not in `without`. If a version has several checkpoints, returns
    /// the one that is cheapest to read.
    pub(super) fn newest(&self, without: &[CheckpointFiles]) -> Option<CheckpointFiles> {
        let allowed = self.complete().filter(|checkpoint| !without.iter().any(|other| other.is(checkpoint)));
        allowed.min_by(|a, b| {
            let cost = |checkpoint: &CheckpointFiles| (checkpoint.kind, checkpoint.files.len());
            b.version.cmp(&a.version).then_with(|| cost(a).cmp(&cost(b)))
        })
    }

    /// Returns the complete checkpoints, newest first. Checkpoints of the same version are ordered by the cost of
    /// reading them.
    pub(super) fn newest_first(&self) -> Vec<CheckpointFiles> {
        let mut found: Vec<_> = self.complete().collect();
        found.sort_by_key(|checkpoint| {
            (std::cmp::Reverse(checkpoint.version), checkpoint.kind, checkpoint.files.len())
        });
        found
    }

    /// Returns whether `checkpoint` is one of the complete checkpoints and has not changed.
    pub(super) fn have(&self, checkpoint: &CheckpointFiles) -> bool {
        self.complete().any(|found| found.is_same(checkpoint))
    }

    /// Returns the versions of the complete checkpoints that are not in `without`, in any order.
    pub(super) fn versions(&self, without: &[CheckpointFiles]) -> impl Iterator<Item = u64> {
        let allowed = self.complete().filter(|checkpoint| !without.iter().any(|other| other.is(checkpoint)));
        allowed.map(|checkpoint| checkpoint.version)
    }
}
