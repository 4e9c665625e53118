//! Where a descriptor says that its vector is. (PROTOCOL, "Deletion Vector Descriptor Schema", "Derived Fields".)

use uuid::Uuid;

use super::z85;
use crate::error::{Error, Result};
use crate::protocol::{DeletionVectorDescriptor, DeletionVectorStorage, LogPath, PathResolver, path};

/// Characters of a UUID in Z85.
const UUID_CHARACTERS: usize = 20;

/// Where a vector is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// The bytes themselves.
    Inline(Vec<u8>),
    /// A file, where in it the vector begins, and its size.
    File(LogPath, u64, usize),
}

/// Finds the vector of `descriptor`.
///
/// # Errors
/// `CorruptLog` for a descriptor that the protocol does not allow, `Unsupported` for a file outside of the roots that the user allowed.
pub(super) fn find(descriptor: &DeletionVectorDescriptor, resolver: &PathResolver) -> Result<Place> {
    let size = usize::try_from(descriptor.size_in_bytes)
        .map_err(|_| Error::corrupt_log(format!("a deletion vector of {} bytes", descriptor.size_in_bytes)))?;
    let text = descriptor.path_or_inline_dv.as_str();
    let path = match descriptor.storage_type {
        DeletionVectorStorage::Inline => return inline(descriptor, text, size).map(Place::Inline),
        DeletionVectorStorage::AbsolutePath => resolver.resolve(text)?,
        DeletionVectorStorage::UuidRelativePath => resolver.resolve(&uuid_path(text)?)?,
    };
    let offset = descriptor.offset.ok_or_else(|| Error::corrupt_log("a deletion vector in a file without an offset"))?;
    let offset = u64::try_from(offset).map_err(|_| Error::corrupt_log(format!("a deletion vector at the offset {offset}")))?;
    Ok(Place::File(path, offset, size))
}

fn inline(descriptor: &DeletionVectorDescriptor, text: &str, size: usize) -> Result<Vec<u8>> {
    if descriptor.offset.is_some() {
        return Err(Error::corrupt_log("a deletion vector within the log with an offset"));
    }
    let mut bytes = z85::decode(text)?;
    // Z85 has bytes by fours; what is missing to them is filled up.
    if bytes.len() < size || bytes.len() - size > 3 {
        return Err(Error::corrupt_log(format!("a deletion vector of {} bytes that should have {size}", bytes.len())));
    }
    bytes.truncate(size);
    Ok(bytes)
}

/// The path, relative to the table and encoded as the log has it, of the file that is named after a UUID.
fn uuid_path(text: &str) -> Result<String> {
    let no_uuid = || Error::corrupt_log("a deletion vector's file is not named after a UUID");
    let (prefix, uuid) = text.split_at_checked(text.len().checked_sub(UUID_CHARACTERS).ok_or_else(no_uuid)?).ok_or_else(no_uuid)?;
    let uuid: [u8; 16] = z85::decode(uuid)?.try_into().map_err(|_| no_uuid())?;
    let name = format!("deletion_vector_{}.bin", Uuid::from_bytes(uuid).hyphenated());
    // The prefix is not encoded, and is decoded as part of the path.
    Ok(if prefix.is_empty() { name } else { format!("{}/{name}", path::encode(prefix)) })
}
