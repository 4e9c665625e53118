//! Reads the rows of one kind of file action, row group by row group, as columns of [`crate::log::replay::FileColumn`].
//!
//! - Statistics are read from the JSON text in `stats`. If a row group has no such text
//!   (`delta.checkpoint.writeStatsAsJson` is false), `stats_parsed` is read and converted to JSON. The same applies to
//!   `partitionValues` and `partitionValues_parsed`.
//! - A filter that can use `stats_parsed` directly requests the leaf columns that it needs, so that the text is not
//!   read.
//! - Filters run while rows are decoded. In the other columns, the rows that the filters reject are skipped, by whole
//!   pages where possible.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{and, filter_record_batch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::{ArrowPredicate, ArrowPredicateFn};
use parquet::file::metadata::ParquetMetaData;

use super::batches::Batches;
use super::normalize::normalized;
use super::parquet_file::{ParquetFile, Piece, damaged_by};
use super::parsed::{partition_values_text, stats_text};
use crate::error::{Error, Result};
use crate::log::replay::columns::{FileColumn, FileColumns, remove_fields};
use crate::log::replay::filter::{FileFilter, Keep};
use crate::values::calendar::may_be_old;

/// The column that [`FileFilter::parsed_stats`] adds.
pub(crate) const STATS_PARSED: &str = "stats_parsed";

/// Decides from the footer of a checkpoint file whether a row group may contain a wanted file.
pub type RowGroupFilter = Arc<dyn Fn(&ParquetMetaData, usize) -> bool + Send + Sync>;

/// What to read from the `add` actions.
#[derive(Clone, Default)]
pub struct AddRequest {
    /// The columns to return.
    pub columns: FileColumns,
    /// The filters for files. Files that a filter rejects are left out.
    pub filters: Vec<FileFilter>,
    /// A filter for row groups. Row groups that it rejects are not read.
    pub row_groups: Option<RowGroupFilter>,
    /// Counts the files that reach the filters. If there are filters, files of the checkpoint that newer commits have
    /// replaced are counted too.
    pub looked_at: Arc<AtomicU64>,
}

impl AddRequest {
    /// Requests `columns` without filters.
    pub fn new(columns: FileColumns) -> Self {
        Self { columns, ..Self::default() }
    }
}

/// What to read from `add` or `remove` actions.
#[derive(Clone)]
pub(super) struct RowRequest {
    pub(super) columns: Columns,
    filters: Vec<FileFilter>,
    row_groups: Option<RowGroupFilter>,
    looked_at: Arc<AtomicU64>,
}

/// The columns of an action.
#[derive(Clone)]
pub(super) struct Columns {
    action: &'static str,
    fields: Vec<Field>,
    schema: SchemaRef,
    parsed_stats: Option<Arc<[Vec<String>]>>,
    prefers_text: bool,
}

impl Columns {
    fn new(action: &'static str, fields: Vec<Field>) -> Self {
        Self {
            action,
            schema: Arc::new(Schema::new(fields.clone())),
            fields,
            parsed_stats: None,
            prefers_text: false,
        }
    }

    fn of_adds(columns: FileColumns) -> Self {
        Self::new("add", columns.iter().map(FileColumn::field).collect())
    }

    fn wants(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name() == name)
    }

    /// Returns how to read the requested columns from row group `group` of `file`.
    fn decoding(&self, file: &ParquetFile, group: usize) -> Decoding {
        let has = |name: &str| {
            let leaf = match name {
                // Writers name the entries of a map differently, so any column below the map will do.
                "partitionValues" => file.first_below(&[self.action, name]),
                name => file.leaf(&[self.action, name]),
            };
            leaf.is_some_and(|leaf| file.may_have(group, leaf))
        };
        let is_old = may_be_old(file.metadata());
        let has_parsed = |name: &str| file.has_below(&[self.action, name]);
        let has_map = file.has_below(&[self.action, "partitionValues"]);
        let stats = match &self.parsed_stats {
            // Structs with dates in Spark's old calendar are ignored, because their values differ from the dates in the
            // JSON text.
            _ if is_old || !self.wants("stats") || !has_parsed(STATS_PARSED) => Form::Text,
            Some(paths) if !(self.prefers_text && has("stats")) => Form::Struct(Arc::clone(paths)),
            _ if has("stats") => Form::Text,
            _ => Form::StructAsText,
        };
        let is_add = self.action == "add";
        let partitions_as_text = is_add
            && self.wants("partitionValues")
            && has_parsed("partitionValues_parsed")
            && !(has_map && has("partitionValues"));
        let marker = if is_add && file.is_nullable(self.action) && file.leaf(&[self.action, "size"]).is_some()
        {
            "size"
        } else {
            "path"
        };
        Decoding { columns: self.clone(), marker, stats, partitions_as_text, is_old }
    }
}

