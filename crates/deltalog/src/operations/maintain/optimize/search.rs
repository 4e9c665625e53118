//! Finds the positions of rows in new files that an engine has ordered.
//!
//! - The engine needs minutes to answer. It is therefore asked once per attempt, for the rows of all bins together,
//!   and only for rows that it did not locate before.
//! - A bin is given up if the engine cannot locate its rows, if the engine was asked too often, or if there are too
//!   many rows to locate.

use std::collections::BTreeMap;

use roaring::RoaringTreemap;

use super::moved::EngineOrder;
use crate::error::{Error, Result};

/// The maximum number of rows in a request to an engine. Every task of the engine may have to go through all of them.
pub(super) const MOST_ROWS: u64 = 1 << 16;

/// The maximum number of requests for rows of a batch.
const MOST_SEARCHES: u32 = 3;

/// Finds rows in the new files of an engine. A row is given by the number of its old file in the batch, and its
/// position in that file; the rows are in ascending order. Returns for each row, in the same order, the number of the
/// task that wrote the new file, and the position in that file. `None` means that the positions are not known.
pub type Locate<'a> = dyn FnMut(&[(u32, u64)]) -> Result<Option<Vec<(u32, u64)>>> + 'a;

/// A search for rows in the new files of a batch.
pub(super) struct RowSearch<'a> {
    locate: Option<&'a mut Locate<'a>>,
    found: BTreeMap<(u32, u64), (u32, u64)>,
    searches: u32,
}

impl<'a> RowSearch<'a> {
    /// Returns a search that finds nothing.
    pub(super) fn none() -> Self {
        Self { locate: None, found: BTreeMap::new(), searches: 0 }
    }

    /// Returns a search that asks an engine, if `locate` is given.
    pub(super) fn of(locate: Option<&'a mut Locate<'a>>) -> Self {
        Self { locate, ..Self::none() }
    }

    /// Asks the engine for the positions of those `rows` that are not known yet, unless it was asked too often.
    ///
    /// # Errors
    /// Returns `CorruptData` for an answer with a different number of rows, and errors of the engine.
    pub(super) fn look_for(&mut self, rows: impl Iterator<Item = (u32, u64)>) -> Result<()> {
        let mut unknown: Vec<_> = rows.filter(|row| !self.found.contains_key(row)).collect();
        unknown.sort_unstable();
        let Some(locate) = self.locate.as_mut().filter(|_| self.searches < MOST_SEARCHES) else {
            return Ok(());
        };
        if unknown.is_empty() {
            return Ok(());
        }
        self.searches += 1;
        let Some(places) = locate(&unknown)? else { return Ok(()) };
        if places.len() != unknown.len() {
            return Err(wrong());
        }
        self.found.extend(unknown.into_iter().zip(places));
        Ok(())
    }

    /// Returns the positions of `rows` in the new files of a bin, as a set for each file. `files` has the number of
    /// rows in each new file. Returns `None` if not all rows were found.
    ///
    /// # Errors
    /// Returns `CorruptData` if rows cannot have the reported positions.
    pub(super) fn positions(
        &self,
        order: &EngineOrder,
        rows: &[(u32, u64)],
        files: &[u64],
    ) -> Result<Option<Vec<RoaringTreemap>>> {
        let mut positions = vec![RoaringTreemap::new(); files.len()];
        for row in rows {
            let Some((task, position)) = self.found.get(row) else { return Ok(None) };
            let file = usize::try_from(*task).ok().and_then(|task| order.tasks.binary_search(&task).ok());
            let file = file.ok_or_else(wrong)?;
            let is_there = files.get(file).is_some_and(|rows| position < rows);
            let is_new = positions.get_mut(file).is_some_and(|positions| positions.insert(*position));
            if !is_there || !is_new {
                return Err(wrong());
            }
        }
        Ok(Some(positions))
    }
}

fn wrong() -> Error {
    Error::corrupt_data(
        "the engine reported impossible positions for rows that other writers deleted; nothing of this batch was \
         committed",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> EngineOrder {
        EngineOrder { first_file: 0, tasks: vec![2, 5] }
    }

    /// An engine needs minutes to answer. It is therefore asked rarely, for many rows at once, and only once for each
    /// row.
    #[test]
    fn an_engine_is_only_asked_for_unknown_positions() {
        let mut asked = Vec::new();
        let mut locate = |rows: &[(u32, u64)]| {
            asked.push(rows.to_vec());
            Ok(Some(rows.iter().map(|(file, row)| (2 + 3 * file, row + 10)).collect()))
        };
        let mut search = RowSearch::of(Some(&mut locate));
        let files = [20, 20];
        search.look_for([].into_iter()).unwrap();
        search.look_for([(1, 4), (0, 3)].into_iter()).unwrap();
        let found = search.positions(&order(), &[(0, 3), (1, 4)], &files).unwrap().unwrap();
        assert_eq!(found, [RoaringTreemap::from_iter([13]), RoaringTreemap::from_iter([14])]);
        search.look_for([(0, 3), (1, 4), (1, 5)].into_iter()).unwrap();
        search.look_for([(1, 5)].into_iter()).unwrap();
        search.look_for([(0, 6)].into_iter()).unwrap();
        assert!(search.positions(&order(), &[(0, 6)], &files).unwrap().is_some());
        search.look_for([(0, 7)].into_iter()).unwrap();
        assert!(search.positions(&order(), &[(0, 3), (0, 7)], &files).unwrap().is_none());
        assert!(search.positions(&order(), &[(1, 5)], &files).unwrap().is_some());
        assert_eq!(asked, [vec![(0, 3), (1, 4)], vec![(1, 5)], vec![(0, 6)]]);
    }

    #[test]
    fn rows_that_the_engine_does_not_find_remain_unknown() {
        let mut search = RowSearch::none();
        search.look_for([(0, 1)].into_iter()).unwrap();
        assert!(search.positions(&order(), &[(0, 1)], &[9, 9]).unwrap().is_none());
        assert!(search.positions(&order(), &[], &[9, 9]).unwrap().is_some());
        let mut nothing = |_: &[(u32, u64)]| Ok(None);
        let mut search = RowSearch::of(Some(&mut nothing));
        search.look_for([(0, 1)].into_iter()).unwrap();
        assert!(search.positions(&order(), &[(0, 1)], &[9, 9]).unwrap().is_none());
    }
}
