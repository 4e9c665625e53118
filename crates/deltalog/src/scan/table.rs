//! Reads the rows of a snapshot, by scanning the files in its file list.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{Int64Type, SchemaRef};

use super::files::{FileList, FileListing, ListColumn, partition_map, required};
use super::partitions::PartitionColumns;
use super::rows::{DataFile, PartitionRow, RowScan, RowStream, RowTracking, with_row_ids};
use crate::error::{Error, Result};
use crate::expression::predicate::{BoundPredicate, Predicate};
use crate::log::replay::{DeletionVectorColumn, FileColumn};
use crate::protocol::{MaterializedRowTracking, PathResolver};
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;

/// The maximum number of threads of a scan.
const MOST_THREADS: usize = 1024;

/// A scan of a snapshot's rows.
///
/// ```
/// use deltalog::{Snapshot, TableScan, col, lit};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// let snapshot = Snapshot::open(&storage, None)?;
/// let mut rows = 0;
/// for batch in TableScan::new(&snapshot).predicate(col("id").gt(lit(1))).read()? {
///     rows += batch?.num_rows();
/// }
/// assert_eq!(rows, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TableScan {
    pub(super) snapshot: Snapshot,
    pub(super) columns: Option<Vec<String>>,
    pub(super) predicate: Option<Predicate>,
    pub(super) row_ids: bool,
    pub(super) view_types: bool,
    pub(super) threads: Option<usize>,
    pub(super) batch_rows: Option<usize>,
    pub(super) in_order: bool,
    pub(super) limit: Option<u64>,
}

impl TableScan {
    /// Creates a scan of all rows and columns.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self {
            snapshot: snapshot.clone(),
            columns: None,
            predicate: None,
            row_ids: false,
            view_types: false,
            threads: None,
            batch_rows: None,
            in_order: false,
            limit: None,
        }
    }

    /// Reads only the given top-level columns, in this order.
    #[must_use]
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Reads only rows for which `predicate` is true.
    #[must_use]
    pub fn predicate(mut self, predicate: Predicate) -> Self {
        self.predicate = Some(predicate);
        self
    }

    /// Appends the columns [`ROW_ID`](super::ROW_ID) and [`ROW_COMMIT_VERSION`](super::ROW_COMMIT_VERSION), to which
    /// the predicate may also refer.
    #[must_use]
    pub fn row_ids(mut self) -> Self {
        self.row_ids = true;
        self
    }

    /// Returns strings and bytes as Arrow views; see [`RowScan::with_view_types`].
    #[must_use]
    pub fn view_types(mut self) -> Self {
        self.view_types = true;
        self
    }

    /// Sets the maximum number of threads that read. The default is the number of processors, and more for a store
    /// that is reached over the network. With 1, the caller's thread does all the reading. 0 counts as 1, and more
    /// than 1,024 as 1,024.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.min(MOST_THREADS));
        self
    }

    /// Sets the maximum number of rows per batch. Batches of wide rows have fewer. The default is 8192; 0 counts as
    /// 1.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = Some(rows);
        self
    }

    /// Returns the files in the order of the file list, so that each read of a snapshot returns the rows in the same
    /// order. By default, files that are read at the same time are interleaved, which keeps all threads busy.
    ///
    /// ```
    /// use deltalog::{Snapshot, TableScan};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
    /// # fn main() -> deltalog::Result<()> {
    /// # let (_directory, storage) = example_table()?;
    /// let scan = TableScan::new(&Snapshot::open(&storage, None)?).in_order().batch_rows(1).threads(2);
    /// let rows = |scan: TableScan| scan.read()?.collect::<deltalog::Result<Vec<_>>>();
    /// let all = rows(scan.clone())?;
    /// assert_eq!(all.len(), 3);
    /// // With an order, a limit returns the first rows.
    /// assert_eq!(rows(scan.limit(2))?, all[..2]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// Ends the scan after `rows` rows. Without [`TableScan::in_order`], these may be any rows of the result.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Starts reading. The rows of a file are returned in order. Files are returned in any order, unless
    /// [`TableScan::in_order`] was called.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown column, for a predicate that does not match the schema, and for row
    /// ids of a table without row tracking. Errors while reading are returned with the batches.
    pub fn read(self) -> Result<RowStream> {
        let mut scan = self.scan()?;
        if let Some(predicate) = self.bound_predicate()? {
            scan = scan.with_predicate(&predicate)?;
        }
        let listing = self.listing()?;
        let files = if self.row_ids {
            DataFiles::with_row_tracking(&self.snapshot, listing)?
        } else {
            DataFiles::new(&self.snapshot, listing)?
        };
        if !self.in_order {
            scan = scan.in_any_order();
        }
        if let Some(rows) = self.limit {
            scan = scan.with_limit(rows);
        }
        let snapshot = &self.snapshot;
        let all = if self.predicate.is_none() { snapshot.known_files() } else { None };
        let progress = Progress::new("SCAN", snapshot.storage().url(), all, "files");
        Ok(scan.read(Counted { files, progress, has_begun: false }))
    }

    /// Returns the schema of the rows.
    ///
    /// # Errors
    /// Returns the same errors as [`TableScan::read`].
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(self.scan()?.schema())
    }

    /// Returns the predicate, bound to the columns of the rows.
    pub(super) fn bound_predicate(&self) -> Result<Option<BoundPredicate>> {
        let schema = match self.row_ids {
            true => with_row_ids(self.snapshot.arrow_schema()),
            false => Arc::clone(self.snapshot.arrow_schema()),
        };
        let bound = self.predicate.as_ref().map(|predicate| predicate.bind(&schema)).transpose();
        bound.map_err(|error| error.in_table(self.snapshot.storage().url()))
    }

    /// Returns a listing of the files that may contain rows for which the predicate is true.
    pub(super) fn listing(&self) -> Result<FileListing> {
        let listing = FileListing::new(&self.snapshot);
        match &self.predicate {
            // The predicate may refer to row ids, which are not columns of the file list. `pruning` ignores such
            // conditions, whereas `predicate` would refuse them.
            Some(predicate) if self.row_ids => Ok(listing.pruning(predicate)),
            Some(predicate) => listing.predicate(predicate),
            None => Ok(listing),
        }
    }

    /// Creates the scan of rows, to which the predicate, the order and the limit are not applied yet.
    pub(super) fn scan(&self) -> Result<RowScan> {
        let mut scan = RowScan::of(&self.snapshot)?;
        if let Some(columns) = &self.columns {
            scan = scan.with_projection(columns)?;
        }
        scan = scan.with_settings(self.view_types, self.threads, self.batch_rows);
        if let Some(columns) = self.row_tracking_columns()? {
            scan = scan.with_row_ids(&columns)?;
        }
        Ok(scan)
    }

    /// Returns the columns in which files store row ids, if row ids are requested.
    pub(super) fn row_tracking_columns(&self) -> Result<Option<MaterializedRowTracking>> {
        if !self.row_ids {
            return Ok(None);
        }
        let columns = MaterializedRowTracking::of(self.snapshot.protocol(), self.snapshot.metadata());
        columns.map(Some).map_err(|error| self.snapshot.located(error))
    }
}

