//! Keeps rows that do not fit in memory in a temporary file.
//!
//! ```text
//! run 1   [a a a b b][b c c]            a run: the rows in memory, in the order of their partitions
//! run 2   [a a][a b c c]                [block]: Arrow IPC, compressed as a whole
//! a       rows 0..3 of block 1, 0..2 of block 3, 0..1 of block 4
//! ```
//!
//! - The file is written sequentially, as several runs of blocks. Partitions are later read in the same order, so
//!   each run is also read sequentially, and only one decoded block per run is kept in memory.
//! - The file has no name: it is deleted as soon as it is created, so the operating system removes it when it is
//!   closed, even after a crash. On systems that do not support this, it is deleted when it is closed.
//! - Rows are returned exactly as they were written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};

use super::held::bytes;
use crate::error::{Error, ErrorKind, Result};

/// The temporary file of one write.
pub(crate) struct Overflow {
    directory: PathBuf,
    file: Option<File>,
    length: u64,
    blocks: Vec<Block>,
    /// For each run, the decoded block that was read last.
    recent: Vec<Option<Decoded>>,
    /// The memory in bytes of the decoded blocks.
    memory: usize,
}

/// The location of a block in the file.
#[derive(Clone, Copy)]
struct Block {
    run: usize,
    start: u64,
    length: usize,
}

struct Decoded {
    block: usize,
    rows: RecordBatch,
    bytes: usize,
}

/// The location of rows: a block of the file, and a range of rows in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    block: u32,
    start: u32,
    rows: u32,
}

impl Place {
    /// Creates the location of `rows` rows of a block, beginning with row `start`. A block has less than 2³² rows,
    /// and the file less than 2³² blocks.
    pub(crate) fn new(block: usize, start: usize, rows: usize) -> Self {
        Self { block: block as u32, start: start as u32, rows: rows as u32 }
    }

    /// Returns whether the row `start` of `block` comes directly after these rows.
    pub(super) fn is_followed_by(&self, block: usize, start: usize) -> bool {
        (self.block as usize, self.start as usize + self.rows as usize) == (block, start)
    }

    /// Extends the location by `rows` rows that come directly after it.
    pub(super) fn grow(&mut self, rows: usize) {
        self.rows += rows as u32;
    }
}

impl Overflow {
    /// Creates an overflow without a file. The file is created in `directory` when it is needed.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, file: None, length: 0, blocks: Vec::new(), recent: Vec::new(), memory: 0 }
    }

    /// Creates an overflow that uses an existing file.
    #[cfg(test)]
    pub(super) fn over(file: File) -> Self {
        Self { file: Some(file), ..Self::new(PathBuf::from("/over")) }
    }

    /// Returns the size of the file in bytes.
    pub(super) fn written(&self) -> u64 {
        self.length
    }

    /// Returns the memory of decoded blocks, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// Frees the memory of decoded blocks.
    pub(crate) fn forget(&mut self) {
        self.recent.iter_mut().for_each(|decoded| *decoded = None);
        self.memory = 0;
    }

    /// Begins a run. The blocks that are written next belong to it.
    pub(crate) fn begin_run(&mut self) {
        self.recent.push(None);
    }

    /// Writes `rows` as a block, and returns the block's number.
    ///
    /// # Errors
    /// `Unavailable`, which names the directory, if the file cannot be written.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<usize> {
        self.append(rows).map_err(|error| self.failed("written", error))?;
        Ok(self.blocks.len() - 1)
    }

    fn append(&mut self, rows: &RecordBatch) -> io::Result<()> {
        let bytes = compress_prepend_size(&encode(rows).map_err(io::Error::other)?);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&self.directory)?),
        };
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(&bytes)?;
        let run = self.recent.len().saturating_sub(1);
        self.blocks.push(Block { run, start: self.length, length: bytes.len() });
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Reads the rows at `place`.
    ///
    /// # Errors
    /// `Unavailable`, which names the directory, if the file cannot be read.
    pub(crate) fn read(&mut self, place: Place) -> Result<RecordBatch> {
        let rows = self.block(place.block as usize).map_err(|error| self.failed("read back", error))?;
        Ok(rows.slice(place.start as usize, place.rows as usize))
    }

    fn block(&mut self, number: usize) -> io::Result<RecordBatch> {
        let missing = || io::Error::other(format!("there is no block {number}"));
        let block = *self.blocks.get(number).ok_or_else(missing)?;
        let recent = self.recent.get_mut(block.run).ok_or_else(missing)?;
        if let Some(decoded) = recent.as_ref().filter(|decoded| decoded.block == number) {
            return Ok(decoded.rows.clone());
        }
        let file = self.file.as_mut().ok_or_else(missing)?;
        file.seek(SeekFrom::Start(block.start))?;
        let mut compressed = vec![0; block.length];
        file.read_exact(&mut compressed)?;
        let rows = decode(&decompress_size_prepended(&compressed).map_err(io::Error::other)?)
            .map_err(io::Error::other)?;
        let decoded = Decoded { block: number, rows: rows.clone(), bytes: bytes(&rows) };
        self.memory += decoded.bytes;
        self.memory -= recent.replace(decoded).map_or(0, |before| before.bytes);
        Ok(rows)
    }

    fn failed(&self, action: &str, error: io::Error) -> Error {
        let directory = self.directory.display();
        let message =
            format!("rows that do not fit in memory could not be {action}: temporary file in {directory}");
        let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
        let (kind, help) = match is_denied {
            true => (ErrorKind::PermissionDenied, "give the process write access to this directory"),
            false => (ErrorKind::Unavailable, "free space in this directory"),
        };
        Error::new(kind, message)
            .with_hint(format!("{help}, or name another directory in the environment variable TMPDIR"))
            .with_source(error)
    }
}

