//! The locations of a predicate's columns in a file, and their bounds if these are reliable.
//!
//! - A bound is used only if it was computed in the order in which values are compared. This excludes bounds of
//!   INT96, unsigned and half-precision numbers, and bounds of bytes in the deprecated fields. A NaN is not used as a
//!   bound.
//! - A maximum of floating-point numbers covers NaN only if the footer shows that there is no NaN ([`KnownNans`]).
//! - A column that the file lacks is NULL in every row.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, UInt32Array, UInt64Array,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type, Int64Type, SchemaRef};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{ColumnOrder, Type};
use parquet::file::metadata::ParquetMetaData;

use super::columns::{Columns, FileFields};
use crate::error::Result;
use crate::expression::predicate::{BoundColumn, BoundPredicate, ColumnPath};
use crate::values::calendar::FileCalendar;
use crate::values::conversion::{Misfit, convert, is_convertible};
use crate::values::stats::{KnownNans, without_nan as without_nan_in};

/// The location of each column that a predicate reads.
#[derive(Debug)]
pub(super) struct Places {
    columns: Vec<(DataType, Place)>,
    /// The index of each column, by its path.
    by_path: HashMap<ColumnPath, usize>,
    nans: KnownNans,
}

/// The location of a column's values in a file.
#[derive(Debug)]
pub(super) enum Place {
    /// The same value in all rows, as an array with one value.
    Partition(ArrayRef),
    /// A leaf column of the file.
    Leaf(usize, FieldRef),
    /// The column is not in the file.
    Missing,
    /// The column is in the file but has no usable bounds, because it is nested, is inside of a list or map, or has
    /// values in the old calendar.
    Other,
}

