//! The rows between two offsets.

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use regex::Regex;

use super::table_stream::{Part, Position, TableStream};
use crate::error::{Error, Result};
use crate::predicate::Predicate;
use crate::replay::FileColumn;
use crate::scan::{DataFiles, FileListing, RowScan, RowStream};
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

    /// Returns the snapshot whose schema the rows have.
    pub fn snapshot(&self) -> &Snapshot {
        self.stream.snapshot()
    }

    /// Returns a listing of the batch's files. Omits those that cannot contain a row for which `predicate` is true;
    /// parts of it that are not understood are ignored.
    ///
    /// # Errors
    /// As [`TableStream::latest`].
    pub fn listing(&self, predicate: Option<&Predicate>) -> Result<FileListing> {
        let mut files = Vec::new();
        for part in self.parts()? {
            // A file that is alone is not worth another request.
            let with_statistics = predicate.is_some() && part.files.len() > 1;
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

    /// Returns the rows, with these columns or all. Files come in any order, and the rows of each in their order.
    ///
    /// # Errors
    /// As [`TableStream::latest`]; `InvalidArgument` for an unknown column. Errors while reading are returned with the
    /// batches.
    pub fn read(&self, columns: Option<&[String]>) -> Result<RowStream> {
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

/// Returns the files whose path in the log does not match.
fn excluding(files: &RecordBatch, excluded: &Regex) -> Result<RecordBatch> {
    let paths = files.column_by_name(FileColumn::Path.name()).and_then(|paths| paths.as_string_opt::<i32>());
    let paths = paths.ok_or_else(|| Error::corrupt_log("the column 'path' does not hold strings"))?;
    let keep: BooleanArray =
        paths.iter().map(|path| Some(!excluded.is_match(path.unwrap_or_default()))).collect();
    filter_record_batch(files, &keep)
        .map_err(|error| Error::corrupt_log("file actions cannot be filtered").with_source(error))
}
