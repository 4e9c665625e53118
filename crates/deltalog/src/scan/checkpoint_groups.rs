//! Skips row groups of a checkpoint in which no file can have a matching row, using the checkpoint's own Parquet
//! statistics of `partitionValues_parsed` and of the bounds in `stats_parsed`. (PROTOCOL, "Checkpoint Schema".)
//!
//! - A row group is treated as one large file. Its minimum is the least minimum of its files, its maximum the
//!   greatest maximum.
//! - A maximum of strings may have been truncated, unless the checkpoint's writer declares it exact, and not every
//!   writer rounds it up. The bound is therefore the greatest string that begins with this maximum. For binary
//!   columns, an inexact maximum is ignored.
//! - The maximum in a file's own statistics may also have been truncated, by a writer that replaces the rest with
//!   U+FFFD. The full value may then be greater than the greatest maximum in the row group. The greatest maximum is
//!   therefore always widened, whatever its last characters are ([`above_cut_texts`]).
//! - Bounds of floating-point columns are not used: Parquet's bounds ignore NaN, but a file may state NaN as a bound if
//!   it does not know the bound.
//! - A column is used only if, according to the counts of NULLs, every file of the row group has a value for it.
//! - A checkpoint with dates or times in the old calendar ([`crate::values::calendar`]) is not pruned.
//! - Partition values of timestamps with a zone are not used. This crate reads a value without a zone as UTC, in
//!   checkpoints and commits alike, but the checkpoint's writer may have read it in another zone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, FieldRef, Fields, Int64Type};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema_by_columns};
use parquet::basic::Type;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use super::partitions::PartitionColumns;
use super::rows::{is_ordered, without_nan};
use crate::expression::predicate::{BoundPredicate, ColumnPath, FileBounds, prune};
use crate::log::replay::RowGroupFilter;
use crate::protocol::MappedSchema;
use crate::values::calendar::may_be_old;
use crate::values::stats::{above_cut_texts, lossless, widened_max_of_structs, widened_min_of_structs};

/// A column of the predicate, and the paths of its bounds in a checkpoint.
struct Column {
    path: ColumnPath,
    data_type: DataType,
    min: Vec<String>,
    max: Vec<String>,
    /// The path of the column's NULL count; `None` for a partition column, which has no count.
    null_count: Option<Vec<String>>,
}

impl Column {
    fn paths(&self) -> impl Iterator<Item = &Vec<String>> {
        [&self.min, &self.max].into_iter().chain(&self.null_count)
    }
}

/// Returns a filter that rejects row groups in which no file can have a row for which `predicate` is true. The filter
/// adds the number of files in rejected row groups to `passed_over`.
pub(super) fn row_group_filter(
    predicate: &BoundPredicate,
    schema: &MappedSchema,
    partitions: &PartitionColumns,
    passed_over: Arc<AtomicU64>,
) -> RowGroupFilter {
    let place = |parents: &[&str], path: &[String]| {
        parents.iter().map(|name| (*name).to_owned()).chain(path.iter().cloned()).collect()
    };
    let column = |column: &crate::expression::predicate::BoundColumn| {
        let physical = schema.physical_path(column.path.parts())?;
        let is_partition = matches!(column.path.parts(), [name] if partitions.fields().find(name).is_some());
        let (path, data_type) = (column.path.clone(), column.data_type.clone());
        let is_unknown = match is_partition {
            true => matches!(data_type, DataType::Timestamp(_, Some(_))),
            false => matches!(data_type, DataType::Float32 | DataType::Float64),
        };
        if is_unknown {
            return None;
        }
        Some(if is_partition {
            let value: Vec<String> = place(&["add", "partitionValues_parsed"], &physical);
            Column { path, data_type, min: value.clone(), max: value, null_count: None }
        } else {
            let of = |kind| place(&["add", "stats_parsed", kind], &physical);
            Column {
                path,
                data_type,
                min: of("minValues"),
                max: of("maxValues"),
                null_count: Some(of("nullCount")),
            }
        })
    };
    let columns: Vec<Column> = predicate.columns().iter().filter_map(column).collect();
    let paths: HashSet<Vec<String>> = columns.iter().flat_map(Column::paths).cloned().collect();
    let predicate = predicate.clone();
    Arc::new(move |metadata, group| {
        let Some(group) = metadata.row_groups().get(group) else { return true };
        if may_be_old(metadata) {
            return true;
        }
        let leaves = Leaves::of(&paths, metadata, group);
        let bounds =
            columns.iter().map(|column| (column.path.clone(), GroupColumn::read(column, &leaves))).collect();
        let is_kept =
            prune(&predicate, &GroupBounds(bounds)).map_or(true, |keep| keep.is_empty() || keep.value(0));
        if !is_kept {
            passed_over.fetch_add(files_of(metadata, group), Ordering::Relaxed);
        }
        is_kept
    })
}