impl RowRequest {
    pub(super) fn adds(request: &AddRequest) -> Self {
        Self {
            columns: Columns::of_adds(request.columns),
            filters: request.filters.clone(),
            row_groups: request.row_groups.clone(),
            looked_at: Arc::clone(&request.looked_at),
        }
    }

    pub(super) fn removes() -> Self {
        Self {
            columns: Columns::new("remove", remove_fields()),
            filters: Vec::new(),
            row_groups: None,
            looked_at: Arc::default(),
        }
    }

    /// Requests the columns that identify the files of `action`.
    pub(super) fn keys(action: &'static str) -> Self {
        let fields = [FileColumn::Path, FileColumn::DeletionVector].map(FileColumn::field).to_vec();
        Self { columns: Columns::new(action, fields), ..Self::removes() }
    }

    /// Returns whether there are filters that may reject rows.
    pub(super) fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Returns the row groups of `file` that may contain requested rows.
    pub(super) fn groups(&self, file: &ParquetFile) -> Vec<usize> {
        let mut groups = file.groups_with(self.columns.action, "path");
        if let Some(filter) = &self.row_groups {
            groups.retain(|group| filter(file.metadata(), *group));
        }
        groups
    }

    /// Returns the filters for a row group. The first filter adds the number of files that it sees to `looked_at`,
    /// which starts from 0 each time, because the filters may have to run again.
    fn predicates(
        &self,
        file: &ParquetFile,
        group: usize,
        looked_at: &Arc<AtomicU64>,
    ) -> Vec<Box<dyn ArrowPredicate>> {
        looked_at.store(0, Ordering::Relaxed);
        let predicate = |(number, filter): (usize, &FileFilter)| {
            let columns = Columns {
                parsed_stats: filter.parsed_stats.clone(),
                prefers_text: filter.prefers_text,
                ..Columns::of_adds(filter.columns)
            };
            let (decoding, keep) = (columns.decoding(file, group), Arc::clone(&filter.keep));
            let looked_at = (number == 0).then(|| Arc::clone(looked_at));
            let mask = file.mask(|path| decoding.wants_leaf(path));
            Box::new(ArrowPredicateFn::new(mask, move |batch| {
                decide(&decoding, &*keep, looked_at.as_deref(), &batch)
            })) as Box<dyn ArrowPredicate>
        };
        self.filters.iter().enumerate().map(predicate).collect()
    }

    /// Starts decoding a piece of a file.
    pub(super) fn open(&self, file: &ParquetFile, Piece { group, rows }: Piece) -> Result<RowBatches> {
        let decoding = self.columns.decoding(file, group);
        let looked_at = Arc::<AtomicU64>::default();
        let filters = {
            let (request, file, looked_at) = (self.clone(), file.clone(), Arc::clone(&looked_at));
            move || request.predicates(&file, group, &looked_at)
        };
        let mask = file.mask(|path| decoding.wants_leaf(path));
        let batches = file.read(vec![group], rows, mask, Box::new(filters))?;
        // `read` has run the filters, so they have seen all rows.
        self.looked_at.fetch_add(looked_at.load(Ordering::Relaxed), Ordering::Relaxed);
        let counts = self.filters.is_empty().then(|| Arc::clone(&self.looked_at));
        Ok(RowBatches { decoding, counts, path: Arc::clone(&file.path), batches })
    }
}

/// Returns which rows of `batch` contain a file that `keep` accepts.
fn decide(
    decoding: &Decoding,
    keep: &Keep,
    looked_at: Option<&AtomicU64>,
    batch: &RecordBatch,
) -> std::result::Result<BooleanArray, ArrowError> {
    let external = |error: Error| ArrowError::ExternalError(Box::new(error));
    let Some((rows, present)) = decoding.rows(batch).map_err(external)? else {
        return Ok(vec![false; batch.num_rows()].into());
    };
    let present = present.filter(|present| present.null_count() > 0);
    if let Some(looked_at) = looked_at {
        looked_at.fetch_add(
            (batch.num_rows() - present.as_ref().map_or(0, NullBuffer::null_count)) as u64,
            Ordering::Relaxed,
        );
    }
    let keep = keep(&rows).map_err(external)?;
    match present {
        Some(present) => and(&keep, &BooleanArray::new(present.into_inner(), None)),
        None => Ok(keep),
    }
}

fn is_wanted_statistic(path: &[String], wanted: &[Vec<String>]) -> bool {
    match path {
        [name] => matches!(name.as_str(), "numRecords" | "tightBounds"),
        [kind, column @ ..] => {
            matches!(kind.as_str(), "minValues" | "maxValues" | "nullCount")
                && wanted.iter().any(|path| path == column)
        }
        [] => false,
    }
}

/// The way in which statistics are read.
enum Form {
    /// From the JSON text of `stats`, where a row has it.
    Text,
    /// From these leaf columns of `stats_parsed`, unchanged.
    Struct(Arc<[Vec<String>]>),
    /// From `stats_parsed`, converted to JSON text.
    StructAsText,
}

