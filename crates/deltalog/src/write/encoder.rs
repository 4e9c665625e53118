//! Encodes a Parquet file: rows become the column chunks of a row group, and row groups make up the file.
//!
//! ```text
//! chunk of rows ─► leaves ─► column writers, several at once ─► row group ─► file
//! ```
//!
//! - The columns of a chunk are encoded and compressed on several threads. Only one thread at a time encodes a given
//!   column, so the bytes of the file do not depend on the number of threads.
//! - A row group ends with the chunk that reaches one of its limits.
//! - The file is standard Parquet that can be read without an Arrow schema. It has the names `list.element` and
//!   `key_value.key/value`, timestamps in microseconds, statistics, and Snappy compression.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowLeafColumn, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::{BloomFilterPosition, EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;

use super::dictionaries::Dictionaries;
use super::format::Format;
use super::nan_columns::NanColumns;
use crate::runtime::parallel;
use crate::storage::FileWriter;

/// The limits at which a row group ends.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The maximum number of rows.
    rows: usize,
    /// The maximum number of encoded bytes.
    bytes: usize,
}

const LIMITS: Limits = Limits { rows: 1 << 20, bytes: 128 << 20 };

/// The minimum size in bytes, in memory, of rows that several threads encode. Encoding fewer rows takes less time
/// than starting a thread.
const PARALLEL_BYTES: usize = 128 << 10;

/// A Parquet file that is being encoded.
pub(super) struct Encoder {
    file: SerializedFileWriter<Sink>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    limits: Limits,
    /// Whether the writer's options limit the number of rows in a row group, so that chunks may have to be divided.
    is_limited: bool,
    threads: usize,
    /// The writers of the current row group, one for each leaf column. Empty between two row groups.
    columns: Vec<ArrowColumnWriter>,
    /// The number of rows in the current row group.
    rows: usize,
}

/// The file that is written to. It can be taken out after the footer is written.
struct Sink(Option<FileWriter>);

impl Encoder {
    /// Creates an encoder that uses at most `threads` threads.
    pub(super) fn new(
        file: FileWriter,
        schema: &SchemaRef,
        format: &Format,
        dictionaries: Option<&Dictionaries>,
        threads: usize,
    ) -> Result<Self, ParquetError> {
        let properties = WriterProperties::builder()
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_created_by(concat!("deltalog version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_coerce_types(true)
            // Reading the end of the file, which every reader does first, may then fetch all filters as well.
            .set_bloom_filter_position(BloomFilterPosition::End);
        let properties = match dictionaries {
            Some(dictionaries) => dictionaries.ask(properties),
            None => properties,
        };
        let properties = format.ask(properties);
        let options =
            ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
        // This writer only converts the schema; its parts are then used to encode columns separately.
        let writer = ArrowWriter::try_new_with_options(Sink(Some(file)), schema.clone(), options)?;
        let (file, factory) = writer.into_serialized_writer()?;
        Ok(Self {
            file,
            factory,
            schema: schema.clone(),
            limits: Limits { rows: format.row_group_rows().unwrap_or(LIMITS.rows), ..LIMITS },
            is_limited: format.row_group_rows().is_some(),
            threads,
            columns: Vec::new(),
            rows: 0,
        })
    }

    /// Returns the memory of the current row group, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::memory_size).sum()
    }

    /// Estimates the encoded size in bytes of all rows written so far.
    pub(super) fn expected_size(&self) -> usize {
        self.file.bytes_written() + self.expected_row_group_size()
    }

    fn expected_row_group_size(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    /// Encodes a chunk of rows. It must have the schema of the file, and takes `bytes` bytes of memory.
    pub(super) fn write(&mut self, rows: &RecordBatch, bytes: usize) -> Result<(), ParquetError> {
        if !self.is_limited {
            return self.encode(rows, bytes);
        }
        let mut start = 0;
        while start < rows.num_rows() {
            let length = (self.limits.rows - self.rows).min(rows.num_rows() - start);
            self.encode(&rows.slice(start, length), bytes)?;
            start += length;
        }
        Ok(())
    }

    fn encode(&mut self, rows: &RecordBatch, bytes: usize) -> Result<(), ParquetError> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        let mut leaves = Vec::with_capacity(self.columns.len());
        for (field, column) in self.schema.fields().iter().zip(rows.columns()) {
            leaves.extend(compute_leaves(field, column)?);
        }
        let threads = if bytes < PARALLEL_BYTES { 1 } else { self.threads };
        let work: Vec<Mutex<(&mut ArrowColumnWriter, ArrowLeafColumn)>> =
            self.columns.iter_mut().zip(leaves).map(Mutex::new).collect();
        parallel::each(&work, threads, |column| {
            let (writer, leaf) = &mut *column.lock().unwrap_or_else(PoisonError::into_inner);
            writer.write(leaf)
        })?;
        self.rows += rows.num_rows();
        if self.rows >= self.limits.rows || self.expected_row_group_size() >= self.limits.bytes {
            self.end_row_group()?;
        }
        Ok(())
    }

    /// Writes the current row group to the file.
    pub(super) fn end_row_group(&mut self) -> Result<(), ParquetError> {
        if self.columns.is_empty() {
            return Ok(());
        }
        self.rows = 0;
        let mut row_group = self.file.next_row_group()?;
        for column in self.columns.drain(..) {
            column.close()?.append_to_row_group(&mut row_group)?;
        }
        row_group.close().map(drop)
    }

    /// Writes the remaining rows and the footer. Returns the footer, and the file, which is not durable yet. `nans`
    /// are the columns that contain a NaN.
    pub(super) fn finish(mut self, nans: &NanColumns) -> Result<(ParquetMetaData, FileWriter), ParquetError> {
        self.end_row_group()?;
        self.file.append_key_value_metadata(nans.entry());
        let metadata = self.file.finish()?;
        let taken = || ParquetError::General("the file has been completed".into());
        Ok((metadata, self.file.inner_mut().0.take().ok_or_else(taken)?))
    }
}

impl Sink {
    fn file(&mut self) -> io::Result<&mut FileWriter> {
        self.0.as_mut().ok_or_else(|| io::Error::other("the file has been completed"))
    }
}

impl Write for Sink {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.file()?.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, ListArray, StringArray, StructArray};
    use arrow::datatypes::Int64Type;

