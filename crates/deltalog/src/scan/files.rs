//! The file list of a snapshot as Arrow, with the requested columns and without files that cannot match a predicate.
//!
//! - Data that no requested column and no predicate needs is not decoded. The most expensive example is `stats`.
//! - Pruning uses partition values, minima, maxima and NULL counts. It only drops files that cannot match.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

use super::partitions::PartitionColumns;
use super::pruner::Pruner;
use super::statistics::StatisticsColumns;
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::{BoundPredicate, ColumnPath, Predicate};
use crate::log::replay::{
    AddRequest, FileColumn, FileColumns, FileFilter, FileReplay, apply, are_plain, deletion_vector_fields,
};
use crate::protocol::{LogPath, PathResolver, path};
use crate::snapshot::Snapshot;
use crate::values::stats::leaf_columns;

/// A column of the file list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListColumn {
    /// `path: Utf8`, decoded. It is relative to the table's root, or absolute for a file outside of the table (with a
    /// scheme if the path in the log has one).
    Path,
    /// `size: Int64`, in bytes.
    Size,
    /// `modification_time: Timestamp(ms, UTC)`.
    ModificationTime,
    /// `partition_values: Struct` with a typed field for each partition column.
    PartitionValues,
    /// `num_records: Int64`, the number of rows in the data file, including those that its deletion vector
    /// deletes; null if the statistics lack it.
    NumRecords,
    /// `stats: Struct` of `numRecords, tightBounds, minValues, maxValues, nullCount`, with the types of the
    /// columns.
    Stats,
    /// `deletion_vector: Struct` of `storage_type, path_or_inline_dv, offset, size_in_bytes, cardinality`.
    DeletionVector,
    /// `base_row_id: Int64`, the row id of the file's first row, if the table has row tracking.
    BaseRowId,
    /// `default_row_commit_version: Int64`, the commit version of all rows for which the file does not store another
    /// one, if the table has row tracking.
    DefaultRowCommitVersion,
}

impl ListColumn {
    /// All columns, in their usual order.
    pub const ALL: [Self; 9] = [
        Self::Path,
        Self::Size,
        Self::ModificationTime,
        Self::PartitionValues,
        Self::NumRecords,
        Self::Stats,
        Self::DeletionVector,
        Self::BaseRowId,
        Self::DefaultRowCommitVersion,
    ];

    /// Returns the column's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Size => "size",
            Self::ModificationTime => "modification_time",
            Self::PartitionValues => "partition_values",
            Self::NumRecords => "num_records",
            Self::Stats => "stats",
            Self::DeletionVector => "deletion_vector",
            Self::BaseRowId => "base_row_id",
            Self::DefaultRowCommitVersion => "default_row_commit_version",
        }
    }

    /// Returns the column named `name`.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for an unknown name; the hint lists the known names.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::invalid_argument(format!("the file list has no column '{name}'"))
                .with_hint(format!("choose from {names}"))
        })
    }

    fn needs(self) -> FileColumn {
        match self {
            Self::Path => FileColumn::Path,
            Self::Size => FileColumn::Size,
            Self::ModificationTime => FileColumn::ModificationTime,
            Self::PartitionValues => FileColumn::PartitionValues,
            Self::NumRecords | Self::Stats => FileColumn::Stats,
            Self::DeletionVector => FileColumn::DeletionVector,
            Self::BaseRowId => FileColumn::BaseRowId,
            Self::DefaultRowCommitVersion => FileColumn::DefaultRowCommitVersion,
        }
    }
}

/// A request for the files of a snapshot.
///
/// ```
/// use deltalog::{FileListing, Snapshot, col, lit};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// let snapshot = Snapshot::open(&storage, None)?;
/// // Files that certainly have no such row are left out.
/// let listing = FileListing::new(&snapshot).predicate(&col("id").gt(lit(2)))?;
/// let mut files = 0;
/// for batch in listing.read()? {
///     files += batch?.num_rows();
/// }
/// assert_eq!(files, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FileListing {
    snapshot: Snapshot,
    columns: Vec<ListColumn>,
    predicate: Option<BoundPredicate>,
    given: Option<Vec<RecordBatch>>,
}

