//! Answers queries from the log: the number of rows, in total or per partition, and the range of a column's values.
//!
//! - Every answer is exact. The number of rows is `numRecords` minus the rows that the file's deletion vector marks
//!   as deleted (protocol, "Per-file Statistics", "Deletion Vectors"). If the statistics lack `numRecords`, the
//!   number is read from the file's footer. A condition on partition columns is evaluated on the partition values.
//! - With a condition on other columns, [`Answers::count`] and [`Answers::count_by_partition`] read rows, and
//!   [`Answers::min_max`] has no answer.
//! - Bounds are returned only if they are certainly actual values. They must be tight, and their type must be one whose
//!   bounds are never truncated and never NaN, which excludes strings, timestamps and floating-point numbers. Decimals
//!   must have at most 15 digits, because some writers round longer ones.
//! - Counts and bounds of all writers are used, as in every engine that answers queries from a log, because an answer
//!   changes nothing in the table. Statements that change rows only trust statistics that this crate computed
//!   ([`crate::values::stats::is_own`]).

mod extremes;
mod partition_counts;

use std::collections::BTreeSet;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StructArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Int64Type};
use arrow::error::ArrowError;

use extremes::Extremes;
use partition_counts::PartitionCounts;

use super::files::{FileListing, ListColumn, partition_map};
use super::partitions::PartitionColumns;
use super::rows::RowScan;
use super::statistics::StatisticsColumns;
use super::table::{TableScan, data_files};
use crate::error::{Error, Result};
use crate::expression::predicate::{
    BoundColumn, BoundPredicate, ColumnPath, Expr, Predicate, col, filter_mask,
};
use crate::log::replay::DeletionVectorColumn;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;
use crate::values::stats::is_unrounded;

/// Queries that are answered from the log of a snapshot.
///
/// ```
/// use deltalog::{Answers, Snapshot};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// let snapshot = Snapshot::open(&storage, None)?;
/// // No data file is read.
/// assert_eq!(Answers::new(&snapshot).count()?, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Answers {
    snapshot: Snapshot,
    condition: Option<Condition>,
    pruning: Option<Predicate>,
}

#[derive(Debug, Clone)]
struct Condition {
    whole: Predicate,
    /// The part of the condition that reads only partition columns.
    of_files: Option<BoundPredicate>,
    /// Whether the condition also reads other columns.
    of_rows: bool,
}

/// The minimum and the maximum of a column, each as an array with one value of the column's type. Both are NULL if the
/// column has no values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MinMax {
    /// The minimum.
    pub min: ArrayRef,
    /// The maximum.
    pub max: ArrayRef,
}