    use super::*;
    use crate::storage::Storage;

    /// Returns rows with flat and nested columns. There are enough rows for several threads to encode them.
    fn rows(first: i64) -> RecordBatch {
        let ids = first..first + 20_000;
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("{id:x}"))));
        let numbers: ArrayRef =
            Arc::new(Int64Array::from_iter(ids.clone().map(|id| (id % 7 != 0).then_some(id))));
        let lists = ids.map(|id| (id % 5 != 0).then(|| vec![Some(id), None, Some(id % 3)]));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
        let nested =
            StructArray::try_from(vec![("number", numbers.clone()), ("text", texts.clone())]).unwrap();
        RecordBatch::try_from_iter([
            ("number", numbers),
            ("text", texts),
            ("list", lists),
            ("nested", Arc::new(nested)),
        ])
        .unwrap()
    }

    /// Creates an encoder for a file named `f` in `directory`.
    fn encoder(directory: &Path, rows: &RecordBatch) -> Encoder {
        let storage = Storage::open(directory.to_str().unwrap(), []).unwrap();
        Encoder::new(storage.create_file("f").unwrap(), rows.schema_ref(), &Format::default(), None, 2)
            .unwrap()
    }

    /// Completes the file and returns the number of rows in each row group.
    fn finish(encoder: Encoder) -> Vec<i64> {
        let (metadata, file) = encoder.finish(&NanColumns::default()).unwrap();
        file.finish().unwrap();
        metadata.row_groups().iter().map(|group| group.num_rows()).collect()
    }

    #[test]
    fn the_bytes_of_a_file_do_not_depend_on_threads() {
        let encoded = |threads: usize| {
            let directory = tempfile::tempdir().unwrap();
            let mut encoder = encoder(directory.path(), &rows(0));
            encoder.threads = threads;
            for (first, ends) in [(0, false), (20_000, true), (40_000, false)] {
                encoder.write(&rows(first), usize::MAX).unwrap();
                if ends {
                    encoder.end_row_group().unwrap();
                }
            }
            assert_eq!(finish(encoder), [40_000, 20_000]);
            std::fs::read(directory.path().join("f")).unwrap()
        };
        assert!(encoded(1) == encoded(4));
    }

    #[test]
    fn a_row_group_ends_with_the_chunk_that_reaches_a_limit() {
        for (limits, expected) in [
            (Limits { rows: 40_000, bytes: usize::MAX }, vec![40_000, 40_000, 20_000]),
            (Limits { rows: 40_001, bytes: usize::MAX }, vec![60_000, 40_000]),
            (Limits { rows: usize::MAX, bytes: 1 }, vec![20_000; 5]),
            (LIMITS, vec![100_000]),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let mut encoder = encoder(directory.path(), &rows(0));
            encoder.limits = limits;
            (0..5).for_each(|_| encoder.write(&rows(0), 1).unwrap());
            assert_eq!(finish(encoder), expected, "{limits:?}");
        }
    }

    /// A failed write is reported at once, before the file is completed, so a caller that gets an error can delete
    /// the file.
    #[test]
    fn a_chunk_that_does_not_fit_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let mut encoder = encoder(directory.path(), &rows(0));
        let numbers = rows(0).project(&[0, 0, 0, 0]).unwrap();
        assert!(encoder.write(&numbers, usize::MAX).is_err());
    }
}
