//! The set of logical files for which the commits read so far have actions.
//!
//! - Keys are not copied. The hash table stores the commit and the row of each key, eight bytes per file action, and a
//!   lookup compares with the path stored in that commit.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::key::Keys;
use crate::error::{Error, Result};
use crate::protocol::PathResolver;

/// A file action: the index of its batch of keys in [`Seen::keys`], and its row in that batch.
#[derive(Debug, Clone, Copy)]
struct Place {
    keys: u32,
    row: u32,
}

/// A set of logical files.
#[derive(Debug)]
pub(super) struct Seen {
    resolver: PathResolver,
    keys: Vec<Keys>,
    places: HashTable<Place>,
    hasher: DefaultHashBuilder,
}

impl Seen {
    /// Creates an empty set that has space for `actions` file actions.
    pub(super) fn with_capacity(resolver: PathResolver, actions: usize) -> Self {
        Self {
            resolver,
            keys: Vec::new(),
            places: HashTable::with_capacity(actions),
            hasher: DefaultHashBuilder::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a batch of keys, whose rows can be marked from now on. Returns the index of the batch.
    pub(super) fn add_keys(&mut self, keys: Keys) -> usize {
        self.keys.push(keys);
        self.keys.len() - 1
    }

    /// Marks the file in row `row` of batch `number` as seen. Returns whether this was the first time.
    pub(super) fn mark(&mut self, number: usize, row: usize) -> Result<bool> {
        let mut scratch = String::new();
        let keys = self.keys.get(number).ok_or_else(too_many)?;
        let key = keys.key(row, &self.resolver, &mut scratch)?;
        let hash = self.hasher.hash_one(key);
        if self.find(hash, key) {
            return Ok(false);
        }
        let place = Place {
            keys: u32::try_from(number).map_err(|_| too_many())?,
            row: u32::try_from(row).map_err(|_| too_many())?,
        };
        let Self { resolver, keys, places, hasher } = self;
        // Keys in the table were resolved when they were inserted, so resolving them again does not fail.
        places.insert_unique(hash, place, |place| {
            key_at(keys, *place, resolver, |key| hasher.hash_one(key)).unwrap_or_default()
        });
        Ok(true)
    }

    /// Returns the resolved paths of all keys, in any order and possibly with duplicates. Returns `None` if there are
    /// more than `limit`.
    pub(super) fn paths(&self, limit: usize) -> Result<Option<Vec<String>>> {
        if self.keys.iter().map(Keys::len).sum::<usize>() > limit {
            return Ok(None);
        }
        let mut scratch = String::new();
        let mut paths = Vec::new();
        for keys in &self.keys {
            for row in 0..keys.len() {
                paths.push(keys.path(row, &self.resolver, &mut scratch)?.to_owned());
            }
        }
        Ok(Some(paths))
    }

    /// Returns whether the file in row `row` of `keys` was marked as seen.
    pub(super) fn contains(&self, keys: &Keys, row: usize) -> Result<bool> {
        let mut scratch = String::new();
        let key = keys.key(row, &self.resolver, &mut scratch)?;
        Ok(self.find(self.hasher.hash_one(key), key))
    }

    fn find(&self, hash: u64, key: &str) -> bool {
        let is_it =
            |place: &Place| key_at(&self.keys, *place, &self.resolver, |other| other == key) == Some(true);
        self.places.find(hash, is_it).is_some()
    }
}

fn key_at<T>(
    keys: &[Keys],
    place: Place,
    resolver: &PathResolver,
    read: impl FnOnce(&str) -> T,
) -> Option<T> {
    let mut scratch = String::new();
    keys.get(place.keys as usize)?.key(place.row as usize, resolver, &mut scratch).ok().map(read)
}

fn too_many() -> Error {
    Error::corrupt_log("the log has more file actions than fit in a u32")
}
