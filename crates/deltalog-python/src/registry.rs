//! The newest versions of the tables that this process has opened, shared by all readers.
//!
//! Opening a table again costs a listing of its log, and reading the commits since then, instead of all of its
//! commits; see [`Snapshot::reopen`]. If the caller accepts a version of a certain age, it may cost nothing; see
//! [`Table::recent_snapshot`].
//!
//! - The number of snapshots and their memory are limited. The least recently used ones are dropped first.
//! - A snapshot in the registry has no open files, and none is handed out: callers get copies, which open files
//!   on their own and close them when they are dropped.
//! - The lock is held for look-ups only, never during I/O. A forked child starts with an empty registry. If the
//!   lock was held when the parent was forked, the child works without a registry.

use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use deltalog::{Result, Snapshot, Storage, Table};

use pyo3::prelude::*;

use crate::upkeep;

/// The maximum number of snapshots in the registry.
const MAX_SNAPSHOTS: usize = 64;

/// The maximum number of bytes that all snapshots take together, see [`Snapshot::memory`].
const MAX_BYTES: u64 = 256 << 20;

/// The number of attempts to take the lock before the registry is bypassed.
const MAX_ATTEMPTS: usize = 10_000;

static REGISTRY: Mutex<Registry<Key, Table>> = Mutex::new(Registry { process: 0, held: Vec::new() });

/// A table and everything that its snapshot depends on.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key {
    url: String,
    /// The store with its options, credentials and environment, and who decides commits. An entry keeps both open.
    store: (usize, usize),
    roots: Vec<String>,
}

impl Key {
    pub(crate) fn new(storage: &Storage, roots: &[String]) -> Self {
        // The meaning of a relative path changes with the working directory of the process.
        let absolute = |root: &String| match std::path::absolute(root) {
            Ok(path) if !root.contains("://") => path.to_string_lossy().into_owned(),
            _ => root.clone(),
        };
        let roots = roots.iter().map(absolute).collect();
        Self { url: storage.root().to_string(), store: storage.store_id(), roots }
    }
}

struct Registry<K, V> {
    /// The process in which the snapshots were opened.
    process: u32,
    /// The entries, most recently used last.
    held: Vec<Entry<K, V>>,
}

struct Entry<K, V> {
    key: K,
    value: V,
    bytes: u64,
}

/// Returns a version of a table that was the newest at most `max_age` ago. If the registry does not have the table,
/// `open` opens the newest.
pub(crate) fn recent(
    key: Key,
    max_age: Duration,
    open: impl FnOnce() -> Result<Snapshot>,
) -> Result<Snapshot> {
    let held = with_registry(|registry| registry.get(&key)).flatten();
    let found = match held {
        Some(table) => table.recent_snapshot(max_age).map(|snapshot| (table, snapshot)),
        None => Table::at_place(open, &upkeep::environment()),
    };
    match found {
        Ok((table, snapshot)) => {
            // Memory is freed after the lock is released.
            drop(with_registry(|registry| registry.put(key, table, snapshot.memory())));
            Ok(snapshot)
        }
        Err(error) => {
            drop(with_registry(|registry| registry.remove(&key)));
            Err(error)
        }
    }
}

/// Empties the registry, so that the next call opens a table as a new process does. For measurements.
#[pyfunction]
pub(crate) fn forget_snapshots(py: Python<'_>) {
    py.detach(|| drop(with_registry(|registry| std::mem::take(&mut registry.held))));
}

impl<K: PartialEq, V: Clone> Registry<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.held.iter().find(|entry| entry.key == *key).map(|entry| entry.value.clone())
    }

    /// Adds or replaces an entry and returns the entries that were evicted; the new one itself if it is too large.
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

/// Applies `work` to the registry; returns `None` if the lock cannot be taken.
fn with_registry<T>(work: impl FnOnce(&mut Registry<Key, Table>) -> T) -> Option<T> {
    for _ in 0..MAX_ATTEMPTS {
        let mut registry = match REGISTRY.try_lock() {
            Ok(registry) => registry,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => {
                std::thread::yield_now();
                continue;
            }
        };
        if registry.process != std::process::id() {
            // In a forked child, the snapshots may be in an inconsistent state, because other threads of the
            // parent may have been changing them.
            std::mem::forget(std::mem::take(&mut registry.held));
            registry.process = std::process::id();
        }
        return Some(work(&mut registry));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, MAX_SNAPSHOTS, Registry};

    fn keys(registry: &Registry<usize, ()>) -> Vec<usize> {
        registry.held.iter().map(|entry| entry.key).collect()
    }

    #[test]
    fn the_number_of_entries_is_limited() {
        let mut registry = Registry { process: 0, held: Vec::new() };
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
        let mut registry = Registry { process: 0, held: Vec::new() };
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
