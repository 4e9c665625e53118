//! Opens a data file, plans which parts of it to read, and reads them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowSelection};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use super::batches::FileBatches;
use super::blooms::groups_by_filters;
use super::columns::{FileFields, NeededColumn, has_ids};
use super::faults::WatchedFile;
use super::footer::{check_codecs, read_footer, with_page_indexes, with_sizes, with_types};
use super::groups::matching_groups;
use super::pages::matching_pages;
use super::places::Places;
use super::plan::{Plan, leaf_count};
use super::row_ids::{self, RowIds};
use super::selection::{SelectedRows, group_rows};
use super::views::with_views;
use super::{DataFile, FileRows, PartitionRow, RowScan};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::filter_mask;
use crate::log::deletion_vector::DeletionVectors;
use crate::protocol::LogPath;
use crate::protocol::schema::type_name;
use crate::runtime::row_bytes::weight;
use crate::values::calendar::FileCalendar;
use crate::values::conversion::{Misfit, convert, is_convertible};
use crate::values::footer::decoded_bytes;

/// The maximum size of the predicate's columns that are kept until the other columns are read, in batches.
const KEPT_BATCHES: usize = 4;

/// The state that all files of a scan share.
#[derive(Debug)]
pub(super) struct Opener {
    pub(super) scan: RowScan,
    columns: Vec<NeededColumn>,
    /// The needed columns, followed by the row id columns.
    pub(super) schema: SchemaRef,
    /// The indices of the columns to return.
    pub(super) output: Vec<usize>,
    pub(super) output_schema: SchemaRef,
    pub(super) stages: Stages,
    vectors: DeletionVectors,
}

/// The stages in which columns are read. Columns are given as indices into the needed columns.
#[derive(Debug, Default)]
pub(super) struct Stages {
    /// The columns that the predicate reads, and the row ids; empty without a predicate.
    pub(super) first: Vec<usize>,
    /// The columns in `first` that are also returned.
    pub(super) kept: Vec<usize>,
    pub(super) rest: Vec<usize>,
    /// The row id columns in `kept`.
    pub(super) ids: Vec<usize>,
    /// The columns in `kept` and `rest`, except for the row ids.
    pub(super) again: Vec<usize>,
    /// Whether each column is in `first`.
    are_first: Vec<bool>,
}

/// An open file and what to read from it.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// The file's name, for messages.
    pub(super) name: String,
    pub(super) file: WatchedFile,
    pub(super) metadata: ArrowReaderMetadata,
    /// The leaf columns of the file that are read first.
    pub(super) first: Vec<usize>,
    pub(super) rest: Vec<usize>,
    pub(super) sources: Vec<Source>,
    /// The locations of the predicate's columns in the file.
    places: Option<Places>,
    /// The row numbers of each row group. This is empty if they are not needed, for example because all rows are read
    /// and no row ids are requested.
    pub(super) group_rows: Vec<Range<u64>>,
    pub(super) rows: SelectedRows,
    pub(super) row_ids: Option<RowIds>,
    /// The row groups that may contain matching rows.
    pub(super) groups: Vec<usize>,
}

/// The source of a column's values.
#[derive(Debug)]
pub(super) enum Source {
    /// The same value in all rows, as an array with one value.
    Constant(ArrayRef),
    /// The file's column with this name.
    File(String, Plan),
}

impl Stages {
    fn new(scan: &RowScan, columns: &[NeededColumn], row_ids: usize, output: &[usize]) -> Self {
        let all = 0..columns.len() + row_ids;
        let Some(predicate) = &scan.columns.row_predicate else {
            return Self { rest: all.collect(), ..Self::default() };
        };
        let names: HashSet<&String> =
            predicate.columns().iter().filter_map(|column| column.path.parts().first()).collect();
        let (first, rest): (Vec<_>, Vec<_>) = all
            .partition(|index| columns.get(*index).is_none_or(|column| names.contains(column.field.name())));
        let output: HashSet<&usize> = output.iter().collect();
        let mut are_first = vec![false; first.len() + rest.len()];
        for index in &first {
            are_first.get_mut(*index).into_iter().for_each(|is_first| *is_first = true);
        }
        let kept: Vec<usize> = first.iter().copied().filter(|index| output.contains(index)).collect();
        let (of_file, ids): (Vec<_>, Vec<_>) = kept.iter().copied().partition(|index| *index < columns.len());
        let mut again = [of_file, rest.clone()].concat();
        again.sort_unstable();
        Self { first, kept, rest, ids, again, are_first }
    }

    /// Returns whether a column is read in the first stage.
    pub(super) fn is_first(&self, index: usize) -> bool {
        self.are_first.get(index).is_some_and(|is_first| *is_first)
    }
}

