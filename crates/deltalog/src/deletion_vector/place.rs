//! Where a descriptor says that its vector is. (PROTOCOL, "Deletion Vector Descriptor Schema", "Derived
//! Fields".)

use uuid::Uuid;

use super::z85;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{DeletionVectorDescriptor, DeletionVectorStorage, LogPath, PathResolver, path};

/// Characters of a UUID in Z85.
const UUID_CHARACTERS: usize = 20;

/// Where a vector is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorPlace {
    /// The bytes themselves, as "Deletion Vector Format" has them.
    Inline(Vec<u8>),
    /// In a file of vectors.
    File {
        /// The file, which is one that the table may name.
        path: LogPath,
        /// Where in it the vector begins, with its size.
        offset: u64,
        /// The size that is to stand there.
        size: usize,
    },
}

impl VectorPlace {
    /// Where `descriptor` says that its vector is. Nothing is read.
    ///
    /// # Errors
    /// `CorruptLog` for a descriptor that the protocol does not allow, `Unsupported` for a file outside of
    /// the roots that the user allowed.
    pub fn of(descriptor: &DeletionVectorDescriptor, resolver: &PathResolver) -> Result<Self> {
        find(descriptor, resolver).map_err(|error| unreadable(error, descriptor.unique_id()))
    }
}

/// What is said of a vector that cannot be read; names it.
pub(super) fn unreadable(error: Error, name: impl std::fmt::Display) -> Error {
    let hint = match error.kind() {
        ErrorKind::FileNotFound => Some(
            "the table's log names the vector, but its file is gone: vacuumed, if this is an old version, else deleted by hand; read a newer version, or restore the file",
        ),
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
        Error::corrupt_log(format!("a deletion vector of {} bytes", descriptor.size_in_bytes))
    })?;
    let text = descriptor.path_or_inline_dv.as_str();
    let path = match descriptor.storage_type {
        DeletionVectorStorage::Inline => return inline(descriptor, text, size).map(VectorPlace::Inline),
        DeletionVectorStorage::AbsolutePath => resolver.resolve(text)?,
        DeletionVectorStorage::UuidRelativePath => resolver.resolve(&uuid_path(text)?)?,
    };
    let wrong = |what: &str| Error::corrupt_log(format!("a deletion vector in the file {path} {what}"));
    let offset = descriptor.offset.ok_or_else(|| wrong("without an offset"))?;
    // At 0 stands the version of the file's format.
    let begins = u64::try_from(offset).ok().filter(|offset| *offset > 0);
    let offset = begins.ok_or_else(|| wrong(&format!("at the offset {offset}")))?;
    Ok(VectorPlace::File { path, offset, size })
}

fn inline(descriptor: &DeletionVectorDescriptor, text: &str, size: usize) -> Result<Vec<u8>> {
    if descriptor.offset.is_some() {
        return Err(Error::corrupt_log("a deletion vector within the log with an offset"));
    }
    let mut bytes = z85::decode(text)?;
    // Z85 has bytes by fours; what is missing to them is filled up.
    if bytes.len() < size || bytes.len() - size > 3 {
        return Err(Error::corrupt_log(format!(
            "a deletion vector of {} bytes that should have {size}",
            bytes.len()
        )));
    }
    bytes.truncate(size);
    Ok(bytes)
}

/// The path, relative to the table and encoded as the log has it, of the file that is named after a UUID.
fn uuid_path(text: &str) -> Result<String> {
    let no_uuid = || Error::corrupt_log("a deletion vector's file is not named after a UUID");
    let (prefix, uuid) = text
        .split_at_checked(text.len().checked_sub(UUID_CHARACTERS).ok_or_else(no_uuid)?)
        .ok_or_else(no_uuid)?;
    let uuid: [u8; 16] = z85::decode(uuid)?.try_into().map_err(|_| no_uuid())?;
    let name = format!("deletion_vector_{}.bin", Uuid::from_bytes(uuid).hyphenated());
    // The prefix is not encoded, and is decoded as part of the path.
    Ok(if prefix.is_empty() { name } else { format!("{}/{name}", path::encode(prefix)) })
}
