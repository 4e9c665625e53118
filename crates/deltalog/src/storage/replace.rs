//! Replaces a small file only if it has not changed since it was read.
//!
//! - Stores with conditional puts compare and replace a file in one request.
//! - On a local file system, writers lock the file's directory while they compare the file and rename its replacement.
//!   The lock ends with the process that holds it.
//! - If neither is possible (a store without conditional puts, a file system without locks), or if the lock is held for
//!   too long, the file is compared and then replaced. In that case, a file that another writer puts in between is
//!   lost.

use std::fs::{File, TryLockError};
use std::time::Duration;

use bytes::Bytes;
use object_store::{ObjectMeta, PutMode, UpdateVersion};

use super::remote::strong;
use super::{Backend, Storage, local};
use crate::error::{ErrorKind, Result};
use crate::runtime::{clock, interrupt};

/// How many times a writer tries to get the lock, and the pause in between. Locks are held for a few milliseconds.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// The state of a file at the time it was read, as the store identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState(UpdateVersion);

impl FileState {
    /// Returns the state of an object from its metadata. A weak tag is ignored, because it does not identify the
    /// content.
    fn of_store(meta: ObjectMeta) -> UpdateVersion {
        let has_tag = meta.e_tag.is_some();
        match strong(meta.e_tag) {
            None if has_tag => UpdateVersion { e_tag: None, version: None },
            e_tag => UpdateVersion { e_tag, version: meta.version },
        }
    }

    /// Returns the entity tag of the file, which identifies the file's content.
    pub(super) fn e_tag(&self) -> Option<&str> {
        self.0.e_tag.as_deref()
    }
}

impl Storage {
    /// Reads a whole file and returns it with its state. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn get_with_state(&self, path: &str) -> Result<Option<(Bytes, FileState)>> {
        if let Some(bytes) = self.held.get(path) {
            let state = UpdateVersion { e_tag: None, version: None };
            return Ok(Some((bytes.clone(), FileState(state))));
        }
        let located = self.path(path)?;
        let found = match &self.backend {
            Backend::Local => {
                interrupt::check()?;
                let found = local::read(&self.place(path, &located)?);
                found.map_err(|error| self.io_error(path, error))
            }
            Backend::Remote(store) => store
                .get(located)
                .map(|(bytes, meta)| (bytes, FileState::of_store(meta)))
                .map_err(|failure| self.error(path, failure)),
        };
        let found = found.map(|(bytes, state)| (bytes, FileState(state)));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file with `bytes` if it still has the state `read`. If `read` is `None`, creates the file if it
    /// does not exist. Returns whether the state was as expected.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`. The file may have been replaced nevertheless.
    #[doc(hidden)]
    pub fn put_if_unchanged(&self, path: &str, bytes: Bytes, read: Option<&FileState>) -> Result<bool> {
        let store = match &self.backend {
            Backend::Local => return self.put_locked(path, bytes, read),
            Backend::Remote(store) => store,
        };
        let mode = match read {
            None => PutMode::Create,
            // The state has neither a strong tag nor a version, so it cannot be compared.
            Some(FileState(UpdateVersion { e_tag: None, version: None })) => PutMode::Overwrite,
            Some(FileState(state)) => PutMode::Update(state.clone()),
        };
        match store.put(self.path(path)?, bytes.clone().into(), mode) {
            Ok(()) => Ok(true),
            Err(failure) if failure.is_changed() => Ok(false),
            Err(failure) if failure.is_not_implemented() => self.put(path, bytes).map(|()| true),
            Err(failure) => Err(self.error(path, failure)),
        }
    }

    fn put_locked(&self, path: &str, bytes: Bytes, read: Option<&FileState>) -> Result<bool> {
        let file = self.local_file(path, &self.path(path)?)?;
        // Closing the directory ends the lock.
        let _lock = file.parent().and_then(locked);
        if self.get_with_state(path)?.map(|(_, state)| state).as_ref() != read {
            return Ok(false);
        }
        self.put(path, bytes)?;
        Ok(true)
    }
}

/// Locks a directory, so that other writers that do the same have to wait. Returns `None` if this is not possible.
fn locked(directory: &std::path::Path) -> Option<File> {
    let directory = File::open(directory).ok()?;
    for _ in 0..TRIES {
        match directory.try_lock() {
            Ok(()) => return Some(directory),
            Err(TryLockError::WouldBlock) => clock::pause(PAUSE),
            Err(TryLockError::Error(_)) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use url::Url;

    use super::*;

    fn stores() -> (tempfile::TempDir, [Storage; 2]) {
        let directory = tempfile::tempdir().unwrap();
        let local = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        let url = Url::parse("memory:///t").unwrap();
        (directory, [local, Storage::with_immediate_store(url, Arc::new(InMemory::new())).unwrap()])
    }

    #[test]
    fn only_the_file_that_was_read_is_replaced() {
        let (_directory, stores) = stores();
        for storage in stores {
            assert!(storage.get_with_state("f").unwrap().is_none());
            assert!(storage.put_if_unchanged("f", "a".into(), None).unwrap());
            assert!(!storage.put_if_unchanged("f", "b".into(), None).unwrap());
            let (bytes, first) = storage.get_with_state("f").unwrap().unwrap();
            assert_eq!(bytes, "a");
            assert!(storage.put_if_unchanged("f", "two".into(), Some(&first)).unwrap());
            assert!(!storage.put_if_unchanged("f", "three".into(), Some(&first)).unwrap());
            assert_eq!(storage.read("f").unwrap(), "two");
        }
    }

    /// If writers only ever raise a number that they have read, it never decreases, even if they write concurrently.
    #[test]
    fn concurrent_writers_never_lower_the_number() {
        let (_directory, stores) = stores();
        for storage in &stores {
            std::thread::scope(|scope| {
                for writer in 0..4u64 {
                    scope.spawn(move || {
                        for round in 0..25 {
                            raise(storage, round * 4 + writer);
                        }
                    });
                }
            });
            assert_eq!(storage.read("f").unwrap(), "099");
        }
    }

    fn raise(storage: &Storage, number: u64) {
        loop {
            let read = storage.get_with_state("f").unwrap();
            let found = read.as_ref().map(|(bytes, _)| std::str::from_utf8(bytes).unwrap().parse().unwrap());
            if found.is_some_and(|found: u64| found >= number) {
                return;
            }
            let state = read.as_ref().map(|(_, state)| state);
            if storage.put_if_unchanged("f", format!("{number:03}").into(), state).unwrap() {
                let (bytes, _) = storage.get_with_state("f").unwrap().unwrap();
                assert!(bytes >= format!("{number:03}"));
                return;
            }
        }
    }
}
