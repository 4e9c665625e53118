//! Writes the files for rows that are still waiting at the end of a write.
//!
//! Most of these files are small, and each has to be made durable. Many of them are therefore written concurrently,
//! by threads that mostly wait for the disk.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow::record_batch::RecordBatch;

use super::super::chunk;
use super::super::data_file::{ClosedFile, DataFile};
use super::super::held::{Piece, detached, gather};
use super::super::split::PartitionId;
use super::{Partitions, at};
use crate::error::Result;
use crate::runtime::parallel;
use crate::storage::Storage;

/// The number of small files that are written concurrently.
const THREADS: usize = 16;

/// The maximum size in bytes of the rows for small files that are read from the temporary file at once.
const WEIGHT_AT_ONCE: usize = 16 << 20;

/// A file that has not been started, with all its rows, which are encoded as one chunk.
struct Whole {
    file: DataFile,
    rows: Vec<RecordBatch>,
    pieces: Vec<Piece>,
}

/// The result of writing a [`Whole`] file.
struct Outcome {
    path: String,
    is_created: bool,
    closed: Result<Option<ClosedFile>>,
}

impl Partitions {
    /// Completes all files: first the open files, then the files of waiting rows.
    pub(in super::super) fn finish(&mut self) -> Result<()> {
        let mut direct = self.direct.clone();
        direct.sort_unstable();
        for id in direct {
            self.close(id)?;
        }
        let mut small = Vec::new();
        let mut weight = 0;
        for id in 0..self.partitions.len() {
            let partition = at(&mut self.partitions, id)?;
            if partition.waiting == 0 {
                continue;
            }
            if partition.early.is_none() && partition.waiting < chunk::WEIGHT {
                weight += partition.waiting;
                small.push(self.whole(id)?);
            } else {
                self.write_again(id)?;
            }
            let is_too_much = self.memory() > self.memory_budget;
            if is_too_much || weight >= WEIGHT_AT_ONCE {
                self.write_small(std::mem::take(&mut small))?;
                weight = 0;
            }
            if is_too_much {
                // The waiting rows are moved to the temporary file to make room for its decoded blocks, one for each
                // run. Otherwise, a block would be decoded again for each partition in it.
                self.set_aside()?;
                self.keep_within_budget()?;
            }
        }
        self.write_small(small)
    }

    /// Takes the waiting rows of a partition, which will have a file of their own.
    fn whole(&mut self, id: PartitionId) -> Result<Whole> {
        let partition = at(&mut self.partitions, id)?;
        partition.waiting = 0;
        let file = self.output.begin(&partition.values).alone();
        let places = std::mem::take(&mut partition.places);
        // The rows are detached from the decoded blocks, so that the blocks can be freed before the file is written.
        let rows = places.into_iter().map(|place| self.overflow.read(place).and_then(detached));
        let rows = rows.collect::<Result<_>>()?;
        Ok(Whole { file, rows, pieces: self.take_pieces(id)? })
    }

    fn write_small(&mut self, files: Vec<Whole>) -> Result<()> {
        let storage = self.output.storage();
        let files: Vec<Mutex<Option<Whole>>> = files.into_iter().map(|file| Mutex::new(Some(file))).collect();
        let has_failed = AtomicBool::new(false);
        let write = |file: &Mutex<Option<Whole>>| -> Result<Option<Outcome>, Infallible> {
            let file = file.lock().unwrap_or_else(PoisonError::into_inner).take();
            let outcome =
                file.filter(|_| !has_failed.load(Ordering::Relaxed)).map(|file| file.write(storage));
            if outcome.as_ref().is_some_and(|outcome| outcome.closed.is_err()) {
                has_failed.store(true, Ordering::Relaxed);
            }
            Ok(outcome)
        };
        let Ok(outcomes) = parallel::each(&files, THREADS, write);
        // All files that exist are recorded before the first error is returned, so that they can be deleted.
        let added: Vec<Result<()>> =
            outcomes.into_iter().flatten().map(|outcome| self.adopt(outcome)).collect();
        added.into_iter().collect()
    }

    fn adopt(&mut self, outcome: Outcome) -> Result<()> {
        let Outcome { path, is_created, closed } = outcome;
        if is_created {
            self.output.note_created(path);
        }
        closed?.map_or(Ok(()), |closed| self.output.add(closed).map(drop))
    }

    /// Writes the waiting rows of a partition. If the partition's last file was completed early, that file is
    /// rewritten with these rows at its end.
    fn write_again(&mut self, id: PartitionId) -> Result<()> {
        let early = at(&mut self.partitions, id)?.early.take();
        self.begin(id)?;
        if let Some(early) = &early {
            for rows in self.output.read(early)? {
                self.write(id, &rows?)?;
            }
        }
        self.write_waiting(id)?;
        self.close(id)?;
        if let Some(early) = early {
            self.output.discard(early);
        }
        Ok(())
    }
}

impl Whole {
    fn write(self, storage: &Storage) -> Outcome {
        let Self { mut file, rows, pieces } = self;
        let written = Self::encode(&mut file, rows, pieces, storage);
        let (path, is_created) = (file.path().to_owned(), file.is_created());
        Outcome { path, is_created, closed: written.and_then(|()| file.close()) }
    }

    fn encode(
        file: &mut DataFile,
        rows: Vec<RecordBatch>,
        pieces: Vec<Piece>,
        storage: &Storage,
    ) -> Result<()> {
        for rows in rows {
            file.push(rows)?;
        }
        if !pieces.is_empty() {
            file.push(gather(&pieces)?)?;
        }
        // The memory can be used by other threads while this thread waits for the disk.
        drop(pieces);
        file.encode(storage)
    }
}
