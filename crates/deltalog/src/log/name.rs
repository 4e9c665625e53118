//! The one parser of the names of log files. (PROTOCOL, "Delta Log Entries", "Checkpoints", "Log Compaction Files", "Last Checkpoint File".)
//!
//! ```text
//! 00000000000000000010.json                                                commit
//! 00000000000000000010.crc                                                 checksum
//! 00000000000000000010.checkpoint.parquet                                  classic checkpoint
//! 00000000000000000010.checkpoint.0000000001.0000000003.parquet            part 1 of 3 of a checkpoint
//! 00000000000000000010.checkpoint.80a083e8-….{json,parquet}                UUID-named checkpoint
//! 00000000000000000004.00000000000000000006.compacted.json                 compaction of versions 4 to 6
//! _last_checkpoint                                                         pointer to a checkpoint
//! _sidecars/3a0d65cd-….parquet                                             part of a V2 checkpoint
//! _staged_commits/00000000000000000011.80a083e8-….json                     commit that a catalog has yet to publish
//! ```
//!
//! - Names are relative to `_delta_log`.
//! - Every name that is not exactly of one of these forms, temporary files of writers included, is [`LogFileName::Unknown`]: never an error.
//! - `parse(name).to_string() = name` for every known name, and `parse(known.to_string()) = known`.
//! - Versions are at most `i64::MAX`, the largest that the actions of the log can hold.

use std::fmt;

use uuid::Uuid;

/// Directory of the sidecars, relative to `_delta_log`.
pub const SIDECAR_DIRECTORY: &str = "_sidecars";
/// Directory of staged commits, relative to `_delta_log`.
pub const STAGED_COMMIT_DIRECTORY: &str = "_staged_commits";
/// Name of the pointer to a recent checkpoint.
pub const LAST_CHECKPOINT: &str = "_last_checkpoint";

const VERSION_DIGITS: usize = 20;
const PART_DIGITS: usize = 10;
const MAX_VERSION: u64 = i64::MAX as u64;

/// What the name of a file in `_delta_log` says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogFileName {
    /// `N.json`
    Commit {
        /// The version that the commit made.
        version: u64,
    },
    /// `N.checkpoint.parquet`
    ClassicCheckpoint {
        /// The version of the table in the checkpoint.
        version: u64,
    },
    /// `N.checkpoint.O.P.parquet`
    MultiPartCheckpoint {
        /// The version of the table in the checkpoint.
        version: u64,
        /// Number of this part, from 1.
        part: u32,
        /// Count of the parts.
        parts: u32,
    },
    /// `N.checkpoint.UUID.json` or `.parquet`
    UuidCheckpoint {
        /// The version of the table in the checkpoint.
        version: u64,
        /// The UUID as the name spells it.
        uuid: String,
        /// Encoding of the file.
        format: CheckpointFormat,
    },
    /// `N.M.compacted.json`
    Compaction {
        /// First version in the compaction.
        first: u64,
        /// Last version in the compaction.
        last: u64,
    },
    /// `N.crc`
    Checksum {
        /// The version that the checksum describes.
        version: u64,
    },
    /// `_last_checkpoint`
    LastCheckpoint,
    /// `_sidecars/NAME.parquet`
    Sidecar {
        /// The file's name, with its extension, without the directory.
        name: String,
    },
    /// `_staged_commits/N.UUID.json`
    StagedCommit {
        /// The version that the commit would make.
        version: u64,
        /// The UUID as the name spells it.
        uuid: String,
    },
    /// Anything else.
    Unknown,
}

/// Encoding of a UUID-named checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckpointFormat {
    /// One action per line.
    Json,
    /// One action per row.
    Parquet,
}