/// Returns how many rows of a row group describe files.
fn files_of(metadata: &ParquetMetaData, group: &RowGroupMetaData) -> u64 {
    let others = others_than_files(metadata, group).unwrap_or_default();
    u64::try_from(group.num_rows()).unwrap_or_default().saturating_sub(others)
}

/// Returns how many rows of a row group do not describe files; `None` if that is not known.
fn others_than_files(metadata: &ParquetMetaData, group: &RowGroupMetaData) -> Option<u64> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let path = columns.iter().position(
        |column| matches!(column.path().parts(), [root, name] if root == "add" && name == "path"),
    )?;
    group.columns().get(path)?.statistics()?.null_count_opt()
}

/// The bounds of a column in a row group, each as an array with one value.
struct GroupColumn {
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
    has_no_nulls: bool,
}

impl GroupColumn {
    fn read(column: &Column, leaves: &Leaves<'_>) -> Self {
        let leaf = |path: &[String]| leaves.find(path);
        let (min, max) = (leaf(&column.min), leaf(&column.max));
        let has_no_nulls = match &column.null_count {
            None => min.is_some(),
            Some(path) => leaf(path)
                .is_some_and(|leaf| leaf.bound(&DataType::Int64, false).is_some_and(|most| is_zero(&most))),
        };
        Self {
            min: min.and_then(|leaf| widened_min_of_structs(&leaf.bound(&column.data_type, true)?)),
            max: max.and_then(|leaf| {
                let max = leaf.above_cut(&widened_max_of_structs(&leaf.bound(&column.data_type, false)?)?)?;
                // Partition values are never truncated.
                Some(if column.null_count.is_some() { above_cut_texts(&max) } else { max })
            }),
            has_no_nulls,
        }
    }
}

fn is_zero(count: &ArrayRef) -> bool {
    let count = count.as_primitive_opt::<Int64Type>();
    count.is_some_and(|count| count.len() == 1 && count.is_valid(0) && count.value(0) == 0)
}

/// The leaf columns of a row group that a predicate needs. They are indexed because a checkpoint of a wide table has
/// tens of thousands of leaf columns.
struct Leaves<'a> {
    metadata: &'a ParquetMetaData,
    group: &'a RowGroupMetaData,
    /// The index of each column by its path. If a path occurs twice, the first index is used.
    places: HashMap<&'a [String], usize>,
    /// The fields of the needed columns.
    fields: Fields,
    /// The number of rows in the row group that do not describe files.
    others: Option<u64>,
}

impl<'a> Leaves<'a> {
    fn of(paths: &HashSet<Vec<String>>, metadata: &'a ParquetMetaData, group: &'a RowGroupMetaData) -> Self {
        let descriptor = metadata.file_metadata().schema_descr();
        let mut places = HashMap::with_capacity(paths.len());
        for (place, column) in descriptor.columns().iter().enumerate() {
            let path = column.path().parts();
            if paths.contains(path) {
                places.entry(path).or_insert(place);
            }
        }
        let needed = ProjectionMask::leaves(descriptor, places.values().copied());
        let fields = parquet_to_arrow_schema_by_columns(descriptor, needed, None);
        let fields = fields.map_or_else(|_| Fields::empty(), |schema| schema.fields);
        Self { metadata, group, places, fields, others: others_than_files(metadata, group) }
    }

