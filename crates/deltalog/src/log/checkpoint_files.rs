//! Which checkpoints of a listing are complete.
//!
//! Protocol: "Checkpoint Naming Scheme". A checkpoint in several parts counts only when all of one set are there; sets of different sizes at one version are
//! kept apart ("Problems with multi-part checkpoints").

use std::collections::BTreeMap;

use super::name::LogFileName;
use super::segment::CheckpointFiles;
use crate::storage::FileMeta;

/// Gathers checkpoint files and tells which are complete.
#[derive(Default)]
pub(super) struct CheckpointCandidates {
    classic: BTreeMap<u64, FileMeta>,
    parts: BTreeMap<(u64, u32), Vec<(u32, FileMeta)>>,
    uuid: BTreeMap<u64, String>,
}

impl CheckpointCandidates {
    pub(super) fn add(&mut self, name: &LogFileName, file: &FileMeta) {
        match *name {
            LogFileName::ClassicCheckpoint(version) if file.size > 0 => {
                self.classic.insert(version, file.clone());
            }
            LogFileName::CheckpointPart { version, part, parts } if file.size > 0 => {
                self.parts.entry((version, parts)).or_default().push((part, file.clone()));
            }
            LogFileName::UuidCheckpoint { version, .. } => {
                self.uuid.insert(version, file.name.clone());
            }
            _ => {}
        }
    }

    /// The newest complete checkpoint that can be read here.
    pub(super) fn newest(&self) -> Option<CheckpointFiles> {
        let classic = self.classic.last_key_value().map(|(version, file)| CheckpointFiles { version: *version, files: vec![file.clone()] });
        let in_parts = self.parts.iter().rev().find_map(|((version, parts), files)| {
            let mut files = files.clone();
            files.sort_unstable_by_key(|(part, _)| *part);
            let complete = files.len() == *parts as usize && files.iter().zip(1..).all(|((part, _), expected)| *part == expected);
            complete.then(|| CheckpointFiles { version: *version, files: files.into_iter().map(|(_, file)| file).collect() })
        });
        match (classic, in_parts) {
            (Some(classic), Some(in_parts)) if in_parts.version > classic.version => Some(in_parts),
            (classic, in_parts) => classic.or(in_parts),
        }
    }

    /// The version of the oldest complete checkpoint.
    pub(super) fn oldest(&self) -> Option<u64> {
        let classic = self.classic.keys().next().copied();
        let in_parts = self.parts.iter().find(|((_, parts), files)| files.len() == *parts as usize).map(|((version, _), _)| *version);
        classic.into_iter().chain(in_parts).min()
    }

    /// A V2 checkpoint, which is not read yet: named in the error when nothing else serves.
    pub(super) fn unsupported(&self) -> Option<(u64, &str)> {
        self.uuid.last_key_value().map(|(version, name)| (*version, name.as_str()))
    }
}
