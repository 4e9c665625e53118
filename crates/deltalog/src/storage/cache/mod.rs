//! A cache of immutable objects on the local disk, shared by this process, concurrent ones and later ones.
//!
//! ```text
//! <cache_dir>/deltalog-1/                    0700
//!     used                                   the bytes in use, and the lock of those who add or evict
//!     new/                                   files that are being written
//!     3f/9c0e…/                              one directory per object: the hash of its URL and of its store
//!         <tag>-<start>-<end>                a piece: one range of the object's bytes (`piece`)
//! ```
//!
//! What is trusted, and why:
//!
//! - **Files of the log** (commits, compactions, checkpoints, checksums) come from a listing, which is never cached and
//!   says which entity tag and size each file has. A piece with the same tag and size has the bytes that the store
//!   would have returned at the time of the listing, so no request is needed.
//! - **Files that no listing has shown** (data files, deletion vectors, sidecars) are requested with the condition
//!   `If-None-Match` and the tag of the newest piece. The store answers "not modified", or with the new bytes. Opening
//!   such a file therefore costs one request, as without a cache, but usually one without a body, and reading from the
//!   file afterwards costs none. The condition is necessary although the protocol forbids reusing the name of a data
//!   file, because tables are dropped and created again, and files are copied by hand. Also, the store must be able to
//!   refuse access.
//! - **Everything else** is read from or written to the store: `_last_checkpoint`, listings, existence, all writes, and
//!   commits that are read by their name only. The commit rule, which reads a commit back if its put got no answer, and
//!   the protocol of coordinators therefore never use the cache: only a reader that passes an entry of a listing
//!   ([`Listed`]) does.
//! - Objects without an entity tag, or with a weak one, are not cached.
//!
//! Cached data is checked before it is used:
//!
//! - A piece has its final name only when it is complete (a rename). A crash of the machine may still leave one with
//!   other content: each block of it has a hash. A damaged piece is deleted, and read from the store again.
//! - A piece names its object, its store's endpoint, its entity tag and its size in full. Hashes only serve to find it.
//! - The directory must belong to the user, and other users must not be able to read or write it; otherwise it is not
//!   used. The content is not encrypted. Files of the log are read without asking whether the store would still permit
//!   it, so programs with other permissions need a directory of their own.
//!
//! How it is kept small: to add a piece, a process first adds its size to `used` under a lock. If that exceeds the
//! limit, the pieces that were not used for the longest time are deleted, an eighth of the limit at once. A process
//! that cannot get the lock quickly does not add the piece. A crash between the two steps makes the total too large,
//! never too small, and the next eviction corrects it. The cache has no threads, and only counts are in memory, so a
//! forked child works like any other process. Failures, such as a full disk, are logged as warnings and never fail a
//! read.
//!
//! Why not a crate: `foyer` has its index in memory and opens its files without a lock, so two processes damage each
//! other's entries; what a process adds is on disk only after its flushers have run, and the next one scans the device
//! before it can read. `cacache` is safe among processes, but it has no limit of size, hashes whole entries to read a
//! part of one, and its index only grows. Neither finds the pieces that cover a range.

mod directory;
mod object;
mod piece;
#[cfg(feature = "_cloud")]
pub(super) mod settings;
mod statistics;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use twox_hash::{XxHash3_64, XxHash3_128};

use directory::Directory;
pub(super) use object::CachedObject;
use piece::{Identity, Piece};
pub use statistics::CacheStatistics;
use statistics::Counts;

/// The metadata of a file in a listing, which identifies its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    pub(super) size: u64,
    /// The result of [`tag`].
    pub(super) tag: u64,
}

/// Returns a number for an entity tag. Some stores quote the tag in one answer and not in the other.
pub(super) fn tag(e_tag: &str) -> u64 {
    XxHash3_64::oneshot(e_tag.trim_start_matches("W/").trim_matches('"').as_bytes())
}

/// The cache of a table's store.
#[derive(Debug)]
pub(super) struct Cache {
    /// `None` if it cannot be used.
    directory: Option<Directory>,
    /// Distinguishes stores in which the same URL is another object.
    store: String,
    counts: Counts,
}

/// An object that the cache may have.
#[derive(Debug, Clone)]
struct Key {
    directory: PathBuf,
    url: String,
}

impl Cache {
    /// Opens the cache in the directory `path`, which may take up to `limit` bytes. `store` distinguishes stores that
    /// have different objects under the same URL. If the directory cannot be used, logs a warning.
    pub(super) fn open(path: PathBuf, limit: u64, store: &str) -> Arc<Self> {
        let store = format!("{:032x}", XxHash3_128::oneshot(store.as_bytes()));
        Arc::new(Self { directory: Directory::open(path, limit), store, counts: Counts::default() })
    }

