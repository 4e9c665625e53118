//! An object that has some pieces in the cache.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::piece::{Identity, Piece};
use super::{Cache, Key};

/// A certain state of an object, and the ranges of it that are in the cache.
#[derive(Debug, Clone)]
pub(in crate::storage) struct CachedObject {
    cache: Arc<Cache>,
    key: Key,
    e_tag: String,
    size: u64,
    tag: u64,
}

/// The parts of a range that the cache has. The missing bytes are one contiguous range.
struct Known {
    before: Bytes,
    missing: Range<u64>,
    after: Bytes,
}

impl CachedObject {
    pub(super) fn new(cache: &Arc<Cache>, key: Key, identity: &Identity<'_>) -> Self {
        let (e_tag, size) = (identity.e_tag.clone().into_owned(), identity.size);
        Self { cache: Arc::clone(cache), key, tag: super::tag(&e_tag), e_tag, size }
    }

    pub(in crate::storage) fn e_tag(&self) -> &str {
        &self.e_tag
    }

    pub(in crate::storage) fn size(&self) -> u64 {
        self.size
    }

    /// Returns whether a response of the store is about the same state of the object.
    pub(in crate::storage) fn is(&self, e_tag: &str, size: u64) -> bool {
        self.tag == super::tag(e_tag) && self.size == size
    }

    /// Reads ranges of the object. `fetch` reads the bytes that the cache lacks from the store, with at most one
    /// request per range.
    pub(in crate::storage) fn ranges<E>(
        &self,
        ranges: &[Range<u64>],
        fetch: impl FnOnce(Vec<Range<u64>>) -> Result<Vec<Bytes>, E>,
    ) -> Result<Vec<Bytes>, E> {
        let pieces = self.pieces();
        let known: Vec<Known> = ranges.iter().map(|range| self.known(&pieces, range)).collect();
        let missing: Vec<Range<u64>> =
            known.iter().map(|known| known.missing.clone()).filter(|range| !range.is_empty()).collect();
        for known in &known {
            let length = known.missing.end - known.missing.start;
            if length == 0 {
                self.cache.counts.hit(known.before.len());
            } else {
                self.cache.counts.miss(usize::try_from(length).unwrap_or(usize::MAX));
            }
        }
        let hits = known.len() - missing.len();
        tracing::debug!(
            url = self.key.url,
            hits,
            misses = missing.len(),
            "ranges were looked for in the cache"
        );
        let mut fetched = match missing.is_empty() {
            true => Vec::new(),
            false => fetch(missing)?,
        }
        .into_iter();
        let complete = |known: Known| {
            if known.missing.is_empty() {
                return known.before;
            }
            let bytes = fetched.next().unwrap_or_default();
            let is_whole = bytes.len() as u64 == known.missing.end - known.missing.start;
            if is_whole {
                self.add(known.missing.start, &bytes);
            }
            // Bytes after a gap would be taken for the bytes of the gap, so they are left out. The reader continues
            // where the returned bytes end.
            let after = if is_whole { known.after } else { Bytes::new() };
            if known.before.is_empty() && after.is_empty() {
                return bytes;
            }
            let mut all = BytesMut::with_capacity(known.before.len() + bytes.len() + after.len());
            [known.before, bytes, after].iter().for_each(|part| all.extend_from_slice(part));
            all.freeze()
        };
        Ok(known.into_iter().map(complete).collect())
    }

    /// Returns a range of the object, if the cache contains all of it.
    pub(super) fn covered(&self, range: Range<u64>) -> Option<Bytes> {
        let known = self.known(&self.pieces(), &range);
        (known.missing.is_empty()).then_some(known.before)
    }

    /// Adds bytes of the object to the cache. They begin at offset `start`.
    pub(in crate::storage) fn add(&self, start: u64, bytes: &Bytes) {
        if let Some(directory) = &self.cache.directory {
            let identity = self.cache.identity(&self.key.url, &self.e_tag, self.size);
            directory.add(&self.key.directory, &identity, start, bytes);
        }
    }

    fn pieces(&self) -> Vec<Piece> {
        let Some(directory) = &self.cache.directory else { return Vec::new() };
        let mut pieces = directory.pieces(&self.key.directory);
        pieces.retain(|piece| piece.tag == self.tag);
        pieces
    }

    fn known(&self, pieces: &[Piece], range: &Range<u64>) -> Known {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let (mut start, mut end) = (range.start, range.end);
        while start < end {
            let here = pieces.iter().filter(|piece| piece.range.contains(&start));
            let Some(piece) = here.max_by_key(|piece| piece.range.end) else { break };
            let part = start..piece.range.end.min(end);
            let Some(bytes) = self.read(piece, part.clone()) else { break };
            start = part.end;
            before.push(bytes);
        }
        // Continues backwards from the end of the range.
        while start < end {
            let here = pieces.iter().filter(|piece| piece.range.start < end && piece.range.end >= end);
            let Some(piece) = here.min_by_key(|piece| piece.range.start) else { break };
            let part = piece.range.start.max(start)..end;
            let Some(bytes) = self.read(piece, part.clone()) else { break };
            end = part.start;
            after.push(bytes);
        }
        after.reverse();
        if start < end {
            return Known { before: joined(before), missing: start..end, after: joined(after) };
        }
        Known {
            before: joined(before.into_iter().chain(after)),
            missing: range.end..range.end,
            after: Bytes::new(),
        }
    }

    /// Reads part of a piece. If the piece is invalid, deletes it.
    fn read(&self, piece: &Piece, range: Range<u64>) -> Option<Bytes> {
        let open = piece.open(&self.key.directory);
        let is_right = |identity: &Identity<'_>| {
            identity.is_of(&self.cache.store, &self.key.url) && self.is(&identity.e_tag, identity.size)
        };
        let bytes = open
            .as_ref()
            .filter(|open| is_right(&open.identity))
            .and_then(|open| open.read(range).inspect(|_| open.touch()));
        if bytes.is_none() {
            piece.discard(&self.key.directory);
        }
        bytes
    }
}

fn joined(parts: impl IntoIterator<Item = Bytes>) -> Bytes {
    let mut parts: Vec<Bytes> = parts.into_iter().collect();
    if parts.len() < 2 {
        return parts.pop().unwrap_or_default();
    }
    let mut all = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|part| all.extend_from_slice(part));
    all.freeze()
}
