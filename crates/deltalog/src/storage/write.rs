//! A data file being written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::Storage;
use crate::error::{Error, ErrorKind, Result};

/// Removes a directory tree that holds no file. `remove_dir` refuses what is not empty, so nothing can be lost.
pub(super) fn remove_empty(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_empty(&entry.path());
    }
    // Not empty, or gone meanwhile: both are as they should be.
    let _ = fs::remove_dir(directory);
}

/// A file that is written from front to back. Nobody reads it before a commit names it, so it stands under its own name from the start; one that
/// is dropped unfinished is left for clean-up.
#[derive(Debug)]
pub struct FileWriter {
    sink: Sink,
    path: String,
    written: u64,
}

#[derive(Debug)]
enum Sink {
    Local(BufWriter<File>),
    Memory(Storage, Vec<u8>),
}

impl FileWriter {
    pub(super) fn create_local(file: &Path, path: &str) -> io::Result<Self> {
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        let sink = Sink::Local(BufWriter::with_capacity(1 << 20, File::create_new(file)?));
        Ok(Self { sink, path: path.to_owned(), written: 0 })
    }

    pub(super) fn in_memory(storage: Storage, path: &str) -> Self {
        Self { sink: Sink::Memory(storage, Vec::new()), path: path.to_owned(), written: 0 }
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Makes the file durable and tells its size in bytes.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    pub fn finish(self) -> Result<u64> {
        let failed = |path: &str, error: io::Error| {
            Error::new(ErrorKind::Unavailable, "the file could not be written").at_path(path).with_source(error)
        };
        match self.sink {
            Sink::Local(buffer) => {
                let file = buffer.into_inner().map_err(|error| failed(&self.path, error.into_error()))?;
                file.sync_all().map_err(|error| failed(&self.path, error))?;
            }
            Sink::Memory(storage, bytes) => storage.put(&self.path, bytes.into())?,
        }
        Ok(self.written)
    }
}

impl Write for FileWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = match &mut self.sink {
            Sink::Local(file) => file.write(buffer)?,
            Sink::Memory(_, bytes) => bytes.write(buffer)?,
        };
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Local(file) => file.flush(),
            Sink::Memory(..) => Ok(()),
        }
    }
}
