//! The newest versions of the tables that this process has opened, shared by all readers.
//!
//! Opening a table again costs a listing of its log and the new commits, instead of all commits.
//!
//! - A snapshot is reused only if it was read from the same files: the name, size and time of each commit and of
//!   the checkpoint are compared. A table that was dropped and created again is opened from scratch.
//! - A limited number of snapshots is kept. The least recently used one is dropped first.
//! - The lock is held for look-ups only, never during I/O. A forked child starts with an empty registry. If the
//!   lock was held when the parent was forked, the child works without a registry.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, TryLockError};

use deltalog::engine::log::LogSegment;
use deltalog::{Result, Snapshot, Storage};

/// The maximum number of snapshots in the registry.
const MAX_SNAPSHOTS: usize = 64;

/// The number of attempts to take the lock before the registry is bypassed.
const MAX_ATTEMPTS: usize = 10_000;

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { process: 0, held: Vec::new() });

/// A table and everything that its snapshot depends on.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key {
    url: String,
    options: Vec<(String, String)>,
    roots: Vec<String>,
}

impl Key {
    pub(crate) fn new(storage: &Storage, options: &HashMap<String, String>, roots: &[String]) -> Self {
        let mut options: Vec<_> = options.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        options.sort_unstable();
        // The meaning of a relative path changes with the working directory of the process.
        let absolute = |root: &String| match std::path::absolute(root) {
            Ok(path) if !root.contains("://") => path.to_string_lossy().into_owned(),
            _ => root.clone(),
        };
        Self { url: storage.root().to_string(), options, roots: roots.iter().map(absolute).collect() }
    }
}

struct Registry {
    /// The process in which the snapshots were opened.
    process: u32,
    /// The snapshots, most recently used last.
    held: Vec<(Key, Snapshot)>,
}

/// Returns the newest version of a table. If the registry does not have the table, it is opened with `open`.
pub(crate) fn newest(
    key: Key,
    storage: &Storage,
    open: impl FnOnce() -> Result<Snapshot>,
) -> Result<Snapshot> {
    let held = with_registry(|registry| registry.get(&key)).flatten();
    match held.and_then(|held| renewed(&held, storage)).map_or_else(open, Ok) {
        Ok(snapshot) => {
            with_registry(|registry| registry.put(key, snapshot.clone()));
            Ok(snapshot)
        }
        Err(error) => {
            with_registry(|registry| registry.held.retain(|(held, _)| *held != key));
            Err(error)
        }
    }
}

/// Refreshes a snapshot; returns `None` if it does not belong to the current table.
///
/// Errors also give `None`; opening the table then reports them in more detail.
fn renewed(held: &Snapshot, storage: &Storage) -> Option<Snapshot> {
    let now = LogSegment::find(storage, None).ok()?;
    let then = held.segment();
    if now.checkpoint != then.checkpoint || !now.commits.starts_with(&then.commits) {
        return None;
    }
    if now.version > then.version {
        return held.refresh().ok();
    }
    // The checksum file may have been written after the version was opened.
    (now.checksum == then.checksum).then(|| held.clone())
}

impl Registry {
    fn get(&self, key: &Key) -> Option<Snapshot> {
        self.held.iter().find(|(held, _)| held == key).map(|(_, snapshot)| snapshot.clone())
    }

    fn put(&mut self, key: Key, snapshot: Snapshot) {
        self.held.retain(|(held, _)| *held != key);
        let excess = (self.held.len() + 1).saturating_sub(MAX_SNAPSHOTS);
        self.held.drain(..excess);
        self.held.push((key, snapshot));
    }
}

/// Applies `work` to the registry; returns `None` if the lock cannot be taken.
fn with_registry<T>(work: impl FnOnce(&mut Registry) -> T) -> Option<T> {
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
