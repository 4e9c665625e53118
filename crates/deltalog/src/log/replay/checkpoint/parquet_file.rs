//! A Parquet file of a checkpoint: its footer, and the rows of one kind of action. Protocol: "Checkpoint
//! Schema".
//!
//! - Only the requested leaf columns are decoded. They are found by their paths in the file's schema, not by their
//!   positions.
//! - A row group is skipped if the statistics of a required field show that none of its rows has the requested action.
//! - Batches with wide rows have fewer rows ([`super::batches`]).
//! - A damaged file is an error, even if it makes the decoder panic.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::array::AsArray;
use arrow::compute::{filter_record_batch, is_not_null};
use arrow::datatypes::Field;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};

use super::batches::{Batches, Filters, Request};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::Action;
use crate::runtime::panics::caught;
use crate::runtime::row_bytes::BatchBytes;
use crate::storage::{FileReader, Listed, Storage, column_ranges};
use crate::values::footer::{self, decoded_bytes};
use crate::values::int96::int96_as_micros;

/// The maximum number of rows in a batch.
const BATCH_ROWS: usize = 8 * 1024;

/// Row groups with fewer rows than this are not split.
const PIECE_ROWS: usize = 2 * BATCH_ROWS;

/// A row group or some of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) group: usize,
    /// The rows; `None` for all rows of the group.
    pub(super) rows: Option<Range<usize>>,
}

impl From<usize> for Piece {
    fn from(group: usize) -> Self {
        Self { group, rows: None }
    }
}

/// A file whose footer has been read. Cheap to clone.
#[derive(Clone)]
pub(super) struct ParquetFile {
    pub(super) path: Arc<str>,
    file: FileReader,
    footer: ArrowReaderMetadata,
    /// The footer with the locations of pages. It is read when some pages may be skipped.
    with_pages: Arc<OnceLock<ArrowReaderMetadata>>,
    /// Whether `file` already knows which of its parts will be read.
    is_planned: bool,
    limits: BatchBytes,
}

impl ParquetFile {
    /// Opens the file at `path`, relative to the table's root, and reads its footer. `listed` is the file's metadata
    /// from a listing, if there is one.
    pub(super) fn open(storage: &Storage, path: &str, listed: Option<Listed>) -> Result<Self> {
        let located = |error: Error| error.at_path(path).in_table(storage.url());
        let file = storage.open_listed(path, listed).map_err(located)?;
        let footer = load(&file).map_err(located)?;
        let limits = storage.batch_bytes();
        Ok(Self { path: path.into(), file, footer, with_pages: Arc::default(), is_planned: false, limits })
    }

    /// Returns a copy of this that does not keep a local file open between reads.
    pub(super) fn idle(self) -> Self {
        Self { file: self.file.idle(), ..self }
    }

    /// Returns a copy of this that keeps the file open.
    pub(super) fn opened(&self) -> Result<Self> {
        let file = self.file.opened().map_err(|error| {
            let (kind, message) = match error.kind() {
                io::ErrorKind::NotFound => (ErrorKind::FileNotFound, "the file is not there"),
                io::ErrorKind::PermissionDenied => {
                    (ErrorKind::PermissionDenied, "permission to read the file was denied")
                }
                _ => (ErrorKind::Unavailable, "the file could not be opened"),
            };
            Error::new(kind, message).at_path(&*self.path).with_source(error)
        })?;
        Ok(Self { file, ..self.clone() })
    }

    /// Returns the footer with the locations of pages. If these cannot be read, returns the footer without them.
    /// Reading then only takes longer.
    fn with_pages(&self) -> ArrowReaderMetadata {
        let read = || {
            let mut reader = ParquetMetaDataReader::new_with_metadata(self.metadata().clone())
                .with_offset_index_policy(PageIndexPolicy::Optional);
            reader.read_page_indexes(&self.file).map_err(damaged_by)?;
            as_arrow(reader.finish().map_err(damaged_by)?)
        };
        self.with_pages.get_or_init(|| guarded(read).unwrap_or_else(|_| self.footer.clone())).clone()
    }

    /// Returns whether reading the file means waiting for a network.
    pub(super) fn waits(&self) -> bool {
        self.file.waits()
    }

    pub(super) fn metadata(&self) -> &ParquetMetaData {
        self.footer.metadata()
    }

    /// Returns the index of the leaf column at `path`.
    pub(super) fn leaf(&self, path: &[&str]) -> Option<usize> {
        let columns = self.footer.parquet_schema().columns();
        columns
            .iter()
            .position(|leaf| leaf.path().parts().iter().map(String::as_str).eq(path.iter().copied()))
    }

    /// Returns whether the file has the column `root` and this column may be null.
    pub(super) fn is_nullable(&self, root: &str) -> bool {
        self.footer.schema().field_with_name(root).is_ok_and(Field::is_nullable)
    }

    /// Returns whether the file has a leaf column below `path`.
    pub(super) fn has_below(&self, path: &[&str]) -> bool {
        self.first_below(path).is_some()
    }

