//! Computes the `stats` of a data file's `add` action from its Parquet footer. (PROTOCOL, "Per-file Statistics"; table
//! properties `delta.dataSkippingNumIndexedCols` and `delta.dataSkippingStatsColumns`.)
//!
//! - `numRecords` is always written. `tightBounds` is omitted, which means true.
//! - As with the JVM connector, booleans and binary columns have no minimum and maximum. Lists and maps have no
//!   `nullCount`, because the footer counts their elements instead.
//! - The maximum of a floating-point column in a Parquet footer ignores NaN, but Spark orders NaN above all other
//!   numbers. So the maximum is only written if the footer shows that the column has no NaN.

use super::footer::FooterColumns;
use super::json::{Side, value_json};
use super::tree::StatsTree;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::protocol::schema::is_variant;
use arrow::datatypes::{DataType, Fields, Schema};
use parquet::file::metadata::ParquetMetaData;
use std::collections::HashSet;

/// The columns for which statistics are collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexedColumns {
    /// All columns.
    All,
    /// The first N leaf columns in schema order, where a list or map counts as one:
    /// `delta.dataSkippingNumIndexedCols`.
    First(usize),
    /// The named columns (`delta.dataSkippingStatsColumns`). For a struct, this includes all its fields.
    Chosen(Vec<ColumnPath>),
}

/// The options of [`collect_stats`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectOptions {
    /// The columns for which statistics are collected.
    pub columns: IndexedColumns,
    /// Whether the file was just written by this crate, or by an engine on its behalf. If so, the statistics are marked
    /// as this crate's own (see `stats::origin`).
    pub is_own: bool,
}

/// Returns the statistics of the file whose footer is `metadata`, as the JSON text of `add.stats`.
///
/// `schema` is the table's schema without the partition columns, with the column names that the file uses. A column
/// that the file lacks gets no statistics.
///
/// # Errors
/// `CorruptData` if the footer has a negative number of rows.
pub fn collect_stats(
    metadata: &ParquetMetaData,
    schema: &Schema,
    options: &CollectOptions,
) -> Result<String> {
    let rows = metadata
        .row_groups()
        .iter()
        .try_fold(0i64, |sum, group| sum.checked_add(group.num_rows()).filter(|_| group.num_rows() >= 0));
    let rows = rows.ok_or_else(|| Error::corrupt_data("the footer has an invalid number of rows"))?;
    let mut stats = StatsTree::of_rows(rows);
    for column in footer_columns(metadata, indexed(schema, &options.columns)) {
        stats.set(&column);
    }
    stats.set_own(options.is_own);
    Ok(stats.text())
}

/// The known statistics of one column, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnStats {
    pub(crate) path: ColumnPath,
    pub(crate) min: Option<String>,
    pub(crate) max: Option<String>,
    pub(crate) nulls: Option<i64>,
}

/// Returns the statistics of `columns`, according to a footer. Columns that the file lacks are left out.
pub(crate) fn footer_columns(
    metadata: &ParquetMetaData,
    columns: impl IntoIterator<Item = (ColumnPath, DataType)>,
) -> impl Iterator<Item = ColumnStats> {
    let in_footer = FooterColumns::of(metadata);
    columns.into_iter().filter_map(move |(path, data_type)| {
        let column = in_footer.find(path.parts())?;
        let bound = |side| value_json(&column.extreme(&data_type, side)?, &data_type, side);
        Some(ColumnStats { nulls: column.null_count(), min: bound(Side::Min), max: bound(Side::Max), path })
    })
}

/// Returns the leaf columns of `schema`, in order: the columns that are not structs themselves and that are nested in
/// structs only. Variants are left out, because their statistics have another form.
pub fn leaf_columns(schema: &Schema) -> Vec<(ColumnPath, DataType)> {
    let mut leaves = Vec::new();
    add_leaves(schema.fields(), &mut Vec::new(), &mut leaves);
    leaves
}

