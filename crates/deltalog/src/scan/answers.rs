//! Questions that the log answers: how many rows there are, in all or in each partition, and between which values a column lies.
//!
//! - Every answer is exact. Rows: `numRecords` less the rows that the file's deletion vector names (protocol, "Per-file Statistics", "Deletion
//!   Vectors"); of a file whose statistics do not count, the footer does. A condition on partition columns is decided by their values.
//! - A condition on other columns makes [`Answers::count`] and [`Answers::count_by_partition`] read rows, and [`Answers::min_max`] not know.
//! - Bounds are given only where they are values: tight ones, of types that are never cut off (strings, timestamps) and have no NaN.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StructArray, make_comparator};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{SortOptions, concat, filter_record_batch};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use super::files::{FileListing, ListColumn, partition_map};
use super::partitions::PartitionColumns;
use super::rows::RowScan;
use super::statistics::StatisticsColumns;
use super::table::{TableScan, data_files};
use crate::error::{Error, Result};
use crate::parallel;
use crate::predicate::{BoundPredicate, ColumnPath, Predicate, col, filter_mask};
use crate::replay::DeletionVectorColumn;
use crate::snapshot::Snapshot;

/// Asks the log of a snapshot.
#[derive(Debug, Clone)]
pub struct Answers {
    snapshot: Snapshot,
    condition: Option<Condition>,
}

#[derive(Debug, Clone)]
struct Condition {
    whole: Predicate,
    /// What partition values decide.
    of_files: Option<BoundPredicate>,
    /// Whether there is more to it.
    of_rows: bool,
}

/// The least and the greatest value of a column, NULL both if it has none: arrays of one of the column's type.
#[derive(Debug, Clone)]
pub struct MinMax {
    /// The least.
    pub min: ArrayRef,
    /// The greatest.
    pub max: ArrayRef,
}

