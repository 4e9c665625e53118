//! The contents of the server: buckets with objects, and with uploads that have not been completed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;

use super::uploads::Uploads;

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    NoSuchBucket,
    NoSuchKey,
    NoSuchUpload,
    InvalidPart,
    InvalidPartOrder,
    EntityTooSmall,
    PreconditionFailed,
}

/// The entity tag of an object: the MD5 digest of its contents or, after a multipart upload, of the digests of its
/// parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Etag {
    pub(super) digest: [u8; 16],
    /// The number of parts; 0 if the object was put in a single request.
    pub(super) parts: usize,
}

impl Etag {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { digest: md5::compute(bytes).0, parts: 0 }
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", md5::Digest(self.digest))?;
        if self.parts > 0 { write!(f, "-{}", self.parts) } else { Ok(()) }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) bytes: Bytes,
    pub(super) etag: Etag,
    pub(super) modified: SystemTime,
}

impl Object {
    pub(super) fn new(bytes: Bytes) -> Self {
        let etag = Etag::of(&bytes);
        Self { bytes, etag, modified: SystemTime::now() }
    }
}

/// The condition under which an object may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    IfAbsent,
    /// The object must exist and have this entity tag, which is given without quotes.
    IfMatch(String),
}

#[derive(Debug, Default)]
pub(super) struct Bucket {
    pub(super) objects: BTreeMap<String, Object>,
    pub(super) uploads: Uploads,
}

impl Bucket {
    pub(super) fn object(&self, key: &str) -> Result<&Object, Refusal> {
        self.objects.get(key).ok_or(Refusal::NoSuchKey)
    }

    /// Checks whether `key` may now be written under this condition.
    pub(super) fn check(&self, key: &str, condition: &Condition) -> Result<(), Refusal> {
        match condition {
            Condition::Always => Ok(()),
            Condition::IfAbsent if self.objects.contains_key(key) => Err(Refusal::PreconditionFailed),
            Condition::IfAbsent => Ok(()),
            Condition::IfMatch(tag) if self.object(key)?.etag.to_string() == *tag => Ok(()),
            Condition::IfMatch(_) => Err(Refusal::PreconditionFailed),
        }
    }

    /// Writes an object. The caller holds the lock of all buckets, so that the check and the write are a single step.
    pub(super) fn put(&mut self, key: String, object: Object, condition: &Condition) -> Result<(), Refusal> {
        self.check(&key, condition)?;
        self.objects.insert(key, object);
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(super) struct Buckets(BTreeMap<String, Bucket>);

impl Buckets {
    /// Creates a bucket if it does not exist.
    pub(super) fn create(&mut self, name: &str) {
        self.0.entry(name.to_owned()).or_default();
    }

    pub(super) fn get(&self, name: &str) -> Result<&Bucket, Refusal> {
        self.0.get(name).ok_or(Refusal::NoSuchBucket)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Result<&mut Bucket, Refusal> {
        self.0.get_mut(name).ok_or(Refusal::NoSuchBucket)
    }
}
