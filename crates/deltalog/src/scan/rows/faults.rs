//! Errors of reading data files. They distinguish faults of the store from faults of the file.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::gaps::GapReader;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::panics::{catch, caught};
use crate::runtime::row_bytes::is_overflow;
use crate::storage::FileReader;

/// A file that remembers whether a read failed. The Parquet reader turns errors into text, so a failing disk
/// would otherwise look like a truncated file.
#[derive(Debug, Clone)]
pub(super) struct WatchedFile {
    file: FileReader,
    has_failed: Arc<AtomicBool>,
}

impl WatchedFile {
    pub(super) fn new(file: FileReader) -> Self {
        Self { file, has_failed: Arc::default() }
    }

    /// Returns the same file for a reader that will read `units` of byte ranges; see [`FileReader::planned`].
    pub(super) fn planned(&self, units: impl FnOnce() -> Vec<Vec<Range<u64>>>) -> Self {
        Self { file: self.file.planned(units), has_failed: Arc::clone(&self.has_failed) }
    }

    /// Returns the error for a failed attempt to read the file as Parquet.
    pub(super) fn error(&self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        if let Some(failure) = self.file.failure() {
            return failure;
        }
        if self.has_failed.load(Ordering::Relaxed) {
            return Error::new(ErrorKind::Unavailable, "the file could not be read").with_source(source);
        }
        Error::corrupt_data("the file cannot be read as Parquet").with_source(source)
    }
}

/// Returns whether a failed read is the fault of the store, and not of the requested range.
fn is_store_fault(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::UnexpectedEof
}

impl Length for WatchedFile {
    fn len(&self) -> u64 {
        self.file.size()
    }
}

impl ChunkReader for WatchedFile {
    type T = WatchedRead;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(WatchedRead { read: self.file.get_read(start)?, has_failed: Arc::clone(&self.has_failed) })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.file.get_bytes(start, length).inspect_err(|error| {
            if let ParquetError::External(source) = error
                && source.downcast_ref::<io::Error>().is_some_and(is_store_fault)
            {
                self.has_failed.store(true, Ordering::Relaxed);
            }
        })
    }
}

/// A sequential read of a [`WatchedFile`].
pub(super) struct WatchedRead {
    read: <FileReader as ChunkReader>::T,
    has_failed: Arc<AtomicBool>,
}

impl Read for WatchedRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read.read(buffer).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted && is_store_fault(error) {
                self.has_failed.store(true, Ordering::Relaxed);
            }
        })
    }
}

/// The reason why a batch could not be read.
#[derive(Debug)]
pub(super) enum ReadFailure {
    /// The rows are too large for an Arrow array.
    TooLarge,
    Failed(Error),
}

impl From<Error> for ReadFailure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ReadFailure> for Error {
    fn from(failure: ReadFailure) -> Self {
        match failure {
            ReadFailure::TooLarge => Self::unsupported(
                "a row has 2 GiB or more of strings or bytes in one column, which no Arrow array can hold",
            ),
            ReadFailure::Failed(error) => error,
        }
    }
}

/// Returns the next batch of `file`.
pub(super) fn read_batch(
    reader: &mut GapReader,
    file: &WatchedFile,
) -> Result<Option<RecordBatch>, ReadFailure> {
    let read = catch(|| reader.next().transpose());
    match read {
        Ok(Ok(batch)) => Ok(batch),
        Ok(Err(error)) if is_overflow(&error.to_string()) => Err(ReadFailure::TooLarge),
        Ok(Err(error)) => Err(file.error(error).into()),
        Err(panic) if is_overflow(&panic) => Err(ReadFailure::TooLarge),
        Err(panic) => Err(panicked(&panic).into()),
    }
}

/// Calls `work` and turns a panic, which the decoder may raise for a damaged file, into an error.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(work, panicked)
}

fn panicked(panic: &str) -> Error {
    Error::corrupt_data(format!("reading data files panicked with '{panic}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Storage;

    struct Failing(io::ErrorKind);

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_failing_disk_is_not_reported_as_a_damaged_file() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), b"PAR1").unwrap();
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        for (fault, kind) in [
            (io::ErrorKind::TimedOut, ErrorKind::Unavailable),
            (io::ErrorKind::UnexpectedEof, ErrorKind::CorruptData),
            (io::ErrorKind::Interrupted, ErrorKind::CorruptData),
        ] {
            let file = WatchedFile::new(storage.open_file("file").unwrap());
            let mut read =
                WatchedRead { read: Box::new(Failing(fault)), has_failed: Arc::clone(&file.has_failed) };
            let source = read.read(&mut [0]).unwrap_err();
            assert_eq!(file.error(source).kind(), kind);
        }
    }
}
