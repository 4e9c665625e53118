//! Reads deletion vectors from their files. (PROTOCOL, "Deletion Vector File Storage Format".)
//!
//! ```text
//! u8 version 1 │ u32 size, the vector, u32 CRC-32 │ u32 size, the vector, u32 CRC-32 │ …
//!              └ offset 1                          └ offset of the second
//! ```
//!
//! The numbers outside the vectors are big endian.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use flate2::Crc;
use parquet::file::reader::ChunkReader;
use roaring::RoaringTreemap;

use super::place::{VectorPlace, unreadable};
use super::{DeletionVector, blob};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{DeletionVectorDescriptor, LogPath, PathResolver};
use crate::storage::{FileReader, Storage};

/// The supported version of the file format.
pub(super) const VERSION: u8 = 1;
/// The number of files that are kept open. Consecutive data files often have their vectors in the same file.
const OPEN_FILES: usize = 4;
/// The size in bytes of the length field before a vector, and of the checksum after it.
const FRAME: usize = 4;

/// A reader of the deletion vectors of a table. Threads may share it.
#[derive(Debug)]
pub struct DeletionVectors {
    storage: Storage,
    resolver: PathResolver,
    /// The most recently used files, newest last. Their format version has been checked.
    open: Mutex<Vec<(LogPath, FileReader)>>,
}

impl DeletionVectors {
    /// Creates a reader of the deletion vectors of the table at `storage`. `resolver` decodes the paths of the table.
    pub fn new(storage: Storage, resolver: PathResolver) -> Self {
        Self { storage, resolver, open: Mutex::default() }
    }

    /// Reads the vector of `descriptor`. If `rows`, the number of rows of the data file, is given, a vector with a row
    /// beyond it is an error.
    ///
    /// # Errors
    /// `CorruptLog` for a malformed descriptor; `CorruptData` for a vector that differs from its descriptor or violates
    /// the protocol; `FileNotFound`; `Unsupported` for a file in another store; `Unavailable`; `PermissionDenied`. The
    /// message describes the vector; the caller adds the path of the data file.
    pub fn read(&self, descriptor: &DeletionVectorDescriptor, rows: Option<u64>) -> Result<DeletionVector> {
        let place = VectorPlace::of(descriptor, &self.resolver)?;
        let name = match &place {
            VectorPlace::Inline(_) => "in the log".to_owned(),
            VectorPlace::File { path, offset, .. } => format!("'{path}' at {offset}"),
        };
        let bytes = match place {
            VectorPlace::Inline(bytes) => Ok(Bytes::from(bytes)),
            VectorPlace::File { path, offset, size } => {
                self.file(&path).and_then(|file| vector_bytes(&file, offset, size))
            }
        };
        let vector = bytes.and_then(|bytes| {
            let vector = DeletionVector::from(blob::decode(&bytes, descriptor.cardinality)?);
            rows.map_or(Ok(()), |rows| vector.ensure_within(rows)).map(|()| vector)
        });
        vector.map_err(|error| unreadable(error, name))
    }

    /// Returns the deleted rows of a data file: the rows of its vector, if it has one.
    ///
    /// # Errors
    /// Returns the same errors as [`DeletionVectors::read`].
    pub(crate) fn deleted(
        &self,
        descriptor: Option<&DeletionVectorDescriptor>,
        rows: Option<u64>,
    ) -> Result<RoaringTreemap> {
        descriptor.map_or_else(
            || Ok(RoaringTreemap::new()),
            |descriptor| self.read(descriptor, rows).map(|vector| vector.rows),
        )
    }

    /// Returns the file at `path`. It may still be open from an earlier call.
    fn file(&self, path: &LogPath) -> Result<FileReader> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = open.iter().position(|(known, _)| known == path) {
            let known = open.remove(index);
            let file = known.1.clone();
            open.push(known);
            return Ok(file);
        }
        // The lock is released, so that other threads do not have to wait while the file is opened. Two threads may
        // then open the same file, which costs one more request.
        drop(open);
        let file = self.storage.open_log_path(path)?;
        match read(&file, 0, 1)?.first() {
            Some(&VERSION) => {}
            Some(version) => {
                return Err(Error::unsupported(format!(
                    "the file has version {version} of the deletion vector format"
                )));
            }
            None => return Err(Error::corrupt_data("the file is empty")),
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= OPEN_FILES {
            open.remove(0);
        }
        open.push((path.clone(), file.clone()));
        Ok(file)
    }
}

/// Returns the bytes of the vector at `offset`. Checks the size and the checksum around it, and leaves them out.
fn vector_bytes(file: &FileReader, offset: u64, size: usize) -> Result<Bytes> {
    let framed = size
        .checked_add(2 * FRAME)
        .ok_or_else(|| Error::corrupt_log("the size in the descriptor is too large"))?;
    let bytes = read(file, offset, framed)?;
    let truncated = || Error::corrupt_data("the vector is truncated");
    let (before, rest) = bytes.split_first_chunk::<FRAME>().ok_or_else(truncated)?;
    let (vector, after) = rest.split_last_chunk::<FRAME>().ok_or_else(truncated)?;
    let stored_size = u32::from_be_bytes(*before);
    if usize::try_from(stored_size).ok() != Some(size) {
        return Err(Error::corrupt_data(format!(
            "the vector has {stored_size} bytes, but its descriptor says {size}"
        )));
    }
    let mut crc = Crc::new();
    crc.update(vector);
    match crc.sum() == u32::from_be_bytes(*after) {
        true => Ok(bytes.slice(FRAME..FRAME + size)),
        false => Err(Error::corrupt_data("the vector's checksum is wrong")),
    }
}

/// Reads `length` bytes at `start`. The size of the file is checked before memory is allocated.
fn read(file: &FileReader, start: u64, length: usize) -> Result<Bytes> {
    if start.checked_add(length as u64).is_none_or(|end| end > file.size()) {
        return Err(Error::corrupt_data(format!(
            "cannot read {length} bytes at offset {start}: the file has only {} bytes",
            file.size()
        )));
    }
    file.get_bytes(start, length).map_err(|error| {
        file.failure().unwrap_or_else(|| {
            Error::new(ErrorKind::Unavailable, "the file could not be read").with_source(error)
        })
    })
}