impl CheckpointFormat {
    /// The extension of such a file.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Parquet => "parquet",
        }
    }

    fn from_extension(extension: &str) -> Option<Self> {
        match extension {
            "json" => Some(Self::Json),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

impl LogFileName {
    /// Parses a name relative to `_delta_log`. Never fails: see [`LogFileName::Unknown`].
    pub fn parse(name: &str) -> Self {
        let known = match name.split_once('/') {
            None if name == LAST_CHECKPOINT => Some(Self::LastCheckpoint),
            None => parse_versioned(name),
            Some((SIDECAR_DIRECTORY, name)) => parse_sidecar(name),
            Some((STAGED_COMMIT_DIRECTORY, name)) => parse_staged_commit(name),
            Some(_) => None,
        };
        known.unwrap_or(Self::Unknown)
    }

    /// The version that the file stands for; the last one of a compaction.
    pub fn version(&self) -> Option<u64> {
        match *self {
            Self::Commit { version }
            | Self::ClassicCheckpoint { version }
            | Self::MultiPartCheckpoint { version, .. }
            | Self::UuidCheckpoint { version, .. }
            | Self::Checksum { version }
            | Self::StagedCommit { version, .. } => Some(version),
            Self::Compaction { last, .. } => Some(last),
            Self::LastCheckpoint | Self::Sidecar { .. } | Self::Unknown => None,
        }
    }

    /// Whether the file is a checkpoint or a part of one.
    pub fn is_checkpoint(&self) -> bool {
        matches!(self, Self::ClassicCheckpoint { .. } | Self::MultiPartCheckpoint { .. } | Self::UuidCheckpoint { .. })
    }
}

/// The name of the commit that makes `version`.
pub fn commit(version: u64) -> String {
    LogFileName::Commit { version }.to_string()
}

/// The name of the classic checkpoint of `version`.
pub fn classic_checkpoint(version: u64) -> String {
    LogFileName::ClassicCheckpoint { version }.to_string()
}

/// The name of the checksum of `version`.
pub fn checksum(version: u64) -> String {
    LogFileName::Checksum { version }.to_string()
}

/// What every name about `version` begins with: where a listing from that version on starts.
pub fn version_prefix(version: u64) -> String {
    format!("{version:0VERSION_DIGITS$}")
}

/// The name, as the protocol spells it; [`LogFileName::Unknown`], which has none, as the empty string.
impl fmt::Display for LogFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit { version } => write!(f, "{version:0VERSION_DIGITS$}.json"),
            Self::ClassicCheckpoint { version } => write!(f, "{version:0VERSION_DIGITS$}.checkpoint.parquet"),
            Self::MultiPartCheckpoint { version, part, parts } => {
                write!(f, "{version:0VERSION_DIGITS$}.checkpoint.{part:0PART_DIGITS$}.{parts:0PART_DIGITS$}.parquet")
            }
            Self::UuidCheckpoint { version, uuid, format } => {
                write!(f, "{version:0VERSION_DIGITS$}.checkpoint.{uuid}.{}", format.extension())
            }
            Self::Compaction { first, last } => write!(f, "{first:0VERSION_DIGITS$}.{last:0VERSION_DIGITS$}.compacted.json"),
            Self::Checksum { version } => write!(f, "{version:0VERSION_DIGITS$}.crc"),
            Self::LastCheckpoint => f.write_str(LAST_CHECKPOINT),
            Self::Sidecar { name } => write!(f, "{SIDECAR_DIRECTORY}/{name}"),
            Self::StagedCommit { version, uuid } => write!(f, "{STAGED_COMMIT_DIRECTORY}/{version:0VERSION_DIGITS$}.{uuid}.json"),
            Self::Unknown => Ok(()),
        }
    }
}