impl Answers {
    /// About all rows of `snapshot`.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self { snapshot: snapshot.clone(), condition: None }
    }

    /// About the rows for which `predicate` is true.
    ///
    /// # Errors
    /// `InvalidArgument` if it does not fit the schema.
    pub fn predicate(mut self, predicate: &Predicate) -> Result<Self> {
        let located = |error: Error| error.in_table(self.snapshot.storage().url());
        let bound = predicate.bind(self.snapshot.arrow_schema()).map_err(located)?;
        let partitions = &self.snapshot.metadata().partition_columns;
        let (of_files, rest) = bound.split(|column| matches!(column.path.parts(), [name] if partitions.contains(name)));
        self.condition = Some(Condition { whole: predicate.clone(), of_files, of_rows: rest.is_some() });
        Ok(self)
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// `CorruptLog`, and the store's own; if files must be opened, as reading them.
    pub fn count(&self) -> Result<u64> {
        if let Some(condition) = self.condition_of_rows() {
            let rows = TableScan::new(&self.snapshot).columns(Vec::<String>::new()).predicate(condition.clone()).read()?;
            return rows.map(|batch| Ok(batch?.num_rows() as u64)).sum();
        }
        let mut count = 0u64;
        self.each_batch(&[], |files| {
            count = files.rows.iter().try_fold(count, |sum, rows| sum.checked_add(*rows)).ok_or_else(too_many)?;
            Ok(())
        })?;
        Ok(count)
    }

    /// How many rows each partition has: the partition columns, then `count: Int64`, a row for each partition that has any, in the order of their
    /// values, NULL first. A table without partition columns has one row.
    ///
    /// # Errors
    /// As [`Answers::count`].
    pub fn count_by_partition(&self) -> Result<RecordBatch> {
        let partitions = PartitionColumns::of(&self.snapshot)?;
        let mut counts = PartitionCounts::new(&partitions)?;
        match self.condition_of_rows() {
            Some(condition) => {
                let names = self.snapshot.metadata().partition_columns.clone();
                for batch in TableScan::new(&self.snapshot).columns(names).predicate(condition.clone()).read()? {
                    let batch = batch?;
                    counts.add(batch.columns(), &vec![1; batch.num_rows()])?;
                }
            }
            None => self.each_batch(&[], |files| counts.add(files.partition_values.columns(), &files.rows))?,
        }
        counts.finish()
    }

    /// Between which values the column `column` (struct fields separated by `.`) lies, if the log says so exactly.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such column, else as [`Answers::count`].
    pub fn min_max(&self, column: &str) -> Result<Option<MinMax>> {
        let schema = self.snapshot.arrow_schema();
        let bound = col(column).is_null().bind(schema).map_err(|error| error.in_table(self.snapshot.storage().url()))?;
        let Some(column) = bound.columns().first() else { return Ok(None) };
        if self.condition_of_rows().is_some() {
            return Ok(None);
        }
        let mut extremes = Extremes::new(&column.data_type);
        let partitions = &self.snapshot.metadata().partition_columns;
        if let [name] = column.path.parts()
            && partitions.contains(name)
        {
            self.each_batch(&[], |files| {
                let values =
                    files.partition_values.column_by_name(name).ok_or_else(|| Error::corrupt_log("a partition column is missing"))?;
                extremes.add(values, values, |file| files.rows.get(file).is_some_and(|rows| *rows > 0))
            })?;
            return extremes.finish().map(Some);
        }
        if !has_exact_bounds(&column.data_type) {
            return Ok(None);
        }
        let mut known = true;
        self.each_batch(std::slice::from_ref(&column.path), |files| {
            known = known && files.add_extremes(&column.path, &mut extremes)?;
            Ok(())
        })?;
        if known { extremes.finish().map(Some) } else { Ok(None) }
    }

    fn condition_of_rows(&self) -> Option<&Predicate> {
        self.condition.as_ref().filter(|condition| condition.of_rows).map(|condition| &condition.whole)
    }

    /// Hands the files that meet the condition to `take`, with the statistics of the columns `stats`.
    fn each_batch(&self, stats: &[ColumnPath], mut take: impl FnMut(&Files) -> Result<()>) -> Result<()> {
        let snapshot = &self.snapshot;
        let partitions = PartitionColumns::of(snapshot)?;
        let stats = StatisticsColumns::new(snapshot.mapped_schema(), stats)?;
        let columns = [ListColumn::Path, ListColumn::Size, ListColumn::PartitionValues, ListColumn::DeletionVector, ListColumn::NumRecords];
        let mut listing = FileListing::new(snapshot).columns(columns);
        if let Some(condition) = &self.condition {
            listing = listing.predicate(&condition.whole)?;
        }
        let mut list = listing.read()?;
        while let Some(batch) = list.next_kept() {
            let files = Files::new(self, batch?, &partitions, &stats).map_err(|error| list.located(error))?;
            take(&files).map_err(|error| list.located(error))?;
        }
        Ok(())
    }

    /// How many rows the files of `batch` have that are not deleted, from their footers.
    fn count_files(&self, batch: &RecordBatch, partitions: &PartitionColumns) -> Result<Vec<u64>> {
        let files = data_files(batch, self.snapshot.resolver(), partitions)?;
        let scan = RowScan::of(&self.snapshot)?.with_projection::<&str>(&[])?.with_threads(1);
        let count = |file: &super::DataFile| -> Result<u64> {
            let file = file.clone();
            scan.clone().read(std::iter::once(Ok(file))).map(|batch| Ok(batch?.num_rows() as u64)).sum()
        };
        parallel::each(&files, parallel::cores(), count)
    }
}

/// Files that meet the condition.
struct Files {
    partition_values: StructArray,
    stats: StructArray,
    /// How many rows each has that are not deleted.
    rows: Vec<u64>,
}