impl FileListing {
    /// Requests all files with all columns.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self { snapshot: snapshot.clone(), columns: ListColumn::ALL.to_vec(), predicate: None, given: None }
    }

    /// Selects the columns and their order.
    #[must_use]
    pub fn columns(mut self, columns: impl Into<Vec<ListColumn>>) -> Self {
        self.columns = columns.into();
        self
    }

    /// Omits files that cannot contain a row for which `predicate` is true.
    ///
    /// # Errors
    /// `InvalidArgument` if the predicate does not match the schema.
    pub fn predicate(mut self, predicate: &Predicate) -> Result<Self> {
        let bound = predicate
            .bind(self.snapshot.arrow_schema())
            .map_err(|error| error.in_table(self.snapshot.storage().url()))?;
        self.predicate = Some(bound);
        Ok(self)
    }

    /// Omits files as [`FileListing::predicate`] does, but ignores parts of the predicate that are not understood. This
    /// is for engines that filter the rows again.
    #[must_use]
    pub fn pruning(mut self, predicate: &Predicate) -> Self {
        self.predicate = Some(predicate.bind_for_pruning(self.snapshot.arrow_schema()));
        self
    }

    /// Lists these files instead of the snapshot's. Their columns must be as in the log, and the schema is still the
    /// snapshot's. If they lack the column of statistics, they are only pruned by partition values.
    #[must_use]
    pub(crate) fn given(mut self, files: Vec<RecordBatch>) -> Self {
        self.given = Some(files);
        self
    }

    /// Starts the listing.
    ///
    /// # Errors
    /// Returns `CorruptLog` if the listing cannot start; errors while reading are returned with the batches.
    pub fn read(self) -> Result<FileList> {
        let snapshot = &self.snapshot;
        let partitions = PartitionColumns::of(snapshot)?;
        let is_partition =
            |path: &ColumnPath| matches!(path.parts(), [name] if partitions.fields().find(name).is_some());
        let columns = FileColumns::of(&self.columns.iter().map(|column| column.needs()).collect::<Vec<_>>());
        let pruner = self
            .predicate
            .map(|predicate| Pruner::new(predicate, snapshot.mapped_schema(), &partitions))
            .transpose()?;
        let located = |error: Error| located(error, &snapshot.storage().url(), snapshot.version());
        let source = match self.given {
            Some(files) => Source::Given {
                files: files.into_iter(),
                filters: pruner.map(Pruner::filters).unwrap_or_default(),
            },
            None => {
                let request = match pruner {
                    Some(pruner) => pruner.request(snapshot.mapped_schema(), columns),
                    None => AddRequest::new(columns),
                };
                Source::Replay(Box::new(snapshot.replay(request).map_err(located)?))
            }
        };
        let stats_columns: Vec<ColumnPath> = leaf_columns(snapshot.arrow_schema())
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| !is_partition(path))
            .collect();
        let stats = StatisticsColumns::new(snapshot.mapped_schema(), &stats_columns)?;
        let fields =
            self.columns.iter().map(|column| output_field(*column, &partitions, &stats)).collect::<Vec<_>>();
        Ok(FileList {
            source,
            resolver: snapshot.resolver().clone(),
            num_records: StatisticsColumns::new(snapshot.mapped_schema(), &[])?,
            columns: self.columns,
            schema: Arc::new(Schema::new(fields)),
            partitions,
            stats,
            table: snapshot.storage().url(),
            version: snapshot.version(),
        })
    }
}

fn located(error: Error, table: &str, version: u64) -> Error {
    let error = error.in_table(table).at_version(version);
    match error.kind() {
        ErrorKind::CorruptLog => {
            error.with_hint("read an older version: the log is damaged, or a writer violated the protocol")
        }
        _ => error,
    }
}

