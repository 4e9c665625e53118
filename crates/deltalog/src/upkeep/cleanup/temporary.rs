//! Checkpoints, checksums and compactions that their writers did not complete. They have a temporary name until they
//! are renamed. (PROTOCOL, "Checkpoint Naming Scheme".)
//!
//! ```text
//!   .00000000000000000012.checkpoint.parquet.<uuid>.tmp
//! ```
//!
//! A writer that is killed leaves the file. Its name is that of the complete file, with a part for each attempt.

use uuid::Uuid;

use crate::log::LogInventory;
use crate::log::name::LogFileName;
use crate::storage::FileMeta;

/// Returns the incomplete files that were modified before `youngest_ms`. Younger ones may still be
/// written.
pub(super) fn incomplete(inventory: &LogInventory, youngest_ms: i64) -> Vec<FileMeta> {
    let files = inventory.others().filter(|file| file.modified_ms < youngest_ms && is_incomplete(&file.name));
    files.cloned().collect()
}

fn is_incomplete(name: &str) -> bool {
    let of = || {
        let (name, attempt) = name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?;
        Uuid::try_parse(attempt).ok()?;
        LogFileName::parse(name)
    };
    matches!(
        of(),
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
    fn only_what_is_beside_a_log_and_under_a_temporary_name_is_incomplete() {
        let (version, uuid) = (format!("{:020}", 12), Uuid::from_u128(7));
        for name in [
            "checkpoint.parquet",
            &format!("checkpoint.{uuid}.json"),
            "checkpoint.0000000001.0000000002.parquet",
            "crc",
            &format!("{:020}.compacted.json", 20),
        ] {
            assert!(is_incomplete(&format!(".{version}.{name}.{uuid}.tmp")), "{name}");
            for other in ["{}.tmp", "{}", ".{}", ".{}.tmp", ".{}.1.tmp", ".{}.crc"] {
                assert!(!is_incomplete(&other.replace("{}", &format!("{version}.{name}"))), "{other} {name}");
            }
        }
        assert!(is_incomplete(&format!("._last_checkpoint.{uuid}.tmp")));
        // Renaming such a file is how other writers commit.
        assert!(!is_incomplete(&format!(".{version}.json.{uuid}.tmp")));
    }
}
