//! The location of a deletion vector, as its descriptor gives it. (PROTOCOL, "Deletion Vector Descriptor Schema",
//! "Derived Fields".)

use uuid::Uuid;

use super::{vector_file, z85};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{DeletionVectorDescriptor, DeletionVectorStorage, LogPath, PathResolver, path};
use crate::storage::MISSING_FILE_HINT;

/// The length of a UUID in Z85, in characters.
const UUID_CHARACTERS: usize = 20;

/// The location of a deletion vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorPlace {
    /// In the log itself, as bytes in the "Deletion Vector Format".
    Inline(Vec<u8>),
    /// In a file of vectors.
    File {
        /// The file. [`VectorPlace::of`] has checked that the table may refer to it.
        path: LogPath,
        /// The offset in the file at which the vector's size is stored, followed by the vector.
        offset: u64,
        /// The size of the vector in bytes, according to the descriptor.
        size: usize,
    },
}

impl VectorPlace {
    /// Returns the location of the vector that `descriptor` describes, without reading anything.
    ///
    /// # Errors
    /// `CorruptLog` for a descriptor that the protocol does not allow; `Unsupported` for a file outside the roots that
    /// the user has allowed.
    pub fn of(descriptor: &DeletionVectorDescriptor, resolver: &PathResolver) -> Result<Self> {
        find(descriptor, resolver).map_err(|error| unreadable(error, descriptor.unique_id()))
    }
}

/// Returns the file of a vector, whether or not the table may refer to it; `None` if the vector is inline.
///
/// # Errors
/// `CorruptLog` for a descriptor that lacks the name of a file.
pub(crate) fn vector_path(
    descriptor: &DeletionVectorDescriptor,
    resolver: &PathResolver,
) -> Result<Option<LogPath>> {
    let text = descriptor.path_or_inline_dv.as_str();
    let path = match descriptor.storage_type {
        DeletionVectorStorage::Inline => return Ok(None),
        DeletionVectorStorage::AbsolutePath => resolver.parse(text),
        DeletionVectorStorage::UuidRelativePath => uuid_path(text).and_then(|path| resolver.parse(&path)),
    };
    path.map(Some).map_err(|error| unreadable(error, descriptor.unique_id()))
}

/// Returns the error for a vector that cannot be read because of `error`. Its message contains the vector's `name`.
pub(super) fn unreadable(error: Error, name: impl std::fmt::Display) -> Error {
    let hint = match error.kind() {
        ErrorKind::FileNotFound => Some(MISSING_FILE_HINT),
        ErrorKind::CorruptData | ErrorKind::CorruptLog => {
            Some("restore the vector's file, or read a version before it was written")
        }
        _ => None,
    };
    let outer = Error::new(error.kind(), format!("the deletion vector {name} cannot be read"));
    match hint.filter(|_| error.hint().is_none()) {
        Some(hint) => outer.with_hint(hint).with_source(error),
        None => outer.with_source(error),
    }
}

fn find(descriptor: &DeletionVectorDescriptor, resolver: &PathResolver) -> Result<VectorPlace> {
    let size = usize::try_from(descriptor.size_in_bytes).map_err(|_| {
        Error::corrupt_log(format!("the deletion vector has an invalid size: {}", descriptor.size_in_bytes))
    })?;
    let text = descriptor.path_or_inline_dv.as_str();
    let path = match descriptor.storage_type {
        DeletionVectorStorage::Inline => return inline(descriptor, text, size).map(VectorPlace::Inline),
        DeletionVectorStorage::AbsolutePath => resolver.resolve(text)?,
        DeletionVectorStorage::UuidRelativePath => resolver.resolve(&uuid_path(text)?)?,
    };
    let wrong = |what: &str| Error::corrupt_log(format!("the deletion vector in the file {path} {what}"));
    let offset = descriptor.offset.ok_or_else(|| wrong("has no offset"))?;
    // The first byte of the file holds the version of the file format.
    let valid = u64::try_from(offset).ok().filter(|offset| *offset > 0);
    let offset = valid.ok_or_else(|| wrong(&format!("has the invalid offset {offset}")))?;
    Ok(VectorPlace::File { path, offset, size })
}

fn inline(descriptor: &DeletionVectorDescriptor, text: &str, size: usize) -> Result<Vec<u8>> {
    if descriptor.offset.is_some() {
        return Err(Error::corrupt_log("the inline deletion vector has an offset"));
    }
    let mut bytes = z85::decode(text)?;
    // Z85 encodes groups of four bytes; the last group may be padded.
    if bytes.len() < size || bytes.len() - size > 3 {
        return Err(Error::corrupt_log(format!(
            "the inline deletion vector has {} bytes, but its descriptor says {size}",
            bytes.len()
        )));
    }
    bytes.truncate(size);
    Ok(bytes)
}

/// Returns the path of the file whose UUID `text` encodes. The path is relative to the table and percent-encoded, like
/// all paths in the log.
fn uuid_path(text: &str) -> Result<String> {
    let no_uuid = || Error::corrupt_log("the file name of the deletion vector is not an encoded UUID");
    let (prefix, uuid) = text
        .split_at_checked(text.len().checked_sub(UUID_CHARACTERS).ok_or_else(no_uuid)?)
        .ok_or_else(no_uuid)?;
    let uuid: [u8; 16] = z85::decode(uuid)?.try_into().map_err(|_| no_uuid())?;
    let name = vector_file(Uuid::from_bytes(uuid));
    // The prefix in the descriptor is not percent-encoded, but the whole path is percent-decoded later. So the prefix
    // is encoded here.
    Ok(if prefix.is_empty() { name } else { format!("{}/{name}", path::encode(prefix)) })
}
