//! Files opened for ranged reads, through the interface of the Parquet reader.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

/// An open file. Local files are read by range; files of other stores are held in memory.
#[derive(Clone, Debug)]
pub struct FileReader(Source);

#[derive(Clone, Debug)]
enum Source {
    Local(Arc<File>, u64),
    Memory(Bytes),
}

impl FileReader {
    pub(super) fn open_local(path: &std::path::Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "the path is a directory"));
        }
        Ok(Self(Source::Local(Arc::new(file), meta.len())))
    }

    pub(super) fn in_memory(bytes: Bytes) -> Self {
        Self(Source::Memory(bytes))
    }

    /// Returns the size of the file in bytes.
    pub fn size(&self) -> u64 {
        match &self.0 {
            Source::Local(_, size) => *size,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }
}

impl Length for FileReader {
    fn len(&self) -> u64 {
        self.size()
    }
}

impl ChunkReader for FileReader {
    type T = Box<dyn Read + Send>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        match &self.0 {
            Source::Local(file, _) => {
                // Clones of a handle share its position, so only positioned reads are safe.
                Ok(Box::new(io::BufReader::new(PositionedRead { file: Arc::clone(file), at: start })))
            }
            Source::Memory(bytes) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
                Ok(Box::new(bytes.slice(start..).reader()))
            }
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.size());
        if end.is_none() {
            return Err(parquet::errors::ParquetError::EOF(format!(
                "the range of {length} bytes at {start} exceeds the end of the file"
            )));
        }
        match &self.0 {
            Source::Local(file, _) => Ok(read_at(file, start, length)?.into()),
            Source::Memory(bytes) => {
                let start = start as usize;
                Ok(bytes.slice(start..start + length))
            }
        }
    }
}

/// Reads `length` bytes at `start`. The buffer is not zeroed first, which would take as long as reading a
/// cached file.
#[cfg(unix)]
fn read_at(file: &File, start: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = start + bytes.len() as u64;
        if rustix::io::retry_on_intr(|| {
            rustix::io::pread(file, rustix::buffer::spare_capacity(&mut bytes), at)
        })? == 0
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(windows)]
fn read_at(file: &Arc<File>, start: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    PositionedRead { file: Arc::clone(file), at: start }.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A reader with a position of its own, so that many threads can share one handle.
struct PositionedRead {
    file: Arc<File>,
    at: u64,
}

impl Read for PositionedRead {
    #[cfg(unix)]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = std::os::unix::fs::FileExt::read_at(&*self.file, buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }

    #[cfg(windows)]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = std::os::windows::fs::FileExt::seek_read(&*self.file, buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