    pub(super) fn statistics(&self) -> CacheStatistics {
        self.counts.read()
    }

    fn key(&self, url: String) -> Option<(&Directory, Key)> {
        let directory = self.directory.as_ref()?;
        let hash = XxHash3_128::oneshot(format!("{} {url}", self.store).as_bytes());
        Some((directory, Key { directory: directory.of_object(hash), url }))
    }

    fn identity<'a>(&'a self, url: &'a str, e_tag: &'a str, size: u64) -> Identity<'a> {
        Identity { store: self.store.as_str().into(), url: url.into(), e_tag: e_tag.into(), size }
    }

    /// Returns the whole object as a listing has shown it.
    pub(super) fn whole(&self, url: String, listed: Listed) -> Option<Bytes> {
        let (directory, key) = self.key(url)?;
        let found = directory
            .pieces(&key.directory)
            .into_iter()
            .filter(|piece| piece.tag == listed.tag && piece.range == (0..listed.size))
            .find_map(|piece| self.bytes_of(&key, &piece, listed));
        match &found {
            Some(bytes) => self.counts.hit(bytes.len()),
            None => self.counts.miss(usize::try_from(listed.size).unwrap_or(usize::MAX)),
        }
        tracing::debug!(
            url = key.url,
            is_hit = found.is_some(),
            "a file of the log was looked for in the cache"
        );
        found
    }

    /// Adds a whole object.
    pub(super) fn add_whole(&self, url: String, e_tag: &str, bytes: &Bytes) {
        let Some((directory, key)) = self.key(url) else { return };
        let identity = self.identity(&key.url, e_tag, bytes.len() as u64);
        directory.add(&key.directory, &identity, 0, bytes);
    }

    /// Reads a whole piece if it is valid. Otherwise deletes it.
    fn bytes_of(&self, key: &Key, piece: &Piece, listed: Listed) -> Option<Bytes> {
        let open = piece.open(&key.directory);
        let is_right =
            |identity: &Identity<'_>| identity.is_of(&self.store, &key.url) && identity.size == listed.size;
        let bytes = open
            .as_ref()
            .filter(|open| is_right(&open.identity))
            .and_then(|open| open.read(piece.range.clone()).inspect(|_| open.touch()));
        if bytes.is_none() {
            piece.discard(&key.directory);
        }
        bytes
    }

    /// Returns the object in the state that a listing has shown, with its last `length` bytes.
    pub(super) fn end(
        self: &Arc<Self>,
        url: String,
        listed: Listed,
        length: u64,
    ) -> Option<(CachedObject, Bytes)> {
        let found = self.newest_end(url, Some(listed), length);
        match &found {
            Some((_, bytes)) => self.counts.hit(bytes.len()),
            None => self.counts.miss(usize::try_from(length.min(listed.size)).unwrap_or(usize::MAX)),
        }
        found
    }

    /// Returns the object as it was read last, and the last `length` bytes of it. The caller must validate it with the
    /// store, and then call [`Cache::validated`].
    pub(super) fn newest_end(
        self: &Arc<Self>,
        url: String,
        listed: Option<Listed>,
        length: u64,
    ) -> Option<(CachedObject, Bytes)> {
        let (directory, key) = self.key(url)?;
        let mut pieces = directory.pieces(&key.directory);
        pieces.retain(|piece| listed.is_none_or(|listed| piece.tag == listed.tag));
        pieces.sort_by_cached_key(|piece| std::cmp::Reverse(piece.used(&key.directory)));
        for piece in pieces {
            let Some(open) = piece.open(&key.directory) else {
                piece.discard(&key.directory);
                continue;
            };
            let identity = open.identity.into_owned();
            if !identity.is_of(&self.store, &key.url)
                || identity.e_tag.starts_with("W/")
                || listed.is_some_and(|listed| listed.size != identity.size)
            {
                continue;
            }
            let object = CachedObject::new(self, key.clone(), &identity);
            let end = identity.size.saturating_sub(length)..identity.size;
            if let Some(bytes) = object.covered(end) {
                return Some((object, bytes));
            }
        }
        None
    }

    /// Records whether the store still had the object with the end `bytes`.
    pub(super) fn validated(&self, is_same: bool, bytes: usize) {
        if is_same { self.counts.hit(bytes) } else { self.counts.miss(bytes) }
    }

    /// Returns an object with the tag and size that the store reports.
    pub(super) fn object(self: &Arc<Self>, url: String, e_tag: &str, size: u64) -> Option<CachedObject> {
        let (_, key) = self.key(url)?;
        let identity = self.identity(&key.url, e_tag, size).into_owned();
        Some(CachedObject::new(self, key, &identity))
    }
}
