//! Finds the new positions of rows after their files were rewritten.
//!
//! ```text
//!   old files    a: 0 1 x 3      b: 0 x x 3        x: was already deleted before the rewrite
//!   number          0 1   2         3     4        the other rows, file after file
//!
//!   new file        0 1   2         3     4        if the rows stay in this order
//!   new files    c: 3 0   1      d: 4 2            the numbers of the rows, if their order changes
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt64Array};
use arrow::datatypes::UInt64Type;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::write::{Overflow, Place};

/// The position of an old file's rows among the rows of all old files of a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    /// The number of the file's first row, counted through all files.
    pub(super) start: u64,
    /// The number of rows in the file.
    pub(super) rows: u64,
}

/// The order in which the new files contain the rows of the old files.
#[derive(Debug)]
pub(super) enum RowOrder {
    /// The rows are ordered by their numbers.
    Kept,
    /// The numbers of the rows, in their new order.
    Changed(Numbers),
    /// An order that only an engine knows, and can report.
    Engine(EngineOrder),
}

/// The information needed to locate rows of a bin that an engine has ordered.
#[derive(Debug)]
pub(super) struct EngineOrder {
    /// The number of the first old file of the bin in its batch.
    pub(super) first_file: usize,
    /// For each new file, in order, the number of the task that wrote it.
    pub(super) tasks: Vec<usize>,
}

/// The temporary file for the numbers of all rows whose order changes. It is empty until there are such rows.
pub(super) type NumberFile = Arc<Mutex<Overflow>>;

/// Numbers of rows, in a temporary file.
pub(super) struct Numbers {
    file: NumberFile,
    places: Vec<Place>,
    /// The numbers that have not been written to the file yet.
    last: Vec<u64>,
}

/// The maximum number of a bin's row numbers that stay in memory. It is low because there may be tens of thousands of
/// bins.
const FEW: usize = 1 << 10;

/// The number of row numbers that are written at once.
const AT_ONCE: usize = 1 << 16;

impl RowOrder {
    /// Returns where the rows with the numbers `rows` are in the new files: for each file, the set of their positions.
    /// `files` has the number of rows in each new file. Returns `None` if only an engine knows the positions.
    ///
    /// # Errors
    /// `Unavailable` if the temporary file cannot be read.
    pub(super) fn positions(
        &self,
        rows: &RoaringTreemap,
        files: &[u64],
    ) -> Result<Option<Vec<RoaringTreemap>>> {
        let mut found = vec![RoaringTreemap::new(); files.len()];
        match self {
            _ if rows.is_empty() => {}
            Self::Engine(_) => return Ok(None),
            Self::Kept => {
                let mut places = FilePlaces::new(files);
                for row in rows {
                    places.mark(row, &mut found);
                }
            }
            Self::Changed(numbers) => {
                let (mut places, mut place) = (FilePlaces::new(files), 0);
                numbers.visit(|number| {
                    if rows.contains(number) {
                        places.mark(place, &mut found);
                    }
                    place += 1;
                })?;
            }
        }
        Ok(Some(found))
    }
}

/// Finds the file and the position of each given row. Rows are numbered across all files, file after file, and must be
/// given in ascending order.
struct FilePlaces<'a> {
    files: &'a [u64],
    file: usize,
    first: u64,
}

impl<'a> FilePlaces<'a> {
    fn new(files: &'a [u64]) -> Self {
        Self { files, file: 0, first: 0 }
    }

    fn mark(&mut self, place: u64, found: &mut [RoaringTreemap]) {
        while let Some(rows) = self.files.get(self.file).filter(|rows| place - self.first >= **rows) {
            self.first += rows;
            self.file += 1;
        }
        if let Some(found) = found.get_mut(self.file) {
            found.insert(place - self.first);
        }
    }
}

impl Numbers {
    pub(super) fn new(file: NumberFile) -> Self {
        Self { file, places: Vec::new(), last: Vec::new() }
    }

    /// Appends numbers to the list.
    ///
    /// # Errors
    /// `Unavailable` or `PermissionDenied` if the temporary file cannot be written.
    pub(super) fn extend(&mut self, numbers: &[u64]) -> Result<()> {
        self.last.extend(numbers);
        if self.last.len() < AT_ONCE {
            return Ok(());
        }
        self.flush()
    }