impl Opener {
    pub(super) fn new(scan: RowScan) -> Self {
        let mut columns = scan.columns.needed();
        let row_ids: Vec<FieldRef> =
            scan.columns.row_tracking.iter().flat_map(|_| row_ids::fields()).collect();
        let output: Vec<usize> =
            (0..scan.columns.output_len()).chain(columns.len()..columns.len() + row_ids.len()).collect();
        let stages = Stages::new(&scan, &columns, row_ids.len(), &output);
        if scan.has_views {
            // Columns that the predicate reads are converted to views only when they are returned.
            for (index, column) in columns.iter_mut().enumerate() {
                if !stages.is_first(index) {
                    column.field = with_views(&column.field);
                }
            }
        }
        // The output schema is a projection of this schema, except for views, so it has the same metadata.
        let output_schema = scan.schema();
        let fields: Fields = columns.iter().map(|column| Arc::clone(&column.field)).chain(row_ids).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, output_schema.metadata().clone()));
        let vectors = DeletionVectors::new(scan.storage.clone(), scan.resolver.clone());
        Self { scan, columns, schema, output, output_schema, stages, vectors }
    }

    /// Adds the file, the table and the version to `error`.
    pub(super) fn located(&self, error: Error, name: &str) -> Error {
        let error = error.at_path(name).in_table(self.scan.storage.url());
        match self.scan.version {
            Some(version) => error.at_version(version),
            None => error,
        }
    }

    /// Opens `file`; returns `None` if its partition values show that no row matches.
    ///
    /// # Errors
    /// `FileNotFound`, `Unavailable`, `PermissionDenied`, `CorruptData`.
    pub(super) fn open(&self, file: &DataFile) -> Result<Option<OpenFile>> {
        let name = file.path.to_string();
        self.open_named(file, &name).map_err(|error| self.located(error, &name))
    }

    fn open_named(&self, file: &DataFile, name: &str) -> Result<Option<OpenFile>> {
        let partition =
            self.scan.columns.partition_batch(|field| partition_value(&file.partition_values, field))?;
        if let Some(predicate) = &self.scan.columns.file_predicate {
            let mask = filter_mask(predicate, &partition)?;
            if !(mask.is_valid(0) && mask.value(0)) {
                return Ok(None);
            }
        }
        let watched = WatchedFile::new(self.open_path(&file.path)?);
        let metadata = read_footer(&watched).map_err(|error| with_sizes(error, file.size, &watched))?;
        let fields = metadata.schema().fields();
        if fields.iter().map(|field| leaf_count(field.data_type())).sum::<usize>()
            != metadata.parquet_schema().num_columns()
        {
            return Err(Error::corrupt_data(
                "the file's schema cannot be converted to Arrow with the same leaf columns",
            ));
        }
        if self.scan.columns.has_ids() && !has_ids(fields) {
            return Err(Error::corrupt_data(
                "the file has no field ids, but the table finds columns by id (column mapping mode 'id')",
            ));
        }
        let calendar = FileCalendar::of(metadata.metadata());
        let (mut first, mut rest, mut sources) =
            (Vec::new(), Vec::new(), Vec::with_capacity(self.columns.len()));
        let in_footer = FileFields::new(fields);
        for (index, NeededColumn { field, in_files, is_partition }) in self.columns.iter().enumerate() {
            let leaves = if self.stages.is_first(index) { &mut first } else { &mut rest };
            let is_given = *is_partition || file.partition_values.gives(field.name());
            let is_stored = !is_given && *field.data_type() != DataType::Null;
            let in_file = if is_stored { in_footer.find(in_files, field.name())? } else { None };
            sources.push(match in_file {
                Some((found, leaf)) => {
                    let in_file = (found.data_type(), &calendar);
                    let plan = Plan::new([field, in_files], in_file, leaf, field.name(), leaves)?;
                    Source::File(found.name().clone(), plan)
                }
                None if is_given => Source::Constant(partition_value(&file.partition_values, field)?),
                None => Source::Constant(new_null_array(field.data_type(), 1)),
            });
        }
        let row_ids = match &self.scan.columns.row_tracking {
            Some(names) => {
                let leaves = if self.stages.first.is_empty() { &mut rest } else { &mut first };
                Some(RowIds::new(file.row_tracking, names, fields, leaves)?)
            }
            None => None,
        };
        let (groups, places) = match &self.scan.columns.row_predicate {
            Some(predicate) => {
                let given = self.with_given(partition, &file.partition_values)?;
                let places = Places::new(
                    predicate,
                    &self.scan.columns,
                    (metadata.schema(), &calendar),
                    metadata.metadata(),
                    &given,
                )?;
                (matching_groups(predicate, &places, metadata.metadata())?, Some(places))
            }
            None => ((0..metadata.metadata().num_row_groups()).collect(), None),
        };
        let (groups, group_rows, rows) = self.select(file, metadata.metadata(), groups)?;
        let groups = match (&self.scan.columns.row_predicate, &places) {
            (Some(predicate), Some(places)) => {
                groups_by_filters(predicate, places, metadata.metadata(), (&watched, name), groups)?
            }
            _ => groups,
        };
        check_codecs(&metadata, &groups, first.iter().chain(&rest))?;
        // Computing row ids requires counting rows, so pages cannot be skipped.
        let metadata = match places.as_ref().filter(|_| row_ids.is_none()) {
            Some(places) if places.have_pages(metadata.metadata(), &groups) => {
                with_page_indexes(metadata, &watched)
            }
            _ => metadata,
        };
        let metadata =
            if self.scan.has_views { with_types(metadata, &type_of(&sources), &watched)? } else { metadata };
        Ok(Some(OpenFile {
            name: name.to_owned(),
            file: watched,
            metadata,
            first,
            rest,
            sources,
            places,
            group_rows,
            rows,
            row_ids,
            groups,
        }))
    }

    /// Adds the values that `row` has for other columns to `partition`, which has the values of the partition columns.
    fn with_given(&self, partition: RecordBatch, row: &PartitionRow) -> Result<RecordBatch> {
        let others: Vec<_> = self
            .columns
            .iter()
            .filter(|column| !column.is_partition && row.gives(column.field.name()))
            .collect();
        if others.is_empty() {
            return Ok(partition);
        }
        let (mut fields, mut values) = (partition.schema().fields().to_vec(), partition.columns().to_vec());
        for column in others {
            fields.push(Arc::new(column.field.as_ref().clone().with_nullable(true)));
            values.push(partition_value(row, &column.field)?);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), values).map_err(|error| {
            Error::invalid_argument("the values given for a file do not match the schema").with_source(error)
        })
    }

    /// Selects the rows of `file` to read. Returns the row groups in `groups` that contain such rows, the row numbers
    /// of each row group of the file, and the selected rows.
    fn select(
        &self,
        file: &DataFile,
        metadata: &ParquetMetaData,
        mut groups: Vec<usize>,
    ) -> Result<(Vec<usize>, Vec<Range<u64>>, SelectedRows)> {
        let needs_numbers = file.rows != FileRows::All || self.scan.columns.row_tracking.is_some();
        if !needs_numbers || groups.is_empty() {
            return Ok((groups, Vec::new(), SelectedRows::All));
        }
        let ranges = group_rows(metadata)?;
        let rows = SelectedRows::read(&file.rows, &self.vectors, ranges.last().map_or(0, |last| last.end))?;
        groups.retain(|group| ranges.get(*group).is_some_and(|range| rows.has_any(range)));
        Ok((groups, ranges, rows))
    }

    fn open_path(&self, path: &LogPath) -> Result<crate::storage::FileReader> {
        self.scan.storage.open_log_path(path).map_err(|error| match error.kind() {
            ErrorKind::FileNotFound => error.with_hint(crate::storage::MISSING_FILE_HINT),
            _ => error,
        })
    }

    /// Returns the rows in the row groups `groups` of `file`. Up to `threads` threads may share the work on the
    /// columns.
    ///
    /// # Errors
    /// `CorruptData`, `Unavailable`.
    pub(super) fn batches(
        self: &Arc<Self>,
        file: Arc<OpenFile>,
        groups: Vec<usize>,
        threads: usize,
    ) -> Result<FileBatches> {
        FileBatches::new(Arc::clone(self), file, groups, threads)
    }
}

