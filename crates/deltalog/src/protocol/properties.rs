//! The table properties that Delta writers interpret, whose names begin with `delta.`, and their allowed values.
//!
//! - A property without this prefix belongs to the user and may have any value.
//! - Properties are checked when they are set. Existing tables are read leniently: if a value cannot be parsed, the
//!   default applies.

use std::collections::BTreeMap;

use super::checkpoint_protection::PROTECTED_BEFORE;
use super::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN};
use crate::error::{Error, Result};
use crate::runtime::spelling::nearest;

/// The kind of a property's value.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Boolean,
    /// An integer that is not less than this number.
    Integer(i64),
    /// A time span. See [`interval_ms`].
    Interval,
    /// A number of bytes. See [`byte_size`].
    Size,
    /// One of these words, ignoring case.
    OneOf(&'static [&'static str]),
    Text,
}

impl Kind {
    fn allows(self, value: &str) -> bool {
        let value = value.trim();
        match self {
            Self::Boolean => ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)),
            Self::Integer(least) => value.parse::<i64>().is_ok_and(|number| number >= least),
            Self::Interval => interval_ms(value).is_some_and(|interval| interval >= 0),
            Self::Size => byte_size(value).is_some(),
            Self::OneOf(words) => words.iter().any(|word| value.eq_ignore_ascii_case(word)),
            Self::Text => true,
        }
    }

    fn description(self) -> String {
        match self {
            Self::Boolean => "true or false".to_owned(),
            Self::Integer(least) => format!("a whole number of at least {least}"),
            Self::Interval => "a time span such as 'interval 30 days', in weeks or smaller units".to_owned(),
            Self::Size => "a number of bytes such as 134217728, 128mb or 1g".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::Text => "text".to_owned(),
        }
    }
}

/// The property for how long commits are kept if dropping a feature truncates the history.
pub(crate) const TRUNCATED_HISTORY: &str = "delta.dropFeatureTruncateHistory.retentionDuration";

/// The property for the compression codec of new data files.
pub(crate) const COMPRESSION: &str = "delta.parquet.compression.codec";

/// The compression codecs that data files can be written with.
pub(crate) const CODECS: &[&str] =
    &["none", "uncompressed", "snappy", "gzip", "brotli", "lz4", "lz4_raw", "zstd"];

const SUPPORTED: Kind = Kind::OneOf(&["supported", "enabled"]);