fn parse_versioned(name: &str) -> Option<LogFileName> {
    let (number, rest) = name.split_once('.')?;
    let version = parse_version(number)?;
    // More dots than any form has are left in the last piece, which then matches nothing.
    let pieces: Vec<_> = rest.splitn(5, '.').collect();
    Some(match *pieces.as_slice() {
        ["json"] => LogFileName::Commit { version },
        ["crc"] => LogFileName::Checksum { version },
        ["checkpoint", "parquet"] => LogFileName::ClassicCheckpoint { version },
        ["checkpoint", uuid, extension] => {
            LogFileName::UuidCheckpoint { version, uuid: parse_uuid(uuid)?, format: CheckpointFormat::from_extension(extension)? }
        }
        ["checkpoint", part, parts, "parquet"] => {
            let (part, parts) = (parse_part(part)?, parse_part(parts)?);
            (1..=parts).contains(&part).then_some(LogFileName::MultiPartCheckpoint { version, part, parts })?
        }
        [last, "compacted", "json"] => {
            let last = parse_version(last)?;
            (version <= last).then_some(LogFileName::Compaction { first: version, last })?
        }
        _ => return None,
    })
}

fn parse_sidecar(name: &str) -> Option<LogFileName> {
    let stem = name.strip_suffix(".parquet")?;
    let is_temporary = stem.is_empty() || stem.starts_with(['.', '_']);
    (!is_temporary && !name.contains(['/', '\0'])).then(|| LogFileName::Sidecar { name: name.to_owned() })
}

fn parse_staged_commit(name: &str) -> Option<LogFileName> {
    let (number, rest) = name.split_once('.')?;
    let uuid = parse_uuid(rest.strip_suffix(".json")?)?;
    Some(LogFileName::StagedCommit { version: parse_version(number)?, uuid })
}

fn parse_version(digits: &str) -> Option<u64> {
    parse_digits(digits, VERSION_DIGITS)?.parse().ok().filter(|version| *version <= MAX_VERSION)
}

fn parse_part(digits: &str) -> Option<u32> {
    parse_digits(digits, PART_DIGITS)?.parse().ok()
}

