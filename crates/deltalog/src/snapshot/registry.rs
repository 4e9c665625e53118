//! Keeps the newest snapshots of the tables that this process has opened, and shares them among all readers.
//!
//! Opening such a table again only lists its log and reads the commits since then, instead of all its commits; see
//! [`Snapshot::reopen`]. If the caller accepts a version of a certain age, opening it may even make no request; see
//! [`Table::recent_snapshot`].
//!
//! - The number of snapshots and their total memory are limited. The least recently used ones are dropped first.
//! - A snapshot in the registry has no open files and is never returned itself. Callers get copies, which open files
//!   themselves and close them when they are dropped.
//! - The lock is only held for look-ups, never during I/O. A forked child process starts with an empty registry.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use url::Url;

use super::table::Table;
use super::{Snapshot, SnapshotBuilder};
use crate::error::Result;
use crate::runtime::environment::Environment;
use crate::runtime::per_process::PerProcess;

/// The maximum number of snapshots in the registry.
const MAX_SNAPSHOTS: usize = 64;

/// The maximum total memory of all snapshots in bytes. See [`Snapshot::memory`].
const MAX_BYTES: u64 = 256 << 20;

static REGISTRY: PerProcess<Mutex<Registry<Key, Table>>> = PerProcess::new();

fn registry() -> MutexGuard<'static, Registry<Key, Table>> {
    REGISTRY.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// A table and everything that its snapshot depends on.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    url: String,
    /// The id of the store (`Storage::store_id`), which depends on its options, credentials and environment, and on the
    /// commit coordinator. The entry keeps the store open, so that no other store gets the same id.
    store: (usize, usize),
    roots: Vec<Url>,
}

struct Registry<K, V> {
    /// The entries. The most recently used one is last.
    held: Vec<Entry<K, V>>,
}

impl<K, V> Default for Registry<K, V> {
    fn default() -> Self {
        Self { held: Vec::new() }
    }
}

struct Entry<K, V> {
    key: K,
    value: V,
    bytes: u64,
}

impl SnapshotBuilder {
    /// Opens a version that was the newest one at most `max_age` ago. If the registry has the table, its snapshot is
    /// used. If the builder requests anything but the newest version, this is the same as [`SnapshotBuilder::open`].
    ///
    /// # Errors
    /// Returns the same errors as [`SnapshotBuilder::open`].
    #[doc(hidden)]
    pub fn open_registered(self, max_age: Duration, environment: &Environment) -> Result<Snapshot> {
        if !self.is_of_newest() {
            return self.open();
        }
        let (storage, roots) = (&self.storage, self.roots.clone());
        let key = Key { url: storage.root().to_string(), store: storage.store_id(), roots };
        let held = registry().get(&key);
        let found = match held {
            Some(table) => table.recent_snapshot(max_age).map(|snapshot| (table, snapshot)),
            None => Table::at_place(|| self.open(), environment),
        };
        match found {
            Ok((table, snapshot)) => {
                // Memory is freed after the lock is released.
                let dropped = registry().put(key, table, snapshot.memory());
                drop(dropped);
                Ok(snapshot)
            }
            Err(error) => {
                let dropped = registry().remove(&key);
                drop(dropped);
                Err(error)
            }
        }
    }
}

/// Empties the registry, so that the next call opens a table as a newly started process would. This is for
/// measurements.
#[doc(hidden)]
pub fn forget_snapshots() {
    let held = std::mem::take(&mut registry().held);
    drop(held);
}

impl<K: PartialEq, V: Clone> Registry<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.held.iter().find(|entry| entry.key == *key).map(|entry| entry.value.clone())
    }

    /// Adds or replaces an entry. Returns the entries that were evicted. They may include the new entry, if it is too
    /// large.
    fn put(&mut self, key: K, value: V, bytes: u64) -> Vec<Entry<K, V>> {
        let mut dropped = self.remove(&key);
        let entry = Entry { key, value, bytes };
        if bytes > MAX_BYTES {
            dropped.push(entry);
            return dropped;
        }
        self.held.push(entry);
        let mut total: u64 = self.held.iter().map(|entry| entry.bytes).sum();
        let mut excess = 0;
        for entry in &self.held {
            if self.held.len() - excess <= MAX_SNAPSHOTS && total <= MAX_BYTES {
                break;
            }
            total -= entry.bytes;
            excess += 1;
        }
        dropped.extend(self.held.drain(..excess));
        dropped
    }

    fn remove(&mut self, key: &K) -> Vec<Entry<K, V>> {
        self.held.extract_if(.., |entry| entry.key == *key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, MAX_SNAPSHOTS, Registry};

    fn keys(registry: &Registry<usize, ()>) -> Vec<usize> {
        registry.held.iter().map(|entry| entry.key).collect()
    }

    #[test]
    fn the_number_of_entries_is_limited() {
        let mut registry = Registry::default();
        for key in 0..MAX_SNAPSHOTS {
            assert!(registry.put(key, (), 1).is_empty());
        }
        assert_eq!(registry.put(0, (), 1).len(), 1, "the replaced entry");
        let dropped = registry.put(MAX_SNAPSHOTS, (), 1);
        assert_eq!(dropped.iter().map(|entry| entry.key).collect::<Vec<_>>(), [1]);
        assert_eq!(registry.held.len(), MAX_SNAPSHOTS);
        assert!(registry.get(&1).is_none() && registry.get(&0).is_some());
    }

    #[test]
    fn the_bytes_of_all_entries_are_limited() {
        let mut registry = Registry::default();
        for key in 0..4 {
            registry.put(key, (), MAX_BYTES / 4);
        }
        assert_eq!(keys(&registry), [0, 1, 2, 3]);
        registry.put(4, (), MAX_BYTES / 2);
        assert_eq!(keys(&registry), [2, 3, 4]);
        registry.put(2, (), 1);
        assert_eq!(keys(&registry), [3, 4, 2]);
        registry.put(3, (), MAX_BYTES + 1);
        assert_eq!(keys(&registry), [4, 2], "an entry that is too large displaces no other");
    }
}