impl Answers {
    /// Creates queries on all rows of `snapshot`.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self { snapshot: snapshot.clone(), condition: None, pruning: None }
    }

    /// Restricts the queries to rows for which `predicate` is true.
    ///
    /// # Errors
    /// `InvalidArgument` if the predicate does not match the schema.
    pub fn predicate(mut self, predicate: &Predicate) -> Result<Self> {
        let located = |error: Error| error.in_table(self.snapshot.storage().url());
        let bound = predicate.bind(self.snapshot.arrow_schema()).map_err(located)?;
        let partitions = &self.snapshot.metadata().partition_columns;
        let (of_files, rest) =
            bound.split(|column| matches!(column.path.parts(), [name] if partitions.contains(name)));
        self.condition = Some(Condition { whole: predicate.clone(), of_files, of_rows: rest.is_some() });
        Ok(self)
    }

    /// Omits files that cannot contain a row for which `predicate` is true. The answer may include other rows as well,
    /// so this is only for engines that apply the predicate to the answer.
    #[must_use]
    pub fn pruning(mut self, predicate: Predicate) -> Self {
        self.pruning = Some(predicate);
        self
    }

    /// Returns the number of rows.
    ///
    /// # Errors
    /// `CorruptLog` and errors from the store; if files must be opened, also the errors of reading them.
    pub fn count(&self) -> Result<u64> {
        if let Some(condition) = self.condition_of_rows() {
            let rows = TableScan::new(&self.snapshot)
                .columns(Vec::<String>::new())
                .predicate(condition.clone())
                .read()?;
            return rows.map(|batch| Ok(batch?.num_rows() as u64)).sum();
        }
        let mut count = 0u64;
        self.each_batch(&[], |files| {
            count =
                files.rows.iter().try_fold(count, |sum, rows| sum.checked_add(*rows)).ok_or_else(too_many)?;
            Ok(())
        })?;
        Ok(count)
    }

    /// Returns the number of rows of each partition: the partition columns and `count: Int64`, with one row
    /// for each partition that has rows, ordered by value with NULL first. A table without partition columns
    /// has one row.
    ///
    /// # Errors
    /// Returns the same errors as [`Answers::count`].
    pub fn count_by_partition(&self) -> Result<RecordBatch> {
        let partitions = PartitionColumns::of(&self.snapshot)?;
        let mut counts = PartitionCounts::new(&partitions)?;
        match self.condition_of_rows() {
            Some(condition) => {
                let names = self.snapshot.metadata().partition_columns.clone();
                for batch in
                    TableScan::new(&self.snapshot).columns(names).predicate(condition.clone()).read()?
                {
                    let batch = batch?;
                    counts.add(batch.columns(), &vec![1; batch.num_rows()])?;
                }
            }
            None => self.each_batch(&[], |files| {
                counts.add(files.partition_values.columns(), &files.rows).map(drop)
            })?,
        }
        counts.finish()
    }

    /// Returns for each partition the number of files that may contain a row for which the predicate is true: the
    /// partition columns and `count: Int64`, with one row for each partition that has such files, ordered by value with
    /// NULL first. Reads only the log. A table without partition columns has one row.
    ///
    /// # Errors
    /// Returns the same errors as [`Answers::count`].
    #[doc(hidden)]
    pub fn files_by_partition(&self) -> Result<RecordBatch> {
        let partitions = PartitionColumns::of(&self.snapshot)?;
        let mut counts = PartitionCounts::new(&partitions)?;
        let mut listing = FileListing::new(&self.snapshot).columns([ListColumn::PartitionValues]);
        if let Some(condition) = &self.condition {
            listing = listing.predicate(&condition.whole)?;
        }
        let mut list = listing.read()?;
        while let Some(batch) = list.next_kept() {
            let batch = batch?;
            let added = partition_map(&batch)
                .and_then(|map| partitions.parse(map))
                .and_then(|values| counts.add(values.columns(), &vec![1; batch.num_rows()]));
            added.map_err(|error| list.located(error))?;
        }
        counts.finish()
    }

    /// Returns facts about each partition with rows: the partition columns, `count: Int64`, and the minimum and maximum
    /// of each of `columns`, ordered by partition value. A table without partition columns has one row, or none if it
    /// is empty. Reads only the log. Returns `None` if the log does not contain all exact values, for example because a
    /// file lacks statistics, or if a condition reads columns that are not partition columns.
    ///
    /// # Errors
    /// Returns the same errors as [`Answers::min_max`].
    #[doc(hidden)]
    pub fn by_partition(&self, columns: &[ColumnPath]) -> Result<Option<RecordBatch>> {
        let columns = columns
            .iter()
            .map(|column| self.column(Expr::Column(column.clone())))
            .collect::<Result<Vec<_>>>()?;
        if self.condition_of_rows().is_some()
            || !columns.iter().all(|column| has_exact_bounds(&column.data_type))
        {
            return Ok(None);
        }
        let mut extremes: Vec<Extremes> =
            columns.iter().map(|column| Extremes::new(&column.data_type)).collect();
        let columns: Vec<ColumnPath> = columns.into_iter().map(|column| column.path).collect();
        let mut counts = PartitionCounts::new(&PartitionColumns::of(&self.snapshot)?)?;
        let mut known = true;
        let counted = self.each_batch_of_log(&columns, &mut |files| {
            let groups = counts.add(files.partition_values.columns(), &files.rows)?;
            for (column, extremes) in columns.iter().zip(&mut extremes) {
                known = known
                    && files.add_extremes(column, extremes, |file| groups.get(file).copied().flatten())?;
            }
            Ok(())
        })?;
        if !counted || !known {
            return Ok(None);
        }
        counts.finish_with(&columns, extremes).map(Some)
    }

    /// Returns the minimum and maximum of the column `column` (struct fields are separated by `.`). Returns `None` if
    /// the log does not contain their exact values.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if there is no such column, and the same errors as [`Answers::count`].
    pub fn min_max(&self, column: &str) -> Result<Option<MinMax>> {
        Ok(self.bounds(&[column])?.into_iter().next().flatten())
    }

    /// Returns the minimum and maximum of each of `columns`, as [`Answers::min_max`] does, and reads the log only once.
    ///
    /// ```
    /// use arrow::array::{ArrayRef, Int64Array};
    /// use deltalog::{Answers, Snapshot};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
    /// # fn main() -> deltalog::Result<()> {
    /// # let (_directory, storage) = example_table()?;
    /// let snapshot = Snapshot::open(&storage, None)?;
    /// let bounds = Answers::new(&snapshot).bounds(&["id"])?;
    /// let id = bounds[0].as_ref().expect("the bounds of whole numbers are known");
    /// let number = |number: i64| std::sync::Arc::new(Int64Array::from(vec![number])) as ArrayRef;
    /// assert_eq!((&id.min, &id.max), (&number(1), &number(3)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `InvalidArgument` if there is no such column, and the same errors as [`Answers::count`].
    pub fn bounds<S: AsRef<str>>(&self, columns: &[S]) -> Result<Vec<Option<MinMax>>> {
        let columns =
            columns.iter().map(|name| self.column(col(name.as_ref()))).collect::<Result<Vec<_>>>()?;
        let partitions = &self.snapshot.metadata().partition_columns;
        let mut bounds: Vec<ColumnBounds> =
            columns.iter().map(|column| ColumnBounds::new(column, partitions)).collect();
        if self.condition_of_rows().is_some() || !bounds.iter().any(|bounds| bounds.is_known) {
            return Ok(vec![None; bounds.len()]);
        }
        let statistics: BTreeSet<&ColumnPath> = bounds
            .iter()
            .filter(|bounds| bounds.is_known && !bounds.is_partition)
            .map(|bounds| &bounds.column)
            .collect();
        let statistics: Vec<ColumnPath> = statistics.into_iter().cloned().collect();
        self.each_batch(&statistics, |files| bounds.iter_mut().try_for_each(|bounds| bounds.add(files)))?;
        bounds.into_iter().map(ColumnBounds::finish).collect()
    }

    fn column(&self, column: Expr) -> Result<BoundColumn> {
        let bound = column
            .is_null()
            .bind(self.snapshot.arrow_schema())
            .map_err(|error| error.in_table(self.snapshot.storage().url()))?;
        bound.columns().first().cloned().ok_or_else(|| Error::invalid_argument("the predicate has no column"))
    }

    fn condition_of_rows(&self) -> Option<&Predicate> {
        self.condition.as_ref().filter(|condition| condition.of_rows).map(|condition| &condition.whole)
    }

    /// Calls `take` with batches of the files that meet the condition, including the statistics of the columns
    /// `stats`.
    fn each_batch(&self, stats: &[ColumnPath], mut take: impl FnMut(&Files) -> Result<()>) -> Result<()> {
        self.each_batch_with(stats, true, &mut take).map(drop)
    }

    /// Calls `take` as [`Self::each_batch`] does, but reads only the log. Stops and returns false at the first file
    /// whose statistics lack the number of rows.
    fn each_batch_of_log(
        &self,
        stats: &[ColumnPath],
        take: &mut dyn FnMut(&Files) -> Result<()>,
    ) -> Result<bool> {
        self.each_batch_with(stats, false, take)
    }

    fn each_batch_with(
        &self,
        stats: &[ColumnPath],
        opens_files: bool,
        take: &mut dyn FnMut(&Files) -> Result<()>,
    ) -> Result<bool> {
        let snapshot = &self.snapshot;
        let partitions = PartitionColumns::of(snapshot)?;
        let stats = StatisticsColumns::new(snapshot.mapped_schema(), stats)?;
        let columns = [
            ListColumn::Path,
            ListColumn::Size,
            ListColumn::PartitionValues,
            ListColumn::DeletionVector,
            ListColumn::NumRecords,
        ];
        let mut listing = FileListing::new(snapshot).columns(columns);
        if let Some(predicate) = &self.pruning {
            listing = listing.pruning(predicate);
        }
        if let Some(condition) = &self.condition {
            listing = listing.predicate(&condition.whole)?;
        }
        let mut list = listing.read()?;
        while let Some(batch) = list.next_kept() {
            match Files::new(self, batch?, &partitions, &stats, opens_files)
                .map_err(|error| list.located(error))?
            {
                Some(files) => take(&files).map_err(|error| list.located(error))?,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Reads the footers of the files in `batch`. Returns for each file the number of rows that are not deleted.
    fn count_files(&self, batch: &RecordBatch, partitions: &PartitionColumns) -> Result<Vec<u64>> {
        let files = data_files(batch, self.snapshot.resolver(), partitions)?;
        let scan = RowScan::of(&self.snapshot)?.with_projection::<&str>(&[])?.with_threads(1);
        let count = |file: &super::DataFile| -> Result<u64> {
            let file = file.clone();
            scan.clone().read(std::iter::once(Ok(file))).map(|batch| Ok(batch?.num_rows() as u64)).sum()
        };
        parallel::each(&files, self.snapshot.storage().readers(files.len()), count)
    }
}

/// A batch of files that meet the condition.
struct Files {
    partition_values: StructArray,
    stats: StructArray,
    /// The number of rows of each file that are not deleted.
    rows: Vec<u64>,
}

impl Files {
    /// Returns `None` if a file would have to be opened although only the log may be read.
    fn new(
        answers: &Answers,
        batch: RecordBatch,
        partitions: &PartitionColumns,
        stats: &StatisticsColumns,
        opens_files: bool,
    ) -> Result<Option<Self>> {
        let mut batch = batch;
        if let Some(condition) = answers.condition.as_ref().and_then(|condition| condition.of_files.as_ref())
        {
            let values = partitions.parse(partition_map(&batch)?)?;
            let mask = filter_mask(condition, &RecordBatch::from(values))?;
            batch = filter_record_batch(&batch, &mask).map_err(unfit)?;
        }
        let texts = batch.column_by_name("stats").and_then(|stats| stats.as_string_opt::<i32>());
        let texts = texts.ok_or_else(|| Error::corrupt_log("the column 'stats' does not hold strings"))?;
        let stats = stats.decode(texts.iter())?;
        let counts =
            stats.column_by_name("numRecords").and_then(|counts| counts.as_primitive_opt::<Int64Type>());
        let counts =
            counts.ok_or_else(|| Error::corrupt_log("the statistics have no column 'numRecords'"))?;
        let vectors = DeletionVectorColumn::of_log(&batch)?;
        let rows = |file: usize| -> Result<Option<u64>> {
            let Some(physical) =
                counts.is_valid(file).then(|| u64::try_from(counts.value(file)).ok()).flatten()
            else {
                return Ok(None);
            };
            let deleted = vectors.get(file)?.map_or(Ok(0), |vector| u64::try_from(vector.cardinality));
            let live = deleted.ok().and_then(|deleted| physical.checked_sub(deleted));
            live.map(Some)
                .ok_or_else(|| Error::corrupt_log("a deletion vector deletes more rows than its file has"))
        };
        let rows = (0..batch.num_rows()).map(rows).collect::<Result<Vec<_>>>()?;
        let unknown = BooleanArray::new(
            BooleanBuffer::collect_bool(rows.len(), |file| rows.get(file) == Some(&None)),
            None,
        );
        let mut footers = match unknown.has_true() {
            true if !opens_files => return Ok(None),
            true => {
                answers.count_files(&filter_record_batch(&batch, &unknown).map_err(unfit)?, partitions)?
            }
            false => Vec::new(),
        }
        .into_iter();
        let rows = rows.into_iter().map(|rows| rows.or_else(|| footers.next()).unwrap_or_default()).collect();
        Ok(Some(Self { partition_values: partitions.parse(partition_map(&batch)?)?, stats, rows }))
    }

    fn statistic(&self, kind: &str, column: &ColumnPath) -> Option<&ArrayRef> {
        let kind = self.stats.column_by_name(kind)?;
        column.parts().iter().try_fold(kind, |array, name| array.as_struct_opt()?.column_by_name(name))
    }

    /// Adds a column's bounds to the groups of their files. Returns whether the bounds of all files are known.
    fn add_extremes(
        &self,
        column: &ColumnPath,
        extremes: &mut Extremes,
        group: impl Fn(usize) -> Option<usize>,
    ) -> Result<bool> {
        let (Some(min), Some(max)) =
            (self.statistic("minValues", column), self.statistic("maxValues", column))
        else {
            return Ok(false);
        };
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
        let is_value = |bound: &ArrayRef, file: usize| bound.is_valid(file) && is_unrounded(bound, file);
        let known =
            |file: usize| !has_values(file) || (is_tight(file) && is_value(min, file) && is_value(max, file));
        if !(0..self.rows.len()).all(known) {
            return Ok(false);
        }
        extremes.add(min, max, |file| if has_values(file) { group(file) } else { None })?;
        Ok(true)
    }
}

/// The bounds of a column in the files that were seen so far.
struct ColumnBounds {
    column: ColumnPath,
    is_partition: bool,
    /// Whether the log contained the bounds of all these files.
    is_known: bool,
    extremes: Extremes,
}

impl ColumnBounds {
    fn new(column: &BoundColumn, partitions: &[String]) -> Self {
        let is_partition = matches!(column.path.parts(), [name] if partitions.contains(name));
        Self {
            column: column.path.clone(),
            is_partition,
            is_known: is_partition || has_exact_bounds(&column.data_type),
            extremes: Extremes::new(&column.data_type),
        }
    }

    fn add(&mut self, files: &Files) -> Result<()> {
        if !self.is_known {
            return Ok(());
        }
        if !self.is_partition {
            self.is_known = files.add_extremes(&self.column, &mut self.extremes, |_| Some(0))?;
            return Ok(());
        }
        let name = self.column.parts().first();
        let values = name
            .and_then(|name| files.partition_values.column_by_name(name))
            .ok_or_else(|| Error::corrupt_log("a partition column is missing"))?;
        self.extremes
            .add(values, values, |file| files.rows.get(file).is_some_and(|rows| *rows > 0).then_some(0))
    }

    fn finish(self) -> Result<Option<MinMax>> {
        if self.is_known { self.extremes.finish(&[0]).map(Some) } else { Ok(None) }
    }
}

/// Returns whether a tight bound of this type is always an actual value, which excludes truncated strings.
fn has_exact_bounds(data_type: &DataType) -> bool {
    data_type.is_signed_integer()
        || matches!(data_type, DataType::Boolean | DataType::Date32 | DataType::Decimal128(..))
}

fn too_many() -> Error {
    Error::corrupt_log("the table has more rows than fit in a u64")
}

fn unfit(error: ArrowError) -> Error {
    Error::corrupt_log("partition values or statistics do not match the table's schema").with_source(error)
}
