//! The session's settings for the compaction of small files after a write
//! (`crate::operations::maintain::auto_compaction`).

/// The default minimum number of small files in a partition for a compaction, as in the JVM connector.
const LEAST_FILES: u64 = 50;

/// The default maximum number of partitions that are compacted after one write, as in the JVM connector.
const MOST_PARTITIONS: usize = 128;

/// The default maximum total size in bytes of the files that are compacted after one write.
const MOST_BYTES: u64 = 1 << 30;

/// Settings for the compaction after a write: whether it is done, and which files it combines.
///
/// The fields are the settings `spark.databricks.delta.autoCompact.*` of the JVM connector, with its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AutoCompaction {
    /// Whether files are compacted. This overrides the table's properties; if it is `None`, the property
    /// `delta.autoOptimize.autoCompact` or `delta.autoOptimize` decides.
    pub enabled: Option<bool>,
    /// The maximum size of new files in bytes. If it is `None`, the table's property `delta.targetFileSize` applies, or
    /// 128 MiB if that is not set either.
    pub target_size: Option<u64>,
    /// Files below this size in bytes are small. If it is `None`, the limit is half of the maximum size of new files.
    pub small_size: Option<u64>,
    /// The minimum number of small files in a partition for a compaction.
    pub least_files: u64,
    /// The maximum number of partitions that are compacted after one write. Partitions with the most small files come
    /// first.
    pub most_partitions: usize,
    /// The maximum total size in bytes of the files that are compacted after one write. The first new file is written
    /// even if the files that it combines exceed this limit.
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
