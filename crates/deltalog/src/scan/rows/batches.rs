//! The rows of one file, or of some of its row groups.
//!
//! ```text
//! no predicate    all columns of all row groups ────────────────────────────────────────> rows
//! predicate       row group ──> predicate's columns ──filter──> matching rows, kept ──┐
//!                                        └─> other columns of these rows, if any ─────┴──> rows
//! ```
//!
//! The predicate is evaluated on a whole row group before its first row is returned. If a column of the predicate is
//! also returned, its values in the matching rows are kept in memory. If these values are large, they are read again
//! together with the other columns instead.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBufferBuilder, RecordBatch, RecordBatchOptions, UInt32Array,
};
use arrow::compute::{cast, concat_batches, filter_record_batch, prep_null_mask_filter, take};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::RowSelection;

use super::file::{OpenFile, Opener, Source};
use super::live::{Live, Matching};
use super::masks;
use super::projected;
use super::row_ids::RowNumbers;
use super::selection::SelectedRows;
use super::shares::{ColumnReader, Columns};
use super::views;
use crate::error::{Error, Result};
use crate::expression::predicate::{BoundPredicate, filter_mask};
use crate::runtime::by_name::names_of;
use crate::runtime::row_bytes::weight_of;

/// The rows of one file.
#[derive(Debug)]
pub(super) struct FileBatches {
    opener: Arc<Opener>,
    file: Arc<OpenFile>,
    /// The row groups that have not been read yet.
    groups: VecDeque<usize>,
    /// The number of threads that may share the work on the file's columns.
    threads: usize,
    /// The number of rows to read at once, if an earlier read showed that the file needs smaller reads than its footer
    /// suggests. Otherwise, this is `usize::MAX`.
    rows: usize,
    reading: Option<Reading>,
    /// For each constant column, the longest array of its value that was built so far.
    repeated: Vec<Option<ArrayRef>>,
}

/// The read that is in progress.
#[derive(Debug)]
enum Reading {
    /// Reads all columns of all rows. There is no predicate.
    All(ColumnReader, RowNumbers),
    /// Reads all requested columns of a row group, because the predicate reads all of them.
    Filtered(First),
    /// Reads the remaining columns of the matching rows of a row group.
    Rest(ColumnReader, Kept),
    /// Reads all columns of the matching rows of a row group again, because only the row ids were kept.
    Again(ColumnReader, Kept),
}

/// A read of the predicate's columns of a row group.
#[derive(Debug)]
struct First {
    reader: ColumnReader,
    numbers: RowNumbers,
    /// The rows that are not deleted, if the reader also returns deleted rows.
    live: Option<Live>,
}

/// Columns of matching rows, which are kept until they are returned.
#[derive(Debug, Default)]
struct Kept(VecDeque<RecordBatch>);

impl FileBatches {
    pub(super) fn new(
        opener: Arc<Opener>,
        file: Arc<OpenFile>,
        groups: Vec<usize>,
        threads: usize,
    ) -> Result<Self> {
        let repeated = vec![None; file.sources.len()];
        let mut batches =
            Self { opener, file, groups: groups.into(), threads, rows: usize::MAX, reading: None, repeated };
        if batches.predicate().is_none() {
            let groups: Vec<usize> = batches.groups.drain(..).collect();
            let ranges: Vec<_> =
                groups.iter().filter_map(|group| batches.file.group_rows.get(*group).cloned()).collect();
            let selection = batches.file.rows.of_groups(&ranges);
            let reader = selection.and_then(|selection| {
                batches.reader(groups, batches.file.rest.clone(), selection, usize::MAX)
            });
            batches.reading =
                Some(Reading::All(reader.map_err(|error| batches.located(error))?, RowNumbers::new(ranges)));
        }
        Ok(batches)
    }

    /// Returns the file's name, for messages.
    pub(super) fn name(&self) -> &str {
        &self.file.name
    }

