//! Commits rewritten files, even if other writers commit at the same time.
//!
//! | state of the old file in the newest version | what happens |
//! | --- | --- |
//! | unchanged | it is removed |
//! | more rows are deleted | it is removed, and the new files get deletion vectors for these rows |
//! | deleted rows were restored | its bin is given up, because the new files lack these rows |
//! | it was removed | its bin is given up, because its rows were deleted or moved by another writer |
//!
//! - A concurrent transaction that deletes rows of an old file by a deletion vector, and commits later, can find the
//!   moved rows: in a table with deletion vectors, the `remove` action of the old file records where they are
//!   ([`crate::commit::row_moves`]).
//! - A transaction conflicts with a commit that removes one of its files, or changes the deletion vector of one. After
//!   such a conflict, the files are compared with a newer version, and the next attempt is based on that version.
//! - A new file whose rows have all been deleted by other writers is not added.
//! - If an engine has changed the order of the rows, it is asked for the new positions of rows that other writers
//!   have deleted ([`super::search`]).
//! - Deletion vectors that were written for a failed attempt are deleted, and so are the new files of bins that are
//!   given up. New files that were not added are deleted after the commit.

use std::collections::HashMap;

use roaring::RoaringTreemap;

use super::OptimizeRequest;
use super::metrics::OptimizeMetrics;
use super::moved::RowOrder;
use super::rewrite::{NewFile, Rewritten, Source};
use super::search::{MOST_ROWS, RowSearch};
use crate::commit::own_files::{OwnFiles, delete_vectors, discard_unused};
use crate::commit::{Committed, Transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::log::deletion_vector::{DeletionVector, DeletionVectors, vector_file, write_vectors};
use crate::log::replay::batches_of_adds;
use crate::operations::rewrite::current_actions;
use crate::protocol::{Add, LogPath};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::upkeep::Lost;
use crate::values::stats::with_wide_bounds;

/// The maximum number of attempts on newer versions. An attempt only fails if another writer has changed one of its
/// files.
const MOST_ATTEMPTS: u32 = 1_000;

/// The number of attempts for a compaction after a write. It is small, because the caller of the write waits for it.
const AUTOMATIC_ATTEMPTS: u32 = 8;

/// Commits the batches of an OPTIMIZE.
pub(super) struct Committer<'a> {
    /// The version whose files were planned and read. Every batch starts from it, so that its first attempt takes all
    /// later commits into account.
    planned: &'a Snapshot,
    /// The version on which the next attempt is based.
    base: Snapshot,
    request: &'a OptimizeRequest,
    target: u64,
    environment: &'a Environment,
    /// Finds the new positions of rows whose order an engine has changed.
    search: RowSearch<'a>,
}

/// The rows of a bin that other writers have deleted.
struct Deleted {
    /// The current actions of the old files.
    current: Vec<Add>,
    /// The positions of the deleted rows among all rows of the bin.
    numbers: RoaringTreemap,
    /// If an engine has ordered the bin, the same rows in the form in which the engine identifies them: the number of
    /// the old file in the batch, and the position in that file.
    of_engine: Vec<(u32, u64)>,
}

/// A bin that is to be committed.
struct Pending {
    bin: Rewritten,
    /// The actions of the old files in the version on which the next attempt is based.
    current: Vec<Add>,
    /// For each new file, the rows that other writers have deleted since the plan was made.
    carried: Vec<RoaringTreemap>,
}

impl Pending {
    /// Returns the new files and, for each, the rows that other writers have deleted since the plan was made.
    fn files(&self) -> impl Iterator<Item = (&NewFile, &RoaringTreemap)> {
        self.bin.new.iter().zip(&self.carried)
    }

    /// Returns the new files that still have rows.
    fn live(&self) -> impl Iterator<Item = (&NewFile, &RoaringTreemap)> {
        self.files().filter(|(new, carried)| carried.len() < new.rows)
    }
}

impl<'a> Committer<'a> {
    pub(super) fn new(
        planned: &'a Snapshot,
        request: &'a OptimizeRequest,
        target: u64,
        environment: &'a Environment,
    ) -> Self {
        Self { planned, base: planned.clone(), request, target, environment, search: RowSearch::none() }
    }

    /// Sets how an engine is asked for the new positions of rows whose order it has changed.
    pub(super) fn with_search(self, search: RowSearch<'a>) -> Self {
        Self { search, ..self }
    }