impl OpenFile {
    /// Returns the uncompressed size in bytes of a row of `group` in the file.
    fn bytes_of_row(&self, group: &RowGroupMetaData) -> f64 {
        let chunks = self.first.iter().chain(&self.rest).filter_map(|leaf| group.columns().get(*leaf));
        chunks.map(|chunk| chunk.uncompressed_size().max(0) as f64).sum::<f64>()
            / (group.num_rows().max(1) as f64)
    }

    /// Estimates the size in bytes of `rows` decoded rows.
    pub(super) fn bytes_of_rows(&self, group: usize, rows: usize) -> usize {
        (self.decoded_row(group) * rows as f64) as usize
    }

    /// Returns how many rows of these row groups are read at once.
    pub(super) fn rows_at_once(&self, scan: &RowScan, groups: &[usize]) -> usize {
        let rows =
            groups.iter().map(|group| scan.batch_bytes.rows(self.decoded_row(*group), scan.batch_rows));
        rows.min().unwrap_or(scan.batch_rows)
    }

    /// Estimates the size in bytes of a decoded row of `group`, including constant columns.
    fn decoded_row(&self, group: usize) -> f64 {
        let Some(group) = self.metadata.metadata().row_groups().get(group) else { return 0.0 };
        let constants = self.sources.iter().filter_map(|source| match source {
            Source::Constant(value) => Some(weight(value, 0, value.len()) as f64),
            Source::File(..) => None,
        });
        decoded_leaves(group, self.first.iter().chain(&self.rest)) + constants.sum::<f64>()
    }