    /// Returns the size in bytes of the predicate's columns that are kept in memory.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        match &self.reading {
            Some(Reading::Rest(_, kept) | Reading::Again(_, kept)) => {
                kept.0.iter().map(|rows| weight_of(rows, 0, rows.num_rows())).sum()
            }
            _ => 0,
        }
    }

    /// Returns the matching rows of the next batch. The batch may be empty.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.next().map_err(|error| self.located(error))
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let opener = Arc::clone(&self.opener);
        loop {
            let Some(reading) = &mut self.reading else {
                let Some(group) = self.groups.pop_front() else { return Ok(None) };
                self.reading = self.open(group)?;
                match self.reading {
                    Some(_) => continue,
                    // The next row group is not started yet, because the caller may not need more rows.
                    None => return Ok(Some(RecordBatch::new_empty(Arc::clone(&opener.output_schema)))),
                }
            };
            let reader = match reading {
                Reading::All(reader, _)
                | Reading::Filtered(First { reader, .. })
                | Reading::Rest(reader, _)
                | Reading::Again(reader, _) => reader,
            };
            let Some(read) = reader.next_batch()? else {
                let rows = reader.rows().unwrap_or(usize::MAX);
                self.rows = match &self.reading {
                    // This read did not include the predicate's columns, for which an earlier limit still applies.
                    Some(Reading::Rest(..)) => self.rows.min(rows),
                    _ => rows,
                };
                if let Some(Reading::Rest(_, kept) | Reading::Again(_, kept)) = &self.reading {
                    kept.check_empty()?;
                }
                self.reading = None;
                continue;
            };
            let rows = read.num_rows();
            let stages = &opener.stages;
            return match self.reading.take() {
                Some(Reading::All(reader, mut numbers)) => {
                    let whole = self.convert(&read, &stages.rest, &mut numbers)?;
                    self.reading = Some(Reading::All(reader, numbers));
                    let is_sparse = opener.scan.has_views && !matches!(self.file.rows, SelectedRows::All);
                    let whole = if is_sparse { compact(&whole)? } else { whole };
                    opener.output(rows, [(&stages.rest, &whole)]).map(Some)
                }
                Some(Reading::Filtered(mut first)) => {
                    let matching = self.matching(&read, &mut first)?;
                    self.reading = Some(Reading::Filtered(first));
                    let matching = self.kept_of(&matching, &stages.kept)?;
                    opener.output(matching.num_rows(), [(&stages.kept, &matching)]).map(Some)
                }
                Some(Reading::Rest(reader, mut kept)) => {
                    let rest = self.convert(&read, &stages.rest, &mut RowNumbers::default())?;
                    let rest = if opener.scan.has_views { compact(&rest)? } else { rest };
                    let first = kept.take(rows)?;
                    self.reading = Some(Reading::Rest(reader, kept));
                    opener.output(rows, [(&stages.kept, &first), (&stages.rest, &rest)]).map(Some)
                }
                Some(Reading::Again(reader, mut kept)) => {
                    let all = self.convert(&read, &stages.again, &mut RowNumbers::default())?;
                    let all = if opener.scan.has_views { compact(&all)? } else { all };
                    let ids = kept.take(rows)?;
                    self.reading = Some(Reading::Again(reader, kept));
                    opener.output(rows, [(&stages.ids, &ids), (&stages.again, &all)]).map(Some)
                }
                None => Ok(None),
            };
        }
    }

    /// Starts reading the matching rows of a row group; returns `None` if no row matches.
    fn open(&mut self, group: usize) -> Result<Option<Reading>> {
        let (opener, file) = (Arc::clone(&self.opener), Arc::clone(&self.file));
        let ranges: Vec<_> = file.group_rows.get(group).cloned().into_iter().collect();
        let rows = ranges.iter().map(|range| range.end - range.start).sum();
        let (pages, wanted) = (file.pages_to_read(&opener, group)?, file.rows.of_groups(&ranges)?);
        // Row ids are only computed for live rows, so with row ids the reader must leave out deleted rows.
        let live = wanted
            .as_ref()
            .filter(|_| pages.is_none() && file.row_ids.is_none())
            .and_then(|wanted| Live::of(wanted, rows));
        let wanted = match (pages, wanted) {
            (Some(pages), Some(wanted)) => Some(pages.intersection(&wanted)),
            (pages, wanted) => pages.or(wanted),
        };
        if wanted.as_ref().is_some_and(|wanted| !wanted.selects_any()) {
            return Ok(None);
        }
        // The predicate's columns are read for these rows.
        let read = if live.is_some() { None } else { wanted };
        let reader = self.reader(vec![group], file.first.clone(), read.clone(), usize::MAX)?;
        let mut first = First { reader, numbers: RowNumbers::new(ranges), live };
        if self.opener.stages.rest.is_empty() {
            return Ok(Some(Reading::Filtered(first)));
        }
        let may_read_again = opener.stages.kept.len() > opener.stages.ids.len();
        let mut reads_again = may_read_again && file.reads_again(&opener.scan, group);
        let (mut kept, mut bytes, mut mask) = (Kept::default(), 0_usize, BooleanBufferBuilder::new(0));
        while let Some(batch) = first.reader.next_batch()? {
            let matching = self.matching(&batch, &mut first)?;
            mask.append_buffer(&matching.of_batch);
            if matching.rows.true_count() > 0 {
                let columns = if reads_again { &opener.stages.ids } else { &opener.stages.kept };
                let matching = self.kept_of(&matching, columns)?;
                bytes = bytes.saturating_add(weight_of(&matching, 0, matching.num_rows()));
                kept.0.push_back(matching);
            }
            // The kept values may be larger than the footer suggested.
            if may_read_again && !reads_again && bytes > OpenFile::most_kept(&opener.scan) {
                reads_again = true;
                kept.retain_columns(&opener.stages.kept, &opener.stages.ids)?;
            }
        }
        self.rows = first.reader.rows().unwrap_or(usize::MAX);
        // The kept rows are combined with the same number of rows of the other columns.
        let most = first.reader.fewest_rows();
        if kept.0.is_empty() {
            return Ok(None);
        }
        let mask = mask.finish();
        let wanted = match read {
            read if mask.count_set_bits() == mask.len() => read,
            None => Some(RowSelection::from_boolean_buffer(mask)),
            Some(read) => Some(masks::within(&read, mask)),
        };
        if reads_again {
            let mut leaves = [file.first.as_slice(), &file.rest].concat();
            leaves.sort_unstable();
            leaves.dedup();
            return Ok(Some(Reading::Again(self.reader(vec![group], leaves, wanted, usize::MAX)?, kept)));
        }
        Ok(Some(Reading::Rest(self.reader(vec![group], file.rest.clone(), wanted, most)?, kept)))
    }

    fn reader(
        &self,
        groups: Vec<usize>,
        leaves: Vec<usize>,
        selection: Option<RowSelection>,
        most: usize,
    ) -> Result<ColumnReader> {
        let most = self.file.rows_at_once(&self.opener.scan, &groups).min(most);
        let (opener, file) = (Arc::clone(&self.opener), Arc::clone(&self.file));
        Columns { opener, file, groups, leaves, selection }.read(self.threads, most.min(self.rows), most)
    }

    /// Converts columns of a batch that was read from the file to the table's types. `indices` are positions among
    /// all needed columns.
    fn convert(
        &mut self,
        read: &RecordBatch,
        indices: &[usize],
        numbers: &mut RowNumbers,
    ) -> Result<RecordBatch> {
        let (rows, schema) = (read.num_rows(), &self.opener.schema);
        let mut arrays = Vec::with_capacity(indices.len());
        let read_schema = read.schema();
        let by_name = names_of(read_schema.fields());
        for index in indices {
            // The remaining indices belong to the row ids, which are appended below.
            let (Some(source), Some(repeated)) =
                (self.file.sources.get(*index), self.repeated.get_mut(*index))
            else {
                break;
            };
            let field = schema.field(*index);
            let array = match source {
                Source::Constant(value) => repeat(value, rows, repeated)?,
                Source::File(name, plan) => {
                    let unfit = || {
                        Error::corrupt_data(format!(
                            "column '{}' has a value that does not fit in the table's type",
                            field.name()
                        ))
                    };
                    let array = by_name.find(name).and_then(|at| read.columns().get(at)).ok_or_else(unfit)?;
                    plan.apply(array).map_err(|error| match error {
                        ArrowError::NotYetImplemented(what) => {
                            Error::unsupported(format!("the column '{}' has {what}", field.name())).with_hint(
                                "rewrite the file with Spark, in a session of its writer's time zone",
                            )
                        }
                        error => unfit().with_source(error),
                    })?
                }
            };
            if !field.is_nullable() && array.logical_null_count() > 0 {
                return Err(Error::corrupt_data(format!(
                    "column '{}' must not be NULL, but the file has NULLs",
                    field.name()
                )));
            }
            arrays.push(array);
        }
        if let Some(row_ids) = self.file.row_ids.as_ref().filter(|_| arrays.len() < indices.len()) {
            arrays.extend(
                row_ids.columns(&numbers.next(rows, &self.file.rows)?, |name| read.column_by_name(name))?,
            );
        }
        batch(projected(schema, indices), arrays, rows)
    }

    /// Returns the selected rows of a batch, restricted to `columns`.
    fn kept_of(&self, matching: &Matching, columns: &[usize]) -> Result<RecordBatch> {
        let stages = &self.opener.stages;
        let kept: Vec<usize> = (0..stages.first.len())
            .filter(|at| stages.first.get(*at).is_some_and(|index| columns.contains(index)))
            .collect();
        let columns = matching.columns.project(&kept);
        columns.and_then(|columns| filter_record_batch(&columns, &matching.rows)).map_err(malformed)
    }

    fn predicate(&self) -> Option<&BoundPredicate> {
        self.opener.scan.columns.row_predicate.as_ref()
    }

    /// Evaluates the predicate on a batch of its columns.
    fn matching(&mut self, batch: &RecordBatch, first: &mut First) -> Result<Matching> {
        let (opener, First { numbers, live, .. }) = (Arc::clone(&self.opener), first);
        let mut evaluate = |batch: &RecordBatch| {
            let columns = self.convert(batch, &opener.stages.first, numbers)?;
            let rows = self.selected(&columns)?;
            Ok((columns, rows))
        };
        match live {
            Some(live) => live.matching(batch, evaluate),
            None => {
                let (columns, rows) = evaluate(batch)?;
                let of_batch = rows.values().clone();
                Ok(Matching { columns, rows, of_batch })
            }
        }
    }

    /// Returns for each row whether the predicate is true.
    fn selected(&self, rows: &RecordBatch) -> Result<BooleanArray> {
        let mask = match self.predicate() {
            Some(predicate) => filter_mask(predicate, rows)?,
            None => BooleanArray::from(vec![true; rows.num_rows()]),
        };
        Ok(if mask.null_count() > 0 { prep_null_mask_filter(&mask) } else { mask })
    }

    fn located(&self, error: Error) -> Error {
        self.opener.located(error, &self.file.name)
    }
}

