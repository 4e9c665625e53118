//! A list of the files that one worker has written, as plain data.
//!
//! ```text
//! {"format": 2, "write": "6f1c…", "files": [
//!   {"path": "6f1c…/day=2024-01-01/part-00000-….parquet", "size": 5120, "modificationTime": 1704067200000,
//!    "rows": 100, "partitionValues": {"day": "2024-01-01"}, "stats": "{\"numRecords\":100,…}"}]}
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::expression::constraints::Counted;
use crate::protocol::Add;
use crate::runtime::passed_text;
use crate::values::stats::num_records;

/// The files that one worker has written as part of a write.
///
/// - Paths are relative to the table's root, and spelled as the log spells them.
/// - A fragment contains no credentials and no open files, so it may be stored, or sent as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fragment {
    format: u32,
    write: String,
    files: Vec<FragmentFile>,
    /// The values that the worker has assigned to identity columns, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counted: Option<Counted>,
}

/// A file of a [`Fragment`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct FragmentFile {
    /// The path of the file, relative to the table's root and percent-encoded as in the log.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// The time at which the file was written, in milliseconds since the epoch.
    pub modification_time: i64,
    /// The number of rows.
    pub rows: u64,
    /// The value of each partition column, as the log spells it. The keys are the physical names of the columns.
    pub partition_values: BTreeMap<String, Option<String>>,
    /// The statistics as JSON text. (PROTOCOL, "Per-file Statistics".)
    pub stats: String,
}

impl Fragment {
    /// The version of the serialized format of tasks and fragments. All processes of a write must use the same
    /// version.
    pub(super) const FORMAT: u32 = 2;

    /// Creates a fragment that contains `files`. `write` is the id of the write to which they belong.
    pub(crate) fn new(write: &str, files: Vec<Add>, counted: Option<Counted>) -> Result<Self> {
        let files = files.into_iter().map(FragmentFile::of).collect::<Result<_>>()?;
        Ok(Self { format: Self::FORMAT, write: write.to_owned(), files, counted })
    }

    /// Parses a string that [`Fragment::to_json`] has returned.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for any other string, including one from another version of this crate.
    pub fn from_json(json: &str) -> Result<Self> {
        passed_text::parse(json, "a write fragment", Self::FORMAT)
    }

    /// Serializes the fragment for other processes.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the fragment cannot be represented in JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| {
            Error::invalid_argument("the fragment of the write cannot be serialized").with_source(error)
        })
    }

    /// Returns the id of the write to which the files belong.
    pub fn write_id(&self) -> &str {
        &self.write
    }

    /// Returns the files.
    pub fn files(&self) -> &[FragmentFile] {
        &self.files
    }

    /// Returns the values that the worker has assigned to identity columns, if any.
    pub(super) fn counted(&self) -> Option<&Counted> {
        self.counted.as_ref()
    }

    /// Returns the total number of rows in the files.
    pub fn num_rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).fold(0, u64::saturating_add)
    }

    /// Returns the total size of the files in bytes.
    pub fn size_in_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).fold(0, u64::saturating_add)
    }
}

impl FragmentFile {
    fn of(add: Add) -> Result<Self> {
        let invalid = |what: &str| Error::invalid_argument(what).at_path(&add.path);
        let stats = add.stats.clone().ok_or_else(|| invalid("the file of a fragment has no statistics"))?;
        Ok(Self {
            size: u64::try_from(add.size).map_err(|_| invalid("the file of a fragment has no size"))?,
            rows: num_records(&stats)
                .ok_or_else(|| invalid("the statistics of the file do not have a number of rows"))?,
            stats,
            path: add.path,
            modification_time: add.modification_time,
            partition_values: add.partition_values.into_iter().collect(),
        })
    }
}
