//! Determines which floating-point columns of a Parquet file have no NaN, from the file's footer.
//!
//! The bounds of a column chunk ignore NaN, but Spark orders NaN above all other numbers. So the maximum is an upper
//! bound for all rows only if the column has no NaN. The files of two writers show whether a column has NaN:
//!
//! - **This crate** lists the leaf columns that contain NaN under the key [`NANS`], as a JSON array of column numbers.
//!   The list is only trusted if the file names this crate as its writer (`created_by`), because other programs copy
//!   keys from the files that they read to the files that they write.
//! - **Spark** uses parquet-mr, which compares with Java's `Double.compare`, in which NaN is the greatest number, too.
//!   So if the maximum is a number, it is the maximum of all values, also for a single page. This holds for the
//!   versions from 1.10, which introduced this order, to 1.17; later releases may not count NaN in the bounds. Tools
//!   that rewrite or merge files copy the bounds of other writers into files that name parquet-mr as the writer. So the
//!   footer must also have the key with Spark's version, and none of the keys that such tools leave: the name of the
//!   original writer, or the schema that an Arrow writer has added.

use std::collections::BTreeSet;

use parquet::file::metadata::ParquetMetaData;

/// The key in the footer for the list of columns with NaN.
pub(crate) const NANS: &str = "deltalog.nan";

/// The prefix of the name that this crate writes to `created_by`.
const OURS: &str = "deltalog version ";

/// The minor versions of parquet-mr 1.x whose maxima are NaN if there is a NaN.
const PARQUET_MR: std::ops::RangeInclusive<u32> = 10..=17;

/// Keys that files written by Spark itself never have: the key of parquet-mr's rewriter, and the key of Arrow writers.
const OF_OTHERS: [&str; 2] = ["original.created.by", "ARROW:schema"];

/// What the footer of a file shows about NaN in its columns, depending on the file's writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnownNans {
    /// Nothing is known, so every column may have NaN.
    Nothing,
    /// Only these leaf columns contain NaN. Leaf columns inside lists and maps were not examined.
    Only(BTreeSet<usize>),
    /// If the maximum of a column chunk or page is a number, the chunk or page has no NaN.
    ByMaximum,
}

impl KnownNans {
    /// Reads the information about NaN from a footer.
    pub(crate) fn of(metadata: &ParquetMetaData) -> Self {
        let file = metadata.file_metadata();
        let value = |key: &str| {
            let mut pairs = file.key_value_metadata()?.iter();
            pairs.find(|pair| pair.key == key).map(|pair| pair.value.as_deref().unwrap_or_default())
        };
        let created_by = file.created_by().unwrap_or_default();
        if created_by.starts_with(OURS) {
            let listed = value(NANS).and_then(|list| serde_json::from_str(list).ok());
            return listed.map_or(Self::Nothing, Self::Only);
        }
        let minor = created_by.strip_prefix("parquet-mr version 1.").and_then(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest.get(..end)?.parse().ok()
        });
        match minor.is_some_and(|minor: u32| PARQUET_MR.contains(&minor))
            && value("org.apache.spark.version").is_some()
            && OF_OTHERS.iter().all(|key| value(key).is_none())
        {
            true => Self::ByMaximum,
            false => Self::Nothing,
        }
    }

    /// Returns whether the file's writer is known, so that the footer shows which columns have no NaN.
    pub(crate) fn is_of_known_writer(&self) -> bool {
        *self != Self::Nothing
    }

    /// Returns whether a part of a leaf column certainly has no NaN, given whether its maximum is a number.
    pub(crate) fn has_none(&self, leaf: usize, has_maximum: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Only(leaves) => !leaves.contains(&leaf),
            Self::ByMaximum => has_maximum,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, RecordBatch};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_writer::ArrowWriterOptions;
    use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
    use parquet::file::properties::WriterProperties;

    use super::*;

    fn known(created_by: &str, pairs: &[(&str, &str)]) -> KnownNans {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        let rows = RecordBatch::try_from_iter([("f", numbers)]).unwrap();
        let pairs = pairs.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
        let properties = WriterProperties::builder()
            .set_created_by(created_by.to_owned())
            .set_key_value_metadata(Some(pairs.collect()))
            .build();
        let mut file = Vec::new();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(&mut file, rows.schema(), options).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        KnownNans::of(&ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(file)).unwrap())
    }

    #[test]
    fn only_files_of_known_writers_show_that_there_is_no_nan() {
        let spark = ("org.apache.spark.version", "4.3.0");
        let ours = (NANS, "[1]");
        let mr = |version: &str| format!("parquet-mr version {version} (build abc)");
        assert_eq!(known("deltalog version 0.1.0", &[ours]), KnownNans::Only(BTreeSet::from([1])));
        assert_eq!(known("deltalog version 0.1.0", &[]), KnownNans::Nothing);
        assert_eq!(known("deltalog version 0.1.0", &[(NANS, "none")]), KnownNans::Nothing);
        assert_eq!(known("parquet-cpp-arrow version 26.0.1", &[ours]), KnownNans::Nothing);
        assert_eq!(known("parquet-cpp-arrow version 26.0.1", &[spark]), KnownNans::Nothing);
        for (version, expected) in [
            ("1.9.0", KnownNans::Nothing),
            ("1.10.0", KnownNans::ByMaximum),
            ("1.17.0", KnownNans::ByMaximum),
            ("1.18.0", KnownNans::Nothing),
            ("1.100.0", KnownNans::Nothing),
            ("2.12.0", KnownNans::Nothing),
        ] {
            assert_eq!(known(&mr(version), &[spark]), expected, "{version}");
        }
        assert_eq!(known(&mr("1.17.0"), &[]), KnownNans::Nothing);
        for of_others in
            [("original.created.by", "parquet-cpp-arrow version 26.0.1"), ("ARROW:schema", "/////w==")]
        {
            assert_eq!(known(&mr("1.15.0"), &[spark, of_others]), KnownNans::Nothing, "{of_others:?}");
        }
    }
}