fn output_field(column: ListColumn, partitions: &PartitionColumns, stats: &StatisticsColumns) -> Field {
    let data_type = match column {
        ListColumn::Path => DataType::Utf8,
        ListColumn::Size
        | ListColumn::NumRecords
        | ListColumn::BaseRowId
        | ListColumn::DefaultRowCommitVersion => DataType::Int64,
        ListColumn::ModificationTime => {
            DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, Some("UTC".into()))
        }
        ListColumn::PartitionValues => DataType::Struct(partitions.fields().clone()),
        ListColumn::Stats => DataType::Struct(stats.fields().clone()),
        ListColumn::DeletionVector => DataType::Struct(renamed_deletion_vector_fields()),
    };
    Field::new(column.name(), data_type, !matches!(column, ListColumn::Path | ListColumn::Size))
}

/// Returns the fields of deletion vector descriptors, with the names that they have in the file list.
fn renamed_deletion_vector_fields() -> Fields {
    let names = ["storage_type", "path_or_inline_dv", "offset", "size_in_bytes", "cardinality"];
    deletion_vector_fields()
        .iter()
        .zip(names)
        .map(|(field, name)| Field::new(name, field.data_type().clone(), true))
        .collect()
}

impl FileListing {
    /// Returns the listed files with the column names and types of the log.
    ///
    /// # Errors
    /// Returns the same errors as [`FileListing::read`].
    pub fn kept(self) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
        let mut list = self.read()?;
        Ok(std::iter::from_fn(move || list.next_kept()))
    }
}

impl FileListing {
    /// Returns the path of each file. A path shows whether the file is in the table's directory.
    ///
    /// # Errors
    /// Returns the same errors as [`FileListing::read`].
    pub fn paths(self) -> Result<impl Iterator<Item = Result<LogPath>>> {
        let mut list = self.columns([ListColumn::Path]).read()?;
        let batches = std::iter::from_fn(move || {
            let batch = list.next_kept()?;
            let paths = batch.and_then(|batch| list.log_paths(&batch).map_err(|error| list.located(error)));
            Some(paths.map_or_else(|error| vec![Err(error)], |paths| paths.into_iter().map(Ok).collect()))
        });
        Ok(batches.flatten())
    }
}

/// The source of a file list. It yields the files as batches with the log's columns.
enum Source {
    Replay(Box<FileReplay>),
    Given { files: std::vec::IntoIter<RecordBatch>, filters: Vec<FileFilter> },
}

impl Iterator for Source {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Replay(replay) => replay.next(),
            Self::Given { files, filters } => files.next().map(|files| kept(files, filters)),
        }
    }
}

/// Returns the files that all `filters` keep. Filters that need a column which the files lack are skipped.
fn kept(files: RecordBatch, filters: &[FileFilter]) -> Result<RecordBatch> {
    let has = |column: FileColumn| files.column_by_name(column.name()).is_some();
    let usable = filters.iter().filter(|filter| filter.columns.iter().all(has));
    apply(&usable.cloned().collect::<Vec<_>>(), files)
}

/// An iterator over the batches of a file list.
pub struct FileList {
    source: Source,
    resolver: PathResolver,
    columns: Vec<ListColumn>,
    schema: SchemaRef,
    partitions: PartitionColumns,
    stats: StatisticsColumns,
    /// The statistics to decode for `num_records`, which are only the row counts.
    num_records: StatisticsColumns,
    table: String,
    version: u64,
}

impl FileList {
    /// Returns the schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the number of files examined so far, whether they are kept or not. With a predicate, the number
    /// includes files in a checkpoint that newer commits have replaced.
    pub fn seen(&self) -> u64 {
        match &self.source {
            Source::Replay(replay) => replay.looked_at(),
            Source::Given { .. } => 0,
        }
    }