/// The known properties by name. (PROTOCOL, "Table Features" and the sections about single features. The other
/// properties are in Delta Lake's documentation, "table properties".)
const KNOWN: &[(&str, Kind)] = &[
    // Rows can be added, but not changed or deleted. Default: false.
    ("delta.appendOnly", Kind::Boolean),
    // An older name: turns on auto-compaction, whatever the value of `delta.autoOptimize.autoCompact`. Default: false.
    ("delta.autoOptimize", Kind::Boolean),
    // Small files are combined after a write that leaves many of them in a partition. `auto` and `legacy` mean the same
    // as `true`. Default: false.
    ("delta.autoOptimize.autoCompact", Kind::OneOf(&["true", "false", "auto", "legacy"])),
    // Spark shuffles the rows of a write, so that fewer and larger files are written. Default: false.
    ("delta.autoOptimize.optimizeWrite", Kind::Boolean),
    // Checkpoints contain the statistics of files as JSON. Default: true.
    ("delta.checkpoint.writeStatsAsJson", Kind::Boolean),
    // Checkpoints contain the statistics and the partition values of files as typed columns. Default: false.
    ("delta.checkpoint.writeStatsAsStruct", Kind::Boolean),
    // The number of commits after which a checkpoint is written. Default: 10.
    ("delta.checkpointInterval", Kind::Integer(1)),
    // The kind of checkpoints. `v2` adds the table feature `v2Checkpoint`: a checkpoint then consists of several files,
    // and unchanged files are used again in the next one. Default: classic.
    ("delta.checkpointPolicy", Kind::OneOf(&["classic", "v2"])),
    // Has no effect: a checkpoint is kept as long as the commits that it summarizes.
    ("delta.checkpointRetentionDuration", Kind::Interval),
    // The names of columns in the data files differ from their names in the schema, so that columns can be renamed and
    // dropped. `id` is only for new tables. Default: none.
    ("delta.columnMapping.mode", Kind::OneOf(&["none", "name", "id"])),
    // The highest id that was ever assigned to a column. Set by writers.
    ("delta.columnMapping.maxColumnId", Kind::Integer(0)),
    // Each commit updates the manifests that Presto and Athena read. Default: false.
    ("delta.compatibility.symlinkFormatManifest.enabled", Kind::Boolean),
    // The number of columns with statistics, counted from the first; -1 for all. Default: 32.
    ("delta.dataSkippingNumIndexedCols", Kind::Integer(-1)),
    // The names of the columns with statistics, separated by commas, instead of the first columns.
    ("delta.dataSkippingStatsColumns", Kind::Text),
    // How long VACUUM keeps files that were removed from the table. Default: interval 7 days.
    ("delta.deletedFileRetentionDuration", Kind::Interval),
    // How long commits are kept if dropping a feature truncates the history; at least an hour. Default: interval 24
    // hours.
    (TRUNCATED_HISTORY, Kind::Interval),
    // Commits record which rows they have changed. Default: false.
    ("delta.enableChangeDataFeed", Kind::Boolean),
    // Statements mark rows as deleted instead of rewriting whole files. Default: false.
    ("delta.enableDeletionVectors", Kind::Boolean),
    // Commits delete the part of the log that is older than `delta.logRetentionDuration`. Default: true.
    ("delta.enableExpiredLogCleanup", Kind::Boolean),
    // Has no effect.
    ("delta.enableFullRetentionRollback", Kind::Boolean),
    // Data files are written so that Iceberg readers can read them. Iceberg metadata is not written. Default: false.
    ("delta.enableIcebergCompatV1", Kind::Boolean),
    // Like `delta.enableIcebergCompatV1`, but by the rules of version 2, which allow lists and maps. Default: false.
    ("delta.enableIcebergCompatV2", Kind::Boolean),
    // Like `delta.enableIcebergCompatV1`, but by the rules of version 3, which allow deletion vectors and variants.
    // Default: false.
    ("delta.enableIcebergCompatV3", Kind::Boolean),
    // The time of a commit is recorded in the commit itself, instead of being its file's modification time. Default:
    // false.
    ("delta.enableInCommitTimestamps", Kind::Boolean),
    // Adds the table feature `materializePartitionColumns`: data files contain the partition columns too. Default:
    // false.
    (MATERIALIZE_PARTITION_COLUMNS, Kind::Boolean),
    // Each row has an id, which stays the same when the row is moved or updated. Default: false.
    ("delta.enableRowTracking", Kind::Boolean),
    // The types of columns can be changed to wider ones without rewriting files. Default: false.
    ("delta.enableTypeWidening", Kind::Boolean),
    // Other writers may shred variants, that is, store parts of them as columns of their own. deltalog reads such
    // files, and writes variants unshredded. Default: false.
    ("delta.enableVariantShredding", Kind::Boolean),
    // The time at which in-commit timestamps were enabled. Set by writers.
    ("delta.inCommitTimestampEnablementTimestamp", Kind::Integer(0)),
    // The version in which in-commit timestamps were enabled. Set by writers.
    ("delta.inCommitTimestampEnablementVersion", Kind::Integer(0)),
    // Which commits of other writers conflict with a write. With `WriteSerializable`, rows that were appended without
    // reading the table never conflict with a change of rows. Default: WriteSerializable.
    ("delta.isolationLevel", Kind::OneOf(&["Serializable", "WriteSerializable", "SnapshotIsolation"])),
    // How long commits are kept, which limits the history and time travel. Default: interval 30 days.
    ("delta.logRetentionDuration", Kind::Interval),
    // The compression codec of new data files. Default: snappy.
    (COMPRESSION, Kind::OneOf(CODECS)),
    // Has no effect: the names of new files never begin with a random prefix.
    ("delta.randomPrefixLength", Kind::Integer(1)),
    // Has no effect.
    ("delta.randomizeFilePrefixes", Kind::Boolean),
    // Checkpoints before this version are protected, because a feature was dropped. Set by writers.
    (PROTECTED_BEFORE, Kind::Integer(0)),
    // The name of the hidden column with the commit versions of moved rows. Set by writers.
    (ROW_COMMIT_VERSION_COLUMN, Kind::Text),
    // The name of the hidden column with the ids of moved rows. Set by writers.
    (ROW_ID_COLUMN, Kind::Text),
    // The value `true` is refused, because row ids cannot be suspended.
    ("delta.rowTrackingSuspended", Kind::Boolean),
    // Has no effect.
    ("delta.sampling.retries", Kind::Integer(0)),
    // How long the table remembers the progress of a stream or an application that no longer writes. If it is not set,
    // forever.
    ("delta.setTransactionRetentionDuration", Kind::Interval),
    // The size of new data files. Default: 128 MiB.
    ("delta.targetFileSize", Kind::Size),
    // Changes the default of `delta.targetFileSize` to 32 MiB, for tables whose rows are changed often. Default: false.
    ("delta.tuneFileSizesForRewrites", Kind::Boolean),
    // Must be empty: metadata of other formats is not written. If another writer has set `iceberg`, VACUUM does not
    // delete from Iceberg's directory `metadata`.
    ("delta.universalFormat.enabledFormats", Kind::Text),
    // Has no effect.
    ("delta.workloadBasedColumns.column", Kind::Text),
    // Data files contain the partition columns too, without a table feature. Default: false.
    (WRITE_PARTITION_COLUMNS, Kind::Boolean),
];

