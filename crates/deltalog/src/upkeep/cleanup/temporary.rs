//! Finds checkpoints, checksums, compactions and commits that were left incomplete by their writers. Such a file has a
//! temporary name until its writer renames it. (PROTOCOL, "Checkpoint Naming Scheme".)
//!
//! ```text
//!   .00000000000000000012.checkpoint.parquet.<uuid>.tmp
//! ```
//!
//! If a writer is killed, the file remains. Its name consists of the name of the complete file and a part that is
//! unique to each attempt. An incomplete commit whose version was committed by another writer can no longer become a
//! commit.

use uuid::Uuid;

use crate::log::LogInventory;
use crate::protocol::log_name::LogFileName;
use crate::storage::FileMeta;

/// Returns the incomplete files that were modified before `youngest_ms`. Newer files may still be in progress.
pub(super) fn incomplete(inventory: &LogInventory, youngest_ms: i64) -> Vec<FileMeta> {
    let newest = inventory.commits().last().map(|commit| commit.version);
    let old = inventory.others().filter(|file| file.modified_ms < youngest_ms);
    old.filter(|file| is_incomplete(&file.name, newest)).cloned().collect()
}

/// Returns whether a file is incomplete, in a log whose newest commit is `newest`.
fn is_incomplete(name: &str, newest: Option<u64>) -> bool {
    let of = || {
        let (name, attempt) = name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?;
        Uuid::try_parse(attempt).ok()?;
        LogFileName::parse(name)
    };
    let of = of();
    // Other writers commit by renaming such a file. If its version already exists, either another writer has committed
    // it, or the file is a leftover of the commit itself.
    if let Some(LogFileName::Commit(version)) = of {
        return newest.is_some_and(|newest| version <= newest);
    }
    matches!(
        of,
        Some(
            LogFileName::ClassicCheckpoint(_)
                | LogFileName::CheckpointPart { .. }
                | LogFileName::UuidCheckpoint { .. }
                | LogFileName::Checksum(_)
                | LogFileName::Compaction { .. }
                | LogFileName::LastCheckpoint
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_log_files_with_a_temporary_name_are_incomplete() {
        let (version, uuid) = (format!("{:020}", 12), Uuid::from_u128(7));
        for name in [
            "checkpoint.parquet",
            &format!("checkpoint.{uuid}.json"),
            "checkpoint.0000000001.0000000002.parquet",
            "crc",
            &format!("{:020}.compacted.json", 20),
        ] {
            assert!(is_incomplete(&format!(".{version}.{name}.{uuid}.tmp"), None), "{name}");
            for other in ["{}.tmp", "{}", ".{}", ".{}.tmp", ".{}.1.tmp", ".{}.crc"] {
                assert!(
                    !is_incomplete(&other.replace("{}", &format!("{version}.{name}")), Some(99)),
                    "{other} {name}"
                );
            }
        }
        assert!(is_incomplete(&format!("._last_checkpoint.{uuid}.tmp"), None));
        for (newest, expected) in [(None, false), (Some(11), false), (Some(12), true), (Some(13), true)] {
            assert_eq!(is_incomplete(&format!(".{version}.json.{uuid}.tmp"), newest), expected, "{newest:?}");
        }
    }
}
