//! Files that are opened for ranged reads. They implement the interface of the Parquet reader.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

use super::beneath::Place;
use super::ranges::{self, Plan, RemoteFile};
use crate::error::Error;

/// The number of bytes of a local file that are read at once for a page header, which usually has fewer than a hundred.
///
/// A file with 10,000 columns has 20,000 headers or more. With the usual buffers of 8 KiB, filling and allocating the
/// buffers would take longer than reading the pages.
const HEADER_BYTES: usize = 1000;

/// An open file whose ranges can be read.
#[derive(Clone, Debug)]
pub struct FileReader(Source);

#[derive(Clone, Debug)]
enum Source {
    Local(Arc<File>, Arc<LocalFile>),
    /// The file is opened again for each read.
    Idle(Arc<LocalFile>),
    Remote(Arc<RemoteFile>, Option<Arc<Plan>>),
}

/// A file of the local file system.
#[derive(Debug)]
struct LocalFile {
    place: Place,
    size: u64,
    /// The file's device number and inode number; zeros on systems that do not have them.
    id: (u64, u64),
}

impl LocalFile {
    fn open(place: &Place) -> io::Result<(File, Self)> {
        let (file, meta) = place.open()?;
        let found = Self { place: place.clone(), size: meta.len(), id: id_of(&meta) };
        Ok((file, found))
    }

    /// Opens the file again. Returns `NotFound` if another file has replaced it.
    fn reopen(&self) -> io::Result<File> {
        let (file, found) = Self::open(&self.place)?;
        if (found.id, found.size) == (self.id, self.size) {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "the file was replaced by another one"))
        }
    }
}

#[cfg(unix)]
fn id_of(meta: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

#[cfg(not(unix))]
fn id_of(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

impl FileReader {
    pub(super) fn open_local(place: &Place) -> io::Result<Self> {
        let (file, found) = LocalFile::open(place)?;
        Ok(Self(Source::Local(Arc::new(file), Arc::new(found))))
    }

    /// Returns a reader of the same file that does not keep the file open between reads.
    ///
    /// A process may have only a few hundred files open, so readers that live long should not keep files open.
    pub(crate) fn idle(&self) -> Self {
        match &self.0 {
            Source::Local(_, file) => Self(Source::Idle(Arc::clone(file))),
            Source::Idle(_) | Source::Remote(..) => self.clone(),
        }
    }

    /// Returns a reader of the same file that keeps the file open.
    ///
    /// # Errors
    /// `NotFound` if the file no longer exists, and other errors of the file system.
    pub(crate) fn opened(&self) -> io::Result<Self> {
        match &self.0 {
            Source::Idle(file) => Ok(Self(Source::Local(Arc::new(file.reopen()?), Arc::clone(file)))),
            Source::Local(..) | Source::Remote(..) => Ok(self.clone()),
        }
    }

    pub(super) fn remote(file: RemoteFile) -> Self {
        Self(Source::Remote(Arc::new(file), None))
    }

    /// Returns a reader of the same file that will read `units`, one after another. Each unit is a list of ranges. This
    /// makes it possible to request whole units from a remote store. Other ranges can still be read.
    pub(crate) fn planned(&self, units: impl FnOnce() -> Vec<Vec<Range<u64>>>) -> Self {
        match &self.0 {
            Source::Local(..) | Source::Idle(_) => self.clone(),
            Source::Remote(file, _) => {
                let plan = Plan::new(units(), file.size());
                Self(Source::Remote(Arc::clone(file), Some(Arc::new(plan))))
            }
        }
    }

    /// Returns a reader of the same file that will read all of it, from the beginning.
    pub(crate) fn planned_whole(&self) -> Self {
        self.planned(|| vec![vec![0..self.size()]])
    }

    /// Returns whether reading means waiting for a network.
    pub(crate) fn waits(&self) -> bool {
        matches!(&self.0, Source::Remote(file, _) if file.waits())
    }

    /// Returns the store's error that has caused an error of this reader, if there is one.
    pub(crate) fn failure(&self) -> Option<Error> {
        match &self.0 {
            Source::Local(..) | Source::Idle(_) => None,
            Source::Remote(file, _) => file.failure(),
        }
    }

    /// Returns the size of the file in bytes.
    pub fn size(&self) -> u64 {
        match &self.0 {
            Source::Local(_, file) | Source::Idle(file) => file.size,
            Source::Remote(file, _) => file.size(),
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
                // Clones of a file handle share their position, so only reads at an explicit position are safe.
                let read = PositionedRead { file: Arc::clone(file), at: start };
                Ok(Box::new(io::BufReader::with_capacity(HEADER_BYTES, read)))
            }
            Source::Idle(_) => self.opened()?.get_read(start),
            Source::Remote(file, plan) => {
                let (file, plan) = (Arc::clone(file), plan.clone());
                Ok(Box::new(RemoteRead { file, plan, at: start, bytes: Bytes::new() }))
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
            Source::Idle(_) => self.opened()?.get_bytes(start, length),
            Source::Remote(file, plan) => Ok(ranges::exactly(file, plan.as_deref(), start, length)?),
        }
    }
}

/// Reads `length` bytes at `start`. The buffer is not filled with zeros first, because this would take as long as
/// reading a file that the system has cached.
#[cfg(unix)]
pub(super) fn read_at(file: &File, start: u64, length: usize) -> io::Result<Vec<u8>> {
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
pub(super) fn read_at(file: &File, start: u64, length: usize) -> io::Result<Vec<u8>> {
    let (mut bytes, mut read) = (vec![0; length], 0);
    while read < length {
        let rest = bytes.get_mut(read..).unwrap_or_default();
        match std::os::windows::fs::FileExt::seek_read(file, rest, start + read as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => read += more,
        }
    }
    Ok(bytes)
}

/// A reader with a position of its own, so that many threads can share one file handle.
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

/// Reads a remote file sequentially.
struct RemoteRead {
    file: Arc<RemoteFile>,
    plan: Option<Arc<Plan>>,
    at: u64,
    /// The bytes from `at` on that were already read from the store.
    bytes: Bytes,
}

impl Read for RemoteRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            self.bytes = ranges::some(&self.file, self.plan.as_deref(), self.at)?;
        }
        let read = buffer.len().min(self.bytes.len());
        self.bytes.copy_to_slice(buffer.get_mut(..read).unwrap_or_default());
        self.at += read as u64;
        Ok(read)
    }
}