/// The property that requests the table feature `materializePartitionColumns`. The name is from the JVM implementation.
pub(crate) const MATERIALIZE_PARTITION_COLUMNS: &str = "delta.enableMaterializePartitionColumnsFeature";

/// The property that requests partition columns in data files without adding a table feature, which other writers would
/// have to support.
pub(crate) const WRITE_PARTITION_COLUMNS: &str = "delta.writePartitionColumnsToParquet";

/// Families of properties, by name prefix.
const FAMILIES: &[(&str, Kind)] = &[
    // The expression of the CHECK constraint with this name, in SQL.
    ("delta.constraints.", Kind::Text),
    // Adds a table feature when the table is created, or later by `SET TBLPROPERTIES`.
    ("delta.feature.", SUPPORTED),
    // A setting for other writers. Has no effect.
    ("delta.universalFormat.config.", Kind::Text),
];

/// Checks properties before they are set.
///
/// # Errors
/// `InvalidArgument` for an unknown name that begins with `delta.`, and for a value that the property cannot have.
pub fn check_properties(configuration: &BTreeMap<String, String>) -> Result<()> {
    for (name, value) in
        configuration.iter().filter(|(name, _)| name.to_ascii_lowercase().starts_with("delta."))
    {
        if matches!(name.as_str(), "delta.minReaderVersion" | "delta.minWriterVersion") {
            return Err(Error::invalid_argument(format!("the table property '{name}' cannot be set")).with_hint(
                "leave it out, because the protocol follows from columns and properties; request a feature \
                 with 'delta.feature.<name>' = 'supported'",
            ));
        }
        let kind = kind_of(name).ok_or_else(|| unknown(name))?;
        if !kind.allows(value) {
            return Err(Error::invalid_argument(format!("the table property '{name}' cannot be '{value}'"))
                .with_hint(format!("set it to {}", kind.description())));
        }
    }
    Ok(())
}

/// Returns the canonical spelling of the property `name`, ignoring case. If the property is unknown, returns `name`
/// itself.
pub fn spelled(name: &str) -> &str {
    KNOWN.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or(name, |(known, _)| known)
}

fn kind_of(name: &str) -> Option<Kind> {
    let exact = KNOWN.iter().find(|(known, _)| *known == name);
    let family =
        || FAMILIES.iter().find(|(prefix, _)| name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()));
    exact.or_else(family).map(|(_, kind)| *kind)
}

fn unknown(name: &str) -> Error {
    let error = Error::invalid_argument(format!("there is no table property '{name}'"));
    match nearest(name, KNOWN.iter().map(|(known, _)| *known)) {
        Some(known) => error.with_hint(format!("spell it '{known}'")),
        None => error.with_hint(
            "choose another name for a property of your own: names that begin with 'delta.' are reserved",
        ),
    }
}