    /// Returns the column at `path`; `None` if it is missing, or if a file does not have a value for it.
    fn find(&self, path: &[String]) -> Option<Leaf<'a>> {
        let index = *self.places.get(path)?;
        // Rows that do not describe files are NULL in the column. If there are more NULLs than such rows, a file lacks
        // a value.
        let nulls = self.group.columns().get(index)?.statistics()?.null_count_opt()?;
        (nulls == self.others?).then_some(())?;
        let (first, rest) = path.split_first()?;
        let mut field = self.fields.find(first)?.1;
        for name in rest {
            let DataType::Struct(fields) = field.data_type() else { return None };
            field = fields.find(name)?.1;
        }
        Some(Leaf { metadata: self.metadata, group: self.group, index, field: Arc::clone(field) })
    }
}

/// A leaf column of a checkpoint in which every file of a row group has a value.
struct Leaf<'a> {
    metadata: &'a ParquetMetaData,
    group: &'a RowGroupMetaData,
    index: usize,
    field: FieldRef,
}

impl Leaf<'_> {
    /// Returns an upper bound of all values that begin with the maximum `max`. Returns `max` itself if it is exact,
    /// or if its type is never truncated.
    fn above_cut(&self, max: &ArrayRef) -> Option<ArrayRef> {
        let statistics = self.group.columns().get(self.index)?.statistics()?;
        if statistics.max_is_exact() || statistics.physical_type() != Type::BYTE_ARRAY {
            return Some(Arc::clone(max));
        }
        let texts = max.as_string_opt::<i32>()?;
        let above = texts.iter().map(|text| text.map(|text| format!("{text}{}", char::MAX)));
        Some(Arc::new(above.collect::<StringArray>()))
    }

    /// Returns the least or the greatest value of the row group, converted to the type `to`.
    fn bound(&self, to: &DataType, least: bool) -> Option<ArrayRef> {
        is_ordered(self.metadata, self.index, &self.field).then_some(())?;
        let descriptor = self.metadata.file_metadata().schema_descr();
        let converter = StatisticsConverter::from_column_index(self.index, &self.field, descriptor).ok()?;
        let group = std::iter::once(self.group);
        let bound = if least { converter.row_group_mins(group) } else { converter.row_group_maxes(group) };
        lossless(&without_nan(bound.ok()?), to).filter(|bound| bound.len() == 1)
    }
}

/// The bounds of a row group, which is treated as a single file.
struct GroupBounds(HashMap<ColumnPath, GroupColumn>);

impl GroupBounds {
    fn find(&self, column: &ColumnPath) -> Option<&GroupColumn> {
        self.0.get(column)
    }
}

impl FileBounds for GroupBounds {
    fn num_files(&self) -> usize {
        1
    }

    fn num_records(&self) -> Option<Int64Array> {
        None
    }

    fn min(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.find(column)?.min.clone()
    }

    fn max(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.find(column)?.max.clone()
    }

