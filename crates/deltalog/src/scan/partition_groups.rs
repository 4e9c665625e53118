//! Groups the files of a batch by their partition values, as the log spells them.
//!
//! - Two files share a group only if their maps have the same entries in the same order. Maps that mean the same may
//!   therefore be in different groups.

use std::hash::BuildHasher;

use arrow::array::{Array, AsArray, MapArray, StringArray, UInt32Array};
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::error::{Error, Result};

/// The groups of files in a batch.
pub(super) struct PartitionGroups {
    /// One file of each group.
    pub(super) representatives: UInt32Array,
    /// The group of each file.
    pub(super) group_of: Vec<u32>,
}

impl PartitionGroups {
    /// Groups files by their `partitionValues`.
    ///
    /// # Errors
    /// `CorruptLog` if the values are not maps of strings.
    pub(super) fn of(values: &MapArray) -> Result<Self> {
        let maps = Maps::new(values).ok_or_else(|| {
            Error::corrupt_log("the column 'partitionValues' does not hold maps of strings")
        })?;
        let hasher = DefaultHashBuilder::default();
        let mut groups: HashTable<(u32, u32)> = HashTable::new();
        let mut representatives: Vec<u32> = Vec::new();
        let mut group_of: Vec<u32> = Vec::with_capacity(values.len());
        for row in 0..values.len() {
            // Files are often listed partition by partition, so the previous file is compared first.
            if let Some(last) = group_of.last().copied().filter(|_| maps.is_same(row, row - 1)) {
                group_of.push(last);
                continue;
            }
            let number = |row: usize| {
                u32::try_from(row).map_err(|_| Error::corrupt_log("a batch has more files than fit in a u32"))
            };
            let hash = hasher.hash_one(maps.bytes(row));
            let found =
                groups.find(hash, |(_, known)| maps.is_same(row, *known as usize)).map(|(group, _)| *group);
            group_of.push(match found {
                Some(group) => group,
                None => {
                    let group = number(representatives.len())?;
                    representatives.push(number(row)?);
                    groups.insert_unique(hash, (group, number(row)?), |(_, known)| {
                        hasher.hash_one(maps.bytes(*known as usize))
                    });
                    group
                }
            });
        }
        Ok(Self { representatives: representatives.into(), group_of })
    }
}

/// A column of maps whose entries can be read row by row.
struct Maps<'a> {
    offsets: &'a [i32],
    keys: &'a StringArray,
    values: &'a StringArray,
}

impl<'a> Maps<'a> {
    fn new(maps: &'a MapArray) -> Option<Self> {
        Some(Self {
            offsets: maps.value_offsets(),
            keys: maps.keys().as_string_opt()?,
            values: maps.values().as_string_opt()?,
        })
    }

    /// Returns the positions of the entries in `row`.
    fn entries(&self, row: usize) -> std::ops::Range<usize> {
        let at = |row: usize| {
            self.offsets.get(row).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or_default()
        };
        at(row)..at(row + 1)
    }

    /// Returns the bytes of all keys of `row` as one slice, and the bytes of all values as another.
    fn bytes(&self, row: usize) -> (&'a [u8], &'a [u8]) {
        let entries = self.entries(row);
        let of = |texts: &'a StringArray| {
            let at = |entry: usize| {
                texts.value_offsets().get(entry).and_then(|offset| usize::try_from(*offset).ok())
            };
            at(entries.start)
                .zip(at(entries.end))
                .and_then(|(start, end)| texts.value_data().get(start..end))
                .unwrap_or_default()
        };
        (of(self.keys), of(self.values))
    }

    fn is_same(&self, a: usize, b: usize) -> bool {
        if self.bytes(a) != self.bytes(b) || self.entries(a).len() != self.entries(b).len() {
            return false;
        }
        self.entries(a).zip(self.entries(b)).all(|(a, b)| {
            self.keys.value_length(a) == self.keys.value_length(b)
                && self.values.value_length(a) == self.values.value_length(b)
                && self.values.is_null(a) == self.values.is_null(b)
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{MapBuilder, StringBuilder};
    use proptest::prelude::*;

    use super::*;

    type Entries = Vec<(String, Option<String>)>;

    proptest! {
        #[test]
        fn files_share_a_group_if_their_maps_are_equal(
            rows in prop::collection::vec(
                prop::collection::vec(("[ab]{0,2}", prop::option::of("[ab]{0,2}")), 0..3),
                0..20,
            ),
        ) {
            let mut builder = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
            for entries in &rows {
                for (key, value) in entries {
                    builder.keys().append_value(key);
                    builder.values().append_option(value.as_ref());
                }
                builder.append(true).unwrap();
            }
            let groups = PartitionGroups::of(&builder.finish()).unwrap();
            let same = |a: &Entries, b: &Entries| a == b;
            for (row, entries) in rows.iter().enumerate() {
                let group = groups.group_of[row] as usize;
                prop_assert!(same(&rows[groups.representatives.value(group) as usize], entries));
                for (other, others) in rows.iter().enumerate() {
                    prop_assert_eq!(groups.group_of[other] == groups.group_of[row], same(others, entries));
                }
            }
        }
    }
}