/// Returns the number of milliseconds in an interval as Spark writes it, such as `interval 1 week` or
/// `30 days 12 hours`.
pub(crate) fn interval_ms(text: &str) -> Option<i64> {
    let text = text.trim().to_ascii_lowercase();
    let words: Vec<&str> = text.strip_prefix("interval").unwrap_or(&text).split_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(2) {
        return None;
    }
    words.chunks(2).try_fold(0i64, |sum, pair| {
        let [number, unit] = pair else { return None };
        let unit = match unit.strip_suffix('s').unwrap_or(unit) {
            "week" => 7 * 24 * 3_600_000,
            "day" => 24 * 3_600_000,
            "hour" => 3_600_000,
            "minute" => 60_000,
            "second" => 1000,
            "millisecond" => 1,
            _ => return None,
        };
        sum.checked_add(number.parse::<i64>().ok()?.checked_mul(unit)?)
    })
}

/// Returns the number of bytes that a string such as `134217728`, `128mb` or `1g` stands for.
pub(crate) fn byte_size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text.get(digits.len()..)?.trim() {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn check(name: &str, value: &str) -> Result<()> {
        check_properties(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn intervals() {
        assert_eq!(interval_ms("interval 1 week"), Some(604_800_000));
        assert_eq!(interval_ms("2 days 1 hour"), Some(176_400_000));
        assert_eq!(interval_ms("interval 1 month"), None);
        assert_eq!(interval_ms("interval"), None);
    }

    #[test]
    fn sizes() {
        assert_eq!(byte_size("128mb"), Some(128 << 20));
        assert_eq!(byte_size(" 1 G "), Some(1 << 30));
        for bad in ["0", "", "mb", "1tb", "-1", "99999999999g"] {
            assert_eq!(byte_size(bad), None, "{bad}");
        }
    }

    #[test]
    fn misspelled_names_are_recognized() {
        for (name, known) in [
            ("delta.appendonly", "spell it 'delta.appendOnly'"),
            ("delta.enableDeletionVector", "spell it 'delta.enableDeletionVectors'"),
            ("delta.enableChangeDateFeed", "spell it 'delta.enableChangeDataFeed'"),
            ("delta.logRetentionDurations", "spell it 'delta.logRetentionDuration'"),
            ("delta.frobnicate", "choose another name"),
        ] {
            assert!(unknown(name).hint().is_some_and(|hint| hint.starts_with(known)), "{name}");
        }
    }

    #[test]
    fn allowed_values_are_accepted() {
        for (name, value) in [
            ("delta.appendOnly", "TRUE"),
            ("delta.checkpointInterval", "1"),
            ("delta.dataSkippingNumIndexedCols", "-1"),
            ("delta.logRetentionDuration", "interval 60 days"),
            ("delta.feature.appendOnly", "supported"),
            ("delta.constraints.positive", "a > 0"),
            ("delta.isolationLevel", "serializable"),
            ("mine", "anything"),
            ("deltaX.appendOnly", "anything"),
        ] {
            assert!(check(name, value).is_ok(), "{name}={value}");
        }
    }

    #[test]
    fn refusals_name_the_allowed_values() {
        for (name, value, hint) in [
            ("delta.appendOnly", "maybe", "true or false"),
            ("delta.checkpointInterval", "0", "at least 1"),
            ("delta.dataSkippingNumIndexedCols", "-2", "at least -1"),
            ("delta.logRetentionDuration", "60", "interval 30 days"),
            ("delta.logRetentionDuration", "interval -1 days", "interval 30 days"),
            ("delta.targetFileSize", "1tb", "128mb"),
            ("delta.columnMapping.mode", "yes", "none, name, id"),
            ("delta.feature.appendOnly", "no", "supported"),
            ("delta.appendonly", "true", "'delta.appendOnly'"),
            ("Delta.appendOnly", "true", "'delta.appendOnly'"),
            ("delta.frobnicate", "true", "of your own"),
            ("delta.feature.", "supported", "of your own"),
            ("delta.minWriterVersion", "7", "delta.feature.<name>"),
        ] {
            let error = check(name, value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(hint), "{error}");
        }
    }
}
