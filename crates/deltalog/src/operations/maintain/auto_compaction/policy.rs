//! Decides whether compaction is requested by the table or the session, and which files are compacted.
//!
//! | question | the session's setting | default |
//! | --- | --- | --- |
//! | requested? | `enabled` | whether `delta.autoOptimize` or `delta.autoOptimize.autoCompact` requests it |
//! | the target size | `target_size` | the table's target size |
//! | the size below which files are small | `small_size` | half of the target size |

use crate::operations::maintain::optimize::SmallFiles;
use crate::protocol::Metadata;
use crate::runtime::environment::AutoCompaction;

/// The values of `delta.autoOptimize.autoCompact` that request compaction. `auto` and `legacy` are values that
/// Databricks defines; the target size is the same for all values.
const ASKING: [&str; 3] = ["true", "auto", "legacy"];

/// Returns whether the session requests compaction or, if it has no setting, whether the table does.
pub(super) fn is_asked_for(metadata: &Metadata, settings: &AutoCompaction) -> bool {
    let asks = |value: &str| ASKING.iter().any(|word| value.trim().eq_ignore_ascii_case(word));
    settings.enabled.unwrap_or_else(|| {
        metadata.is_enabled("delta.autoOptimize")
            || metadata.property("delta.autoOptimize.autoCompact").is_some_and(asks)
    })
}

/// Returns which files are compacted in a table whose target file size is `table_size` bytes.
pub(super) fn small_files(table_size: u64, settings: &AutoCompaction) -> SmallFiles {
    let target_size = settings.target_size.unwrap_or(table_size);
    SmallFiles {
        small_size: settings.small_size.unwrap_or(target_size / 2),
        target_size,
        least_files: settings.least_files,
        most_partitions: settings.most_partitions,
        most_bytes: settings.most_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Format;

    fn metadata(properties: &[(&str, &str)]) -> Metadata {
        Metadata {
            id: "id".into(),
            name: None,
            description: None,
            format: Format::default(),
            schema_string: String::new(),
            partition_columns: Vec::new(),
            created_time: None,
            configuration: properties.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        }
    }

    /// As in the JVM connector, the session's setting takes precedence, followed by the old property if it is true,
    /// and then by the new property.
    #[test]
    fn the_session_decides_before_the_table() {
        let (old, new) = ("delta.autoOptimize", "delta.autoOptimize.autoCompact");
        for (properties, by_table) in [
            (&[][..], false),
            (&[(new, "true")], true),
            (&[(new, " Auto ")], true),
            (&[(new, "legacy")], true),
            (&[(new, "false")], false),
            (&[(new, "sometimes")], false),
            (&[(old, "TRUE")], true),
            (&[(old, "true"), (new, "false")], true),
            (&[(old, "false"), (new, "true")], true),
            (&[(old, "false")], false),
        ] {
            let metadata = metadata(properties);
            for enabled in [None, Some(true), Some(false)] {
                let settings = AutoCompaction { enabled, ..AutoCompaction::default() };
                let expected = enabled.unwrap_or(by_table);
                assert_eq!(is_asked_for(&metadata, &settings), expected, "{properties:?} {enabled:?}");
            }
        }
    }

    #[test]
    fn sizes_follow_from_the_target_size() {
        let with = |target_size, small_size| {
            let settings = AutoCompaction { target_size, small_size, ..AutoCompaction::default() };
            let small = small_files(100, &settings);
            (small.small_size, small.target_size)
        };
        assert_eq!(with(None, None), (50, 100));
        assert_eq!(with(Some(20), None), (10, 20));
        assert_eq!(with(None, Some(7)), (7, 100));
    }
}