    /// Commits `bins`, and adds the result to `metrics`. Returns `None` if all bins had to be given up.
    ///
    /// # Errors
    /// Returns `CommitConflict`, `CommitStateUnknown`, `CorruptLog`, and errors from the store. The new files are then
    /// deleted, if it is certain that they are not part of the table.
    pub(super) fn commit(
        &mut self,
        bins: Vec<Rewritten>,
        metrics: &mut OptimizeMetrics,
    ) -> Result<Option<Committed>> {
        let new = self.own(bins.iter().flat_map(|bin| &bin.new));
        let committed = self.try_commit(bins, metrics);
        new.settle(committed)
    }

    fn try_commit(
        &mut self,
        bins: Vec<Rewritten>,
        metrics: &mut OptimizeMetrics,
    ) -> Result<Option<Committed>> {
        self.base = self.planned.clone();
        let pending = |bin: Rewritten| {
            let current = bin.sources.iter().map(|source| source.add.clone()).collect();
            let carried = vec![RoaringTreemap::new(); bin.new.len()];
            Pending { bin, current, carried }
        };
        let mut pending: Vec<Pending> = bins.into_iter().map(pending).collect();
        let most = if self.request.is_automatic { AUTOMATIC_ATTEMPTS } else { MOST_ATTEMPTS };
        for _ in 0..most {
            if pending.is_empty() {
                return Ok(None);
            }
            let lost = match self.attempt(&pending)? {
                Ok((committed, done)) => {
                    metrics.add(done);
                    let emptied = pending.iter().flat_map(Pending::files);
                    let emptied = emptied.filter(|(new, carried)| carried.len() >= new.rows);
                    self.own(emptied.map(|(new, _)| new)).delete();
                    return Ok(Some(committed));
                }
                Err(lost) => lost,
            };
            if !lost.conflict.is_about_files() {
                return Err(lost.into_error());
            }
            self.base = lost.transaction.newer_base(&self.base)?;
            let (kept, given_up) = self.reconcile(pending)?;
            metrics.given_up += given_up.len() as u64;
            self.own(given_up.iter().flat_map(|bin| &bin.new)).delete();
            pending = kept;
        }
        Err(self.base.located(
            Error::new(
                ErrorKind::CommitConflict,
                "other writers changed the same files during every attempt",
            )
            .with_hint("run OPTIMIZE when fewer statements change the table"),
        ))
    }

