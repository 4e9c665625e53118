//! How a session wants data files to be encoded. `crate::write` encodes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How data files are encoded. Where a field is not set, the table's properties or the defaults apply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct FileFormat {
    /// The codec: `none`, `snappy`, `gzip`, `brotli`, `lz4`, `lz4_raw` or `zstd`, in any case.
    pub compression: Option<String>,
    /// The level of the codecs `gzip`, `brotli` and `zstd`.
    pub compression_level: Option<i32>,
    /// The maximum number of rows in a row group.
    pub row_group_rows: Option<usize>,
    /// The maximum size of a page in bytes, before compression.
    pub data_page_bytes: Option<usize>,
    /// The maximum number of rows in a page.
    pub data_page_rows: Option<usize>,
    /// The maximum size of a dictionary in bytes.
    pub dictionary_page_bytes: Option<usize>,
    /// The number of values after which the limits of pages are checked.
    pub batch_rows: Option<usize>,
    /// The length to which bounds of texts and bytes are cut off in the file's own statistics.
    pub statistics_length: Option<usize>,
    /// How columns are encoded.
    pub default_column: ColumnFormat,
    /// How single columns are encoded, by their paths (`struct.field`); where they set nothing, the settings for all
    /// columns apply.
    pub columns: BTreeMap<String, ColumnFormat>,
}

/// How a column of data files is encoded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ColumnFormat {
    /// Whether values are put into a dictionary.
    pub dictionary: Option<bool>,
    /// Which statistics the file has: `none`, `chunk` or `page`, in any case. Columns whose bounds are in the log
    /// have at least statistics of chunks, because the log takes them from there.
    pub statistics: Option<String>,
    /// The encoding of values outside of dictionaries, by Parquet's name, such as `DELTA_BINARY_PACKED`.
    pub encoding: Option<String>,
    /// Whether there is a Bloom filter.
    pub bloom_filter: Option<bool>,
    /// The rate of false positives of the Bloom filter.
    pub bloom_filter_fpp: Option<f64>,
    /// The number of distinct values that the Bloom filter is made for.
    pub bloom_filter_ndv: Option<u64>,
}