    /// Returns the first leaf column below `path`.
    pub(super) fn first_below(&self, path: &[&str]) -> Option<usize> {
        let columns = self.footer.parquet_schema().columns();
        columns.iter().position(|leaf| {
            leaf.path().parts().len() > path.len()
                && leaf.path().parts().iter().zip(path).all(|(part, wanted)| part == wanted)
        })
    }

    /// Returns whether the leaf column `leaf` of row group `group` may contain a value.
    pub(super) fn may_have(&self, group: usize, leaf: usize) -> bool {
        let group = self.metadata().row_groups().get(group);
        let nulls = |group: &RowGroupMetaData| group.columns().get(leaf)?.statistics()?.null_count_opt();
        group
            .is_none_or(|group| nulls(group).is_none_or(|nulls| i64::try_from(nulls) != Ok(group.num_rows())))
    }

    /// Returns the row groups that may contain a value of the required field `root.field`; none if the file lacks that
    /// column.
    pub(super) fn groups_with(&self, root: &str, field: &str) -> Vec<usize> {
        let Some(leaf) = self.leaf(&[root, field]) else { return Vec::new() };
        (0..self.metadata().num_row_groups()).filter(|group| self.may_have(*group, leaf)).collect()
    }

    /// Returns the value of `key` in the footer's key-value metadata.
    pub(super) fn note(&self, key: &str) -> Option<&str> {
        let notes = self.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    /// Returns the Bloom filter of the leaf column `leaf` in row group `group`. Returns `None` if there is none or it
    /// cannot be read; reading then only takes longer.
    pub(super) fn bloom_filter(&self, group: usize, leaf: usize) -> Option<Sbbf> {
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.footer.clone());
        let read = || {
            builder.get_row_group_column_bloom_filter(group, leaf).map_err(|error| failed(&self.file, error))
        };
        guarded(read).unwrap_or_default()
    }

    /// Returns the leaf columns whose paths `wanted` accepts.
    pub(super) fn mask(&self, wanted: impl Fn(&[String]) -> bool) -> ProjectionMask {
        let columns = self.footer.parquet_schema().columns().iter().enumerate();
        let leaves: Vec<usize> =
            columns.filter(|(_, leaf)| wanted(leaf.path().parts())).map(|(index, _)| index).collect();
        ProjectionMask::leaves(self.footer.parquet_schema(), leaves)
    }

