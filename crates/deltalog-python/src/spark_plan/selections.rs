//! The rows of files of which not all are shown, as bitmaps for the Java side.
//!
//! - A bitmap is 64-bit Roaring in the portable form, as `RowSelection.java` reads it: u64 n, and n times u32 key and a 32-bit bitmap; little endian.
//! - Vectors are read and checked here, several at a time; a task only looks rows up.
//! - They travel with the tasks of their files. What a driver holds of them is bounded.

use std::num::NonZero;
use std::thread;

use deltalog::deletion_vector::DeletionVectors;
use deltalog::scan::FileRows;
use deltalog::{Error, Result, Snapshot};

/// Of one plan. At 0.2 to 1 bit a row that is some 10^10 rows in files with deleted rows.
const MOST_BYTES: usize = 1 << 30;
/// So few are read by the caller's thread.
const OF_ONE_THREAD: usize = 16;

/// The bitmaps of `selections`, in their order.
pub(super) fn bitmaps(snapshot: &Snapshot, selections: &[(String, FileRows)]) -> Result<Vec<Vec<u8>>> {
    let vectors = DeletionVectors::new(snapshot.storage().clone(), snapshot.resolver().clone());
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(selections.len() / OF_ONE_THREAD).max(1);
    let bitmaps = if threads == 1 {
        read(&vectors, selections)?
    } else {
        thread::scope(|scope| {
            let parts = selections.chunks(selections.len().div_ceil(threads));
            let readers: Vec<_> = parts.map(|part| scope.spawn(|| read(&vectors, part))).collect();
            let mut all = Vec::with_capacity(selections.len());
            for reader in readers {
                all.append(&mut reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok::<_, Error>(all)
        })?
    };
    match bitmaps.iter().map(Vec::len).sum::<usize>() <= MOST_BYTES {
        true => Ok(bitmaps),
        false => Err(Error::unsupported(format!("the deletion vectors of the files to be read take more than {MOST_BYTES} bytes"))
            .with_hint("filter by a partition column, or rewrite the files with many deleted rows")),
    }
}

fn read(vectors: &DeletionVectors, selections: &[(String, FileRows)]) -> Result<Vec<Vec<u8>>> {
    selections.iter().map(|(path, rows)| bitmap(vectors, rows).map_err(|error| error.at_path(path))).collect()
}

fn bitmap(vectors: &DeletionVectors, rows: &FileRows) -> Result<Vec<u8>> {
    let rows = match rows {
        FileRows::All => Default::default(),
        FileRows::Live(deleted) => vectors.read(deleted, None)?,
        FileRows::Between { named_by, not_by: None } => vectors.read(named_by, None)?,
        FileRows::Between { named_by, not_by: Some(not_by) } => {
            let (named, not) = (vectors.read(named_by, None)?, vectors.read(not_by, None)?);
            (named.bitmap() - not.bitmap()).into()
        }
    };
    let mut bytes = Vec::with_capacity(rows.bitmap().serialized_size());
    rows.bitmap()
        .serialize_into(&mut bytes)
        .map_err(|error| Error::corrupt_data("a deletion vector cannot be packed").with_source(error))?;
    Ok(bytes)
}
