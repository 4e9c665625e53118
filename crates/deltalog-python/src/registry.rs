//! The newest versions of the tables that this process has opened, shared by everything that reads them.
//!
//! Opening a table again costs a listing of its log, and the commits since then, instead of all of its commits.
//!
//! - A snapshot is only handed out again for the very files that it was made of: name, size and time of each
//!   commit and of the checkpoint. A table that was dropped and made anew is opened anew.
//! - A limited number of snapshots is held; the one that was asked for the longest time ago goes first.
//! - The lock is held for look-ups only, never during I/O. A forked child starts with an empty registry, and
//!   does without one if the lock was taken when its parent was forked.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, TryLockError};

use deltalog::engine::log::LogSegment;
use deltalog::{Result, Snapshot, Storage};

/// The most snapshots that are held.
const MOST: usize = 64;

/// How often a taken lock is tried before the registry is left out.
const TRIES: usize = 10_000;

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { process: 0, held: Vec::new() });

/// The table that is opened, and what its snapshot depends on.
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
        // A relative path means another place once the process changes its working directory.
        let absolute = |root: &String| match std::path::absolute(root) {
            Ok(path) if !root.contains("://") => path.to_string_lossy().into_owned(),
            _ => root.clone(),
        };
        Self { url: storage.root().to_string(), options, roots: roots.iter().map(absolute).collect() }
    }
}

struct Registry {
    /// The process that the snapshots were opened in.
    process: u32,
    /// The one that was asked for last stands last.
    held: Vec<(Key, Snapshot)>,
}

/// Returns the newest version of a table; `open` opens it where the registry does not have it.
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

/// Brings a snapshot up to date; returns None if it is not one of the table as it is now.
///
/// Errors are left to the call that opens the table, which tells more of them.
fn renewed(held: &Snapshot, storage: &Storage) -> Option<Snapshot> {
    let now = LogSegment::find(storage, None).ok()?;
    let then = held.segment();
    if now.checkpoint != then.checkpoint || !now.commits.starts_with(&then.commits) {
        return None;
    }
    if now.version > then.version {
        return held.refresh().ok();
    }
    // A checksum file may have come later than its version.
    (now.checksum == then.checksum).then(|| held.clone())
}

impl Registry {
    fn get(&self, key: &Key) -> Option<Snapshot> {
        self.held.iter().find(|(held, _)| held == key).map(|(_, snapshot)| snapshot.clone())
    }

    fn put(&mut self, key: Key, snapshot: Snapshot) {
        self.held.retain(|(held, _)| *held != key);
        let excess = (self.held.len() + 1).saturating_sub(MOST);
        self.held.drain(..excess);
        self.held.push((key, snapshot));
    }
}

/// Applies `work` to the registry; returns None if another thread does not give it up.
fn with_registry<T>(work: impl FnOnce(&mut Registry) -> T) -> Option<T> {
    for _ in 0..TRIES {
        let mut registry = match REGISTRY.try_lock() {
            Ok(registry) => registry,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => {
                std::thread::yield_now();
                continue;
            }
        };
        if registry.process != std::process::id() {
            // In a forked child another thread may have been in the middle of filling one of these.
            std::mem::forget(std::mem::take(&mut registry.held));
            registry.process = std::process::id();
        }
        return Some(work(&mut registry));
    }
    None
}
