//! Copies files from one store to another, through memory and concurrently.
//!
//! - A file is copied in pieces, so that memory is limited by the number of files that are copied at the same time.
//! - It is an error if the size of a copy differs from the size of its source, or from the size in the log. Copies
//!   are durable when the function returns.

use std::io::Write;

use parquet::file::reader::ChunkReader;

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::LogPath;
use crate::runtime::parallel;
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;
use crate::storage::{MISSING_FILE_HINT, Storage};

/// The number of bytes of a file that are read at once.
const PIECE: u64 = 4 << 20;

/// The number of local files that are copied at the same time.
const FILES: usize = 4;

/// A file that is to be copied.
#[derive(Debug, Clone)]
pub(super) struct Copy {
    /// The file of the source.
    pub(super) from: LogPath,
    /// The decoded path of the copy, relative to the clone.
    pub(super) to: String,
    /// The size in bytes, if the log states it.
    pub(super) size: Option<u64>,
}

/// Copies files.
///
/// # Errors
/// Returns `FileNotFound` for a missing file, `CorruptData` for a file with a different size, and errors of both
/// stores.
pub(super) fn copy_all(source: &Snapshot, target: &Storage, copies: &[Copy]) -> Result<()> {
    let threads = source.storage().most_readers().min(target.most_readers()).max(parallel::exactly(FILES));
    let progress = Progress::new("CLONE", target.url(), copies.len() as u64, "files");
    let copied = parallel::each(copies, threads, |copy| {
        one(source, target, copy)?;
        progress.add(1);
        Ok(())
    });
    copied.map(drop)
}

fn one(source: &Snapshot, target: &Storage, copy: &Copy) -> Result<()> {
    let located = |error: Error| {
        let error = match error.kind() {
            ErrorKind::FileNotFound => error.with_hint(MISSING_FILE_HINT),
            _ => error,
        };
        source.located(error.at_path(copy.from.to_string()))
    };
    let file = source.storage().open_log_path(&copy.from).map_err(located)?;
    let size = file.size();
    if let Some(expected) = copy.size.filter(|expected| *expected != size) {
        return Err(located(Error::corrupt_data(format!(
            "the file has {size} bytes, and the log says {expected}"
        ))));
    }
    let reader = file.planned_whole();
    let mut writer = target.create_file(&copy.to)?;
    let mut at = 0;
    while at < size {
        let length = PIECE.min(size - at);
        let piece = reader.get_bytes(at, length as usize).map_err(|error| {
            let failure = file.failure().unwrap_or_else(|| {
                Error::new(ErrorKind::Unavailable, "the file could not be read").with_source(error)
            });
            located(failure)
        })?;
        writer.write_all(&piece).map_err(|error| {
            Error::new(ErrorKind::Unavailable, "the file could not be written")
                .at_path(&copy.to)
                .in_table(target.url())
                .with_source(error)
        })?;
        at += length;
    }
    let written = writer.finish()?;
    match written == size {
        true => Ok(()),
        false => Err(Error::corrupt_data(format!("{written} of {size} bytes were copied"))
            .at_path(&copy.to)
            .in_table(target.url())),
    }
}