impl Opener {
    /// Combines `parts` into an output batch. Each part comes with the indices of its columns among all needed
    /// columns.
    fn output<const N: usize>(
        &self,
        rows: usize,
        parts: [(&Vec<usize>, &RecordBatch); N],
    ) -> Result<RecordBatch> {
        let mut by_index = HashMap::with_capacity(self.output.len());
        for (indices, part) in parts.iter().rev() {
            by_index.extend(indices.iter().zip(part.columns()));
        }
        let find = |index: &usize| by_index.get(index).copied().cloned();
        let columns = self.output.iter().filter_map(find).zip(self.output_schema.fields());
        let columns = columns.map(|(array, field)| match array.data_type() == field.data_type() {
            true => Ok(array),
            // Columns that the predicate has read are converted to views now.
            false => cast(&array, field.data_type()).map_err(malformed),
        });
        batch(Arc::clone(&self.output_schema), columns.collect::<Result<_>>()?, rows)
    }
}

impl Kept {
    /// Removes the next `rows` rows and returns them.
    fn take(&mut self, rows: usize) -> Result<RecordBatch> {
        let (mut parts, mut missing) = (Vec::with_capacity(1), rows);
        while missing > 0 {
            let Some(front) = self.0.pop_front() else { return Err(uneven()) };
            let count = front.num_rows().min(missing);
            missing -= count;
            parts.push(front.slice(0, count));
            if count < front.num_rows() {
                self.0.push_front(front.slice(count, front.num_rows() - count));
            }
        }
        match parts.as_slice() {
            [one] => Ok(one.clone()),
            parts => {
                let first = parts.first().ok_or_else(uneven)?;
                concat_batches(&first.schema(), parts).map_err(malformed)
            }
        }
    }