impl Files {
    fn new(answers: &Answers, batch: RecordBatch, partitions: &PartitionColumns, stats: &StatisticsColumns) -> Result<Self> {
        let mut batch = batch;
        if let Some(condition) = answers.condition.as_ref().and_then(|condition| condition.of_files.as_ref()) {
            let values = partitions.parse(partition_map(&batch)?)?;
            let mask = filter_mask(condition, &RecordBatch::from(values))?;
            batch = filter_record_batch(&batch, &mask).map_err(unfit)?;
        }
        let texts = batch.column_by_name("stats").and_then(|stats| stats.as_string_opt::<i32>());
        let texts = texts.ok_or_else(|| Error::corrupt_log("stats are no strings"))?;
        let stats = stats.decode(texts.iter())?;
        let counts = stats.column_by_name("numRecords").and_then(|counts| counts.as_primitive_opt::<Int64Type>());
        let counts = counts.ok_or_else(|| Error::corrupt_log("statistics without a count"))?;
        let vectors = DeletionVectorColumn::of_log(&batch)?;
        let rows = |file: usize| -> Result<Option<u64>> {
            let Some(physical) = counts.is_valid(file).then(|| u64::try_from(counts.value(file)).ok()).flatten() else { return Ok(None) };
            let deleted = vectors.get(file)?.map_or(Ok(0), |vector| u64::try_from(vector.cardinality));
            let live = deleted.ok().and_then(|deleted| physical.checked_sub(deleted));
            live.map(Some).ok_or_else(|| Error::corrupt_log("a deletion vector names more rows than its file has"))
        };
        let rows = (0..batch.num_rows()).map(rows).collect::<Result<Vec<_>>>()?;
        let unknown = BooleanArray::new(BooleanBuffer::collect_bool(rows.len(), |file| rows.get(file) == Some(&None)), None);
        let mut footers = match unknown.has_true() {
            true => answers.count_files(&filter_record_batch(&batch, &unknown).map_err(unfit)?, partitions)?,
            false => Vec::new(),
        }
        .into_iter();
        let rows = rows.into_iter().map(|rows| rows.or_else(|| footers.next()).unwrap_or_default()).collect();
        Ok(Self { partition_values: partitions.parse(partition_map(&batch)?)?, stats, rows })
    }

    fn statistic(&self, kind: &str, column: &ColumnPath) -> Option<&ArrayRef> {
        let kind = self.stats.column_by_name(kind)?;
        column.parts().iter().try_fold(kind, |array, name| array.as_struct_opt()?.column_by_name(name))
    }

    /// Adds the values of a column; whether all are known.
    fn add_extremes(&self, column: &ColumnPath, extremes: &mut Extremes) -> Result<bool> {
        let (Some(min), Some(max)) = (self.statistic("minValues", column), self.statistic("maxValues", column)) else { return Ok(false) };
        let count = |array: Option<&ArrayRef>, file: usize| {
            let counts = array?.as_primitive_opt::<Int64Type>()?;
            counts.is_valid(file).then(|| counts.value(file))
        };
        let (records, nulls) = (self.stats.column_by_name("numRecords"), self.statistic("nullCount", column));
        let tight = self.stats.column_by_name("tightBounds").and_then(|tight| tight.as_boolean_opt());
        let is_tight = |file: usize| tight.is_some_and(|tight| tight.is_valid(file) && tight.value(file));
        let has_values = |file: usize| {
            let only_nulls = count(nulls, file).is_some_and(|nulls| Some(nulls) == count(records, file));
            self.rows.get(file).is_some_and(|rows| *rows > 0) && !only_nulls
        };
        let known = |file: usize| !has_values(file) || (is_tight(file) && min.is_valid(file) && max.is_valid(file));
        if !(0..self.rows.len()).all(known) {
            return Ok(false);
        }
        extremes.add(min, max, has_values)?;
        Ok(true)
    }
}

/// Whether a bound of this type, if tight, is a value.
fn has_exact_bounds(data_type: &DataType) -> bool {
    data_type.is_signed_integer() || matches!(data_type, DataType::Boolean | DataType::Date32 | DataType::Decimal128(..))
}

/// The least and greatest of the values seen, of each batch one.
struct Extremes {
    data_type: DataType,
    min: Vec<ArrayRef>,
    max: Vec<ArrayRef>,
}

impl Extremes {
    fn new(data_type: &DataType) -> Self {
        Self { data_type: data_type.clone(), min: Vec::new(), max: Vec::new() }
    }

