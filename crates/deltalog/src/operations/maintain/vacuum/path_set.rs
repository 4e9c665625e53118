//! A memory-efficient set of paths.
//!
//! - It contains a 64-bit number for each path. Two paths may have the same number, so the set may seem to contain a
//!   path that was not inserted. In a set of a million paths, the probability of this is about one in 10¹³ for each
//!   path. The set is therefore only used for files that must be kept: a mistake keeps a file that could be deleted.
//! - The numbers depend on a key that differs in each process, so that an attacker cannot choose paths with the same
//!   number in advance.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

#[derive(Debug, Default)]
pub(super) struct PathSet {
    numbers: HashTable<u64>,
    hasher: DefaultHashBuilder,
}

impl PathSet {
    pub(super) fn insert(&mut self, path: &str) {
        let number = self.hasher.hash_one(path);
        // If the number is already in the set, the existing entry is kept.
        self.numbers.entry(number, |other| *other == number, |number| *number).or_insert(number);
    }

    pub(super) fn contains(&self, path: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let number = self.hasher.hash_one(path);
        self.numbers.find(number, |other| *other == number).is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_path_set_contains_all_inserted_paths(
            paths in prop::collection::vec("[ab/]{0,4}", 0..60),
            other in "[ab/]{0,4}",
        ) {
            let mut set = PathSet::default();
            paths.iter().for_each(|path| set.insert(path));
            let expected: HashSet<&String> = paths.iter().collect();
            prop_assert_eq!(set.len(), expected.len());
            prop_assert!(paths.iter().all(|path| set.contains(path)));
            prop_assert_eq!(set.contains(&other), expected.contains(&other));
        }
    }
}
