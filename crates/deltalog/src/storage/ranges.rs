//! Reads ranges of an object in a remote store.
//!
//! - When an object is opened, its end is read. It contains the footer of a Parquet file and usually the page indexes.
//!   So one request shows whether the object exists, how large it is, and what it contains.
//! - A reader that knows in advance what it will read provides a plan ([`Plan`]): a list of units, such as row groups,
//!   each with its ranges. When the first byte of a unit is read, all its ranges are requested in parallel. Ranges that
//!   are close together are joined, and large ones are split. If a unit is too large for that, each range, such as a
//!   column, is read ahead separately, because columns are read side by side. When the reader reaches a unit, all units
//!   before the previous one are dropped.
//! - The memory for reading ahead is limited by a budget ([`Budget`](super::budget::Budget)). When the budget is used
//!   up, ranges of a plan are read in small pieces, one after another.
//! - Ranges that are not part of a plan are read when they are requested.
//! - Ranges that are in the cache on the local disk are not requested from the store (`cache`).
//! - All requests require the entity tag of the first response, so that the content of two different objects is never
//!   mixed.

use std::io;
use std::iter;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use object_store::path::Path;

use super::Storage;
use super::answers::Failure;
use super::budget::{PATIENCE, Share};
use super::cache::{CachedObject, Listed};
use super::remote::{Remote, strong};
use crate::error::{Error, Result};

/// The number of bytes at the end of an object that are read when the object is opened.
pub(super) const END: u64 = 64 << 10;
/// If the gap between two ranges has at most this many bytes, they are read as one, because this takes less time than a
/// second request.
const CLOSE: u64 = 512 << 10;
/// The maximum number of bytes in a request. Larger ranges are split.
const PART: u64 = 8 << 20;
/// The maximum number of bytes of a unit that are in memory at the same time, unless a single read requests more.
const UNIT: u64 = 32 << 20;
/// The minimum number of bytes that are read ahead in each range of a large unit.
const LEAST_AHEAD: u64 = 128 << 10;
/// The number of bytes that are read at once if there is no plan.
const UNPLANNED: u64 = 256 << 10;

/// An object that is open for reading.
#[derive(Debug)]
pub(super) struct RemoteFile {
    storage: Storage,
    store: Remote,
    /// The name of the file, for messages.
    name: String,
    path: Path,
    size: u64,
    e_tag: Option<String>,
    end: Piece,
    /// The object in the cache on the local disk, if there is a cache.
    cached: Option<CachedObject>,
    /// The error of the last failed request. It is kept because the Parquet reader converts errors to strings.
    failure: Mutex<Option<Error>>,
}

/// Bytes of an object, starting at the offset `start`.
#[derive(Debug, Clone)]
struct Piece {
    start: u64,
    bytes: Bytes,
}

impl Piece {
    /// Returns the bytes from offset `at` on, if there are any.
    fn from(&self, at: u64) -> Option<Bytes> {
        let skipped = usize::try_from(at.checked_sub(self.start)?).ok()?;
        (skipped < self.bytes.len()).then(|| self.bytes.slice(skipped..))
    }
}

impl RemoteFile {
    /// Opens the object at `path`. `name` is used in messages. `listed` is the object's metadata from a listing, if the
    /// caller has listed it.
    ///
    /// # Errors
    /// `FileNotFound`, `Unavailable`, `PermissionDenied`.
    pub(super) fn open(
        storage: &Storage,
        store: &Remote,
        name: &str,
        path: &Path,
        listed: Option<Listed>,
    ) -> Result<Self> {
        let found = open_end(storage, store, path, listed);
        let End { size, e_tag, bytes, cached } = found.map_err(|failure| storage.error(name, failure))?;
        let start = size.saturating_sub(bytes.len() as u64);
        let end = Piece { start, bytes };
        let (name, path) = (name.to_owned(), path.clone());
        Ok(Self {
            storage: storage.clone(),
            store: store.clone(),
            name,
            path,
            size,
            e_tag,
            end,
            cached,
            failure: Mutex::default(),
        })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns whether requests involve waiting for a network.
    pub(super) fn waits(&self) -> bool {
        self.store.waits()
    }

    /// Returns the error of a failed request, if a request has failed.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Error::again)
    }

