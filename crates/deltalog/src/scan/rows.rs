//! The rows of data files (protocol, "Data Files"), as Arrow record batches with the table's schema.
//!
//! ```text
//! DataFile ──open──> footer ──plan──> leaves to read ──> batches ──convert──> table's types ──filter──> rows
//!             │        └─ skips row groups and pages that cannot match, and deleted rows
//!             └─ skips files whose partition values do not match
//! ```
//!
//! - The documentation of [`RowScan`] lists the guarantees.
//! - Shredded variants are reassembled (table feature `variantShredding`).
//! - If there is a predicate, the columns that it reads are decoded first, and the other columns only for matching
//!   rows.
//! - Row groups are skipped by statistics, then by Bloom filters. A scan cannot detect that another writer's
//!   statistics or filters are wrong.
//! - Not implemented: encrypted files.

mod batches;
mod blooms;
mod columns;
mod faults;
mod file;
mod footer;
mod gaps;
mod groups;
mod live;
mod masks;
mod older_types;
mod pages;
mod places;
mod plan;
mod row_ids;
mod selection;
mod shares;
mod stream;
mod variant;
mod variant_levels;
mod views;
mod waiting;

use std::sync::Arc;

use arrow::array::{Array, StructArray};
use arrow::datatypes::{Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::expression::predicate::BoundPredicate;
use crate::protocol::{LogPath, MaterializedRowTracking, PathResolver};
use crate::runtime::parallel;
use crate::runtime::row_bytes::BatchBytes;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

use columns::{Columns, find_field};
pub(super) use places::{is_ordered, without_nan};
pub(crate) use plan::leaf_count;
pub(super) use row_ids::with_row_ids;
pub use row_ids::{ROW_COMMIT_VERSION, ROW_ID, RowTracking};
pub use selection::FileRows;
pub use stream::RowStream;
use views::schema_with_views;

/// The number of footers that are read concurrently. It may exceed the number of cores, because the threads mostly
/// wait for the store.
const FOOTER_THREADS: usize = 8;

/// The maximum number of rows of a batch, unless the caller sets it.
const BATCH_ROWS: usize = 8192;

/// A data file to read.
#[derive(Debug, Clone)]
pub struct DataFile {
    /// The file's location.
    pub path: LogPath,
    /// The file's size in bytes, as recorded in the log.
    pub size: u64,
    /// The file's values of the partition columns.
    pub partition_values: PartitionRow,
    /// The rows to read.
    pub rows: FileRows,
    /// The row tracking fields of the file's action; required if row ids are requested.
    pub row_tracking: RowTracking,
}

/// The partition values of one file, as a row of typed columns that have the names of the partition columns in the
/// table's schema.
///
/// There may also be values for other columns of the schema. All rows of the file then have that value in the column,
/// regardless of the file's contents.
#[derive(Debug, Clone)]
pub struct PartitionRow {
    values: Arc<StructArray>,
    row: usize,
}

impl PartitionRow {
    /// Takes the values from row number `row` of `values`.
    ///
    /// # Errors
    /// `InvalidArgument` if `values` does not have that row.
    pub fn new(values: Arc<StructArray>, row: usize) -> Result<Self> {
        if row < values.len() {
            return Ok(Self { values, row });
        }
        Err(Error::invalid_argument(format!(
            "row {row} is beyond the end of partition values with {} rows",
            values.len()
        )))
    }

    /// Returns the columns, which several files share, and the index of this file's row.
    pub fn parts(&self) -> (&StructArray, usize) {
        (&self.values, self.row)
    }

    fn gives(&self, column: &str) -> bool {
        self.values.column_by_name(column).is_some()
    }

    /// Returns the column with this name, or `None` if there is no such column. Several files may share the column: it
    /// has one row per file.
    pub fn column(&self, name: &str) -> Option<&arrow::array::ArrayRef> {
        self.values.column_by_name(name)
    }

    /// Returns the index of this file's row in the columns.
    pub fn row(&self) -> usize {
        self.row
    }

    /// Returns the values of a file in a table that has no partition columns.
    pub fn empty() -> Self {
        Self { values: Arc::new(StructArray::new_empty_fields(1, None)), row: 0 }
    }
}

/// A scan of data files: what to read, and how.
///
/// - A column is found in a file by its exact name. If there is none, a name that differs only in case is used,
///   provided that only one matches. In a table with column mapping, columns are found by physical name or by field
///   id ([`RowScan::with_physical_schema`]). A column that the file lacks is NULL; a column that the table lacks is
///   not read.
/// - Values are returned with the table's types. A value that does not fit is an error that names file and column,
///   and is never changed. The only exception is that nanoseconds are truncated to microseconds, because the
///   protocol's timestamps have no more digits.
/// - A partition column has the value that the log states, regardless of the file's contents (protocol, "Partition
///   Value Serialization").
/// - Deleted rows are not returned. Whether a row is deleted depends only on the file and its deletion vector, not on
///   row groups, batches or threads.
/// - Files are returned in the given order, unless any order is allowed ([`RowScan::in_any_order`]). The rows of a file
///   are returned in their order.
/// - Memory is bounded: each thread holds a few batches and the pages that they come from, regardless of the number of
///   files. If there is a predicate, a thread also holds the matching values of one row group for the columns that are
///   both returned and used by the predicate. If these are large, they are read again instead.
/// - A batch of wide rows has about 32 MiB.
#[derive(Debug, Clone)]
pub struct RowScan {
    storage: Storage,
    resolver: PathResolver,
    columns: Columns,
    batch_rows: usize,
    batch_bytes: BatchBytes,
    threads: usize,
    limit: Option<u64>,
    in_any_order: bool,
    has_views: bool,
    /// The maximum number of files, and the maximum total size in bytes, of a scan that the caller's thread reads
    /// alone.
    small_read: (usize, u64),
    /// Threads share the columns of a file only if at least this many bytes are read from it.
    bytes_worth_a_thread: u64,
    version: Option<u64>,
}

impl RowScan {
    /// Creates a scan of all columns of files of the table at `storage`, with the schema `schema` and the
    /// partition columns `partition_columns`.
    ///
    /// # Errors
    /// `InvalidArgument` if a partition column is not in the schema.
    pub fn new(storage: Storage, schema: &SchemaRef, partition_columns: &[String]) -> Result<Self> {
        let partitions = partition_columns
            .iter()
            .map(|name| find_field(schema.fields(), name))
            .collect::<Result<Vec<_>>>();
        let located = |error: Error| error.in_table(storage.url());
        let resolver = PathResolver::new(storage.root()).map_err(located)?;
        let columns = Columns::new(schema, &partitions.map_err(located)?);
        let threads = storage.most_readers();
        let batch_bytes = storage.batch_bytes();
        let small_read = if storage.waits() { stream::SMALL_REMOTE_READ } else { stream::SMALL_READ };
        Ok(Self {
            storage,
            resolver,
            columns,
            batch_rows: BATCH_ROWS,
            batch_bytes,
            threads,
            limit: None,
            in_any_order: false,
            has_views: false,
            small_read,
            bytes_worth_a_thread: shares::BYTES_WORTH_A_THREAD,
            version: None,
        })
    }

    /// Creates a scan of all columns of files of `snapshot`.
    ///
    /// # Errors
    /// Returns the same errors as [`RowScan::new`].
    pub fn of(snapshot: &Snapshot) -> Result<Self> {
        let schema = snapshot.mapped_schema();
        let scan =
            Self::new(snapshot.storage().clone(), schema.arrow(), &snapshot.metadata().partition_columns)?;
        Ok(scan
            .with_physical_schema(schema.physical_arrow())?
            .at_version(snapshot.version())
            .with_resolver(snapshot.resolver().clone()))
    }

    /// Finds columns in files by the names in `physical`. If the fields of `physical` have ids, under the metadata key
    /// that the Parquet reader uses, finds columns by these ids instead. `physical` must have the same shape as the
    /// table's schema, as in [`MappedSchema::physical_arrow`](crate::protocol::MappedSchema::physical_arrow).
    ///
    /// If ids are required, a file without any field id is refused (protocol, "Reader Requirements for Column
    /// Mapping").
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the two shapes differ.
    pub fn with_physical_schema(mut self, physical: &SchemaRef) -> Result<Self> {
        self.columns.map(physical).map_err(|error| error.in_table(self.storage.url()))?;
        Ok(self)
    }

    /// Reads only the top-level columns `names`, in this order. A name may differ from the schema's name in case if
    /// only one column matches.
    ///
    /// # Errors
    /// `InvalidArgument` if a name is unknown, ambiguous or repeated.
    pub fn with_projection<S: AsRef<str>>(mut self, names: &[S]) -> Result<Self> {
        self.columns.project(names).map_err(|error| error.in_table(self.storage.url()))?;
        Ok(self)
    }

    /// Reads only rows for which `predicate` is true. It must be bound to the schema that was given to
    /// [`RowScan::new`]. After [`RowScan::with_row_ids`], it may also refer to the row id columns.
    ///
    /// # Errors
    /// `InvalidArgument` if a part of the predicate was not understood, or if it reads a column that is not
    /// in the schema.
    pub fn with_predicate(mut self, predicate: &BoundPredicate) -> Result<Self> {
        self.columns.filter(predicate).map_err(|error| error.in_table(self.storage.url()))?;
        Ok(self)
    }

    /// Appends the columns [`ROW_ID`] and [`ROW_COMMIT_VERSION`], which are `Int64` and never NULL. They contain the
    /// stable row ids and commit versions of row tracking (protocol, "Row Tracking").
    ///
    /// # Errors
    /// `InvalidArgument` if the table has a column with one of these names.
    pub fn with_row_ids(mut self, materialized: &MaterializedRowTracking) -> Result<Self> {
        self.columns.track_rows(materialized).map_err(|error| error.in_table(self.storage.url()))?;
        Ok(self)
    }

    /// Reads deletion vectors from all locations that `resolver` allows. By default, only locations in the table's
    /// directory are allowed.
    #[must_use]
    pub fn with_resolver(mut self, resolver: PathResolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// Sets the version of the table that errors name.
    #[must_use]
    pub fn at_version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Sets the maximum number of rows per batch. Batches of wide rows have fewer. The default is 8192; 0 counts as
    /// 1.
    #[must_use]
    pub fn with_batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// Sets the maximum number of threads. The default is the number of processors. With 1, the caller's thread does
    /// all the reading.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Applies the settings that a scan of a table shares with its tasks. `None` means the default.
    #[must_use]
    pub(super) fn with_settings(
        mut self,
        view_types: bool,
        threads: Option<usize>,
        batch_rows: Option<usize>,
    ) -> Self {
        if view_types {
            self = self.with_view_types();
        }
        if let Some(threads) = threads {
            self = self.with_threads(threads);
        }
        if let Some(rows) = batch_rows {
            self = self.with_batch_rows(rows);
        }
        self
    }

    /// Ends the scan after `rows` rows.
    #[must_use]
    pub fn with_limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// If the limit is less than a batch and no predicate selects rows, returns a scan that decodes no more rows than
    /// it returns, and does not read ahead on a local disk.
    fn for_few_rows(mut self) -> Self {
        let few =
            self.limit.and_then(|rows| usize::try_from(rows).ok()).filter(|rows| *rows < self.batch_rows);
        if let Some(rows) = few
            && self.columns.row_predicate.is_none()
        {
            self.batch_rows = rows.max(1);
            if !self.storage.waits() {
                self.threads = 1;
            }
        }
        self
    }

    /// Allows batches of several files to be interleaved, which keeps all threads busy. The rows of each file are
    /// still in order, and a few small files are still read one after another.
    #[must_use]
    pub fn in_any_order(mut self) -> Self {
        self.in_any_order = true;
        self
    }

    /// Returns strings and bytes at every nesting level as Arrow views (`Utf8View`, `BinaryView`), which avoids copying
    /// them. Variants are unchanged, and so are the keys of maps, because some engines cannot look up keys that are
    /// views.
    #[must_use]
    pub fn with_view_types(mut self) -> Self {
        self.has_views = true;
        self
    }

    /// Returns the schema of the batches: the fields of the projection in its order, followed by the row id columns
    /// if they were requested.
    pub fn schema(&self) -> SchemaRef {
        let schema = self.columns.output_schema();
        if self.has_views { schema_with_views(&schema) } else { schema }
    }

    /// Returns for each of `files` whether it stores a number or a date with a type that differs from the table's, at
    /// any nesting depth. Only footers are read. Partition columns do not count, because their values are in the log.
    ///
    /// # Errors
    /// `FileNotFound`, `Unavailable`, `PermissionDenied`, `CorruptData`.
    pub(crate) fn converting_numbers(&self, files: &[DataFile]) -> Result<Vec<bool>> {
        let opener = file::Opener::new(self.clone());
        parallel::each(files, FOOTER_THREADS, |file| older_types::converts_numbers(&opener, file))
    }

    /// Returns the rows of `files`. Nothing is read before the first batch is requested.
    pub fn read(self, files: impl Iterator<Item = Result<DataFile>> + Send + 'static) -> RowStream {
        RowStream::new(self, Box::new(files))
    }
}

/// Returns a schema that contains only the fields at `indices`.
fn projected(schema: &Schema, indices: &[usize]) -> SchemaRef {
    let fields = indices.iter().filter_map(|index| schema.fields().get(*index).cloned());
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

#[cfg(test)]
mod bloom_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod row_ids_tests;
#[cfg(test)]
mod selection_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod type_tests;
#[cfg(test)]
mod wide_tests;