    /// Splits `group` into at most `parts` pieces of about equal size. If the locations of pages are known, the pieces
    /// begin at page boundaries of the largest column, so that no page of it is decoded twice.
    pub(super) fn pieces(&self, group: usize, parts: usize) -> Vec<Piece> {
        let metadata = self.metadata().row_groups().get(group);
        let rows =
            metadata.and_then(|metadata| usize::try_from(metadata.num_rows()).ok()).unwrap_or_default();
        let parts = parts.min(rows / PIECE_ROWS);
        if parts < 2 {
            return vec![group.into()];
        }
        let footer = self.with_pages();
        let largest = metadata.and_then(|metadata| {
            (0..metadata.num_columns()).max_by_key(|leaf| metadata.column(*leaf).compressed_size())
        });
        let pages = largest
            .and_then(|leaf| Some(footer.metadata().offset_index()?.get(group)?.get(leaf)?.page_locations()));
        let starts: Vec<usize> = pages
            .into_iter()
            .flatten()
            .filter_map(|page| usize::try_from(page.first_row_index).ok())
            .collect();
        let cut = |part: usize| {
            let even = rows / parts * part;
            starts.iter().copied().min_by_key(|start| start.abs_diff(even)).unwrap_or(even).min(rows)
        };
        let mut cuts: Vec<usize> = (1..parts).map(cut).chain([0, rows]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.iter()
            .zip(cuts.iter().skip(1))
            .map(|(start, end)| Piece { group, rows: Some(*start..*end) })
            .collect()
    }

    /// Starts decoding the columns `mask` of `groups`, or only of `rows` in them. Rows that the filters created by
    /// `filters` reject are left out.
    pub(super) fn read(
        &self,
        groups: Vec<usize>,
        rows: Option<Range<usize>>,
        mask: ProjectionMask,
        filters: Filters,
    ) -> Result<Batches> {
        let opened = self.opened()?;
        let projections: Vec<ProjectionMask> =
            filters().iter().map(|filter| filter.projection().clone()).collect();
        let footer =
            if projections.is_empty() && rows.is_none() { self.footer.clone() } else { self.with_pages() };
        let selection = rows.map(|rows| {
            RowSelection::from(vec![RowSelector::skip(rows.start), RowSelector::select(rows.len())])
        });
        let leaves = 0..footer.parquet_schema().num_columns();
        let plan = || {
            let leaves: Vec<usize> = leaves.clone().filter(|leaf| mask.leaf_included(*leaf)).collect();
            column_ranges(footer.metadata(), &groups, &leaves, selection.clone())
        };
        let file = if self.is_planned { opened.file } else { opened.file.planned(plan) };
        let is_read =
            |leaf: usize| mask.leaf_included(leaf) || projections.iter().any(|mask| mask.leaf_included(leaf));
        let leaves: Vec<usize> = leaves.filter(|leaf| is_read(*leaf)).collect();
        let rows = rows_at_once(footer.metadata(), &groups, &leaves, self.limits);
        let request = Request { file, footer, groups, selection, mask, filters };
        Batches::new(request, self.limits, rows).map_err(|error| error.at_path(&*self.path))
    }

    /// Returns a copy of this that is prepared for reading the actions in `columns`. Each pair consists of a column and
    /// one of its required fields. The needed parts of the file are usually adjacent, so they are fetched from a remote
    /// store by one request.
    pub(super) fn expecting(&self, columns: &[(&str, &str)]) -> Self {
        let groups: BTreeSet<usize> =
            columns.iter().flat_map(|(root, required)| self.groups_with(root, required)).collect();
        let groups: Vec<usize> = groups.into_iter().collect();
        let leaves = self.footer.parquet_schema().columns().iter().enumerate().filter(|(_, leaf)| {
            let root = leaf.path().parts().first();
            columns.iter().any(|(column, _)| root.is_some_and(|root| root == column))
        });
        let leaves: Vec<usize> = leaves.map(|(index, _)| index).collect();
        let file = self.file.planned(|| column_ranges(self.metadata(), &groups, &leaves, None));
        Self { file, is_planned: true, ..self.clone() }
    }

    /// Appends the actions of the column `root` to `actions`. The field `required` is never null in such an action.
    /// `is_single` means that the checkpoint has this action only once: reading stops once it is found.
    pub(super) fn actions(
        &self,
        root: &str,
        required: &str,
        is_single: bool,
        actions: &mut Vec<Action>,
    ) -> Result<()> {
        let groups = self.groups_with(root, required);
        if groups.is_empty() {
            return Ok(());
        }
        let mask = self.mask(|path| path.first().is_some_and(|first| first == root));
        let mut batches = self.read(groups, None, mask, Box::new(Vec::new))?;
        while let Some(batch) = batches.next_batch().map_err(|error| error.at_path(&*self.path))? {
            let located = |error: Error| error.at_path(&*self.path);
            let Some(column) = batch.column_by_name(root) else { continue };
            let present = is_not_null(column).map_err(|error| located(damaged_by(error)))?;
            let field = column.as_struct_opt().and_then(|column| column.column_by_name(required).cloned());
            let present = match field
                .map(|field| is_not_null(&field))
                .transpose()
                .map_err(|error| located(damaged_by(error)))?
            {
                Some(has_field) => {
                    arrow::compute::and(&present, &has_field).map_err(|error| located(damaged_by(error)))?
                }
                None => present,
            };
            if present.true_count() == 0 {
                continue;
            }
            let rows = filter_record_batch(&batch, &present).map_err(|error| located(damaged_by(error)))?;
            // There are only a few such rows. They are converted to JSON and then parsed like the lines of a commit.
            let mut writer = arrow::json::LineDelimitedWriter::new(Vec::new());
            writer.write(&rows).and_then(|()| writer.finish()).map_err(|error| located(damaged_by(error)))?;
            for line in String::from_utf8_lossy(&writer.into_inner()).lines() {
                actions.extend(Action::parse_line(line).map_err(located)?);
            }
            if is_single && !actions.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn load(file: &FileReader) -> Result<ArrowReaderMetadata> {
    guarded(|| as_arrow(footer::decode(file).map_err(|error| failed(file, error))?))
}

fn as_arrow(footer: ParquetMetaData) -> Result<ArrowReaderMetadata> {
    let options = ArrowReaderOptions::default();
    ArrowReaderMetadata::try_new(Arc::new(footer), options.clone())
        .and_then(|footer| int96_as_micros(footer, options, Some("UTC")))
        .map_err(damaged_by)
}

/// Returns how many rows of `groups` are decoded at once, based on the sizes of `leaves` in the footer.
fn rows_at_once(footer: &ParquetMetaData, groups: &[usize], leaves: &[usize], limits: BatchBytes) -> usize {
    let of_group = |group: &RowGroupMetaData| {
        let chunks = leaves.iter().filter_map(|leaf| group.columns().get(*leaf));
        let bytes = chunks.map(decoded_bytes).sum::<f64>();
        limits.rows(bytes / (group.num_rows().max(1) as f64), BATCH_ROWS)
    };
    let groups = groups.iter().filter_map(|group| footer.row_groups().get(*group));
    groups.map(of_group).min().unwrap_or(BATCH_ROWS)
}

/// Returns the error for `file` after its reader has failed: the store's error if a request has failed, otherwise an
/// error that says that the checkpoint cannot be read.
pub(super) fn failed(file: &FileReader, source: impl std::error::Error + Send + Sync + 'static) -> Error {
    file.failure().unwrap_or_else(|| damaged_by(source))
}

pub(super) fn damaged_by(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::corrupt_log("the checkpoint cannot be read").with_source(source)
}

/// Calls `work` and turns a panic, which the decoder may raise for a damaged file, into an error.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(work, panicked)
}

pub(super) fn panicked(panic: &str) -> Error {
    Error::corrupt_log(format!("reading the checkpoint panicked with '{panic}'"))
}