    fn own<'n>(&self, new: impl Iterator<Item = &'n NewFile>) -> OwnFiles {
        OwnFiles::of(&self.base, new.map(|new| &new.add.path))
    }

    /// Makes one attempt to commit on the current base.
    fn attempt(&self, pending: &[Pending]) -> Result<Result<(Committed, OptimizeMetrics), Lost>> {
        let mut done = OptimizeMetrics::default();
        let (mut removes, mut adds) = (Vec::new(), Vec::new());
        let has_vectors = self.base.metadata().is_enabled("delta.enableDeletionVectors");
        let carried: Vec<DeletionVector> = pending
            .iter()
            .flat_map(Pending::live)
            .filter(|(_, carried)| !carried.is_empty())
            .map(|(_, carried)| DeletionVector::from(carried.clone()))
            .collect();
        let file = (!carried.is_empty()).then(|| self.environment.uuid());
        let mut vectors = match file {
            Some(id) => write_vectors(self.base.storage(), id, &carried)?.into_iter(),
            None => Vec::new().into_iter(),
        };
        for bin in pending {
            done.note(&bin.bin.sources, bin.live().map(|(new, _)| &new.add));
            done.carried_rows += bin.carried.iter().map(RoaringTreemap::len).sum::<u64>();
            for (current, source) in bin.current.iter().zip(&bin.bin.sources) {
                let mut removed = current.clone();
                if let Some(moved) = bin.bin.moved(source).filter(|_| has_vectors) {
                    removed.tags = Some(moved.added_to(current.tags.as_ref())?);
                }
                removes.push(removed);
            }
            for (NewFile { add, .. }, carried) in bin.live() {
                let mut new = add.clone();
                if !carried.is_empty() {
                    new.deletion_vector = vectors.next();
                    new.stats = new.stats.as_deref().map(with_wide_bounds).transpose()?;
                }
                adds.push(new);
            }
        }
        let committed = self.put(&removes, &adds, &done);
        let committed = discard_unused(committed, Result::is_ok, || {
            file.into_iter().for_each(|id| delete_vectors(self.base.storage(), &vector_file(id)));
        });
        Ok(committed?.map(|committed| (committed, done)))
    }

    fn put(&self, removes: &[Add], adds: &[Add], done: &OptimizeMetrics) -> Result<Result<Committed, Lost>> {
        let operation = done.describe(self.request, self.target);
        let mut transaction = Transaction::new(&self.base, operation, self.environment)?;
        for batch in batches_of_adds(removes)? {
            transaction.remove_moved(&batch)?;
        }
        transaction.add_files(adds)?;
        transaction.attempt()
    }

    /// Compares the old files with the files of the base. Returns the bins that can still be committed, and the bins
    /// that cannot.
    fn reconcile(&mut self, pending: Vec<Pending>) -> Result<(Vec<Pending>, Vec<Rewritten>)> {
        let sources: Vec<Add> =
            pending.iter().flat_map(|bin| &bin.bin.sources).map(|source| source.add.clone()).collect();
        let mut found = current_actions(&self.base, &sources)?;
        let (mut read, mut given_up, mut left) = (Vec::new(), Vec::new(), MOST_ROWS);
        for Pending { bin, .. } in pending {
            match self.deleted(&bin, &mut found, &mut left)? {
                Some(deleted) => read.push((bin, deleted)),
                None => given_up.push(bin),
            }
        }
        let located = |error: Error| self.base.located(error);
        self.search
            .look_for(read.iter().flat_map(|(_, deleted)| deleted.of_engine.iter().copied()))
            .map_err(located)?;
        let mut kept = Vec::new();
        for (bin, Deleted { current, numbers, of_engine }) in read {
            let files: Vec<u64> = bin.new.iter().map(|new| new.rows).collect();
            let carried = match &bin.order {
                RowOrder::Engine(order) => self.search.positions(order, &of_engine, &files),
                order => order.positions(&numbers, &files),
            };
            match carried.map_err(located)? {
                Some(carried) => kept.push(Pending { bin, current, carried }),
                None => given_up.push(bin),
            }
        }
        Ok((kept, given_up))
    }

    /// Takes the current actions of a bin's old files from `found`, which has the actions in the base, and returns
    /// them with the rows that were deleted from these files since. Returns `None` if the new files can no longer
    /// replace the old files, or if all rows of the bin are deleted. If an engine has ordered the rows, subtracts the
    /// number of deleted rows from `left`, and returns `None` if there are more than `left`.
    fn deleted(
        &self,
        bin: &Rewritten,
        found: &mut HashMap<LogPath, Add>,
        left: &mut u64,
    ) -> Result<Option<Deleted>> {
        let vectors = DeletionVectors::new(self.base.storage().clone(), self.base.resolver().clone());
        let (mut current, mut numbers, mut rows) = (Vec::new(), RoaringTreemap::new(), 0);
        let mut of_engine = Vec::new();
        for (index, Source { add, moved }) in bin.sources.iter().enumerate() {
            rows += moved.rows;
            let Some(now) = found.remove(&self.base.resolver().parse(&add.path)?) else { return Ok(None) };
            if now.deletion_vector != add.deletion_vector {
                let located = |error: Error| self.base.located(error).at_path(&add.path);
                let deleted =
                    |add: &Add| vectors.deleted(add.deletion_vector.as_ref(), None).map_err(located);
                let (then, now) = (deleted(add)?, deleted(&now)?);
                let deleted = &now - &then;
                match moved.numbers(&deleted, &then) {
                    Some(found) if then.is_subset(&now) => numbers |= found,
                    _ => return Ok(None),
                }
                if let RowOrder::Engine(order) = &bin.order {
                    let Some(rest) = left.checked_sub(deleted.len()) else { return Ok(None) };
                    *left = rest;
                    let file = u32::try_from(order.first_file + index).unwrap_or(u32::MAX);
                    of_engine.extend(deleted.iter().map(|row| (file, row)));
                }
            }
            current.push(now);
        }
        // If other writers have deleted all rows of the bin, it is given up, because there is nothing to add.
        let is_empty = rows > 0 && numbers.len() >= rows;
        Ok((!is_empty).then_some(Deleted { current, numbers, of_engine }))
    }
}
