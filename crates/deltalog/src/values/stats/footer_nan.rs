//! Finds the floating-point columns of a Parquet file that have no NaN, from the footer of the file.
//!
//! The bounds of a column chunk leave NaN out, so that a maximum bounds the rows only if the column has no NaN: Spark
//! orders NaN above all other numbers. Two writers let this be known:
//!
//! - **Our own** lists the leaf columns with a NaN under the key [`NANS`], a JSON array of their numbers. The list is
//!   trusted only in a file that names this crate as its writer (`created_by`): other programs copy the keys of files
//!   that they read to files that they write.
//! - **Spark's**, which is parquet-mr, compares with Java's `Double.compare`, for which NaN is the greatest number too.
//!   A maximum that is a number is therefore the maximum of all values, even of a page. This holds from 1.10, which
//!   brought that order, to 1.17; later releases may count NaN apart from the bounds. Tools that rewrite or merge files
//!   copy other writers' bounds under the name of parquet-mr. So the key of Spark's version must be there, too, and
//!   none that such tools leave: the name of the first writer, or the schema that a writer of Arrow has added.

use std::collections::BTreeSet;

use parquet::file::metadata::ParquetMetaData;

/// The key of the list of columns with NaN in a footer.
pub(crate) const NANS: &str = "deltalog.nan";

/// The beginning of the name under which this crate writes files.
const OURS: &str = "deltalog version ";

/// The versions of parquet-mr, all `1.x`, whose maxima are NaN if there is one.
const PARQUET_MR: std::ops::RangeInclusive<u32> = 10..=17;

/// Keys that a file of Spark itself does not have: the key of parquet-mr's rewriter, and the key of Arrow's
/// writers.
const OF_OTHERS: [&str; 2] = ["original.created.by", "ARROW:schema"];

/// How the writer of a file treats NaN in statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnownNans {
    /// Unknown: every column may have NaN.
    Nothing,
    /// Only these leaf columns have NaN. Leaf columns inside lists and maps are not examined.
    Only(BTreeSet<usize>),
    /// A column chunk or a page whose maximum is a number has no NaN.
    ByMaximum,
}

impl KnownNans {
    /// Reads the information about NaN in a footer.
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

    /// Returns whether a piece of a leaf column, whose maximum is a number or not, certainly has no NaN.
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
    fn only_known_writers_tell() {
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
