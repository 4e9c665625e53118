//! The settings of a session for the compaction after a write, which `crate::operations::maintain::auto_compaction`
//! carries out.

/// The minimum number of small files in a partition for which they are compacted, as in the JVM connector.
const LEAST_FILES: u64 = 50;

/// The maximum number of partitions that are compacted after one write, as in the JVM connector.
const MOST_PARTITIONS: usize = 128;

/// The maximum total size in bytes of the files that are compacted after one write.
const MOST_BYTES: u64 = 1 << 30;

/// Whether small files are compacted after a write, which of them, and how many.
///
/// The fields are the settings `spark.databricks.delta.autoCompact.*` of the JVM connector, with its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AutoCompaction {
    /// Whether files are compacted, which overrides the table's properties; `None` if these decide:
    /// `delta.autoOptimize.autoCompact`, or `delta.autoOptimize`.
    pub enabled: Option<bool>,
    /// The maximum size of new files in bytes; `None` for the table's own (`delta.targetFileSize`, else
    /// 128 MiB).
    pub target_size: Option<u64>,
    /// The size in bytes below which a file is small; `None` for half of the target size.
    pub small_size: Option<u64>,
    /// The minimum number of small files in a partition for which they are compacted.
    pub least_files: u64,
    /// The maximum number of partitions that are compacted after one write. Those with the most small files come first.
    pub most_partitions: usize,
    /// The maximum total size in bytes of the files that are compacted after one write. At least one new file is
    /// written in any case.
    pub most_bytes: u64,
}

impl Default for AutoCompaction {
    fn default() -> Self {
        Self {
            enabled: None,
            target_size: None,
            small_size: None,
            least_files: LEAST_FILES,
            most_partitions: MOST_PARTITIONS,
            most_bytes: MOST_BYTES,
        }
    }
}
