//! The amount of data that a scan has to read, according to the log.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;

use super::files::{ListColumn, required};
use super::statistics::StatisticsColumns;
use super::table::TableScan;
use crate::error::{Error, Result};
use crate::log::replay::{DeletionVectorColumn, FileColumn};
use crate::snapshot::Snapshot;

/// The size of a scan, counting only files that may contain a row for which the scan's predicate is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanSize {
    /// The number of files.
    pub files: u64,
    /// The total size of the files in bytes.
    pub bytes: u64,
    /// The number of rows in the files, without deleted rows. Rows for which the predicate is not true count as well.
    /// `None` if the log lacks the number of rows of a file.
    pub rows: Option<u64>,
}

impl TableScan {
    /// Returns the size of the scan. Only the log is read.
    ///
    /// ```
    /// use deltalog::{Snapshot, TableScan, col, lit};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
    /// # fn main() -> deltalog::Result<()> {
    /// # let (_directory, storage) = example_table()?;
    /// let scan = TableScan::new(&Snapshot::open(&storage, None)?);
    /// assert_eq!((scan.size()?.files, scan.size()?.rows), (2, Some(3)));
    /// // One of the files has 1 and 2; the other cannot have such a row.
    /// let size = scan.predicate(col("id").lt(lit(2))).size()?;
    /// assert_eq!((size.files, size.rows), (1, Some(2)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a predicate that does not match the schema; `CorruptLog` and errors from the store.
    pub fn size(&self) -> Result<ScanSize> {
        self.bound_predicate()?;
        let columns = [ListColumn::Size, ListColumn::NumRecords, ListColumn::DeletionVector];
        let mut list = self.listing()?.columns(columns).read()?;
        let live = LiveRows::of(&self.snapshot)?;
        let mut size = ScanSize { files: 0, bytes: 0, rows: Some(0) };
        while let Some(batch) = list.next_kept() {
            size.add(&batch?, &live).map_err(|error| list.located(error))?;
        }
        Ok(size)
    }
}

impl ScanSize {
    fn add(&mut self, files: &RecordBatch, live: &LiveRows) -> Result<()> {
        let sizes = required(files, FileColumn::Size)?
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| Error::corrupt_log("the column 'size' does not hold integers"))?;
        let sizes = sizes.iter().flatten().filter_map(|size| u64::try_from(size).ok());
        let rows: Option<u64> = live.count(files)?.into_iter().sum();
        self.files += files.num_rows() as u64;
        self.bytes = sizes.fold(self.bytes, u64::saturating_add);
        self.rows = self.rows.zip(rows).and_then(|(some, more)| some.checked_add(more));
        Ok(())
    }
}

/// Counts the rows of files, without deleted rows.
pub(super) struct LiveRows(StatisticsColumns);

impl LiveRows {
    pub(super) fn of(snapshot: &Snapshot) -> Result<Self> {
        StatisticsColumns::new(snapshot.mapped_schema(), &[]).map(Self)
    }

    /// Returns the number of rows of each file in a batch with the columns of the log. The number is `None` if the
    /// log does not state it.
    pub(super) fn count(&self, files: &RecordBatch) -> Result<Vec<Option<u64>>> {
        let texts =
            files.column_by_name(FileColumn::Stats.name()).and_then(|stats| stats.as_string_opt::<i32>());
        let Some(texts) = texts else { return Ok(vec![None; files.num_rows()]) };
        let stats = self.0.decode(texts)?;
        let counts =
            stats.column_by_name("numRecords").and_then(|counts| counts.as_primitive_opt::<Int64Type>());
        let counts =
            counts.ok_or_else(|| Error::corrupt_log("the statistics have no column 'numRecords'"))?;
        let vectors = DeletionVectorColumn::of_log(files)?;
        let live = |file: usize| {
            let rows = counts.is_valid(file).then(|| u64::try_from(counts.value(file)).ok()).flatten();
            let deleted = vectors.get(file)?.map_or(Ok(0), |vector| u64::try_from(vector.cardinality));
            Ok(rows.zip(deleted.ok()).and_then(|(rows, deleted)| rows.checked_sub(deleted)))
        };
        (0..files.num_rows()).map(live).collect()
    }
}
