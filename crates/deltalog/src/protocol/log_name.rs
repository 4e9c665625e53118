//! Parsing and formatting the names of the files in `_delta_log`. (PROTOCOL, "Delta Log Entries", "Checkpoint
//! Naming Scheme", "Log Compaction Files", "Last Checkpoint File", "Version Checksum File".)
//!
//! ```text
//! 00000000000000000012.json                                       commit
//! 00000000000000000012.checkpoint.parquet                         classic checkpoint
//! 00000000000000000012.checkpoint.0000000001.0000000003.parquet   part 1 of 3
//! 00000000000000000012.checkpoint.<uuid>.json|parquet             V2 checkpoint
//! 00000000000000000010.00000000000000000012.compacted.json        compaction of 10 to 12
//! 00000000000000000012.crc                                        checksum
//! _last_checkpoint                                                hint
//! _sidecars/<name>.parquet                                        sidecar
//! _staged_commits/00000000000000000012.<uuid>.json                staged commit
//! ```
//!
//! - Any other file, such as a temporary file of another writer, is not a log file and is ignored.
//! - `parse(name.to_string()) == name` for every name, and `parse` accepts nothing else.

use std::fmt;

use uuid::Uuid;

/// The directory of the log, relative to the table's root.
pub const LOG_DIRECTORY: &str = "_delta_log";

/// The name of the file that names the newest checkpoint.
pub const LAST_CHECKPOINT: &str = "_last_checkpoint";

/// The name of a file of the log, relative to `_delta_log`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogFileName {
    /// The commit of a version.
    Commit(u64),
    /// A checkpoint in one Parquet file.
    ClassicCheckpoint(u64),
    /// One file of a multi-part checkpoint.
    CheckpointPart {
        /// The version of the checkpoint.
        version: u64,
        /// The number of this part, counted from 1.
        part: u32,
        /// The number of parts.
        parts: u32,
    },
    /// A V2 checkpoint.
    UuidCheckpoint {
        /// The version of the checkpoint.
        version: u64,
        /// The id that distinguishes checkpoints of one version.
        uuid: Uuid,
        /// The format of the file.
        format: CheckpointFormat,
    },
    /// The commits of a range of versions in one file.
    Compaction {
        /// The first version.
        start: u64,
        /// The last version.
        end: u64,
    },
    /// The checksum of a version.
    Checksum(u64),
    /// `_last_checkpoint`, which helps readers to find the newest checkpoint.
    LastCheckpoint,
    /// A file that contains file actions of a V2 checkpoint.
    Sidecar(String),
    /// A commit that a catalog has not published yet.
    StagedCommit {
        /// The version that the commit will have.
        version: u64,
        /// The id that distinguishes several staged commits of one version.
        uuid: Uuid,
    },
}

/// The format of the top-level file of a V2 checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckpointFormat {
    /// One action per line.
    Json,
    /// One action per row.
    Parquet,
}

impl CheckpointFormat {
    fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Parquet => "parquet",
        }
    }
}

impl LogFileName {
    /// Parses a name relative to `_delta_log`. Returns `None` if it is not the name of a log file.
    pub fn parse(name: &str) -> Option<Self> {
        if name == LAST_CHECKPOINT {
            return Some(Self::LastCheckpoint);
        }
        if let Some(sidecar) = name.strip_prefix("_sidecars/") {
            let hidden = sidecar.starts_with(['.', '_']);
            return (!hidden
                && !sidecar.contains('/')
                && sidecar.len() > ".parquet".len()
                && sidecar.ends_with(".parquet"))
            .then(|| Self::Sidecar(sidecar.to_owned()));
        }
        if let Some(staged) = name.strip_prefix("_staged_commits/") {
            let [version, uuid, "json"] = split(staged)? else { return None };
            return Some(Self::StagedCommit { version: parse_version(version)?, uuid: parse_uuid(uuid)? });
        }
        if let Some([version, kind]) = split(name) {
            let version = parse_version(version)?;
            return match kind {
                "json" => Some(Self::Commit(version)),
                "crc" => Some(Self::Checksum(version)),
                _ => None,
            };
        }
        if let Some([version, "checkpoint", "parquet"]) = split(name) {
            return Some(Self::ClassicCheckpoint(parse_version(version)?));
        }
        if let Some([start, end, "compacted", "json"]) = split(name) {
            let (start, end) = (parse_version(start)?, parse_version(end)?);
            return (start < end).then_some(Self::Compaction { start, end });
        }
        if let Some([version, "checkpoint", uuid, extension]) = split(name) {
            let format = match extension {
                "json" => CheckpointFormat::Json,
                "parquet" => CheckpointFormat::Parquet,
                _ => return None,
            };
            return Some(Self::UuidCheckpoint {
                version: parse_version(version)?,
                uuid: parse_uuid(uuid)?,
                format,
            });
        }
        if let Some([version, "checkpoint", part, parts, "parquet"]) = split(name) {
            let (version, part, parts) = (parse_version(version)?, parse_part(part)?, parse_part(parts)?);
            return (1 <= part && part <= parts).then_some(Self::CheckpointPart { version, part, parts });
        }
        None
    }