    fn null_count(&self, column: &ColumnPath) -> Option<Int64Array> {
        self.find(column)?.has_no_nulls.then(|| Int64Array::from(vec![0]))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{RecordBatch, StructArray};
    use arrow::datatypes::Field;
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::ParquetMetaDataReader;
    use parquet::file::statistics::{Statistics, ValueStatistics};

    use super::*;
    use crate::expression::predicate::{ParseMode, parse};
    use crate::protocol::{ColumnMappingMode, PrimitiveType, StructField, StructType};

    /// Returns the footer of a checkpoint that lists one file for each of `maxima`, which are the maxima of the files'
    /// column `s`. If `cut` is given, the footer states it as the inexact maximum of the row group.
    fn footer(maxima: &[&str], cut: Option<&str>) -> ParquetMetaData {
        let of = |fields: Vec<(&str, ArrayRef)>| {
            let field = |of: &ArrayRef, name: &str| Arc::new(Field::new(name, of.data_type().clone(), true));
            let fields = fields.into_iter().map(|(name, of)| (field(&of, name), of));
            Arc::new(StructArray::from(fields.collect::<Vec<_>>())) as ArrayRef
        };
        let texts = |texts: Vec<&str>| Arc::new(StringArray::from(texts)) as ArrayRef;
        let no_nulls = Arc::new(Int64Array::from(vec![0; maxima.len()])) as ArrayRef;
        let stats = of(vec![
            ("minValues", of(vec![("s", texts(vec!["a"; maxima.len()]))])),
            ("maxValues", of(vec![("s", texts(maxima.to_vec()))])),
            ("nullCount", of(vec![("s", no_nulls)])),
        ]);
        let add = of(vec![("path", texts(vec!["x"; maxima.len()])), ("stats_parsed", stats)]);
        let rows = RecordBatch::try_from_iter_with_nullable([("add", add, true)]).unwrap();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let footer = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(file)).unwrap();
        let Some(cut) = cut else { return footer };
        let mut builder = footer.into_builder();
        let groups = builder.take_row_groups().into_iter().map(|group| {
            let columns = group.columns().iter().map(|column| {
                if column.column_path().parts().get(2).is_none_or(|part| part != "maxValues") {
                    return column.clone();
                }
                let [min, max] = ["a", cut].map(|text| Some(text.into()));
                let values = ValueStatistics::new(min, max, None, Some(0), false).with_max_is_exact(false);
                let statistics = Statistics::ByteArray(values);
                column.clone().into_builder().set_statistics(statistics).build().unwrap()
            });
            let columns = columns.collect();
            group.clone().into_builder().set_column_metadata(columns).build().unwrap()
        });
        let groups = groups.collect();
        builder.set_row_groups(groups).build()
    }

    fn is_kept(sql: &str, footer: &ParquetMetaData) -> bool {
        let column = StructField::new("s", PrimitiveType::String, true);
        let schema = StructType::try_new(vec![column]).unwrap();
        let schema = MappedSchema::new(schema, ColumnMappingMode::None).unwrap();
        let predicate = parse(sql, "UTC", ParseMode::Strict).unwrap().bind(schema.arrow()).unwrap();
        let partitions = PartitionColumns::new(&schema, &[]).unwrap();
        row_group_filter(&predicate, &schema, &partitions, Arc::default())(footer, 0)
    }

    /// A writer may truncate a maximum, and not all writers round it up. (Parquet, `Statistics.is_max_value_exact`.)
    #[test]
    fn a_truncated_maximum_covers_all_strings_that_begin_with_it() {
        let exact = footer(&["abcz"], None);
        assert_eq!(["s = 'abcz'", "s = 'abd'"].map(|sql| is_kept(sql, &exact)), [true, false]);
        let cut = footer(&["abcz"], Some("abc"));
        assert_eq!(["s = 'abcz'", "s = 'abd'"].map(|sql| is_kept(sql, &cut)), [true, false]);
    }

    /// If the maxima of files were truncated, the greatest maximum may come from a file that does not have the
    /// greatest value. (PROTOCOL, "Per-file Statistics".)
    #[test]
    fn the_greatest_truncated_maximum_may_not_come_from_the_greatest_string() {
        let a = "a".repeat(31);
        let footer = footer(&[&format!("{a}?\u{fffd}"), &format!("{a}b")], None);
        assert!(is_kept(&format!("s = '{a}\u{1d11e}'"), &footer));
        assert!(!is_kept("s = 'b'", &footer));
    }
}
