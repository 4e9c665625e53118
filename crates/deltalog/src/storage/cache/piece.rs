//! A piece of the cache: one range of an object, stored in a file.
//!
//! ```text
//! magic "deltalog"                            8 bytes
//! length of the head                          4 bytes, little endian, like all numbers
//! head: identity and range as JSON
//! one XXH3 hash of 64 bits per block of 64 KiB of the content
//! an XXH3 hash of all that is before it       8 bytes
//! content
//! ```
//!
//! - The file's name contains the properties of the piece, so that a piece can be skipped without opening the file.
//!   The name is only trusted if it agrees with the head.
//! - Only the blocks that are read are compared with their hashes.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::tag;
use crate::runtime::clock;
use crate::storage::read::read_at;

const MAGIC: &[u8; 8] = b"deltalog";
/// The length of the part before the head.
const START: usize = 12;
/// The maximum size of a head in bytes. It contains a URL, which may have a few thousand bytes.
const LONGEST_HEAD: usize = 1 << 20;
const BLOCK: u64 = 64 << 10;
const HASH: usize = 8;
/// A piece that was marked as used within this time is not marked again.
const FRESH: Duration = Duration::from_secs(60);

/// The object to which a piece belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity<'a> {
    pub(super) store: Cow<'a, str>,
    pub(super) url: Cow<'a, str>,
    pub(super) e_tag: Cow<'a, str>,
    pub(super) size: u64,
}

impl Identity<'_> {
    pub(super) fn is_of(&self, store: &str, url: &str) -> bool {
        self.store == store && self.url == url
    }

    pub(super) fn into_owned(self) -> Identity<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Identity { store: owned(self.store), url: owned(self.url), e_tag: owned(self.e_tag), size: self.size }
    }
}

#[derive(Serialize, Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    identity: Identity<'a>,
    start: u64,
    end: u64,
}

/// The name of a piece's file, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) tag: u64,
    pub(super) range: Range<u64>,
}

/// An open piece whose head is valid.
#[derive(Debug)]
pub(super) struct OpenPiece {
    file: File,
    pub(super) identity: Identity<'static>,
    range: Range<u64>,
    hashes: Vec<u64>,
    /// The offset of the content in the file.
    content: u64,
}

impl Piece {
    pub(super) fn new(identity: &Identity<'_>, range: Range<u64>) -> Self {
        Self { tag: tag(&identity.e_tag), range }
    }

    pub(super) fn name(&self) -> String {
        format!("{:016x}-{}-{}", self.tag, self.range.start, self.range.end)
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let tag = u64::from_str_radix(parts.next()?, 16).ok()?;
        let range = parts.next()?.parse().ok()?..parts.next()?.parse().ok()?;
        let piece = Self { tag, range };
        (parts.next().is_none() && piece.range.start < piece.range.end && piece.name() == name)
            .then_some(piece)
    }

    fn path(&self, directory: &Path) -> PathBuf {
        directory.join(self.name())
    }

    /// Opens the piece, if its file exists and the head is valid.
    pub(super) fn open(&self, directory: &Path) -> Option<OpenPiece> {
        let file = File::open(self.path(directory)).ok()?;
        let length = file.metadata().ok()?.len();
        let open = OpenPiece::parse(file, length)?;
        (open.range == self.range && tag(&open.identity.e_tag) == self.tag).then_some(open)
    }

    /// Returns approximately when the piece was last used.
    pub(super) fn used(&self, directory: &Path) -> Option<SystemTime> {
        self.path(directory).metadata().ok()?.modified().ok()
    }

    /// Deletes the piece, because it is invalid or no longer needed. The next count of the total size no longer
    /// includes it.
    pub(super) fn discard(&self, directory: &Path) {
        let path = self.path(directory);
        match std::fs::remove_file(&path) {
            Ok(()) => tracing::debug!(path = %path.display(), "a piece of the cache was discarded"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "a piece of the cache could not be deleted")
            }
        }
    }
}