    fn output(&self, column: ListColumn, batch: &RecordBatch) -> Result<ArrayRef> {
        match column {
            ListColumn::Path => decoded_paths(required(batch, FileColumn::Path)?, &self.resolver),
            ListColumn::Size | ListColumn::BaseRowId | ListColumn::DefaultRowCommitVersion => {
                Ok(Arc::clone(required(batch, column.needs())?))
            }
            ListColumn::ModificationTime => {
                let times = required(batch, FileColumn::ModificationTime)?
                    .as_primitive::<arrow::datatypes::Int64Type>();
                let times = times.reinterpret_cast::<arrow::datatypes::TimestampMillisecondType>();
                Ok(Arc::new(times.with_timezone("UTC")))
            }
            ListColumn::PartitionValues => Ok(Arc::new(self.partitions.parse(partition_map(batch)?)?)),
            ListColumn::NumRecords => {
                let stats = self.num_records.decode(texts(batch)?)?;
                stats
                    .column_by_name("numRecords")
                    .cloned()
                    .ok_or_else(|| Error::corrupt_log("the statistics have no column 'numRecords'"))
            }
            ListColumn::Stats => Ok(Arc::new(self.stats.decode(texts(batch)?)?)),
            ListColumn::DeletionVector => {
                let whole = required(batch, FileColumn::DeletionVector)?.as_struct();
                let renamed = StructArray::try_new(
                    renamed_deletion_vector_fields(),
                    whole.columns().to_vec(),
                    whole.nulls().cloned(),
                );
                Ok(Arc::new(renamed.map_err(|error| {
                    Error::corrupt_log("the deletion vectors do not match their columns").with_source(error)
                })?))
            }
        }
    }

    /// Returns the next batch of files that may match, with the columns of the log.
    pub(super) fn next_kept(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            match self.source.next()? {
                Ok(batch) if batch.num_rows() == 0 => {}
                batch => return Some(batch.map_err(|error| self.located(error))),
            }
        }
    }

    fn log_paths(&self, batch: &RecordBatch) -> Result<Vec<LogPath>> {
        let paths = required(batch, FileColumn::Path)?.as_string_opt::<i32>();
        let paths = paths.ok_or_else(|| Error::corrupt_log("the column 'path' does not hold strings"))?;
        paths.iter().map(|raw| self.resolver.parse(raw.unwrap_or_default())).collect()
    }

    /// Adds the table and its version to `error`.
    pub(super) fn located(&self, error: Error) -> Error {
        located(error, &self.table, self.version)
    }

    fn convert(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns =
            self.columns.iter().map(|column| self.output(*column, batch)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| Error::corrupt_log("an add action lacks a required field").with_source(error))
    }
}

impl Iterator for FileList {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_kept()?;
        Some(batch.and_then(|batch| self.convert(&batch).map_err(|error| self.located(error))))
    }
}

pub(super) fn required(batch: &RecordBatch, column: FileColumn) -> Result<&ArrayRef> {
    batch
        .column_by_name(column.name())
        .ok_or_else(|| Error::corrupt_log(format!("file actions have no column '{}'", column.name())))
}

fn texts(batch: &RecordBatch) -> Result<impl Iterator<Item = Option<&str>>> {
    let stats = required(batch, FileColumn::Stats)?.as_string_opt::<i32>();
    Ok(stats.ok_or_else(|| Error::corrupt_log("the column 'stats' does not hold strings"))?.iter())
}

pub(super) fn partition_map(batch: &RecordBatch) -> Result<&arrow::array::MapArray> {
    required(batch, FileColumn::PartitionValues)?
        .as_map_opt()
        .ok_or_else(|| Error::corrupt_log("the column 'partitionValues' does not hold maps"))
}

/// Decodes the paths. Returns the same array if no path needs decoding. The path of a file outside of the table is
/// decoded, but otherwise left as it is in the log.
fn decoded_paths(paths: &ArrayRef, resolver: &PathResolver) -> Result<ArrayRef> {
    let texts = paths
        .as_string_opt::<i32>()
        .ok_or_else(|| Error::corrupt_log("the column 'path' does not hold strings"))?;
    if are_plain(texts) {
        return Ok(Arc::clone(paths));
    }
    let decode = |raw: &str| match resolver.parse(raw)? {
        LogPath::Relative(path) => Ok(path),
        LogPath::Absolute(_) => Ok(path::decode(raw)?.into_owned()),
    };
    Ok(Arc::new(
        texts.iter().map(|raw| decode(raw.unwrap_or_default()).map(Some)).collect::<Result<StringArray>>()?,
    ))
}