    /// Estimates the size in bytes of a decoded row with the leaf columns `leaves`, in the row group where it is
    /// largest.
    pub(super) fn bytes_of_leaves(&self, groups: &[usize], leaves: &[usize]) -> f64 {
        let groups = groups.iter().filter_map(|group| self.metadata.metadata().row_groups().get(*group));
        groups.map(|group| decoded_leaves(group, leaves.iter())).fold(0.0, f64::max)
    }

    /// Returns whether the columns that the predicate reads are so large in `group` that they are read again instead
    /// of kept.
    pub(super) fn reads_again(&self, scan: &RowScan, group: usize) -> bool {
        let Some(group) = self.metadata.metadata().row_groups().get(group) else { return false };
        let chunks = self.first.iter().filter_map(|leaf| group.columns().get(*leaf));
        chunks.map(decoded_bytes).sum::<f64>() > Self::most_kept(scan) as f64
    }

    /// Returns the maximum number of bytes of the predicate's columns that are kept in memory.
    pub(super) fn most_kept(scan: &RowScan) -> usize {
        KEPT_BATCHES.saturating_mul(scan.batch_bytes.target())
    }

    /// Returns whether more than one column is left to read after the predicate's columns.
    pub(super) fn has_several_columns(&self) -> bool {
        let root = |leaf: &usize| self.metadata.parquet_schema().get_column_root_idx(*leaf);
        self.rest.first().is_some_and(|first| self.rest.iter().any(|leaf| root(leaf) != root(first)))
    }

    /// Estimates the size in bytes of the largest row group to be read.
    pub(super) fn bytes_of_largest_group(&self) -> usize {
        let groups = self.groups.iter().filter_map(|group| self.metadata.metadata().row_groups().get(*group));
        groups
            .map(|group| (self.bytes_of_row(group) * group.num_rows().max(0) as f64) as usize)
            .max()
            .unwrap_or_default()
    }

    /// Returns the rows of `group` in the pages that may contain a matching row; `None` if no page can be skipped.
    pub(super) fn pages_to_read(&self, opener: &Opener, group: usize) -> Result<Option<RowSelection>> {
        match (&opener.scan.columns.row_predicate, &self.places) {
            (Some(predicate), Some(places)) => {
                matching_pages(predicate, places, self.metadata.metadata(), group)
            }
            _ => Ok(None),
        }
    }
}

/// Estimates the size in bytes of a decoded row of `group` with the leaf columns `leaves`.
fn decoded_leaves<'a>(group: &RowGroupMetaData, leaves: impl Iterator<Item = &'a usize>) -> f64 {
    let chunks = leaves.filter_map(|leaf| group.columns().get(*leaf));
    chunks.map(decoded_bytes).sum::<f64>() / (group.num_rows().max(1) as f64)
}

/// Returns a function that gives the type with which each column of a file is read.
fn type_of(sources: &[Source]) -> impl Fn(&FieldRef) -> DataType {
    let plans: HashMap<&String, &Plan> = sources
        .iter()
        .filter_map(|source| match source {
            Source::File(name, plan) => Some((name, plan)),
            Source::Constant(_) => None,
        })
        .collect();
    move |field| {
        let plan = plans.get(field.name());
        plan.map_or_else(|| field.data_type().clone(), |plan| plan.read_as(field.data_type()))
    }
}

/// Returns the file's value of the partition column `field`, as an array with one value.
fn partition_value(row: &PartitionRow, field: &FieldRef) -> Result<ArrayRef> {
    let unfit = |what: &str| {
        Error::invalid_argument(format!("the file's value of partition column '{}' {what}", field.name()))
    };
    let values = row.values.column_by_name(field.name()).ok_or_else(|| unfit("is not given"))?;
    let value = if row.values.is_null(row.row) {
        new_null_array(values.data_type(), 1)
    } else {
        values.slice(row.row, 1)
    };
    if !is_convertible(value.data_type(), field.data_type()) {
        return Err(unfit(&format!(
            "has the type {} instead of {}",
            type_name(value.data_type()),
            type_name(field.data_type())
        )));
    }
    convert(&value, field.data_type(), Misfit::Error)
        .map_err(|error| unfit("does not fit in its type").with_source(error))
}