impl OpenPiece {
    fn parse(file: File, length: u64) -> Option<Self> {
        let at_most = |bytes: u64| usize::try_from(bytes.min(length)).ok();
        let first = read_at(&file, 0, at_most(4096)?).ok()?;
        let head_length = u32::from_le_bytes(first.get(MAGIC.len()..START)?.try_into().ok()?) as usize;
        if !first.starts_with(MAGIC) || head_length > LONGEST_HEAD {
            return None;
        }
        let head_end = START + head_length;
        let within = |first: Vec<u8>, end: usize| match first.len() >= end {
            true => Some(first),
            false => read_at(&file, 0, at_most(end as u64)?).ok().filter(|bytes| bytes.len() >= end),
        };
        let first = within(first, head_end)?;
        let head: Head<'_> = serde_json::from_slice(first.get(START..head_end)?).ok()?;
        let (identity, range) = (head.identity.into_owned(), head.start..head.end);
        let content_length = range.end.checked_sub(range.start)?;
        let blocks = usize::try_from(content_length.div_ceil(BLOCK)).ok()?;
        // Before memory is allocated for the hashes, all lengths are checked against the size of the file.
        let content = (head_end as u64).checked_add(blocks as u64 * HASH as u64)?.checked_add(HASH as u64)?;
        if content.checked_add(content_length)? != length || range.end > identity.size {
            return None;
        }
        let content_at = usize::try_from(content).ok()?;
        let first = within(first, content_at)?;
        let hashed = first.get(..content_at - HASH)?;
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        if number(first.get(content_at - HASH..content_at)?)? != XxHash3_64::oneshot(hashed) {
            return None;
        }
        let hashes = hashed.get(head_end..)?.chunks_exact(HASH).filter_map(number).collect();
        Some(Self { file, identity, range, hashes, content })
    }

    /// Reads a range of the object that is within the piece, if the content is valid.
    pub(super) fn read(&self, range: Range<u64>) -> Option<Bytes> {
        if range.start < self.range.start || range.end > self.range.end || range.is_empty() {
            return None;
        }
        let (start, end) = (range.start - self.range.start, range.end - self.range.start);
        let first = start / BLOCK;
        let aligned = first * BLOCK..(end.div_ceil(BLOCK) * BLOCK).min(self.range.end - self.range.start);
        let length = usize::try_from(aligned.end - aligned.start).ok()?;
        let bytes = Bytes::from(read_at(&self.file, self.content + aligned.start, length).ok()?);
        let hashes = self.hashes.get(usize::try_from(first).ok()?..)?;
        let mut blocks = bytes.chunks(BLOCK as usize).zip(hashes);
        let is_right = blocks.all(|(block, hash)| XxHash3_64::oneshot(block) == *hash);
        let skipped = usize::try_from(start - aligned.start).ok()?;
        let wanted = skipped..skipped + usize::try_from(end - start).ok()?;
        (is_right && wanted.end <= bytes.len()).then(|| bytes.slice(wanted))
    }

    /// Marks the piece as recently used.
    pub(super) fn touch(&self) {
        let now = clock::system_time();
        let used = self.file.metadata().and_then(|meta| meta.modified());
        if used.is_ok_and(|used| now.duration_since(used).is_ok_and(|since| since >= FRESH)) {
            // A process without permission to change the file can still read the piece, so an error is ignored.
            let _ = self.file.set_modified(now);
        }
    }
}

/// Returns the bytes that precede the content of a piece in its file.
pub(super) fn preamble(identity: &Identity<'_>, start: u64, content: &[u8]) -> io::Result<Bytes> {
    let head = Head { identity: identity.clone(), start, end: start + content.len() as u64 };
    let head = serde_json::to_vec(&head)?;
    let length = u32::try_from(head.len()).ok().filter(|_| head.len() <= LONGEST_HEAD);
    let length = length.ok_or(io::ErrorKind::InvalidInput)?;
    let mut all = BytesMut::with_capacity(START + head.len() + (content.len() / BLOCK as usize + 2) * HASH);
    all.extend_from_slice(MAGIC);
    all.extend_from_slice(&length.to_le_bytes());
    all.extend_from_slice(&head);
    for block in content.chunks(BLOCK as usize) {
        all.extend_from_slice(&XxHash3_64::oneshot(block).to_le_bytes());
    }
    let hash = XxHash3_64::oneshot(&all);
    all.extend_from_slice(&hash.to_le_bytes());
    Ok(all.freeze())
}