    fn request(&self, ranges: impl IntoIterator<Item = Range<u64>>) -> io::Result<Vec<Piece>> {
        let parts: Vec<Range<u64>> = ranges.into_iter().flat_map(parts).collect();
        let starts: Vec<u64> = parts.iter().map(|part| part.start).collect();
        let fetch = |ranges| self.store.ranges(self.path.clone(), self.e_tag.clone(), ranges);
        let read = match &self.cached {
            Some(cached) => cached.ranges(&parts, fetch),
            None => fetch(parts),
        };
        let bytes = read.map_err(|failure| {
            let error = self.storage.error(&self.name, failure);
            let text = error.to_string();
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            io::Error::other(text)
        })?;
        Ok(starts.into_iter().zip(bytes).map(|(start, bytes)| Piece { start, bytes }).collect())
    }
}

/// What is known about an object when it is opened.
struct End {
    size: u64,
    e_tag: Option<String>,
    /// The last bytes.
    bytes: Bytes,
    cached: Option<CachedObject>,
}

/// Reads the end of an object from the cache or from the store.
fn open_end(storage: &Storage, store: &Remote, path: &Path, listed: Option<Listed>) -> Result<End, Failure> {
    let of_cache = |cached: CachedObject, bytes| End {
        size: cached.size(),
        e_tag: Some(cached.e_tag().to_owned()),
        bytes,
        cached: Some(cached),
    };
    let cache = storage.cache.as_ref().map(|cache| (cache, storage.object_url(path)));
    let known = match (&cache, listed) {
        (Some((cache, url)), Some(listed)) => match cache.end(url.clone(), listed, END) {
            Some((cached, bytes)) => return Ok(of_cache(cached, bytes)),
            None => None,
        },
        // Only the store knows whether the object still has the content that was last read.
        (Some((cache, url)), None) => cache.newest_end(url.clone(), None, END),
        (None, _) => None,
    };
    let answer = match &known {
        Some((cached, _)) => store.end_unless(path.clone(), END, cached.e_tag().to_owned()),
        None => store.end(path.clone(), END).map(Some),
    };
    let (bytes, meta) = match (answer, known) {
        (Ok(Some(found)), _) => found,
        (Ok(None), Some((cached, bytes))) => {
            if let Some((cache, _)) = &cache {
                cache.validated(true, bytes.len());
            }
            return Ok(of_cache(cached, bytes));
        }
        // This cannot happen, because only a conditional request returns `None`.
        (Ok(None), None) => store.end(path.clone(), END)?,
        // An empty object has no last bytes that could be requested.
        (Err(failure), _) if failure.is_beyond_end() => {
            return Ok(End { size: 0, e_tag: None, bytes: Bytes::new(), cached: None });
        }
        (Err(failure), _) => return Err(failure),
    };
    let (size, e_tag) = (meta.size, strong(meta.e_tag));
    let mut cached = None;
    if let (Some((cache, url)), Some(e_tag)) = (cache, &e_tag) {
        if listed.is_none() {
            cache.validated(false, bytes.len());
        }
        cached = cache.object(url, e_tag, size);
        if let Some(cached) = &cached {
            cached.add(size.saturating_sub(bytes.len() as u64), &bytes);
        }
    }
    Ok(End { size, e_tag, bytes, cached })
}

/// Splits a range into the ranges of single requests.
fn parts(range: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = range.end;
    (range.start..end).step_by(PART as usize).map(move |start| start..end.min(start + PART))
}

