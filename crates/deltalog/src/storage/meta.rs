//! The metadata of a file in a store.

use object_store::ObjectMeta;

use super::cache::{self, Listed};

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMeta {
    /// The decoded path relative to the listed directory.
    pub name: String,
    /// The size in bytes.
    pub size: u64,
    /// The modification time in milliseconds since the epoch.
    pub modified_ms: i64,
    /// A number that changes when the file is replaced. It is derived from the store's entity tag, or from the
    /// modification time of a local file in nanoseconds. `None` if neither is known.
    pub tag: Option<u64>,
}

impl FileMeta {
    pub(super) fn of_store(name: String, meta: &ObjectMeta) -> Self {
        Self {
            name,
            size: meta.size,
            modified_ms: meta.last_modified.timestamp_millis(),
            tag: meta.e_tag.as_deref().map(cache::tag),
        }
    }

    /// Returns the values by which the cache recognizes the file, or `None` if the file has no tag.
    pub(crate) fn listed(&self) -> Option<Listed> {
        self.tag.map(|tag| Listed { size: self.size, tag })
    }

    /// Returns whether `other`, a file with the same path, is still the same object, that is, whether the file was not
    /// replaced.
    pub(crate) fn is_same_object(&self, other: &Self) -> bool {
        self.size == other.size
            && match (self.tag, other.tag) {
                (Some(own), Some(other)) => own == other,
                _ => self.modified_ms == other.modified_ms,
            }
    }
}