fn place(
    column: &BoundColumn,
    (table, names): (&Columns, &FileFields<'_>),
    (in_file, calendar): (&FileFields<'_>, &FileCalendar),
    partition: &RecordBatch,
) -> Result<Place> {
    let path = &column.path;
    if let [name] = path.parts()
        && let Some(value) = partition.column_by_name(name)
    {
        return Ok(Place::Partition(Arc::clone(value)));
    }
    if column.data_type == DataType::Null {
        return Ok(Place::Missing);
    }
    let mut leaf = 0;
    let mut found: Option<&FieldRef> = None;
    let Some(path_fields) = table.in_files(names, path.parts()) else { return Ok(Place::Other) };
    for in_files in &path_fields {
        let full_name = path.to_string();
        let here = match found.map(|outer| outer.data_type()) {
            None => in_file.find(in_files, &full_name)?,
            Some(DataType::Struct(inner)) => FileFields::new(inner).find(in_files, &full_name)?,
            Some(_) => return Ok(Place::Other),
        };
        let Some((field, before)) = here else { return Ok(Place::Missing) };
        leaf += before;
        found = Some(field);
    }
    Ok(match found {
        Some(field) if calendar.rebase(leaf, field.data_type(), &column.data_type).is_some() => Place::Other,
        Some(field) if !field.data_type().is_nested() => Place::Leaf(leaf, Arc::clone(field)),
        _ => Place::Other,
    })
}

impl Places {
    /// Finds the columns that `predicate` reads in a file with this schema, calendar and footer. `table` has the
    /// table's columns, and `partition` is one row with the file's partition values.
    ///
    /// # Errors
    /// `CorruptData` if a name is ambiguous in the file.
    pub(super) fn new(
        predicate: &BoundPredicate,
        table: &Columns,
        file: (&SchemaRef, &FileCalendar),
        metadata: &ParquetMetaData,
        partition: &RecordBatch,
    ) -> Result<Self> {
        let (schema, calendar) = file;
        let (names, in_file) = (table.of_table(), FileFields::new(schema.fields()));
        let place = |column: &BoundColumn| {
            let place = place(column, (table, &names), (&in_file, calendar), partition)?;
            Ok((column.data_type.clone(), place))
        };
        let columns = predicate.columns().iter().map(place).collect::<Result<_>>()?;
        let paths = predicate.columns().iter().map(|column| column.path.clone());
        let by_path = paths.enumerate().map(|(at, path)| (path, at)).collect();
        Ok(Self { columns, by_path, nans: KnownNans::of(metadata) })
    }

    pub(super) fn find(&self, path: &ColumnPath) -> Option<(&DataType, &Place)> {
        self.columns.get(*self.by_path.get(path)?).map(|(data_type, place)| (data_type, place))
    }

    /// Returns the leaf columns.
    pub(super) fn leaves(&self) -> impl Iterator<Item = usize> {
        self.columns
            .iter()
            .filter_map(|(_, place)| if let Place::Leaf(leaf, _) = place { Some(*leaf) } else { None })
    }

    /// Returns whether there are page bounds for at least one of the columns in at least one of `groups`.
    pub(super) fn have_pages(&self, metadata: &ParquetMetaData, groups: &[usize]) -> bool {
        let groups = groups.iter().filter_map(|group| metadata.row_groups().get(*group));
        let mut chunks = groups.flat_map(|group| self.leaves().filter_map(|leaf| group.columns().get(leaf)));
        chunks.any(|chunk| chunk.column_index_offset().is_some() && chunk.offset_index_offset().is_some())
    }

    /// Returns the bounds of `count` pieces of the file, which are row groups or pages, in the table's type. Bounds
    /// that cannot be obtained are unknown, which is always safe.
    pub(super) fn bounds(
        &self,
        path: &ColumnPath,
        count: usize,
        metadata: &ParquetMetaData,
        of_leaf: impl Fn(&StatisticsConverter<'_>) -> Option<ArrayRef>,
    ) -> Option<ArrayRef> {
        let (data_type, place) = self.find(path)?;
        match place {
            Place::Partition(value) => take(value, &UInt32Array::from(vec![0; count]), None).ok(),
            Place::Leaf(leaf, field)
                if is_ordered(metadata, *leaf, field) && is_convertible(field.data_type(), data_type) =>
            {
                let bounds = of_leaf(&converter(metadata, *leaf, field)?)?;
                convert(&without_nan(bounds), data_type, Misfit::Error).ok()
            }
            _ => None,
        }
    }

    /// Returns which of `count` pieces of the file certainly have no NaN in a floating-point column. `max` are the
    /// upper bounds of the pieces.
    pub(super) fn without_nan(
        &self,
        path: &ColumnPath,
        count: usize,
        max: Option<&ArrayRef>,
    ) -> Option<BooleanArray> {
        match self.find(path)?.1 {
            Place::Partition(value) => {
                let known = without_nan_in(value)?;
                Some(vec![known.is_valid(0) && known.value(0); count].into())
            }
            Place::Missing => Some(vec![true; count].into()),
            Place::Leaf(_, field) if !field.data_type().is_floating() => Some(vec![true; count].into()),
            Place::Leaf(leaf, _) => {
                let has_maximum = |piece: usize| max.is_some_and(|max| max.is_valid(piece));
                Some((0..count).map(|piece| Some(self.nans.has_none(*leaf, has_maximum(piece)))).collect())
            }
            Place::Other => None,
        }
    }

    /// Returns the number of NULLs in each piece of the file. `rows` are the numbers of rows in the pieces.
    pub(super) fn null_counts(
        &self,
        path: &ColumnPath,
        rows: Option<Int64Array>,
        metadata: &ParquetMetaData,
        of_leaf: impl Fn(&StatisticsConverter<'_>) -> Option<UInt64Array>,
    ) -> Option<Int64Array> {
        match self.find(path)?.1 {
            Place::Partition(value) if value.is_valid(0) => Some(Int64Array::from(vec![0; rows?.len()])),
            Place::Partition(_) | Place::Missing => rows,
            Place::Leaf(leaf, field) => {
                let counts = of_leaf(&converter(metadata, *leaf, field)?)?;
                Some(counts.unary_opt::<_, Int64Type>(|count| i64::try_from(count).ok()))
            }
            Place::Other => None,
        }
    }
}

fn converter<'a>(
    metadata: &'a ParquetMetaData,
    leaf: usize,
    field: &'a FieldRef,
) -> Option<StatisticsConverter<'a>> {
    let converter =
        StatisticsConverter::from_column_index(leaf, field, metadata.file_metadata().schema_descr()).ok()?;
    Some(converter.with_missing_null_counts_as_zero(false))
}

/// Returns whether the minimum and maximum of a leaf column are reliable.
pub(in crate::scan) fn is_ordered(metadata: &ParquetMetaData, leaf: usize, field: &FieldRef) -> bool {
    let Some(descriptor) = metadata.file_metadata().schema_descr().columns().get(leaf) else { return false };
    let data_type = field.data_type();
    match descriptor.physical_type() {
        _ if data_type.is_unsigned_integer() || data_type == &DataType::Float16 => false,
        Type::INT96 => false,
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => {
            let order = metadata.file_metadata().column_orders().and_then(|orders| orders.get(leaf));
            let statistics =
                metadata.row_groups().iter().filter_map(|group| group.columns().get(leaf)?.statistics());
            matches!(order, Some(ColumnOrder::TYPE_DEFINED_ORDER(_)))
                && !statistics.into_iter().any(|s| s.is_min_max_deprecated())
        }
        _ => true,
    }
}

/// Replaces NaN with NULL in `bounds`.
pub(in crate::scan) fn without_nan(bounds: ArrayRef) -> ArrayRef {
    match bounds.data_type() {
        DataType::Float32 => Arc::new(
            bounds.as_primitive::<Float32Type>().unary_opt::<_, Float32Type>(|v| (!v.is_nan()).then_some(v)),
        ),
        DataType::Float64 => Arc::new(
            bounds.as_primitive::<Float64Type>().unary_opt::<_, Float64Type>(|v| (!v.is_nan()).then_some(v)),
        ),
        _ => bounds,
    }
}