    fn add(&mut self, min: &ArrayRef, max: &ArrayRef, counts: impl Fn(usize) -> bool) -> Result<()> {
        self.min.extend(extreme(min, true, &counts)?);
        self.max.extend(extreme(max, false, &counts)?);
        Ok(())
    }

    fn finish(self) -> Result<MinMax> {
        let whole = |found: Vec<ArrayRef>, least: bool| -> Result<ArrayRef> {
            let found: Vec<&dyn Array> = found.iter().map(AsRef::as_ref).collect();
            if found.is_empty() {
                return Ok(arrow::array::new_null_array(&self.data_type, 1));
            }
            let found = concat(&found).map_err(unfit)?;
            Ok(extreme(&found, least, &|_| true)?.unwrap_or_else(|| arrow::array::new_null_array(&self.data_type, 1)))
        };
        Ok(MinMax { min: whole(self.min, true)?, max: whole(self.max, false)? })
    }
}

/// The least or greatest of the values of `array` that count, in an array of one.
fn extreme(array: &ArrayRef, least: bool, counts: &impl Fn(usize) -> bool) -> Result<Option<ArrayRef>> {
    let compare = make_comparator(array, array, SortOptions::default()).map_err(unfit)?;
    let rows = (0..array.len()).filter(|row| array.is_valid(*row) && counts(*row));
    let found = if least { rows.min_by(|a, b| compare(*a, *b)) } else { rows.max_by(|a, b| compare(*a, *b)) };
    Ok(found.map(|row| array.slice(row, 1)))
}

/// Rows by the values of partition columns.
struct PartitionCounts {
    schema: SchemaRef,
    converter: RowConverter,
    /// By the values in a form whose order is theirs.
    counts: BTreeMap<Box<[u8]>, u64>,
    /// Of a table without partition columns.
    total: u64,
}

impl PartitionCounts {
    fn new(partitions: &PartitionColumns) -> Result<Self> {
        let sorts = partitions.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
        let count = Arc::new(Field::new("count", DataType::Int64, false));
        let fields: Vec<FieldRef> = partitions.fields().iter().cloned().chain([count]).collect();
        let converter = RowConverter::new(sorts).map_err(unfit)?;
        Ok(Self { schema: Arc::new(Schema::new(fields)), converter, counts: BTreeMap::new(), total: 0 })
    }

    fn add(&mut self, values: &[ArrayRef], rows: &[u64]) -> Result<()> {
        let add = |sum: &mut u64, more: u64| -> Result<()> {
            *sum = sum.checked_add(more).ok_or_else(too_many)?;
            Ok(())
        };
        if values.is_empty() {
            return rows.iter().try_for_each(|more| add(&mut self.total, *more));
        }
        let keys = self.converter.convert_columns(values).map_err(unfit)?;
        for (key, more) in keys.iter().zip(rows).filter(|(_, more)| **more > 0) {
            match self.counts.get_mut(key.as_ref()) {
                Some(sum) => add(sum, *more)?,
                None => {
                    self.counts.insert(key.as_ref().into(), *more);
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<RecordBatch> {
        let (mut columns, counts): (Vec<ArrayRef>, Vec<u64>) = if self.schema.fields().len() == 1 {
            (Vec::new(), vec![self.total])
        } else {
            let parser = self.converter.parser();
            let columns = self.converter.convert_rows(self.counts.keys().map(|key| parser.parse(key))).map_err(unfit)?;
            (columns, self.counts.into_values().collect())
        };
        let counts = counts.into_iter().map(|count| i64::try_from(count).map_err(|_| too_many())).collect::<Result<Vec<_>>>()?;
        columns.push(Arc::new(Int64Array::from(counts)));
        RecordBatch::try_new(self.schema, columns).map_err(unfit)
    }
}

fn too_many() -> Error {
    Error::corrupt_log("the table has more rows than can be counted")
}

fn unfit(error: ArrowError) -> Error {
    Error::corrupt_log("partition values or statistics do not fit the table's schema").with_source(error)
}