fn encode(rows: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), rows.schema_ref())?;
    writer.write(rows)?;
    writer.finish()?;
    writer.into_inner()
}

fn decode(bytes: &[u8]) -> Result<RecordBatch, ArrowError> {
    let mut batches = StreamReader::try_new(bytes, None)?;
    batches.next().unwrap_or_else(|| Err(ArrowError::IpcError("the block has no rows".to_owned())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray};

    use super::*;

    fn rows(texts: &[Option<&str>]) -> RecordBatch {
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        RecordBatch::try_from_iter_with_nullable([("text", texts, true)]).unwrap()
    }

    #[test]
    fn rows_can_be_read_back_in_any_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut overflow = Overflow::new(directory.path().to_owned());
        let (first, second) = (rows(&[Some("a"), None, Some("é")]), rows(&[Some(""), Some("b")]));
        overflow.begin_run();
        assert_eq!(overflow.write(&first).unwrap(), 0);
        assert_eq!(overflow.write(&second.slice(1, 1)).unwrap(), 1);
        overflow.begin_run();
        assert_eq!(overflow.write(&second).unwrap(), 2);
        assert_eq!(overflow.read(Place::new(2, 0, 1)).unwrap(), second.slice(0, 1));
        assert_eq!(overflow.read(Place::new(0, 1, 2)).unwrap(), first.slice(1, 2));
        assert_eq!(overflow.read(Place::new(1, 0, 1)).unwrap(), second.slice(1, 1));
        assert_eq!(overflow.memory(), bytes(&second.slice(1, 1)) + bytes(&second), "one block of each run");
        overflow.forget();
        assert_eq!(overflow.memory(), 0);
        assert_eq!(overflow.write(&first).unwrap(), 3, "writing goes on after reading");
        assert_eq!(overflow.read(Place::new(0, 0, 3)).unwrap(), first);
        assert_eq!(overflow.read(Place::new(3, 0, 3)).unwrap(), first);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn errors_name_a_directory_that_cannot_be_used() {
        let directory = tempfile::tempdir().unwrap();
        let gone = directory.path().join("gone");
        let error = Overflow::new(gone.clone()).write(&rows(&[None])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains(gone.to_str().unwrap()), "{error}");
        assert!(error.hint().unwrap().contains("TMPDIR"), "{error}");
    }

    /// Every write to this device fails as if the disk were full.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let full = File::options().read(true).write(true).open("/dev/full").unwrap();
        let mut overflow = Overflow::over(full);
        overflow.begin_run();
        let error = overflow.write(&rows(&[Some("a")])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("/over"), "{error}");
        let source = std::error::Error::source(&error).unwrap().downcast_ref::<io::Error>().unwrap();
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert!(overflow.read(Place::new(0, 0, 1)).is_err());
    }
}
