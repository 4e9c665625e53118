//! Decodes a checkpoint's Parquet file in batches whose size in bytes is bounded.
//!
//! - The footer determines the number of rows in a batch ([`crate::runtime::row_bytes`]), because the statistics of a
//!   single file with many columns may take a megabyte.
//! - The footer may understate the size, for example if a dictionary repeats long strings. A batch that turns out too
//!   large is returned in pieces. If the rows do not even fit in an Arrow array, the file is not treated as damaged:
//!   they are decoded again, fewer at once.

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicate, ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowFilter, RowSelection, RowSelectionPolicy,
};

use super::parquet_file::{failed, panicked};
use crate::error::{Error, Result};
use crate::runtime::panics::catch;
use crate::runtime::row_bytes::{BatchBytes, is_overflow, weight_of};
use crate::storage::FileReader;

/// The factor by which the number of rows decoded at once is reduced after the rows did not fit in an Arrow array.
const FEWER: usize = 8;

/// Creates the filters for a read. They are created again if the read is repeated.
pub(super) type Filters = Box<dyn Fn() -> Vec<Box<dyn ArrowPredicate>> + Send>;

/// The rows and columns of a file to decode.
pub(super) struct Request {
    pub(super) file: FileReader,
    pub(super) footer: ArrowReaderMetadata,
    pub(super) groups: Vec<usize>,
    /// The rows, counted from the start of `groups`, that are passed to the filters; `None` for all rows of `groups`.
    pub(super) selection: Option<RowSelection>,
    pub(super) mask: ProjectionMask,
    pub(super) filters: Filters,
}

/// Batches that are being decoded.
pub(super) struct Batches {
    request: Request,
    limits: BatchBytes,
    /// The number of rows that are decoded at once.
    rows: usize,
    /// The number of rows that have been decoded.
    done: usize,
    reader: ParquetRecordBatchReader,
    /// The rest of a batch that was too large.
    pieces: VecDeque<RecordBatch>,
}

/// The reason why rows could not be decoded.
enum Failure {
    /// The rows do not fit in an Arrow array.
    TooLarge,
    Failed(Error),
}

impl Request {
    /// Opens a reader that skips the first `done` of the rows that pass the filters, and decodes `rows` rows at once.
    fn open(&self, rows: usize, done: usize) -> Result<ParquetRecordBatchReader, Failure> {
        let mut builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.footer.clone())
                .with_projection(self.mask.clone())
                .with_row_groups(self.groups.clone())
                .with_batch_size(rows);
        if done > 0 {
            builder = builder.with_offset(done);
        }
        if let Some(selection) = &self.selection {
            builder = builder.with_row_selection(selection.clone());
        }
        let filters = (self.filters)();
        if !filters.is_empty() {
            // Rows are selected by ranges and not by a mask, because with a mask, the statistics of whole row groups
            // would be decoded first.
            builder = builder
                .with_row_filter(RowFilter::new(filters))
                .with_row_selection_policy(RowSelectionPolicy::Selectors);
        }
        self.decoded(|| builder.build())
    }

    /// Calls `decode`, and distinguishes values that do not fit in an array from damage.
    fn decoded<T, E: std::error::Error + Send + Sync + 'static>(
        &self,
        decode: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Failure> {
        match catch(decode) {
            Ok(Ok(decoded)) => Ok(decoded),
            Ok(Err(error)) if is_overflow(&error.to_string()) => Err(Failure::TooLarge),
            Ok(Err(error)) => Err(Failure::Failed(failed(&self.file, error))),
            Err(panic) if is_overflow(&panic) => Err(Failure::TooLarge),
            Err(panic) => Err(Failure::Failed(panicked(&panic))),
        }
    }
}

impl Batches {
    /// Starts decoding, with `rows` rows at once.
    pub(super) fn new(request: Request, limits: BatchBytes, rows: usize) -> Result<Self> {
        let (reader, rows) = begun(&request, rows, 0)?;
        Ok(Self { request, limits, rows, done: 0, reader, pieces: VecDeque::new() })
    }

    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Ok(Some(piece));
            }
            let Self { request, reader, .. } = self;
            match request.decoded(|| reader.next().transpose()) {
                Ok(None) => return Ok(None),
                Ok(Some(batch)) if self.rows == 1 || !self.limits.ends_offsets(&batch) => {
                    let rows = batch.num_rows();
                    self.done += rows;
                    let bytes = weight_of(&batch, 0, rows);
                    if self.rows == 1 || !self.limits.is_exceeded(bytes) {
                        return Ok(Some(batch));
                    }
                    self.pieces.extend(self.limits.pieces(&batch));
                    self.go_on(self.limits.rows(bytes as f64 / rows.max(1) as f64, self.rows / 2))?;
                }
                Ok(Some(_)) => self.go_on(self.rows / FEWER)?,
                Err(Failure::TooLarge) if self.rows > 1 => self.go_on(self.rows / FEWER)?,
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Continues decoding, with `rows` rows at once.
    fn go_on(&mut self, rows: usize) -> Result<()> {
        (self.reader, self.rows) = begun(&self.request, rows.max(1), self.done)?;
        Ok(())
    }
}

/// Opens a reader and runs the filters. Returns the reader and the number of rows in its batches: `rows`, or fewer if
/// batches of `rows` rows were too large for the filters.
fn begun(request: &Request, mut rows: usize, done: usize) -> Result<(ParquetRecordBatchReader, usize)> {
    loop {
        match request.open(rows, done) {
            Err(Failure::TooLarge) if rows > 1 => rows = (rows / FEWER).max(1),
            opened => return Ok((opened?, rows)),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::TooLarge => Self::unsupported(
                "an action has 2 GiB or more of text in one column, which no Arrow array can hold",
            ),
            Failure::Failed(error) => error,
        }
    }
}
