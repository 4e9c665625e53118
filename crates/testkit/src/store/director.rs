//! The interface with which a test decides when a request runs and how it fails.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};

use bytes::Bytes;

use super::fault::Fault;
use super::objects::Entry;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// A read of an object, of a part of an object, or of its metadata.
    Get,
    /// A listing.
    List,
    /// A put that may replace an object.
    Put,
    /// A put that fails if the object exists.
    Create,
    /// A part of a multipart upload, which remains invisible until a put completes the upload.
    Part,
    /// A deletion.
    Delete,
    /// A copy.
    Copy,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The kind.
    pub op: Op,
    /// The object, or the prefix of a listing.
    pub path: String,
}

/// The outcome of a request, as traces show it.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The bytes that were read or written.
    Content(Bytes),
    /// The number of files in a listing.
    Entries(usize),
    /// The request was carried out.
    Done,
    /// The object does not exist.
    Missing,
    /// The object already exists.
    Exists,
    /// The request failed in this way.
    Failed(Fault),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Content(bytes) => {
                let mut hasher = DefaultHasher::new();
                hasher.write(bytes);
                write!(f, "{} bytes #{:06x}", bytes.len(), hasher.finish() & 0xff_ffff)
            }
            Self::Entries(count) => write!(f, "{count} entries"),
            Self::Done => f.write_str("done"),
            Self::Missing => f.write_str("404"),
            Self::Exists => f.write_str("exists"),
            Self::Failed(fault) => write!(f, "FAULT {fault:?}"),
        }
    }
}

/// Decides when a request runs and how it fails.
pub trait Director: Send + Sync + 'static {
    /// Returns the fault of `call`, which is about to begin. May block, so that other processes run first.
    fn begin(&self, call: &Call) -> Option<Fault>;

    /// Called in the middle of a listing. May block, so that other processes can change what is being listed.
    fn pause(&self) {}

    /// Receives the answer.
    fn end(&self, call: &Call, answer: Answer);

    /// Selects the `entries` that a listing returns. `began` is the number of changes that the store had seen when the
    /// listing began.
    fn shown(&self, entries: Vec<Entry>, began: u64) -> Vec<Entry>;

    /// Returns the time of the store in milliseconds since the epoch.
    fn now_ms(&self) -> i64;
}