/// `digits`, when it is exactly `count` ASCII digits; `parse` alone would take a sign too.
fn parse_digits(digits: &str, count: usize) -> Option<&str> {
    (digits.len() == count && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

/// `text`, when it is a UUID with hyphens, in either case.
fn parse_uuid(text: &str) -> Option<String> {
    const HYPHENATED: usize = 36;
    (text.len() == HYPHENATED && Uuid::try_parse(text).is_ok()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UUID: &str = "80a083e8-7026-4e79-81be-64bd76c43a11";

    /// The examples of "Delta Log Entries", "Checkpoints", "Sidecar Files" and "Log Compaction Files".
    #[test]
    fn the_names_of_the_protocol_are_known() {
        use LogFileName::*;
        let uuid = || UUID.to_owned();
        for (name, expected) in [
            ("00000000000000000000.json", Commit { version: 0 }),
            ("09223372036854775807.json", Commit { version: i64::MAX as u64 }),
            ("00000000000000000010.crc", Checksum { version: 10 }),
            ("00000000000000000010.checkpoint.parquet", ClassicCheckpoint { version: 10 }),
            ("00000000000000000010.checkpoint.0000000003.0000000003.parquet", MultiPartCheckpoint { version: 10, part: 3, parts: 3 }),
            (
                "00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
                UuidCheckpoint { version: 10, uuid: uuid(), format: CheckpointFormat::Json },
            ),
            (
                "00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet",
                UuidCheckpoint { version: 10, uuid: uuid(), format: CheckpointFormat::Parquet },
            ),
            ("00000000000000000004.00000000000000000006.compacted.json", Compaction { first: 4, last: 6 }),
            ("_last_checkpoint", LastCheckpoint),
            (
                "_sidecars/3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet",
                Sidecar { name: "3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet".into() },
            ),
            ("_staged_commits/00000000000000000011.80a083e8-7026-4e79-81be-64bd76c43a11.json", StagedCommit { version: 11, uuid: uuid() }),
        ] {
            assert_eq!(LogFileName::parse(name), expected);
            assert_eq!(expected.to_string(), name);
        }
    }

    #[test]
    fn everything_else_is_unknown() {
        for name in [
            "",
            ".json",
            "0.json",
            "000000000000000000001.json",
            "+0000000000000000001.json",
            "99999999999999999999.json",
            "09223372036854775808.json",
            "0000000000000000000\u{0661}.json",
            "00000000000000000001.json.tmp",
            "00000000000000000001.json#1",
            "00000000000000000001.json.gz",
            ".00000000000000000001.json.crc",
            "_00000000000000000001.json",
            "00000000000000000001.tmp",
            "00000000000000000001_tmp.json",
            "00000000000000000001.checkpoint.parquet.crc",
            ".00000000000000000001.checkpoint.parquet.tmp",
            "00000000000000000001.checkpoint.json",
            "00000000000000000001.checkpoint.0000000000.0000000003.parquet",
            "00000000000000000001.checkpoint.0000000004.0000000003.parquet",
            "00000000000000000001.checkpoint.0000000001.0000000003.json",
            "00000000000000000001.checkpoint.1.3.parquet",
            "00000000000000000001.checkpoint.80a083e870264e7981be64bd76c43a11.parquet",
            "00000000000000000001.checkpoint.not-a-uuid.parquet",
            "00000000000000000006.00000000000000000004.compacted.json",
            "00000000000000000004.compacted.json",
            "_last_checkpoint.tmp",
            "._last_checkpoint.crc",
            "_sidecars/",
            "_sidecars/.parquet",
            "_sidecars/.a.parquet",
            "_sidecars/a/b.parquet",
            "_sidecars/a.json",
            "_staged_commits/00000000000000000011.json",
            "other/00000000000000000001.json",
            "/00000000000000000001.json",
        ] {
            assert_eq!(LogFileName::parse(name), LogFileName::Unknown, "{name}");
        }
    }

    fn any_name() -> impl Strategy<Value = LogFileName> {
        let version = || 0..=MAX_VERSION;
        let uuid = || any::<u128>().prop_map(|bits| Uuid::from_u128(bits).to_string());
        let format = prop_oneof![Just(CheckpointFormat::Json), Just(CheckpointFormat::Parquet)];
        prop_oneof![
            version().prop_map(|version| LogFileName::Commit { version }),
            version().prop_map(|version| LogFileName::Checksum { version }),
            version().prop_map(|version| LogFileName::ClassicCheckpoint { version }),
            (version(), 1..=u32::MAX, 1..=u32::MAX).prop_map(|(version, a, b)| LogFileName::MultiPartCheckpoint {
                version,
                part: a.min(b),
                parts: a.max(b)
            }),
            (version(), uuid(), format).prop_map(|(version, uuid, format)| LogFileName::UuidCheckpoint { version, uuid, format }),
            (version(), version()).prop_map(|(a, b)| LogFileName::Compaction { first: a.min(b), last: a.max(b) }),
            Just(LogFileName::LastCheckpoint),
            "[a-z0-9-][^/\0]{0,12}".prop_map(|stem| LogFileName::Sidecar { name: format!("{stem}.parquet") }),
            (version(), uuid()).prop_map(|(version, uuid)| LogFileName::StagedCommit { version, uuid }),
        ]
    }

    proptest! {
        #[test]
        fn parse_undoes_format(name in any_name()) {
            prop_assert_eq!(LogFileName::parse(&name.to_string()), name);
        }

        #[test]
        fn format_undoes_parse_and_nothing_panics(
            name in r"\PC*|[0-9]{19,21}\.(json|crc|checkpoint)(\.[0-9a-f.-]{0,40})?(\.(parquet|json|compacted\.json))?"
        ) {
            let parsed = LogFileName::parse(&name);
            if parsed != LogFileName::Unknown {
                prop_assert_eq!(parsed.to_string(), name);
            }
        }

        #[test]
        fn names_sort_by_version(a in 0..=MAX_VERSION, b in 0..=MAX_VERSION) {
            prop_assert_eq!(commit(a).cmp(&commit(b)), a.cmp(&b));
            prop_assert!(version_prefix(a) < commit(a) && version_prefix(a) < classic_checkpoint(a) && version_prefix(a) < checksum(a));
        }
    }
}