/// Joins ranges if the gap between them has at most `gap` bytes and the result has at most `most` bytes. Returns the
/// ranges in order.
pub(super) fn joined(mut ranges: Vec<Range<u64>>, gap: u64, most: u64) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last)
                if range.start <= last.end.saturating_add(gap)
                    && range.end.saturating_sub(last.start) <= most =>
            {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Returns how many bytes are read ahead in each range of a large unit that has `ranges` ranges.
fn ahead(ranges: usize) -> u64 {
    (UNIT / (ranges as u64).max(1)).clamp(LEAST_AHEAD, UNIT / 2)
}

/// The planned reads of an object.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The units, in the order in which they are read.
    units: Mutex<Vec<Unit>>,
}

#[derive(Debug)]
struct Unit {
    ranges: Vec<Range<u64>>,
    /// The ranges that are read separately when the budget is used up.
    apart: Vec<Range<u64>>,
    held: Vec<Held>,
    /// Whether the unit is read in pieces, because it is large or because the budget was used up.
    is_in_pieces: bool,
    /// Whether the budget was used up.
    is_short_of_memory: bool,
}

/// A piece, and the share of the budget that it holds. Pieces that were read together hold one share jointly: it is
/// returned when the last of them is dropped.
#[derive(Debug)]
struct Held {
    piece: Piece,
    _share: Arc<Share>,
}

impl Unit {
    /// Creates a unit from `ranges`, which must not be empty. The ranges of a large unit stay separate, because a piece
    /// is dropped when the next piece of its range is read. They are only joined if the result is not larger than a
    /// piece.
    fn new(ranges: Vec<Range<u64>>) -> Self {
        let apart = joined(ranges.clone(), CLOSE, LEAST_AHEAD);
        let (most, whole) = (ahead(ranges.len()), joined(ranges.clone(), CLOSE, u64::MAX));
        let is_large = total(&whole) > UNIT;
        let ranges = if is_large { joined(ranges, CLOSE, most) } else { whole };
        Self { ranges, apart, held: Vec::new(), is_in_pieces: is_large, is_short_of_memory: false }
    }
}

impl Unit {
    /// Returns the bytes from offset `at` on, if they are in memory.
    fn from(&self, at: u64) -> Option<Bytes> {
        self.held.iter().find_map(|held| held.piece.from(at))
    }

    /// Reads the ranges `wanted`. If the budget is used up, reads only the beginning of `needed`.
    fn read(
        &mut self,
        file: &RemoteFile,
        mut wanted: Vec<Range<u64>>,
        needed: Range<u64>,
        patience: Duration,
    ) -> io::Result<()> {
        let budget = &file.store.reads().budget;
        let share = budget.take(total(&wanted), patience).unwrap_or_else(|| {
            self.is_in_pieces = true;
            if !std::mem::replace(&mut self.is_short_of_memory, true) {
                self.ranges = std::mem::take(&mut self.apart);
            }
            wanted.clear();
            wanted.push(needed.start..needed.end.min(needed.start + LEAST_AHEAD));
            budget.overdraw(total(&wanted))
        });
        let (share, pieces) = (Arc::new(share), file.request(wanted)?);
        self.held.extend(pieces.into_iter().map(|piece| Held { piece, _share: Arc::clone(&share) }));
        Ok(())
    }
}

impl Plan {
    /// Creates a plan to read `units` of a file that has `size` bytes.
    pub(super) fn new(units: Vec<Vec<Range<u64>>>, size: u64) -> Self {
        let within = |ranges: Vec<Range<u64>>| {
            let ranges = ranges.into_iter().map(|range| range.start..range.end.min(size));
            Unit::new(ranges.filter(|range| !range.is_empty()).collect())
        };
        let units = units.into_iter().map(within);
        Self { units: Mutex::new(units.collect()) }
    }

