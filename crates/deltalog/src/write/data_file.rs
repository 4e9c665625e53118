//! A Parquet file that is being written.
//!
//! ```text
//! push ─► pending batches ─► encoder (pages of one row group, in memory) ─► row groups in the file ─► footer
//!            a chunk           spilled when the writer's budget is used up
//! ```
//!
//! - The file is created when its first batch is encoded. Until then it is only rows in memory, so a partition
//!   with few rows costs little.
//! - The file is standard Parquet that can be read without an Arrow schema: `list.element`,
//!   `key_value.key/value`, microseconds, statistics, Snappy.

use std::io::{self, Write};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::chunk::Chunk;
use super::split::PartitionKey;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{FileWriter, Storage};

/// The maximum number of pending batches. Small batches are merged at this point, because each of their arrays
/// takes more memory than its rows.
const MAX_PENDING: usize = 64;

/// The approximate memory of an array besides its values, in bytes.
const ARRAY_OVERHEAD: usize = 256;

/// The memory of an open file besides its encoder: its write buffer, in bytes.
const FILE_BUFFER: usize = 1 << 20;

/// The number of encoded bytes after which a row group ends.
const ROW_GROUP_BYTES: usize = 128 << 20;

/// A file that is being written.
pub(super) struct DataFile {
    path: String,
    key: PartitionKey,
    schema: SchemaRef,
    pending: Vec<RecordBatch>,
    pending_bytes: usize,
    chunk: Chunk,
    encoder: Option<ArrowWriter<Sink>>,
    is_created: bool,
    has_nan: bool,
}

/// A file that is complete and durable.
pub(super) struct ClosedFile {
    pub(super) path: String,
    pub(super) key: PartitionKey,
    pub(super) size: u64,
    pub(super) metadata: ParquetMetaData,
    pub(super) has_nan: bool,
}

/// The file that an encoder writes to, which can be taken out after the footer is written.
struct Sink(Option<FileWriter>);

impl DataFile {
    pub(super) fn new(path: String, key: PartitionKey, schema: SchemaRef) -> Self {
        Self {
            path,
            key,
            schema,
            pending: Vec::new(),
            pending_bytes: 0,
            chunk: Chunk::default(),
            encoder: None,
            is_created: false,
            has_nan: false,
        }
    }

    /// Returns the decoded path relative to the table's root.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns whether the file is open and holds a handle of the operating system.
    pub(super) fn is_open(&self) -> bool {
        self.encoder.is_some()
    }

    /// Returns whether the file has been created, and must therefore be deleted if the write is aborted.
    pub(super) fn is_created(&self) -> bool {
        self.is_created
    }

    /// Returns the memory that this file holds, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.spillable() + if self.is_open() { FILE_BUFFER } else { 0 }
    }

    /// Returns the memory that [`DataFile::spill`] frees, in bytes.
    pub(super) fn spillable(&self) -> usize {
        self.pending_bytes + self.encoder.as_ref().map_or(0, ArrowWriter::memory_size)
    }

    /// Estimates the size of the file in bytes if it were closed now.
    pub(super) fn expected_size(&self) -> u64 {
        let encoded =
            self.encoder.as_ref().map_or(0, |encoder| encoder.bytes_written() + encoder.in_progress_size());
        encoded as u64
    }

    /// Returns how many of the first rows of `batch` may be pushed before the pending rows must be encoded.
    pub(super) fn room(&self, batch: &RecordBatch) -> usize {
        self.chunk.missing(batch).unwrap_or(batch.num_rows())
    }

    /// Adds rows, at most as many as [`DataFile::room`] allows, without encoding them.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.chunk.add(&batch);
        self.has_nan = self.has_nan || batch.columns().iter().any(has_nan);
        self.pending_bytes += bytes(&batch) + ARRAY_OVERHEAD * batch.num_columns();
        self.pending.push(batch);
        if self.pending.len() >= MAX_PENDING {
            let merged = self.take_pending()?;
            self.pending_bytes = bytes(&merged);
            self.pending.push(merged);
        }
        Ok(())
    }

    /// Removes the pending rows and returns them as one batch.
    fn take_pending(&mut self) -> Result<RecordBatch> {
        self.pending_bytes = 0;
        match <[RecordBatch; 1]>::try_from(std::mem::take(&mut self.pending)) {
            Ok([only]) => Ok(only),
            Err(many) => {
                concat_batches(&self.schema, &many).map_err(|error| failed(&self.path, error.into()))
            }
        }
    }

    /// Returns whether there are enough pending rows to encode.
    pub(super) fn should_encode(&self) -> bool {
        self.chunk.is_complete()
    }

    /// Encodes the pending rows, creating the file if necessary.
    pub(super) fn encode(&mut self, storage: &Storage) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => {
                let file = storage.create_file(&self.path)?;
                self.is_created = true;
                encoder(file, &self.schema).map_err(|error| failed(&self.path, error))?
            }
        };
        let batch = self.take_pending()?;
        self.chunk.end();
        encoder.write(&batch).map_err(|error| failed(&self.path, error))?;
        self.encoder = Some(encoder);
        Ok(())
    }

    /// Writes everything in memory to the file, as a row group.
    pub(super) fn spill(&mut self, storage: &Storage) -> Result<()> {
        self.encode(storage)?;
        self.encoder.as_mut().map_or(Ok(()), ArrowWriter::flush).map_err(|error| failed(&self.path, error))
    }

    /// Completes the file, whose rows must all be encoded. Returns `None` if it has no rows and was never
    /// created.
    pub(super) fn close(self) -> Result<Option<ClosedFile>> {
        let Some(mut encoder) = self.encoder else { return Ok(None) };
        let metadata = encoder.finish().map_err(|error| failed(&self.path, error))?;
        let taken = || failed(&self.path, ParquetError::General("the file has been completed".into()));
        let size = encoder.inner_mut().0.take().ok_or_else(taken)?.finish()?;
        Ok(Some(ClosedFile { path: self.path, key: self.key, size, metadata, has_nan: self.has_nan }))
    }
}

fn encoder(file: FileWriter, schema: &SchemaRef) -> Result<ArrowWriter<Sink>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_created_by(concat!("deltalog version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_coerce_types(true)
        .build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    ArrowWriter::try_new_with_options(Sink(Some(file)), schema.clone(), options)
}

fn failed(path: &str, error: ParquetError) -> Error {
    let kind = match &error {
        ParquetError::NYI(_) => ErrorKind::Unsupported,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, "the data file could not be written").at_path(path).with_source(error)
}

/// Returns the memory of the rows of `batch` in bytes, without the rest of buffers that they share.
fn bytes(batch: &RecordBatch) -> usize {
    let bytes = |array: &ArrayRef| {
        array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
    };
    batch.columns().iter().map(bytes).sum()
}

/// Returns whether the array, or a field of it if it is a struct, contains a NaN. Lists and maps are not
/// searched, because they have no statistics.
fn has_nan(array: &ArrayRef) -> bool {
    // The loops do not exit early, so they compile to vector instructions. A NaN in a NULL slot only costs a
    // statistic.
    match array.data_type() {
        DataType::Float32 => array
            .as_primitive::<Float32Type>()
            .values()
            .iter()
            .fold(false, |found, value| found | value.is_nan()),
        DataType::Float64 => array
            .as_primitive::<Float64Type>()
            .values()
            .iter()
            .fold(false, |found, value| found | value.is_nan()),
        DataType::Struct(_) => array.as_struct().columns().iter().any(has_nan),
        _ => false,
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
