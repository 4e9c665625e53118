//! Which row groups of a file may hold a matching row, by the statistics of its footer.
//!
//! - A bound counts only if the order it was found by is that of the values: not for INT96, unsigned and half-precision numbers, nor, for bytes, in
//!   the deprecated form. NaN is no bound.
//! - A column that the file does not have is NULL in every row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type, Int64Type, SchemaRef};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{ColumnOrder, Type};
use parquet::file::metadata::ParquetMetaData;

use super::columns::Columns;
use super::convert::{convert, is_convertible};
use super::plan::find_in_file;
use crate::error::Result;
use crate::predicate::{BoundPredicate, ColumnPath, FileBounds, prune};

/// The row groups of a file that must be read for `predicate`, which is on `table`. `schema` is the file's, `partition` one row with the file's partition values.
///
/// # Errors
/// `CorruptData` if a name is ambiguous in the file.
pub(super) fn matching_groups(
    predicate: &BoundPredicate,
    table: &Columns,
    metadata: &ParquetMetaData,
    schema: &SchemaRef,
    partition: &RecordBatch,
) -> Result<Vec<usize>> {
    let mut columns = Vec::with_capacity(predicate.columns().len());
    for column in predicate.columns() {
        columns.push((column.path.clone(), column.data_type.clone(), place(&column.path, table, schema, partition)?));
    }
    let keep = prune(predicate, &GroupBounds { metadata, columns })?;
    Ok((0..metadata.num_row_groups()).filter(|group| keep.is_valid(*group) && keep.value(*group)).collect())
}

/// Where the values of a column come from.
enum Place {
    /// The same value, an array of one, in all rows.
    Partition(ArrayRef),
    /// A leaf column of the file.
    Leaf(usize, FieldRef),
    /// Not in the file.
    Missing,
    /// In the file, but no leaf outside of lists and maps.
    Other,
}

fn place(path: &ColumnPath, table: &Columns, schema: &SchemaRef, partition: &RecordBatch) -> Result<Place> {
    if let [name] = path.parts()
        && let Some(value) = partition.column_by_name(name)
    {
        return Ok(Place::Partition(Arc::clone(value)));
    }
    let (mut fields, mut leaf) = (schema.fields(), 0);
    let mut found: Option<&FieldRef> = None;
    let Some(on_the_way) = table.in_files(path.parts()) else { return Ok(Place::Other) };
    for in_files in &on_the_way {
        if let Some(outer) = found {
            let DataType::Struct(inner) = outer.data_type() else { return Ok(Place::Other) };
            fields = inner;
        }
        let Some((field, before)) = find_in_file(fields, in_files, &path.to_string())? else { return Ok(Place::Missing) };
        leaf += before;
        found = Some(field);
    }
    Ok(match found {
        Some(field) if !field.data_type().is_nested() => Place::Leaf(leaf, Arc::clone(field)),
        _ => Place::Other,
    })
}

/// The row groups of a file, as files.
struct GroupBounds<'a> {
    metadata: &'a ParquetMetaData,
    columns: Vec<(ColumnPath, DataType, Place)>,
}

impl GroupBounds<'_> {
    fn find(&self, path: &ColumnPath) -> Option<(&DataType, &Place)> {
        self.columns.iter().find(|(known, ..)| known == path).map(|(_, data_type, place)| (data_type, place))
    }

    fn converter<'a>(&'a self, leaf: usize, field: &'a FieldRef) -> Option<StatisticsConverter<'a>> {
        let converter = StatisticsConverter::from_column_index(leaf, field, self.metadata.file_metadata().schema_descr()).ok()?;
        Some(converter.with_missing_null_counts_as_zero(false))
    }

    /// A bound of each row group in the table's type. What cannot be had is not known, which is always right.
    fn bound(&self, path: &ColumnPath, of: impl Fn(&StatisticsConverter<'_>) -> Option<ArrayRef>) -> Option<ArrayRef> {
        let (data_type, place) = self.find(path)?;
        match place {
            Place::Partition(value) => take(value, &UInt32Array::from(vec![0; self.num_files()]), None).ok(),
            Place::Leaf(leaf, field) if is_ordered(self.metadata, *leaf, field) && is_convertible(field.data_type(), data_type) => {
                convert(&without_nan(of(&self.converter(*leaf, field)?)?), data_type).ok()
            }
            _ => None,
        }
    }
}

/// Whether minimum and maximum of a leaf can be believed.
pub(in crate::scan) fn is_ordered(metadata: &ParquetMetaData, leaf: usize, field: &FieldRef) -> bool {
    let Some(descriptor) = metadata.file_metadata().schema_descr().columns().get(leaf) else { return false };
    let data_type = field.data_type();
    match descriptor.physical_type() {
        _ if data_type.is_unsigned_integer() || data_type == &DataType::Float16 => false,
        Type::INT96 => false,
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => {
            let order = metadata.file_metadata().column_orders().and_then(|orders| orders.get(leaf));
            let statistics = metadata.row_groups().iter().filter_map(|group| group.columns().get(leaf)?.statistics());
            matches!(order, Some(ColumnOrder::TYPE_DEFINED_ORDER(_))) && !statistics.into_iter().any(|s| s.is_min_max_deprecated())
        }
        _ => true,
    }
}

/// `bounds` with NULL for NaN.
pub(in crate::scan) fn without_nan(bounds: ArrayRef) -> ArrayRef {
    match bounds.data_type() {
        DataType::Float32 => Arc::new(bounds.as_primitive::<Float32Type>().unary_opt::<_, Float32Type>(|v| (!v.is_nan()).then_some(v))),
        DataType::Float64 => Arc::new(bounds.as_primitive::<Float64Type>().unary_opt::<_, Float64Type>(|v| (!v.is_nan()).then_some(v))),
        _ => bounds,
    }
}

impl FileBounds for GroupBounds<'_> {
    fn num_files(&self) -> usize {
        self.metadata.num_row_groups()
    }

    fn num_records(&self) -> Option<Int64Array> {
        Some(self.metadata.row_groups().iter().map(|group| group.num_rows()).collect::<Vec<_>>().into())
    }

    fn min(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.bound(column, |converter| converter.row_group_mins(self.metadata.row_groups()).ok())
    }

    fn max(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.bound(column, |converter| converter.row_group_maxes(self.metadata.row_groups()).ok())
    }

    fn null_count(&self, column: &ColumnPath) -> Option<Int64Array> {
        match self.find(column)?.1 {
            Place::Partition(value) if value.is_valid(0) => Some(Int64Array::from(vec![0; self.num_files()])),
            Place::Partition(_) | Place::Missing => self.num_records(),
            Place::Leaf(leaf, field) => {
                let counts = self.converter(*leaf, field)?.row_group_null_counts(self.metadata.row_groups()).ok()?;
                Some(counts.unary_opt::<_, Int64Type>(|count| i64::try_from(count).ok()))
            }
            Place::Other => None,
        }
    }
}
