//! Replaces a small file only if it has not changed since it was read.
//!
//! - Stores with conditional puts compare and replace a file in one request.
//! - On a local file system, writers lock the file's directory while they compare the file and rename its replacement.
//!   The lock ends at the latest when the process that holds it and its forked children have ended. If it is held for
//!   too long, the file is not replaced.
//! - A local file whose directory cannot be locked, as on Windows, is compared and then replaced. A store without
//!   conditional puts, or without entity tags that identify the content, replaces the file. In these cases, a file that
//!   another writer puts in the meantime is lost.

use std::fs::File;
use std::time::Duration;

use bytes::Bytes;
use object_store::{ObjectMeta, PutMode, UpdateVersion};

use super::lock::Locked;
use super::remote::strong;
use super::{Backend, Storage, local};
use crate::error::{ErrorKind, Result};
use crate::runtime::interrupt;

/// How many times a writer tries to get the lock, and the pause in between. Locks are held for a few milliseconds. If
/// the disk is busy, several writers that take turns can hold them for a second.
const TRIES: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(2);

/// The result of an attempt to replace a file.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Replacement {
    Done,
    /// The file has another state, or exists although it should not, so it was not replaced.
    Changed,
    /// Others hold the lock of the local directory, so the file was not replaced.
    Locked,
}

/// The state of a file at the time it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState(State);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// As the store identifies it.
    Stored(UpdateVersion),
    /// The content of a local file. The inode and the time of modification do not identify it: a file system may give
    /// the inode of a replaced file to a new file, and may have written both within one tick of its clock.
    Content(Bytes),
}

impl FileState {
    /// Returns the state of an object from its metadata. A weak tag is ignored, because it does not identify the
    /// content.
    fn of_store(meta: ObjectMeta) -> Self {
        let has_tag = meta.e_tag.is_some();
        match strong(meta.e_tag) {
            None if has_tag => Self::unknown(),
            e_tag => Self(State::Stored(UpdateVersion { e_tag, version: meta.version })),
        }
    }

    /// Returns a state that cannot be compared.
    fn unknown() -> Self {
        Self(State::Stored(UpdateVersion { e_tag: None, version: None }))
    }

    /// Returns the entity tag of a file in a store, which identifies the file's content.
    pub(super) fn e_tag(&self) -> Option<&str> {
        match &self.0 {
            State::Stored(version) => version.e_tag.as_deref(),
            State::Content(_) => None,
        }
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
            return Ok(Some((bytes.clone(), FileState::unknown())));
        }
        let located = self.path(path)?;
        let found = match &self.backend {
            Backend::Local => {
                interrupt::check()?;
                local::read(&self.place(path, &located)?)
                    .map(|bytes| (bytes.clone(), FileState(State::Content(bytes))))
                    .map_err(|error| self.io_error(path, error))
            }
            Backend::Remote(store) => store
                .get(located)
                .map(|(bytes, meta)| (bytes, FileState::of_store(meta)))
                .map_err(|failure| self.error(path, failure)),
        };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file with `bytes` if it still has the state `read`. If `read` is `None`, creates the file if it
    /// does not exist.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`. The file may have been replaced nevertheless.
    #[doc(hidden)]
    pub fn put_if_unchanged(
        &self,
        path: &str,
        bytes: Bytes,
        read: Option<&FileState>,
    ) -> Result<Replacement> {
        let store = match &self.backend {
            Backend::Local => return self.put_locked(path, bytes, read),
            Backend::Remote(store) => store,
        };
        let mode = match read {
            None => PutMode::Create,
            // The state has neither a strong tag nor a version, so it cannot be compared.
            Some(FileState(
                State::Stored(UpdateVersion { e_tag: None, version: None }) | State::Content(_),
            )) => PutMode::Overwrite,
            Some(FileState(State::Stored(version))) => PutMode::Update(version.clone()),
        };
        match store.put(self.path(path)?, bytes.clone().into(), mode) {
            Ok(()) => Ok(Replacement::Done),
            Err(failure) if failure.is_changed() => Ok(Replacement::Changed),
            Err(failure) if failure.is_not_implemented() => self.put(path, bytes).map(|()| Replacement::Done),
            Err(failure) => Err(self.error(path, failure)),
        }
    }

    fn put_locked(&self, path: &str, bytes: Bytes, read: Option<&FileState>) -> Result<Replacement> {
        let file = self.local_file(path, &self.path(path)?)?;
        // Without a lock, the file is replaced if its directory does not exist yet, or cannot be locked.
        let directory = file.parent().and_then(|directory| File::open(directory).ok());
        let lock = directory.map(|directory| Locked::new(directory, TRIES, PAUSE));
        interrupt::check()?;
        if matches!(lock, Some(Ok(None))) {
            return Ok(Replacement::Locked);
        }
        if self.get_with_state(path)?.map(|(_, state)| state).as_ref() != read {
            return Ok(Replacement::Changed);
        }
        self.put(path, bytes)?;
        drop(lock);
        Ok(Replacement::Done)
    }
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
            assert_eq!(storage.put_if_unchanged("f", "a".into(), None).unwrap(), Replacement::Done);
            assert_eq!(storage.put_if_unchanged("f", "b".into(), None).unwrap(), Replacement::Changed);
            let (bytes, first) = storage.get_with_state("f").unwrap().unwrap();
            assert_eq!(bytes, "a");
            assert_eq!(storage.put_if_unchanged("f", "two".into(), Some(&first)).unwrap(), Replacement::Done);
            assert_eq!(
                storage.put_if_unchanged("f", "three".into(), Some(&first)).unwrap(),
                Replacement::Changed
            );
            assert_eq!(storage.read("f").unwrap(), "two");
        }
    }

    /// Two local files may have the same inode, size and time of modification.
    #[test]
    fn a_local_file_is_compared_by_its_content() {
        let (directory, [local, _]) = stores();
        local.put("f", "one".into()).unwrap();
        let (_, read) = local.get_with_state("f").unwrap().unwrap();
        let modified = std::fs::metadata(directory.path().join("f")).unwrap().modified().unwrap();
        std::fs::write(directory.path().join("f"), "two").unwrap();
        File::options().write(true).open(directory.path().join("f")).unwrap().set_modified(modified).unwrap();
        assert_eq!(local.put_if_unchanged("f", "three".into(), Some(&read)).unwrap(), Replacement::Changed);
        assert_eq!(local.read("f").unwrap(), "two");
    }

    /// A writer that holds the lock may have compared the file already, and may not have replaced it yet.
    #[cfg(unix)]
    #[test]
    fn a_file_is_not_replaced_while_another_writer_holds_the_lock() {
        let (directory, [local, _]) = stores();
        let other = File::open(directory.path()).unwrap();
        other.lock().unwrap();
        assert_eq!(local.put_if_unchanged("f", "a".into(), None).unwrap(), Replacement::Locked);
        assert!(local.get("f").unwrap().is_none());
        other.unlock().unwrap();
        assert_eq!(local.put_if_unchanged("f", "a".into(), None).unwrap(), Replacement::Done);
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
            let bytes = format!("{number:03}").into();
            if storage.put_if_unchanged("f", bytes, state).unwrap() == Replacement::Done {
                let (bytes, _) = storage.get_with_state("f").unwrap().unwrap();
                assert!(bytes >= format!("{number:03}"));
                return;
            }
        }
    }
}
