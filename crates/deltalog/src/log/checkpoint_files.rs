//! Which checkpoints of a listing are complete.
//!
//! Protocol: "Checkpoint Naming Scheme".
//!
//! - A checkpoint in several parts counts only when all of one set are there; sets of different sizes at one
//!   version are kept apart ("Problems with multi-part checkpoints").
//! - Of several checkpoints of one version any will do; the one that costs least to read comes first.
//! - An empty file is no checkpoint: its writer died.

use std::collections::BTreeMap;

use super::name::{CheckpointFormat, LogFileName};
use crate::storage::FileMeta;

/// A complete checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointFiles {
    /// The version it holds.
    pub version: u64,
    /// By what naming scheme.
    pub kind: CheckpointKind,
    /// Its files in order, with names relative to `_delta_log`; sidecars are named inside.
    pub files: Vec<FileMeta>,
}

/// The naming schemes, in the order in which they are preferred at one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckpointKind {
    /// One Parquet file; it may follow the V2 spec.
    Classic,
    /// The V2 spec, the top-level file as Parquet.
    UuidParquet,
    /// Several Parquet files.
    MultiPart,
    /// The V2 spec, the top-level file as lines of JSON.
    UuidJson,
}

impl CheckpointFiles {
    /// Whether the two are the same checkpoint, whatever a listing said of sizes and times.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.version == other.version
            && self.files.iter().map(|file| &file.name).eq(other.files.iter().map(|file| &file.name))
    }
}

/// Gathers checkpoint files and tells which are complete.
#[derive(Debug, Default)]
pub(super) struct CheckpointCandidates {
    whole: Vec<CheckpointFiles>,
    /// By version and number of parts.
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

    /// The newest complete checkpoint, and of its version the one that is read most cheaply; none of
    /// `without`.
    pub(super) fn newest(&self, without: &[CheckpointFiles]) -> Option<CheckpointFiles> {
        let allowed = self.complete().filter(|checkpoint| !without.iter().any(|other| other.is(checkpoint)));
        allowed.min_by(|a, b| {
            let cost = |checkpoint: &CheckpointFiles| (checkpoint.kind, checkpoint.files.len());
            b.version.cmp(&a.version).then_with(|| cost(a).cmp(&cost(b)))
        })
    }

    /// The version of the oldest complete checkpoint.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.complete().map(|checkpoint| checkpoint.version).min()
    }
}
