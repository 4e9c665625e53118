//! The session's settings for the encoding of data files. `crate::write` uses them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How data files are encoded. If a field is not set, the table's property or the default applies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct FileFormat {
    /// The compression codec: `none`, `snappy`, `gzip`, `brotli`, `lz4`, `lz4_raw` or `zstd`. Case is ignored.
    pub compression: Option<String>,
    /// The compression level for the codecs `gzip`, `brotli` and `zstd`.
    pub compression_level: Option<i32>,
    /// The maximum number of rows in a row group.
    pub row_group_rows: Option<usize>,
    /// The maximum size of a page in bytes, before it is compressed.
    pub data_page_bytes: Option<usize>,
    /// The maximum number of rows in a page.
    pub data_page_rows: Option<usize>,
    /// The maximum size of a dictionary in bytes.
    pub dictionary_page_bytes: Option<usize>,
    /// The number of values that are written between two checks of whether a page has reached its limits.
    pub batch_rows: Option<usize>,
    /// The maximum length of the bounds of strings and bytes in the file's own statistics. Longer bounds are truncated.
    pub statistics_length: Option<usize>,
    /// The settings for all columns.
    pub default_column: ColumnFormat,
    /// The settings for single columns, by path (`struct.field`). If a column's own settings leave a field unset, the
    /// settings for all columns apply.
    pub columns: BTreeMap<String, ColumnFormat>,
}

/// How a column of data files is encoded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ColumnFormat {
    /// Whether values are put into a dictionary.
    pub dictionary: Option<bool>,
    /// Which statistics the file has: `none`, `chunk` or `page`. Case is ignored. Columns whose bounds are recorded in
    /// the log have at least `chunk`, because the log takes the bounds from there.
    pub statistics: Option<String>,
    /// The encoding of values that are not in a dictionary, by its name in Parquet, such as `DELTA_BINARY_PACKED`.
    pub encoding: Option<String>,
    /// Whether there is a Bloom filter.
    pub bloom_filter: Option<bool>,
    /// The false positive rate of the Bloom filter.
    pub bloom_filter_fpp: Option<f64>,
    /// The number of distinct values for which the Bloom filter is sized.
    pub bloom_filter_ndv: Option<u64>,
}
