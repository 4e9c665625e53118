//! Finds the positions of rows in data files. (Protocol: "Deletion Vectors".)
//!
//! - Conditions are not evaluated for deleted rows, because evaluating them could fail.

use std::collections::HashSet;
use std::iter::once;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::prep_null_mask_filter;
use roaring::RoaringTreemap;

use super::candidates::Candidate;
use super::listed::ListedFile;
use crate::error::{Error, Result};
use crate::expression::constraints::ensure_bytes;
use crate::expression::predicate::{BoundColumn, BoundPredicate, Predicate, filter_mask};
use crate::log::deletion_vector::DeletionVectors;
use crate::protocol::DeletionVectorDescriptor;
use crate::runtime::parallel;
use crate::runtime::progress::Progress;
use crate::scan::{DataFile, RowScan, RowStream};
use crate::snapshot::Snapshot;

/// The rows of a file that a statement has found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The positions of the found rows in the file.
    pub(crate) rows: RoaringTreemap,
    /// The number of rows that are not deleted.
    pub(crate) live: u64,
    /// The number of all rows in the data file, including deleted rows.
    pub(crate) all: u64,
}

impl Found {
    /// Returns whether all rows that are not deleted were found.
    pub(crate) fn is_whole(&self) -> bool {
        self.rows.len() == self.live
    }
}

/// The positions of the rows of a file that are not deleted, in the order in which a scan returns the rows.
pub(crate) struct Positions {
    deleted: RoaringTreemap,
    next: u64,
}

impl Positions {
    /// Reads the deletion vector of a file.
    ///
    /// # Errors
    /// Returns the same errors as [`DeletionVectors::read`].
    pub(crate) fn of(base: &Snapshot, file: &ListedFile) -> Result<Self> {
        Ok(Self { deleted: file.deleted(base)?, next: 0 })
    }

    /// Reads the deletion vector of a file, if it has one.
    ///
    /// # Errors
    /// Returns the same errors as [`DeletionVectors::read`].
    pub(crate) fn read(
        vectors: &DeletionVectors,
        descriptor: Option<&DeletionVectorDescriptor>,
    ) -> Result<Self> {
        Ok(Self { deleted: vectors.deleted(descriptor, None)?, next: 0 })
    }

    /// Returns the positions of the next `rows` rows.
    pub(crate) fn take(&mut self, rows: usize) -> Vec<u64> {
        let mut taken = Vec::with_capacity(rows);
        while taken.len() < rows {
            if !self.deleted.contains(self.next) {
                taken.push(self.next);
            }
            self.next += 1;
        }
        taken
    }

    /// Returns the number of rows in the data file, once the positions of all rows have been taken.
    pub(crate) fn all(&self) -> u64 {
        self.next.max(self.deleted.max().map_or(0, |last| last + 1))
    }
}

/// Binds a condition to the schema of `base`.
///
/// # Errors
/// Returns `InvalidArgument` for a condition that cannot be evaluated.
pub(crate) fn condition_of(base: &Snapshot, predicate: &Predicate) -> Result<BoundPredicate> {
    let condition = predicate.bind(base.arrow_schema())?;
    ensure_bytes(condition.columns(), base.schema())?;
    Ok(condition)
}

/// Finds the rows for which a condition is true.
pub(crate) struct Finder<'a> {
    base: &'a Snapshot,
    condition: BoundPredicate,
    scan: RowScan,
}

impl<'a> Finder<'a> {
    /// Creates a finder of rows for which `predicate` is true, bound to the table.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a predicate that cannot be evaluated.
    pub(crate) fn new(base: &'a Snapshot, predicate: &Predicate) -> Result<Self> {
        let condition = condition_of(base, predicate)?;
        let scan = scan_of(base, condition.columns().iter().filter_map(BoundColumn::top_level))?;
        Ok(Self { base, condition, scan })
    }

    /// Returns the condition.
    pub(crate) fn condition(&self) -> &BoundPredicate {
        &self.condition
    }

    /// Finds rows in all of `candidates`, several files at a time.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a row for which the condition has no value, `CorruptData`, and errors from the
    /// store.
    pub(crate) fn find_all(&self, candidates: &[Candidate], progress: &Progress) -> Result<Vec<Found>> {
        let (scan, readers) = match candidates.len() >= parallel::cores() {
            true => (self.scan.clone().with_threads(1), self.base.storage().readers(candidates.len())),
            false => (self.scan.clone(), 1),
        };
        parallel::each(candidates, readers, |candidate| {
            let Candidate { listed, matches_whole } = candidate;
            // A data file is not opened if all its rows match and this crate's statistics state their number.
            // Otherwise, the condition is evaluated. If it uses only partition columns, this reads only the footer.
            let found = match (*matches_whole && listed.has_own_statistics(), listed.num_records()) {
                (true, Some(all)) => self.whole(listed, all),
                _ => self.find_by(&scan, listed),
            };
            progress.add(1);
            found.map_err(|error| error.at_path(&listed.add.path))
        })
    }

    /// Reads one file and finds rows in it.
    ///
    /// # Errors
    /// Returns the same errors as [`Finder::find_all`].
    pub(crate) fn find(&self, file: &ListedFile) -> Result<Found> {
        self.find_by(&self.scan, file)
    }

    /// Returns all rows of a file that has `all` rows.
    fn whole(&self, file: &ListedFile, all: u64) -> Result<Found> {
        let mut rows = RoaringTreemap::new();
        rows.insert_range(0..all);
        rows -= file.deleted(self.base)?;
        Ok(Found { live: rows.len(), rows, all })
    }

    fn find_by(&self, scan: &RowScan, file: &ListedFile) -> Result<Found> {
        let mut positions = Positions::of(self.base, file)?;
        let mut found = Found::default();
        for batch in read_file(scan, &file.file) {
            let batch = batch?;
            let truth = truth(&self.condition, &batch)?;
            let taken = positions.take(batch.num_rows());
            let matching = taken.iter().zip(truth.values()).filter(|(_, is_true)| *is_true);
            found.rows.extend(matching.map(|(position, _)| *position));
            found.live += batch.num_rows() as u64;
        }
        found.all = positions.all();
        if found.live + positions.deleted.len() != found.all {
            return Err(Error::corrupt_data("the deletion vector has a row that the file does not have"));
        }
        Ok(found)
    }
}

/// Returns the rows for which `condition` is true, and not false or NULL.
///
/// # Errors
/// Returns `InvalidArgument` for a row for which the condition cannot be evaluated.
pub(crate) fn truth(condition: &BoundPredicate, batch: &RecordBatch) -> Result<BooleanArray> {
    let mask = filter_mask(condition, batch)?;
    Ok(if mask.null_count() > 0 { prep_null_mask_filter(&mask) } else { mask })
}

/// Returns a scan of the top-level columns `names`, which may contain duplicates.
///
/// # Errors
/// Returns the same errors as [`RowScan::with_projection`].
pub(crate) fn scan_of<'a>(base: &Snapshot, names: impl Iterator<Item = &'a str>) -> Result<RowScan> {
    let mut seen = HashSet::new();
    let columns: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
    RowScan::of(base)?.with_projection(&columns)
}

/// Reads the rows of one file.
pub(crate) fn read_file(scan: &RowScan, file: &DataFile) -> RowStream {
    scan.clone().read(once(Ok(file.clone())))
}