fn add_leaves(fields: &Fields, parents: &mut Vec<String>, leaves: &mut Vec<(ColumnPath, DataType)>) {
    for field in fields {
        parents.push(field.name().clone());
        match field.data_type() {
            _ if is_variant(field) => {}
            DataType::Struct(children) => add_leaves(children, parents, leaves),
            leaf => leaves.push((ColumnPath::new(parents.iter().cloned()), leaf.clone())),
        }
        parents.pop();
    }
}

/// Returns the leaf columns of `schema` that `columns` selects, in the order of the schema.
pub(crate) fn indexed(schema: &Schema, columns: &IndexedColumns) -> Vec<(ColumnPath, DataType)> {
    let mut leaves = leaf_columns(schema);
    match columns {
        IndexedColumns::All => {}
        IndexedColumns::First(count) => leaves.truncate(*count),
        IndexedColumns::Chosen(chosen) => {
            let chosen: HashSet<&[String]> = chosen.iter().map(ColumnPath::parts).collect();
            let is_chosen = |path: &[String]| {
                (0..=path.len()).any(|count| path.get(..count).is_some_and(|outer| chosen.contains(outer)))
            };
            leaves.retain(|(path, _)| is_chosen(path.parts()));
        }
    }
    leaves
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Date32Array, Int32Array, RecordBatch};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
    use parquet::file::properties::WriterProperties;

    use super::*;

    #[test]
    fn bounds_of_dates_in_the_old_calendar_are_left_out() {
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![-170_000]));
        let data =
            RecordBatch::try_from_iter([("d", dates), ("n", Arc::new(Int32Array::from(vec![7])) as _)])
                .unwrap();
        let stats = |version: &str| {
            let version = KeyValue::new("org.apache.spark.version".to_owned(), version.to_owned());
            let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![version])).build();
            let mut file = Vec::new();
            let mut writer = ArrowWriter::try_new(&mut file, data.schema(), Some(properties)).unwrap();
            writer.write(&data).unwrap();
            writer.close().unwrap();
            let footer = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(file)).unwrap();
            let options = CollectOptions { columns: IndexedColumns::All, is_own: false };
            collect_stats(&footer, &data.schema(), &options).unwrap()
        };
        assert!(
            stats("3.5.0").contains("\"minValues\":{\"d\":\"1504-07-23\",\"n\":7}"),
            "{}",
            stats("3.5.0")
        );
        assert!(stats("2.4.8").contains("\"minValues\":{\"n\":7}"), "{}", stats("2.4.8"));
        assert!(stats("2.4.8").contains("\"nullCount\":{\"d\":0,\"n\":0}"), "{}", stats("2.4.8"));
    }

    /// Some writers count NULLs wrongly, so that a file might be skipped because all its rows seem to be NULL.
    #[test]
    fn impossible_numbers_of_nulls_are_treated_as_unknown() {
        use parquet::file::statistics::Statistics;

        let data =
            RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![Some(7), None])) as ArrayRef)]);
        let data = data.unwrap();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, data.schema(), None).unwrap();
        writer.write(&data).unwrap();
        writer.close().unwrap();
        let footer = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(file)).unwrap();
        let stats = |nulls: Option<u64>| {
            let mut builder = footer.clone().into_builder();
            let groups: Vec<_> = builder.take_row_groups();
            let groups = groups.into_iter().map(|group| {
                let columns = group.columns().iter().map(|column| {
                    let statistics = Statistics::int32(Some(7), Some(7), None, nulls, false);
                    column.clone().into_builder().set_statistics(statistics).build().unwrap()
                });
                let columns = columns.collect();
                group.clone().into_builder().set_column_metadata(columns).build().unwrap()
            });
            let footer = builder.set_row_groups(groups.collect()).build();
            let options = CollectOptions { columns: IndexedColumns::All, is_own: false };
            collect_stats(&footer, &data.schema(), &options).unwrap()
        };
        let bounds = "\"minValues\":{\"n\":7},\"maxValues\":{\"n\":7}";
        assert_eq!(stats(Some(1)), format!("{{\"numRecords\":2,{bounds},\"nullCount\":{{\"n\":1}}}}"));
        for unknown in [None, Some(3)] {
            assert_eq!(stats(unknown), format!("{{\"numRecords\":2,{bounds},\"nullCount\":{{}}}}"));
        }
    }
}