/// The data files of a listing, as an iterator.
pub struct DataFiles {
    list: FileList,
    resolver: PathResolver,
    partitions: PartitionColumns,
    current: std::vec::IntoIter<DataFile>,
}

impl DataFiles {
    /// Lists the files of `snapshot` that `listing` selects.
    ///
    /// # Errors
    /// Returns the same errors as [`FileListing::read`].
    pub fn new(snapshot: &Snapshot, listing: FileListing) -> Result<Self> {
        Self::with_columns(snapshot, listing, &[])
    }

    /// Lists the files, including the fields that row ids require.
    ///
    /// # Errors
    /// Returns the same errors as [`FileListing::read`].
    pub fn with_row_tracking(snapshot: &Snapshot, listing: FileListing) -> Result<Self> {
        Self::with_columns(snapshot, listing, &[ListColumn::BaseRowId, ListColumn::DefaultRowCommitVersion])
    }

    fn with_columns(snapshot: &Snapshot, listing: FileListing, more: &[ListColumn]) -> Result<Self> {
        let columns =
            [ListColumn::Path, ListColumn::Size, ListColumn::PartitionValues, ListColumn::DeletionVector];
        Ok(Self {
            list: listing.columns([&columns, more].concat()).read()?,
            resolver: snapshot.resolver().clone(),
            partitions: PartitionColumns::of(snapshot)?,
            current: Vec::new().into_iter(),
        })
    }

    fn next_batch(&mut self) -> Option<Result<Vec<DataFile>>> {
        let batch = self.list.next_kept()?;
        Some(batch.and_then(|batch| {
            data_files(&batch, &self.resolver, &self.partitions).map_err(|error| self.list.located(error))
        }))
    }
}

impl Iterator for DataFiles {
    type Item = Result<DataFile>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(file) = self.current.next() {
                return Some(Ok(file));
            }
            match self.next_batch()? {
                Ok(files) => self.current = files.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Reports progress while the files of a scan are read. A file counts as read when the next file is taken.
struct Counted {
    files: DataFiles,
    progress: Progress,
    has_begun: bool,
}

impl Iterator for Counted {
    type Item = Result<DataFile>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_begun {
            self.progress.add(1);
        }
        let next = self.files.next();
        self.has_begun = next.is_some();
        next
    }
}

/// Returns the files of a batch with the columns of the log. The batch must have the columns that [`DataFiles::new`]
/// lists.
pub(crate) fn data_files(
    batch: &RecordBatch,
    resolver: &PathResolver,
    partitions: &PartitionColumns,
) -> Result<Vec<DataFile>> {
    let paths = required(batch, FileColumn::Path)?
        .as_string_opt::<i32>()
        .ok_or_else(|| Error::corrupt_log("the column 'path' does not hold strings"))?;
    let sizes = required(batch, FileColumn::Size)?;
    let sizes = sizes
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| Error::corrupt_log("the column 'size' does not hold integers"))?;
    let values: Arc<StructArray> = Arc::new(partitions.parse(partition_map(batch)?)?);
    let vectors = DeletionVectorColumn::of_log(batch)?;
    let number = |column: FileColumn, row: usize| {
        let numbers = batch.column_by_name(column.name())?.as_primitive_opt::<Int64Type>()?;
        numbers.is_valid(row).then(|| numbers.value(row))
    };
    let file = |row: usize| {
        if paths.is_null(row) || sizes.is_null(row) {
            return Err(Error::corrupt_log("an add action lacks its path or size"));
        }
        let size = u64::try_from(sizes.value(row))
            .map_err(|_| Error::corrupt_log("a file has a negative size").at_path(paths.value(row)))?;
        Ok(DataFile {
            path: resolver.resolve(paths.value(row)).map_err(|error| error.at_path(paths.value(row)))?,
            size,
            partition_values: PartitionRow::new(Arc::clone(&values), row)?,
            row_tracking: RowTracking {
                base_row_id: number(FileColumn::BaseRowId, row),
                default_row_commit_version: number(FileColumn::DefaultRowCommitVersion, row),
            },
            rows: vectors.get(row).map_err(|error| error.at_path(paths.value(row)))?.into(),
        })
    };
    (0..batch.num_rows()).map(file).collect()
}