    /// If the plan contains offset `at`, returns some bytes of `file` from there on, but at least one.
    fn some(&self, file: &RemoteFile, at: u64) -> io::Result<Option<Bytes>> {
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        let found = units.iter().enumerate().find_map(|(index, unit)| {
            Some((index, unit.ranges.iter().find(|range| range.contains(&at))?.clone()))
        });
        let Some((index, range)) = found else { return Ok(None) };
        let holds = units.iter().any(|unit| !unit.held.is_empty());
        let Some(unit) = units.get_mut(index) else { return Ok(None) };
        if let Some(bytes) = unit.from(at) {
            return Ok(Some(bytes));
        }
        // A reader that already holds memory must not wait for other readers, because they may be waiting for its
        // memory.
        let patience = if holds { Duration::ZERO } else { PATIENCE };
        if unit.is_in_pieces || !unit.held.is_empty() {
            let ahead = ahead(unit.ranges.len());
            // Drop the piece of this range that was read before.
            unit.held.retain(|held| !range.contains(&held.piece.start));
            // Small ranges that were joined may be read in any order, so they are read as a whole.
            let most = if unit.is_short_of_memory { LEAST_AHEAD } else { ahead };
            let start = if range.end - range.start <= most { range.start } else { at };
            let wanted = start..range.end.min(start + ahead);
            let is_small = range.end - range.start <= LEAST_AHEAD;
            let needed = if is_small { range.clone() } else { at..range.end };
            unit.read(file, vec![wanted], needed, patience)?;
        } else {
            unit.read(file, unit.ranges.clone(), at..range.end, patience)?;
        }
        let bytes = unit.from(at);
        for passed in units.iter_mut().take(index.saturating_sub(1)) {
            passed.held = Vec::new();
        }
        Ok(bytes)
    }
}

/// Returns some bytes of `file` from offset `at` on, but at least one unless the file ends there.
pub(super) fn some(file: &RemoteFile, plan: Option<&Plan>, at: u64) -> io::Result<Bytes> {
    if at >= file.size {
        return Ok(Bytes::new());
    }
    if let Some(bytes) = file.end.from(at) {
        return Ok(bytes);
    }
    let planned = plan.map_or(Ok(None), |plan| plan.some(file, at))?;
    match planned {
        Some(bytes) => Ok(bytes),
        None => {
            let end = file.size.min(at + UNPLANNED);
            let pieces = file.request(iter::once(at..end))?;
            pieces.into_iter().next().map(|piece| piece.bytes).ok_or(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// Returns `length` bytes of `file` from offset `start` on. The caller has checked that the file is long enough.
pub(super) fn exactly(
    file: &RemoteFile,
    plan: Option<&Plan>,
    start: u64,
    length: usize,
) -> io::Result<Bytes> {
    let end = start + length as u64;
    let is_planned = plan.is_some_and(|plan| {
        let units = plan.units.lock().unwrap_or_else(PoisonError::into_inner);
        units.iter().flat_map(|unit| &unit.ranges).any(|range| range.contains(&start))
    });
    let first = if length == 0 {
        Bytes::new()
    } else if is_planned || start >= file.end.start {
        some(file, plan, start)?
    } else {
        let pieces = file.request(iter::once(start..end.min(file.end.start.max(start + 1))))?;
        joined_bytes(pieces)
    };
    if first.len() >= length {
        return Ok(first.slice(..length));
    }
    let mut all = BytesMut::with_capacity(length);
    all.extend_from_slice(&first);
    while all.len() < length {
        let more = some(file, plan, start + all.len() as u64)?;
        if more.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        all.extend_from_slice(more.get(..length - all.len()).unwrap_or(&more));
    }
    Ok(all.freeze())
}

fn joined_bytes(pieces: Vec<Piece>) -> Bytes {
    match <[Piece; 1]>::try_from(pieces) {
        Ok([piece]) => piece.bytes,
        Err(pieces) => {
            let mut all = BytesMut::with_capacity(pieces.iter().map(|piece| piece.bytes.len()).sum());
            pieces.iter().for_each(|piece| all.extend_from_slice(&piece.bytes));
            all.freeze()
        }
    }
}
