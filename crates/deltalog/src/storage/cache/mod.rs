//! A cache of immutable objects on the local disk. Concurrent and later processes share it with this one.
//!
//! ```text
//! <cache_dir>/deltalog-1/                    0700
//!     used                                   the number of bytes in use; also a lock for adding and evicting
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
//!   `If-None-Match` and the tag of the newest piece. The store responds with "not modified" or with the new bytes.
//!   Opening such a file therefore takes one request, as without a cache, but usually its response has no body, and
//!   reading from the file afterwards takes no request. The protocol forbids reusing the name of a data file, but the
//!   condition is necessary nevertheless, because tables are dropped and created again, and files are copied by hand.
//!   The request also lets the store refuse access.
//! - **Everything else** always goes to the store: `_last_checkpoint`, listings, checks whether a file exists, all
//!   writes, and commits that are read by name without a listing. So the cache is not used by a writer that reads its
//!   commit back because there was no response to the put, nor by the protocol of coordinators. Files of the log are
//!   only read from the cache by readers that pass an entry of a listing ([`Listed`]).
//! - Objects whose entity tag is missing or weak are not cached.
//!
//! Cached data is checked before it is used:
//!
//! - A piece gets its final name, by a rename, only when it is complete. After a crash of the machine, its file may
//!   still have other content, so each block of it has a hash. A damaged piece is deleted, and the bytes are read from
//!   the store again.
//! - A piece contains the full name of its object, and the store's endpoint, entity tag and size. The hash in the name
//!   of its directory only serves to find it.
//! - The directory must belong to the user, and other users must not be able to read or write it; otherwise it is not
//!   used. The content is not encrypted. Files of the log are read without asking whether the store would still permit
//!   it, so programs with different permissions need separate directories.
//!
//! The size of the cache is limited as follows. To add a piece, a process first adds its size to the number in `used`,
//! under a lock. If the number then exceeds the limit, the least recently used pieces are deleted, an eighth of the
//! limit at a time. A process that cannot get the lock quickly does not add the piece. If a process dies before it has
//! added the piece, the number is too large, never too small, and the next eviction corrects it. The cache has no
//! threads, and only its counts are in memory, so it also works in a forked child process. Failures, such as a full
//! disk, are logged as warnings and never make a read fail.
//!
//! Existing crates do not fit. `foyer` keeps its index in memory and opens its files without a lock, so two processes
//! damage each other's entries; a new entry is on disk only after a delay, and the next process has to scan all entries
//! before it can read. `cacache` may be used by several processes, but it has no size limit, hashes whole entries to
//! read a part of one, and its index only grows. Neither of them finds the pieces that cover a range.

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

/// Returns a number for an entity tag. Quotes around the tag are ignored, because some stores do not always add them.
pub(super) fn tag(e_tag: &str) -> u64 {
    XxHash3_64::oneshot(e_tag.trim_start_matches("W/").trim_matches('"').as_bytes())
}

/// The cache of a table's store.
#[derive(Debug)]
pub(super) struct Cache {
    /// The directory; `None` if it cannot be used.
    directory: Option<Directory>,
    /// Identifies the store, because the same URL may be another object in another store.
    store: String,
    counts: Counts,
}

/// An object that may have pieces in the cache.
#[derive(Debug, Clone)]
struct Key {
    directory: PathBuf,
    url: String,
}

impl Cache {
    /// Opens the cache in the directory `path`, which may take up to `limit` bytes. `store` identifies the store,
    /// because the same URL may be another object in another store. If the directory cannot be used, logs a warning.
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

    /// Returns the content of the object with the tag and size in `listed`, if the cache has all of it.
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

    /// Adds the whole content of an object.
    pub(super) fn add_whole(&self, url: String, e_tag: &str, bytes: &Bytes) {
        let Some((directory, key)) = self.key(url) else { return };
        let identity = self.identity(&key.url, e_tag, bytes.len() as u64);
        directory.add(&key.directory, &identity, 0, bytes);
    }

    /// Reads the whole content of a piece if it is valid. Otherwise deletes the piece.
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

    /// Returns the object with the tag and size in `listed`, and its last `length` bytes, if the cache has these.
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

    /// Returns an object and its last `length` bytes, if the cache has these. If `listed` is given, the object has this
    /// tag and size. Otherwise, it has the tag and size that it had when it was last read. In that case, the caller
    /// must ask the store whether the object is still the same, and then call [`Cache::validated`].
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

    /// Counts a hit of `bytes` bytes if the store still had the same object, otherwise a miss.
    pub(super) fn validated(&self, is_same: bool, bytes: usize) {
        if is_same { self.counts.hit(bytes) } else { self.counts.miss(bytes) }
    }

    /// Returns an object with the tag and size that the store has reported.
    pub(super) fn object(self: &Arc<Self>, url: String, e_tag: &str, size: u64) -> Option<CachedObject> {
        let (_, key) = self.key(url)?;
        let identity = self.identity(&key.url, e_tag, size).into_owned();
        Some(CachedObject::new(self, key, &identity))
    }
}
