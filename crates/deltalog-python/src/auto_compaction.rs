//! The settings of a Spark session for the compaction of small files after a write.

use deltalog::AutoCompaction as Settings;
use pyo3::prelude::*;

/// The settings, with the fields of `deltalog.spark.write.compaction.AutoCompaction`. Sizes are in bytes.
#[derive(FromPyObject)]
pub(crate) struct AutoCompaction {
    enabled: Option<bool>,
    max_file_size: Option<u64>,
    min_file_size: Option<u64>,
    min_num_files: Option<u64>,
    max_num_partitions: Option<usize>,
}

impl From<AutoCompaction> for Settings {
    fn from(given: AutoCompaction) -> Self {
        let mut settings = Self::default();
        settings.enabled = given.enabled;
        settings.target_size = given.max_file_size;
        settings.small_size = given.min_file_size;
        settings.least_files = given.min_num_files.unwrap_or(settings.least_files);
        settings.most_partitions = given.max_num_partitions.unwrap_or(settings.most_partitions);
        settings
    }
}