    /// Completes the list. If there are only a few numbers, they stay in memory, so that small tables need no
    /// temporary file.
    ///
    /// # Errors
    /// Returns the same errors as [`Numbers::extend`].
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.places.is_empty() && self.last.len() <= FEW {
            self.last.shrink_to_fit();
            return Ok(());
        }
        self.flush()
    }

    /// Writes the numbers in memory to the file.
    fn flush(&mut self) -> Result<()> {
        if self.last.is_empty() {
            return Ok(());
        }
        let numbers: ArrayRef = Arc::new(UInt64Array::from(std::mem::take(&mut self.last)));
        let rows = numbers.len();
        let batch = RecordBatch::try_from_iter([("number", numbers)])
            .map_err(|error| Error::corrupt_data("numbers of rows are malformed").with_source(error))?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.begin_run();
        let block = file.write(&batch)?;
        file.forget();
        self.places.push(Place::new(block, 0, rows));
        Ok(())
    }

    fn visit(&self, mut visit: impl FnMut(u64)) -> Result<()> {
        for place in &self.places {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            let block = file.read(*place)?;
            file.forget();
            drop(file);
            block.column(0).as_primitive::<UInt64Type>().values().iter().copied().for_each(&mut visit);
        }
        self.last.iter().copied().for_each(visit);
        Ok(())
    }
}

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Numbers").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Moved {
    /// Returns the numbers of `rows`, given by their positions in the old file. `deleted` are the rows of the file
    /// that were already deleted; they were not rewritten and have no number. Returns `None` if one of `rows` is
    /// among them.
    pub(super) fn numbers(self, rows: &RoaringTreemap, deleted: &RoaringTreemap) -> Option<RoaringTreemap> {
        let number = |row: u64| {
            let at = row.checked_sub(deleted.rank(row))?;
            (at < self.rows && !deleted.contains(row)).then_some(self.start + at)
        };
        rows.iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The number of a row is its position in a copy of the rows that are not deleted.
        #[test]
        fn numbers_are_positions_in_a_copy(
            rows in 1..200_u64,
            deleted in prop::collection::btree_set(0..200_u64, 0..100),
            asked in prop::collection::btree_set(0..200_u64, 0..20),
            start in 0..1_000_u64,
        ) {
            let live: Vec<u64> = (0..rows).filter(|row| !deleted.contains(row)).collect();
            let moved = Moved { start, rows: live.len() as u64 };
            let of = |set: &BTreeSet<u64>| set.iter().copied().collect::<RoaringTreemap>();
            let expected: Option<RoaringTreemap> = asked
                .iter()
                .map(|row| live.iter().position(|other| other == row).map(|at| start + at as u64))
                .collect();
            let deleted = deleted.iter().copied().filter(|row| *row < rows).collect();
            prop_assert_eq!(moved.numbers(&of(&asked), &of(&deleted)), expected);
        }

        /// Each row is found in exactly one place: where its number occurs when the new files are read one after
        /// another.
        #[test]
        fn rows_are_found_in_their_new_order(
            order in (0..60_usize).prop_flat_map(|rows| Just((0..rows as u64).collect::<Vec<_>>()).prop_shuffle()),
            cuts in prop::collection::vec(0..60_usize, 0..5),
            asked in prop::collection::btree_set(0..60_u64, 0..20),
            at_once in 1..20_usize,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let file = Arc::new(Mutex::new(Overflow::new(directory.path().to_owned())));
            let mut numbers = Numbers::new(file);
            for some in order.chunks(at_once) {
                numbers.extend(some).unwrap();
                numbers.flush().unwrap();
            }
            let end = order.len();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(end)).chain([0, end]).collect();
            cuts.sort_unstable();
            let files: Vec<u64> = cuts.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect();
            let asked: RoaringTreemap = asked.into_iter().filter(|row| *row < order.len() as u64).collect();
            let rows_of = |order: &[u64]| -> Vec<RoaringTreemap> {
                let file = |pair: &[usize]| {
                    let rows = order[pair[0]..pair[1]].iter().enumerate();
                    rows.filter(|(_, number)| asked.contains(**number)).map(|(at, _)| at as u64).collect()
                };
                cuts.windows(2).map(file).collect()
            };
            let found = RowOrder::Changed(numbers).positions(&asked, &files).unwrap().unwrap();
            prop_assert_eq!(found, rows_of(&order));
            let kept: Vec<u64> = (0..order.len() as u64).collect();
            prop_assert_eq!(RowOrder::Kept.positions(&asked, &files).unwrap().unwrap(), rows_of(&kept));
        }
    }
}
