//! Vectors read from their files. (PROTOCOL, "Deletion Vector File Storage Format".)
//!
//! ```text
//! u8 version 1 │ u32 size, the vector, u32 CRC-32 │ u32 size, the vector, u32 CRC-32 │ …
//!              └ offset 1                          └ offset of the second
//! ```
//!
//! Big endian, outside of the vectors.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use flate2::Crc;
use parquet::file::reader::ChunkReader;

use super::place::{VectorPlace, unreadable};
use super::{DeletionVector, blob};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{DeletionVectorDescriptor, LogPath, PathResolver};
use crate::storage::{FileReader, Storage};

/// "The format version of this file."
const VERSION: u8 = 1;
/// How many files are kept open: data files that follow each other tend to have their vectors in one file.
const OPEN_FILES: usize = 4;
/// Of the size before a vector, and of the checksum after it.
const FRAME: usize = 4;

/// Reads the deletion vectors of a table. Threads may share it.
#[derive(Debug)]
pub struct DeletionVectors {
    storage: Storage,
    resolver: PathResolver,
    /// The files used last, whose version is known, the newest at the end.
    open: Mutex<Vec<(LogPath, FileReader)>>,
}

impl DeletionVectors {
    /// A reader of the vectors of the table at `storage`, whose paths `resolver` decodes.
    pub fn new(storage: Storage, resolver: PathResolver) -> Self {
        Self { storage, resolver, open: Mutex::default() }
    }

    /// The vector that `descriptor` speaks of. If it is known that the data file has `rows` rows, the vector
    /// must not name others.
    ///
    /// # Errors
    /// `CorruptLog` for a malformed descriptor, `CorruptData` for a vector that is not what the descriptor
    /// says or the protocol allows, `FileNotFound`, `Unsupported` for a file in another store, `Unavailable`,
    /// `PermissionDenied`. The message names the vector; the caller knows the data file.
    pub fn read(&self, descriptor: &DeletionVectorDescriptor, rows: Option<u64>) -> Result<DeletionVector> {
        let place = VectorPlace::of(descriptor, &self.resolver)?;
        let name = match &place {
            VectorPlace::Inline(_) => "within the log".to_owned(),
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

    /// The file at `path`, opened now or lately.
    fn file(&self, path: &LogPath) -> Result<FileReader> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = open.iter().position(|(known, _)| known == path) {
            let known = open.remove(index);
            let file = known.1.clone();
            open.push(known);
            return Ok(file);
        }
        // Two threads may open the same file; that costs a request and not the wait of all others.
        drop(open);
        let file = self.storage.open_log_path(path)?;
        match read(&file, 0, 1)?.first() {
            Some(&VERSION) => {}
            Some(version) => {
                return Err(Error::unsupported(format!(
                    "the file has the version {version} of the format of deletion vectors"
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

/// The bytes of the vector at `offset`, taken out of their frame.
fn vector_bytes(file: &FileReader, offset: u64, size: usize) -> Result<Bytes> {
    let framed = size
        .checked_add(2 * FRAME)
        .ok_or_else(|| Error::corrupt_log("the descriptor's size is beyond any file"))?;
    let bytes = read(file, offset, framed)?;
    let breaks_off = || Error::corrupt_data("the vector breaks off");
    let (before, rest) = bytes.split_first_chunk::<FRAME>().ok_or_else(breaks_off)?;
    let (vector, after) = rest.split_last_chunk::<FRAME>().ok_or_else(breaks_off)?;
    let stored_size = u32::from_be_bytes(*before);
    if usize::try_from(stored_size).ok() != Some(size) {
        return Err(Error::corrupt_data(format!(
            "the vector has {stored_size} bytes, its descriptor says {size}"
        )));
    }
    let mut crc = Crc::new();
    crc.update(vector);
    match crc.sum() == u32::from_be_bytes(*after) {
        true => Ok(bytes.slice(FRAME..FRAME + size)),
        false => Err(Error::corrupt_data("the vector's checksum is wrong")),
    }
}

/// `length` bytes at `start`, which are there before memory is taken for them.
fn read(file: &FileReader, start: u64, length: usize) -> Result<Bytes> {
    if start.checked_add(length as u64).is_none_or(|end| end > file.size()) {
        return Err(Error::corrupt_data(format!(
            "{length} bytes at {start} are asked of a file that has {}",
            file.size()
        )));
    }
    file.get_bytes(start, length)
        .map_err(|error| Error::new(ErrorKind::Unavailable, "the file could not be read").with_source(error))
}