    /// Returns the version in the name. For a compaction, it is the last one.
    pub fn version(&self) -> Option<u64> {
        match *self {
            Self::Commit(version)
            | Self::ClassicCheckpoint(version)
            | Self::Checksum(version)
            | Self::CheckpointPart { version, .. }
            | Self::UuidCheckpoint { version, .. }
            | Self::StagedCommit { version, .. } => Some(version),
            Self::Compaction { end, .. } => Some(end),
            Self::LastCheckpoint | Self::Sidecar(_) => None,
        }
    }

    /// Returns the path relative to the table's root.
    pub fn path(&self) -> String {
        format!("{LOG_DIRECTORY}/{self}")
    }
}

impl fmt::Display for LogFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit(version) => write!(f, "{version:020}.json"),
            Self::ClassicCheckpoint(version) => write!(f, "{version:020}.checkpoint.parquet"),
            Self::CheckpointPart { version, part, parts } => {
                write!(f, "{version:020}.checkpoint.{part:010}.{parts:010}.parquet")
            }
            Self::UuidCheckpoint { version, uuid, format } => {
                write!(f, "{version:020}.checkpoint.{uuid}.{}", format.extension())
            }
            Self::Compaction { start, end } => write!(f, "{start:020}.{end:020}.compacted.json"),
            Self::Checksum(version) => write!(f, "{version:020}.crc"),
            Self::LastCheckpoint => f.write_str(LAST_CHECKPOINT),
            Self::Sidecar(name) => write!(f, "_sidecars/{name}"),
            Self::StagedCommit { version, uuid } => write!(f, "_staged_commits/{version:020}.{uuid}.json"),
        }
    }
}

/// Splits a name at its dots, if that gives exactly `N` parts.
fn split<const N: usize>(name: &str) -> Option<[&str; N]> {
    let mut parts = name.split('.');
    let mut result = [""; N];
    for part in &mut result {
        *part = parts.next()?;
    }
    parts.next().is_none().then_some(result)
}

/// Parses a version of twenty digits. Versions that do not fit in an `i64` are refused, because other implementations
/// store them as `i64`.
fn parse_version(text: &str) -> Option<u64> {
    let digits = text.len() == 20 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|version| digits && i64::try_from(*version).is_ok())
}

fn parse_part(text: &str) -> Option<u32> {
    (text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Parses a UUID. Only the hyphenated lower-case form is accepted, so that each log file has exactly one name.
fn parse_uuid(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|uuid| uuid.hyphenated().to_string() == text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version() -> impl Strategy<Value = u64> {
        prop_oneof![0..100u64, 0..=i64::MAX as u64]
    }

    fn any_name() -> impl Strategy<Value = LogFileName> {
        let uuid = any::<u128>().prop_map(Uuid::from_u128);
        prop_oneof![
            version().prop_map(LogFileName::Commit),
            version().prop_map(LogFileName::ClassicCheckpoint),
            version().prop_map(LogFileName::Checksum),
            (version(), 1..=u32::MAX, 1..=u32::MAX).prop_map(|(version, a, b)| LogFileName::CheckpointPart {
                version,
                part: a.min(b),
                parts: a.max(b)
            }),
            (version(), uuid.clone(), any::<bool>()).prop_map(|(version, uuid, json)| {
                LogFileName::UuidCheckpoint {
                    version,
                    uuid,
                    format: if json { CheckpointFormat::Json } else { CheckpointFormat::Parquet },
                }
            }),
            (0..i64::MAX as u64, 1..1000u64).prop_map(|(start, by)| LogFileName::Compaction {
                start,
                end: (start + by).min(i64::MAX as u64)
            }),
            Just(LogFileName::LastCheckpoint),
            "[a-z0-9]{1,20}".prop_map(|name| LogFileName::Sidecar(format!("{name}.parquet"))),
            (version(), uuid).prop_map(|(version, uuid)| LogFileName::StagedCommit { version, uuid }),
        ]
    }

    proptest! {
        #[test]
        fn parse_undoes_display(name in any_name()) {
            prop_assert_eq!(LogFileName::parse(&name.to_string()), Some(name));
        }

        #[test]
        fn display_undoes_parse(
            text in "[0-9]{19,21}\\.(checkpoint|json|crc|[0-9]{9,11}|parquet|compacted|\\.){1,4}|\\PC*",
        ) {
            if let Some(name) = LogFileName::parse(&text) {
                prop_assert_eq!(name.to_string(), text);
            }
        }
    }

    #[test]
    fn foreign_and_temporary_files_are_not_log_files() {
        for name in [
            "",
            "1.json",
            "00000000000000000001.json.tmp",
            "00000000000000000001.json#1",
            ".00000000000000000001.json.crc",
            "._last_checkpoint.crc",
            "00000000000000000001.checkpoint.parquet.tmp",
            "00000000000000000001.checkpoint.0000000000.0000000002.parquet",
            "00000000000000000001.checkpoint.0000000003.0000000002.parquet",
            "00000000000000000003.00000000000000000001.compacted.json",
            "99999999999999999999.json",
            "_commits",
            "_sidecars/a/b.parquet",
        ] {
            assert_eq!(LogFileName::parse(name), None, "{name}");
        }
    }
}