/// How the columns of a row group are read.
struct Decoding {
    columns: Columns,
    /// The column that is read to determine which rows have the action. This is `path`, which every action has, unless
    /// the nulls of the action's struct show which rows have it: then `size` is read, because any column is enough.
    marker: &'static str,
    stats: Form,
    partitions_as_text: bool,
    /// Whether dates and timestamps are in Spark's old calendar.
    is_old: bool,
}

impl Decoding {
    /// Returns whether the leaf column at `path` must be decoded.
    fn wants_leaf(&self, path: &[String]) -> bool {
        let [root, child, below @ ..] = path else { return false };
        if root != self.columns.action {
            return false;
        }
        match (child.as_str(), &self.stats) {
            ("stats", Form::Struct(_) | Form::StructAsText) => false,
            (STATS_PARSED, Form::StructAsText) => true,
            (STATS_PARSED, Form::Struct(paths)) => is_wanted_statistic(below, paths),
            ("partitionValues_parsed", _) => self.partitions_as_text,
            (name, _) => name == self.marker || self.columns.wants(name),
        }
    }

    /// Returns the rows with the log's columns, and a mask that is true for rows that have the action. Without a mask,
    /// all rows have it. Returns `None` if no row has it.
    fn rows(&self, batch: &RecordBatch) -> Result<Option<(RecordBatch, Option<NullBuffer>)>> {
        let columns = &self.columns;
        let Some(action) = batch.column_by_name(columns.action).and_then(|column| column.as_struct_opt())
        else {
            return Ok(None);
        };
        let present = match action.column_by_name("path") {
            Some(path) => NullBuffer::union(action.nulls(), path.nulls()),
            None if self.marker == "path" => {
                return Err(Error::corrupt_log(format!("'{}' has no column 'path'", columns.action)));
            }
            None => action.nulls().cloned(),
        };
        if present.as_ref().is_some_and(|present| present.null_count() == present.len()) {
            return Ok(None);
        }
        let mut fields = columns.fields.clone();
        let mut arrays = fields.iter().map(|field| self.column(action, field)).collect::<Result<Vec<_>>>()?;
        if let (Form::Struct(_), Some(parsed)) = (&self.stats, action.column_by_name(STATS_PARSED)) {
            fields.push(Field::new(STATS_PARSED, parsed.data_type().clone(), true));
            arrays.push(Arc::clone(parsed));
        }
        let schema = if fields.len() == columns.fields.len() {
            Arc::clone(&columns.schema)
        } else {
            Arc::new(Schema::new(fields))
        };
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let rows = RecordBatch::try_new_with_options(schema, arrays, &options).map_err(damaged_by)?;
        Ok(Some((rows, present)))
    }

    fn column(&self, action: &StructArray, field: &Field) -> Result<ArrayRef> {
        let parsed = |name: &str| action.column_by_name(name).and_then(|column| column.as_struct_opt());
        match field.name().as_str() {
            "stats" if matches!(self.stats, Form::StructAsText) => match parsed(STATS_PARSED) {
                Some(parsed) => Ok(Arc::new(stats_text(parsed))),
                None => normalized(action, field),
            },
            "partitionValues" if self.partitions_as_text => match parsed("partitionValues_parsed") {
                Some(parsed)
                    if self.is_old && parsed.fields().iter().any(|field| field.data_type().is_temporal()) =>
                {
                    Err(Error::unsupported(
                        "the checkpoint has partition values only in Spark's old calendar",
                    )
                    .with_hint("delete the checkpoint if the log still has all commits"))
                }
                Some(parsed) => partition_values_text(parsed),
                None => normalized(action, field),
            },
            _ => normalized(action, field),
        }
    }
}

/// The batches of a piece of a file.
pub(super) struct RowBatches {
    decoding: Decoding,
    /// Counts the rows, if there is no filter that counts them.
    counts: Option<Arc<AtomicU64>>,
    path: Arc<str>,
    batches: Batches,
}

impl RowBatches {
    /// Returns the next rows; never an empty batch.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let located = |error: Error| error.at_path(&*self.path);
        while let Some(batch) = self.batches.next_batch().map_err(located)? {
            let Some(rows) = self.rows(&batch).map_err(located)? else { continue };
            if rows.num_rows() > 0 {
                if let Some(counts) = &self.counts {
                    counts.fetch_add(rows.num_rows() as u64, Ordering::Relaxed);
                }
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    /// Returns only the rows that have the action.
    fn rows(&self, batch: &RecordBatch) -> Result<Option<RecordBatch>> {
        let Some((rows, present)) = self.decoding.rows(batch)? else { return Ok(None) };
        match present {
            Some(present) if present.null_count() > 0 => {
                filter_record_batch(&rows, &BooleanArray::new(present.inner().clone(), None))
                    .map(Some)
                    .map_err(damaged_by)
            }
            _ => Ok(Some(rows)),
        }
    }
}
