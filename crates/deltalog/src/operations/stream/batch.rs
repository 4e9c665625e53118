//! The rows between two offsets.

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::Int64Type;
use regex::Regex;

use super::table_stream::TableStream;
use super::walk::{Part, Position};
use crate::error::{Error, Result};
use crate::expression::predicate::{BoundColumn, Predicate};
use crate::log::replay::{FileColumn, filtered};
use crate::scan::changes::{ChangePlan, FeedPruner};
use crate::scan::{DataFiles, FileListing, ListColumn, RowScan, RowStream};
use crate::snapshot::Snapshot;

/// The rows between two offsets of a stream.
#[derive(Debug, Clone)]
pub struct StreamBatch {
    stream: TableStream,
    from: Position,
    until: Position,
}

impl StreamBatch {
    pub(super) fn new(stream: TableStream, from: Position, until: Position) -> Self {
        Self { stream, from, until }
    }

    /// Returns the snapshot that determines the schema of the rows.
    pub fn snapshot(&self) -> &Snapshot {
        self.stream.snapshot()
    }

    /// Returns a listing of the batch's files, without files that cannot contain a row for which `predicate` is true.
    /// Parts of the predicate that cannot be evaluated are ignored.
    ///
    /// # Errors
    /// Returns the same errors as [`TableStream::latest`].
    pub fn listing(&self, predicate: Option<&Predicate>) -> Result<FileListing> {
        let reads_statistics = predicate.is_some_and(|predicate| self.reads_statistics(predicate));
        let mut files = Vec::new();
        for part in self.parts()? {
            // Reading statistics costs an additional request, which is not worthwhile for a single file.
            let with_statistics = reads_statistics && part.files.len() > 1;
            files.extend(self.stream.files(&part, with_statistics)?);
        }
        if let Some(excluded) = &self.stream.options().excluded {
            files = files.into_iter().map(|files| excluding(&files, excluded)).collect::<Result<_>>()?;
        }
        let listing = FileListing::new(self.snapshot()).given(files);
        Ok(match predicate {
            Some(predicate) => listing.pruning(predicate),
            None => listing,
        })
    }

    /// Returns whether the rows are changes from the change data feed.
    pub fn is_change_feed(&self) -> bool {
        self.stream.options().is_change_feed
    }

    /// Returns the number of files, including files that are excluded by their path. Only for a stream of rows.
    ///
    /// # Errors
    /// Returns the same errors as [`TableStream::latest`].
    pub fn file_count(&self) -> Result<u64> {
        Ok(self.parts()?.iter().map(|part| part.files.len() as u64).sum())
    }

    /// Returns the size of the files in bytes.
    ///
    /// # Errors
    /// Returns the same errors as [`TableStream::latest`].
    pub fn size_in_bytes(&self) -> Result<u64> {
        let mut size = 0_u64;
        if self.is_change_feed() {
            for file in self.changes(None)?.files()? {
                size = size.saturating_add(file?.file.size);
            }
            return Ok(size);
        }
        for files in self.listing(None)?.columns([ListColumn::Size]).read()? {
            let files = files?;
            let sizes = files.column(0).as_primitive::<Int64Type>();
            size = sizes.iter().flatten().fold(size, |sum, size| sum.saturating_add(size.unsigned_abs()));
        }
        Ok(size)
    }

    /// Returns the changes in a batch of the change data feed. Leaves out files that cannot contain a row for which
    /// `predicate` is true, but does not filter the rows of the other files. Parts of the predicate that cannot be
    /// evaluated are ignored.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the stream does not read the change data feed. Also returns the same errors as
    /// [`TableStream::latest`].
    pub fn changes(&self, predicate: Option<&Predicate>) -> Result<ChangePlan> {
        let located = |error: Error| error.in_table(self.snapshot().storage().url());
        if !self.stream.options().is_change_feed {
            return Err(located(Error::invalid_argument(
                "the stream reads the rows of the table and not its changes: list the files of the batch",
            )));
        }
        let pruner = predicate.map(|predicate| FeedPruner::of(self.snapshot(), predicate));
        let pruner = pruner.transpose().map_err(located)?;
        ChangePlan::of_commits(self.snapshot(), self.stream.changes(&self.parts()?, pruner.as_ref())?)
    }

    /// Returns whether a predicate depends on columns other than the table's partition columns.
    fn reads_statistics(&self, predicate: &Predicate) -> bool {
        let partitions = &self.snapshot().metadata().partition_columns;
        let bound = predicate.bind_for_pruning(self.snapshot().arrow_schema());
        let is_partition =
            |column: &BoundColumn| matches!(column.path.parts(), [name] if partitions.contains(name));
        !bound.columns().iter().all(is_partition)
    }

    /// Reads the given columns of the rows, or all columns if `columns` is `None`. Files are returned in any order; the
    /// rows of a file keep their order.
    ///
    /// # Errors
    /// Returns the same errors as [`TableStream::latest`], and `InvalidArgument` for an unknown column. Errors while
    /// reading are returned with the batches.
    pub fn read(&self, columns: Option<&[String]>) -> Result<RowStream> {
        if self.stream.options().is_change_feed {
            return self.changes(None)?.read(columns);
        }
        let mut scan = RowScan::of(self.snapshot())?;
        if let Some(columns) = columns {
            scan = scan.with_projection(columns)?;
        }
        Ok(scan.in_any_order().read(DataFiles::new(self.snapshot(), self.listing(None)?)?))
    }

    pub(super) fn parts(&self) -> Result<Vec<Part>> {
        self.stream.parts(self.from, self.until)
    }
}

/// Returns the files whose path, as the log spells it, does not match `excluded`.
fn excluding(files: &RecordBatch, excluded: &Regex) -> Result<RecordBatch> {
    let paths = files.column_by_name(FileColumn::Path.name()).and_then(|paths| paths.as_string_opt::<i32>());
    let paths = paths.ok_or_else(|| Error::corrupt_log("the column 'path' does not hold strings"))?;
    let keep: BooleanArray =
        paths.iter().map(|path| Some(!excluded.is_match(path.unwrap_or_default()))).collect();
    filtered(files, &keep)
}
