//! Deletes the files of a plan, except for files that the table needs again.
//!
//! - Before each round, the newest version is read. Files that were added after the plan was made are kept, regardless
//!   of their age: RESTORE, a conversion or a clone may add files that existed before. The commits made since then are
//!   read one by one, not from log compactions or checkpoints: a file that one commit added and a later one removed is
//!   still needed by readers of the versions in between.
//! - Before each round, the table is also checked again: another writer may have increased the retention, upgraded the
//!   protocol, or replaced the table with another one.
//! - A file that does not exist is not an error, so that an interrupted VACUUM can be repeated, and several VACUUMs
//!   can run at the same time.

use super::candidates::{Chunk, Files};
use super::request;
use super::retained::Retained;
use super::visible::name_of;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// The number of files in a round. A store that can delete many files per request needs ten requests for a round.
const ROUND: usize = 10_000;

/// How much the clock of this process may be ahead of the store's clock. Some stores report times in whole seconds.
const TOLERATED_MS: i64 = 60 * 1000;

/// The state of deleting the files of a plan.
pub(super) struct Deletion<'a> {
    /// The version for which the plan was made.
    pub(super) planned: &'a Snapshot,
    /// The newest version that was read so far.
    pub(super) newest: Snapshot,
    pub(super) cutoff_ms: i64,
    /// The retention for which the plan was made.
    pub(super) retention_ms: i64,
    pub(super) enforces_retention: bool,
    /// Whether to also delete the checksum files that Hadoop writes next to local files.
    pub(super) has_checksums: bool,
    /// The files that the table needs again.
    pub(super) revived: Retained,
    /// The version up to which all files that commits have added since the plan are in `revived`.
    pub(super) known_version: u64,
    pub(super) deleted: u64,
    pub(super) deleted_bytes: u64,
}

impl Deletion<'_> {
    /// Deletes those `files` that may still be deleted. `cutoff_of_store_ms` is the cut-off by the store's clock. It
    /// is used if this process's clock is ahead of the store's clock, because files would look too old by this
    /// process's clock.
    ///
    /// # Errors
    /// Returns errors from the store, and errors from reading the log. Some files may have been deleted already.
    pub(super) fn run(&mut self, files: &Files, cutoff_of_store_ms: i64) -> Result<()> {
        let ahead_ms = self.cutoff_ms.saturating_sub(cutoff_of_store_ms);
        if ahead_ms > TOLERATED_MS {
            let table = self.newest.storage().url();
            tracing::warn!(
                table,
                ahead_ms,
                "this process's clock is ahead of the store's clock: VACUUM uses the store's clock"
            );
            self.cutoff_ms = cutoff_of_store_ms;
            self.revived.keep_needed(&self.newest, self.cutoff_ms)?;
        }
        let planned = self.planned;
        let progress = Progress::new("VACUUM", planned.storage().url(), files.len(), "files");
        for chunk in files.chunks() {
            for start in (0..chunk.len()).step_by(ROUND) {
                self.look_again()?;
                let round = start..chunk.len().min(start + ROUND);
                let count = round.len() as u64;
                self.delete(chunk, round)?;
                progress.add(count);
            }
        }
        Ok(())
    }

    /// Finds files that were added to the table since the last call.
    fn look_again(&mut self) -> Result<()> {
        self.newest = self.newest.refresh()?;
        let newest = &self.newest;
        if newest.version() == self.known_version {
            return Ok(());
        }
        request::check(newest, Some(self.retention_ms), self.enforces_retention)?;
        let added = self.revived.keep_added_since(self.known_version, newest);
        match added {
            // A cleanup has deleted one of the commits, which was older than the log's retention. In the newest
            // version, the files that this commit added are live or have `remove` actions.
            Err(error) if error.kind() == ErrorKind::FileNotFound => {
                self.revived.keep_needed(newest, self.cutoff_ms)?;
            }
            added => added?,
        }
        self.known_version = newest.version();
        Ok(())
    }

    fn delete(&mut self, chunk: &Chunk, rows: std::ops::Range<usize>) -> Result<()> {
        let mut paths = Vec::with_capacity(rows.len());
        let mut bytes = 0;
        for row in rows {
            let path = chunk.paths.value(row);
            if chunk.times.value(row) < self.cutoff_ms && !self.revived.keeps(path) {
                paths.push(path);
                bytes += u64::try_from(chunk.sizes.value(row)).unwrap_or_default();
            }
        }
        let storage = self.newest.storage();
        let deleted = storage.delete_files(&paths).and_then(|()| self.delete_checksums(storage, &paths));
        deleted.map_err(|error| {
            let done = self.deleted;
            Error::new(
                error.kind(),
                format!("VACUUM deleted {done} files, and then could not delete some of the next files"),
            )
            .with_hint("run VACUUM again: it continues with the remaining files")
            .with_source(error)
        })?;
        self.deleted += paths.len() as u64;
        self.deleted_bytes += bytes;
        let (table, version) = (storage.url(), self.planned.version());
        tracing::debug!(table, version, deleted = self.deleted, "VACUUM has deleted files");
        Ok(())
    }

    /// Deletes the checksum files that Hadoop writes next to local files.
    fn delete_checksums(&self, storage: &Storage, paths: &[&str]) -> Result<()> {
        if !self.has_checksums {
            return Ok(());
        }
        let checksum = |path: &&str| {
            let name = name_of(path);
            format!("{}.{name}.crc", path.strip_suffix(name).unwrap_or_default())
        };
        let checksums: Vec<String> = paths.iter().map(checksum).collect();
        storage.delete_files(&checksums.iter().map(String::as_str).collect::<Vec<_>>())
    }
}
