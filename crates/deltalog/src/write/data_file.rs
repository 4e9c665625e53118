//! A Parquet file that is being written.
//!
//! ```text
//! push ─► pending batches ─► encoder (pages of one row group, in memory) ─► row groups in the file ─► footer
//!            a chunk           spilled when the writer's budget is used up
//! ```
//!
//! - The file is created when its first batch is encoded. Until then, its rows exist only in memory, so a partition
//!   with few rows costs little.

use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::chunk::Chunk;
use super::dictionaries::Dictionaries;
use super::encoder::Encoder;
use super::format::Format;
use super::held::bytes;
use super::nan_columns::NanColumns;
use super::split::PartitionKey;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::parallel;
use crate::storage::Storage;

/// The maximum number of pending batches, at which they are merged into one. Merging saves memory, because each small
/// array takes more memory than its rows.
const MAX_PENDING: usize = 64;

/// The memory in bytes that an open file needs in addition to its encoder, for its write buffer.
const FILE_BUFFER: usize = 1 << 20;

/// A data file that is being written.
pub(super) struct DataFile {
    path: String,
    key: PartitionKey,
    schema: SchemaRef,
    pending: Vec<RecordBatch>,
    pending_bytes: usize,
    chunk: Chunk,
    threads: usize,
    format: Format,
    dictionaries: Option<Dictionaries>,
    encoder: Option<Encoder>,
    is_created: bool,
    nans: NanColumns,
}

/// A data file that is complete and durable.
pub(super) struct ClosedFile {
    pub(super) path: String,
    pub(super) key: PartitionKey,
    pub(super) size: u64,
    pub(super) metadata: ParquetMetaData,
}

impl DataFile {
    pub(super) fn new(
        path: String,
        key: PartitionKey,
        schema: SchemaRef,
        format: Format,
        dictionaries: Option<Dictionaries>,
    ) -> Self {
        Self {
            path,
            key,
            schema,
            pending: Vec::new(),
            pending_bytes: 0,
            chunk: Chunk::default(),
            threads: parallel::cores(),
            format,
            dictionaries,
            encoder: None,
            is_created: false,
            nans: NanColumns::default(),
        }
    }

    /// Makes the calling thread encode the file without help, because other threads write other files at the same
    /// time.
    pub(super) fn alone(self) -> Self {
        Self { threads: 1, ..self }
    }

    /// Returns the decoded path of the file, relative to the table's root.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns whether the file is open, so that it holds a handle of the operating system.
    pub(super) fn is_open(&self) -> bool {
        self.encoder.is_some()
    }

    /// Returns whether the file has been created, so that it must be deleted if the write is aborted.
    pub(super) fn is_created(&self) -> bool {
        self.is_created
    }

    /// Returns the memory that this file holds, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.spillable() + if self.is_open() { FILE_BUFFER } else { 0 }
    }

    /// Returns the memory that [`DataFile::spill`] frees, in bytes.
    pub(super) fn spillable(&self) -> usize {
        self.pending_bytes + self.encoder.as_ref().map_or(0, Encoder::memory)
    }

    /// Estimates the size of the file in bytes if it were closed now.
    pub(super) fn expected_size(&self) -> u64 {
        self.encoder.as_ref().map_or(0, Encoder::expected_size) as u64
    }

    /// Returns how many of the first rows of `batch` may be added before the pending rows must be encoded.
    pub(super) fn room(&self, batch: &RecordBatch) -> usize {
        self.chunk.missing(batch).unwrap_or(batch.num_rows())
    }

    /// Adds rows without encoding them. There may be at most as many as [`DataFile::room`] allows.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.chunk.add(&batch);
        self.nans.add(&batch);
        self.pending_bytes += bytes(&batch);
        self.pending.push(batch);
        if self.pending.len() >= MAX_PENDING {
            let merged = self.take_pending()?;
            self.pending_bytes = bytes(&merged);
            self.pending.push(merged);
        }
        Ok(())
    }

    /// Removes the pending rows, and returns them as one batch.
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

    /// Encodes the pending rows. Creates the file if it does not exist yet.
    pub(super) fn encode(&mut self, storage: &Storage) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => {
                let file = storage.create_file(&self.path)?;
                self.is_created = true;
                let dictionaries = self.dictionaries.as_ref();
                Encoder::new(file, &self.schema, &self.format, dictionaries, self.threads)
                    .map_err(|error| failed(&self.path, error))?
            }
        };
        let bytes = self.pending_bytes;
        let batch = self.take_pending()?;
        self.chunk.end();
        encoder.write(&batch, bytes).map_err(|error| failed(&self.path, error))?;
        self.encoder = Some(encoder);
        Ok(())
    }

    /// Writes all encoded rows to the file, as a row group, which frees their memory.
    pub(super) fn spill(&mut self, storage: &Storage) -> Result<()> {
        self.encode(storage)?;
        self.encoder
            .as_mut()
            .map_or(Ok(()), Encoder::end_row_group)
            .map_err(|error| failed(&self.path, error))
    }

    /// Completes the file. All its rows must have been encoded. Returns `None` if it has no rows and was therefore
    /// never created.
    pub(super) fn close(self) -> Result<Option<ClosedFile>> {
        let Some(encoder) = self.encoder else { return Ok(None) };
        let (metadata, file) = encoder.finish(&self.nans).map_err(|error| failed(&self.path, error))?;
        if let Some(dictionaries) = &self.dictionaries {
            dictionaries.learn(&metadata);
        }
        let size = file.finish()?;
        Ok(Some(ClosedFile { path: self.path, key: self.key, size, metadata }))
    }
}

fn failed(path: &str, error: ParquetError) -> Error {
    let kind = match &error {
        ParquetError::NYI(_) => ErrorKind::Unsupported,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, "the data file could not be written").at_path(path).with_source(error)
}