    /// Of the columns `from`, keeps only those that are also in `to`.
    fn retain_columns(&mut self, from: &[usize], to: &[usize]) -> Result<()> {
        let places: Vec<usize> =
            from.iter().enumerate().filter(|(_, index)| to.contains(index)).map(|(place, _)| place).collect();
        for rows in &mut self.0 {
            *rows = rows.project(&places).map_err(malformed)?;
        }
        Ok(())
    }

    fn check_empty(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(uneven()) }
    }
}

/// Copies columns that use only a small part of the memory which they keep alive.
fn compact(rows: &RecordBatch) -> Result<RecordBatch> {
    let columns = rows.columns().iter().map(|column| views::compact(Arc::clone(column))).collect();
    batch(rows.schema(), columns, rows.num_rows())
}

pub(super) fn uneven() -> Error {
    Error::corrupt_data("the file's columns differ in their number of rows")
}

pub(super) fn malformed(error: arrow::error::ArrowError) -> Error {
    Error::corrupt_data("the file's columns cannot be combined into rows").with_source(error)
}

fn batch(schema: SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    RecordBatch::try_new_with_options(schema, arrays, &RecordBatchOptions::new().with_row_count(Some(rows)))
        .map_err(malformed)
}

/// Repeats `value`, an array with one value, `rows` times. `longest` caches the longest array that was built so far.
fn repeat(value: &ArrayRef, rows: usize, longest: &mut Option<ArrayRef>) -> Result<ArrayRef> {
    if let Some(array) = longest.as_ref().filter(|array| array.len() >= rows) {
        return Ok(array.slice(0, rows));
    }
    let repeated = take(value, &UInt32Array::from(vec![0; rows]), None).map_err(|error| {
        Error::invalid_argument("a partition value cannot be repeated").with_source(error)
    })?;
    *longest = Some(Arc::clone(&repeated));
    Ok(repeated)
}
