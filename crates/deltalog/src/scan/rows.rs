//! The rows of data files (protocol, "Data Files"), as Arrow record batches of the table's schema.
//!
//! ```text
//! DataFile ──open──> footer ──plan──> leaves to read ──> batches ──convert──> table's types ──filter──> projection
//!             │        └─ row groups and pages that cannot match are left out, rows that a deletion vector names too
//!             └─ files whose partition values do not match are not opened
//! ```
//!
//! - What is guaranteed stands at [`RowScan`].
//! - Shredded variants are put together (table feature `variantShredding`).
//! - With a predicate, the columns that it reads are decoded first and the others only where a row matches.
//! - Not done here: encrypted files, Bloom filters.

mod batches;
mod columns;
mod convert;
mod faults;
mod file;
mod footer;
mod groups;
mod pages;
mod places;
mod plan;
mod row_ids;
mod selection;
mod shares;
mod stream;
mod variant;
mod views;

use std::sync::Arc;

use arrow::array::{Array, StructArray};
use arrow::datatypes::{Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::parallel;
use crate::predicate::BoundPredicate;
use crate::protocol::{LogPath, MaterializedRowTracking, PathResolver};
use crate::snapshot::Snapshot;
use crate::storage::Storage;

use columns::{Columns, find_field};
pub(super) use places::{is_ordered, without_nan};
pub(super) use row_ids::with_row_ids;
pub use row_ids::{ROW_COMMIT_VERSION, ROW_ID, RowTracking};
pub use selection::FileRows;
pub use stream::RowStream;
use views::schema_with_views;

/// A data file to read.
#[derive(Debug, Clone)]
pub struct DataFile {
    /// Where it is.
    pub path: LogPath,
    /// How many bytes the log says it has.
    pub size: u64,
    /// The values of its partition columns.
    pub partition_values: PartitionRow,
    /// Which of its rows are wanted.
    pub rows: FileRows,
    /// What the log says of the ids of its rows; needed if those are asked for.
    pub row_tracking: RowTracking,
}

/// The partition values of one file: a row of typed columns with the names that the table's schema has for
/// the partition columns.
///
/// It may also have other columns of the schema. Those then have this value in every row, whatever the file
/// holds.
#[derive(Debug, Clone)]
pub struct PartitionRow {
    values: Arc<StructArray>,
    row: usize,
}

impl PartitionRow {
    /// Row `row` of `values`.
    ///
    /// # Errors
    /// `InvalidArgument` if `values` has no such row.
    pub fn new(values: Arc<StructArray>, row: usize) -> Result<Self> {
        if row < values.len() {
            return Ok(Self { values, row });
        }
        Err(Error::invalid_argument(format!("row {row} of partition values that have {} rows", values.len())))
    }

    /// The columns of this file and others, and which of the rows is this file's.
    pub fn parts(&self) -> (&StructArray, usize) {
        (&self.values, self.row)
    }

    fn gives(&self, column: &str) -> bool {
        self.values.column_by_name(column).is_some()
    }

    /// Its columns, one of them by name.
    pub fn column(&self, name: &str) -> Option<&arrow::array::ArrayRef> {
        self.values.column_by_name(name)
    }

    /// Which row of the columns it is.
    pub fn row(&self) -> usize {
        self.row
    }

    /// The row of a table that is not partitioned.
    pub fn empty() -> Self {
        Self { values: Arc::new(StructArray::new_empty_fields(1, None)), row: 0 }
    }
}

/// What to read of data files, and how.
///
/// - A column is found in a file by its exact name, else by its name in any case if only one matches; in a
///   table that maps its columns, by physical name or by field id ([`RowScan::with_physical_schema`]). One
///   that is not there is NULL; one that the table does not know is not read.
/// - What is read has the table's types. A value that they cannot hold is an error that names file and
///   column, never another value; the one exception are nanoseconds, which are cut to the microsecond below,
///   because the protocol's timestamps have no more digits.
/// - A partition column has the value that the log says, whatever the file holds (protocol, "Partition Value
///   Serialization").
/// - A deleted row is not decoded, and which rows those are depends on nothing but the file and its vector:
///   not on row groups, batches or threads.
/// - The files come in the order given, unless any is as good ([`RowScan::in_any_order`]); the rows in the
///   order of the file.
/// - Memory is bounded: for each thread a few batches and the pages they come from, however many files there
///   are. With a predicate, also the matching values in one row group of those of its columns that are
///   returned.
#[derive(Debug, Clone)]
pub struct RowScan {
    storage: Storage,
    resolver: PathResolver,
    columns: Columns,
    batch_rows: usize,
    threads: usize,
    in_any_order: bool,
    has_views: bool,
    /// So many files with so few bytes together are read by the caller's thread.
    small: (usize, u64),
    /// With fewer bytes of a file than this no threads share its columns.
    much: u64,
    version: Option<u64>,
}

impl RowScan {
    /// All columns of files of the table at `storage`, whose schema is `schema` and whose partition columns
    /// are `partition_columns`.
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
        let threads = parallel::cores();
        Ok(Self {
            storage,
            resolver,
            columns,
            batch_rows: 8192,
            threads,
            in_any_order: false,
            has_views: false,
            small: stream::SMALL,
            much: shares::MUCH,
            version: None,
        })
    }

    /// All columns of files of `snapshot`.
    ///
    /// # Errors
    /// As [`RowScan::new`].
    pub fn of(snapshot: &Snapshot) -> Result<Self> {
        let schema = snapshot.mapped_schema();
        let scan =
            Self::new(snapshot.storage().clone(), schema.arrow(), &snapshot.metadata().partition_columns)?;
        Ok(scan
            .with_physical_schema(schema.physical_arrow())?
            .at_version(snapshot.version())
            .with_resolver(snapshot.resolver().clone()))
    }

    /// Finds columns in files by the names of `physical`, or where a field of it has an id (under the Parquet
    /// reader's key) by that: it has the shape of the table's schema, as
    /// [`MappedSchema::physical_arrow`](crate::protocol::MappedSchema::physical_arrow) has.
    ///
    /// A file without any field id is refused where ids are asked for (protocol, "Reader Requirements for
    /// Column Mapping").
    ///
    /// # Errors
    /// `InvalidArgument` if the shape is another.
    pub fn with_physical_schema(mut self, physical: &SchemaRef) -> Result<Self> {
        self.columns.map(physical).map_err(|error| error.in_table(self.storage.url()))?;
        Ok(self)
    }

    /// Reads only the top-level columns `names`, in this order. A name may differ in case from the schema's
    /// if only one column matches.
    ///
    /// # Errors
    /// `InvalidArgument` if a name is unknown, ambiguous or twice there.
    pub fn with_projection<S: AsRef<str>>(mut self, names: &[S]) -> Result<Self> {
        self.columns.project(names).map_err(|error| error.in_table(self.storage.url()))?;
        Ok(self)
    }

    /// Reads only rows for which `predicate` is true. It must be bound to the schema given to
    /// [`RowScan::new`], and after [`RowScan::with_row_ids`] may name those columns too.
    ///
    /// # Errors
    /// `InvalidArgument` if part of the predicate was not understood, or it reads a column that is not in the
    /// schema.
    pub fn with_predicate(mut self, predicate: &BoundPredicate) -> Result<Self> {
        self.columns.filter(predicate).map_err(|error| error.in_table(self.storage.url()))?;
        Ok(self)
    }

    /// Adds the columns [`ROW_ID`] and [`ROW_COMMIT_VERSION`], both `Int64` and never null, behind the
    /// others: the stable ones of row tracking (protocol, "Row Tracking").
    ///
    /// # Errors
    /// `InvalidArgument` if the table has a column of such a name.
    pub fn with_row_ids(mut self, materialized: &MaterializedRowTracking) -> Result<Self> {
        self.columns.track_rows(materialized).map_err(|error| error.in_table(self.storage.url()))?;
        Ok(self)
    }

    /// Reads deletion vectors from wherever `resolver` allows; without, from below the table.
    #[must_use]
    pub fn with_resolver(mut self, resolver: PathResolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// Says in errors that the files are those of this version of the table.
    #[must_use]
    pub fn at_version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// The most rows of a batch, 8192 if nothing is said; 0 counts as 1.
    #[must_use]
    pub fn with_batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// The most threads to read with, as many as there are processors if nothing is said. With 1 the caller's
    /// thread reads.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Lets batches of several files come mixed, which keeps all threads at work. The rows of each file still
    /// come in its order, and a handful of small files one after the other.
    #[must_use]
    pub fn in_any_order(mut self) -> Self {
        self.in_any_order = true;
        self
    }

    /// Returns strings and bytes, however deep, as Arrow's views (`Utf8View`, `BinaryView`), which saves
    /// copying them. Variants keep their form.
    #[must_use]
    pub fn with_view_types(mut self) -> Self {
        self.has_views = true;
        self
    }

    /// The schema of the batches: fields of the table's schema, in the order of the projection, and those of
    /// row ids if they are asked for.
    pub fn schema(&self) -> SchemaRef {
        let schema = self.columns.output_schema();
        if self.has_views { schema_with_views(&schema) } else { schema }
    }

    /// The rows of `files`. Nothing is read before the first batch is asked for.
    pub fn read(self, files: impl Iterator<Item = Result<DataFile>> + Send + 'static) -> RowStream {
        RowStream::new(self, Box::new(files))
    }
}

/// `schema` with the fields at `indices`.
fn projected(schema: &Schema, indices: &[usize]) -> SchemaRef {
    let fields = indices.iter().filter_map(|index| schema.fields().get(*index).cloned());
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

#[cfg(test)]
mod row_ids_tests;
#[cfg(test)]
mod selection_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod type_tests;
