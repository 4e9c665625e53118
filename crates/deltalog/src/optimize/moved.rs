//! Where rows are after their files were written again.
//!
//! ```text
//!   old files    a: 0 1 x 3      b: 0 x x 3        x: deleted when the files were written again
//!   new file        0 1   2         3     4        the other rows, file after file
//! ```

use roaring::RoaringTreemap;

/// The rows of an old file in a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    /// The position of its first row in the new file.
    pub(super) start: u64,
    /// The number of its rows there.
    pub(super) rows: u64,
}

impl Moved {
    /// Returns the positions in the new file of `rows` of the old file. `deleted` are the rows of the old file that are
    /// not in the new one. Returns `None` if one of `rows` is not there.
    pub(super) fn positions(self, rows: &RoaringTreemap, deleted: &RoaringTreemap) -> Option<RoaringTreemap> {
        let position = |row: u64| {
            let at = row.checked_sub(deleted.rank(row))?;
            (at < self.rows && !deleted.contains(row)).then_some(self.start + at)
        };
        rows.iter().map(position).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A row is found where a copy of the rows that are not deleted has it.
        #[test]
        fn positions_are_those_of_a_copy(
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
            prop_assert_eq!(moved.positions(&of(&asked), &of(&deleted)), expected);
        }
    }
}
