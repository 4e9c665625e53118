//! Writes deletion vectors to a file. (PROTOCOL, "Deletion Vector File Storage Format"; see [`super::read`] for the
//! format.)

use std::io::Write;

use flate2::Crc;
use uuid::Uuid;

use super::read::VERSION;
use super::{DeletionVector, blob, z85};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{DeletionVectorDescriptor, DeletionVectorStorage};
use crate::storage::Storage;

/// Returns the path of the file of deletion vectors with the id `id`.
pub(crate) fn vector_file(id: Uuid) -> String {
    format!("deletion_vector_{}.bin", id.hyphenated())
}

/// Returns the descriptor of `vector` in a copy of its file. The copy is in another table and has the name that
/// [`vector_file`] returns for `id`.
pub(crate) fn relocated_vector(vector: &DeletionVectorDescriptor, id: Uuid) -> DeletionVectorDescriptor {
    DeletionVectorDescriptor {
        storage_type: DeletionVectorStorage::UuidRelativePath,
        path_or_inline_dv: z85::encode(id.as_bytes()),
        ..vector.clone()
    }
}

/// Writes `vectors` to the new file that [`vector_file`] names, and returns one descriptor per vector. When this
/// function returns, the file is durable.
///
/// # Errors
/// `InvalidArgument` if the vectors need more than 2 GiB; also errors from the store.
pub(crate) fn write_vectors(
    storage: &Storage,
    id: Uuid,
    vectors: &[DeletionVector],
) -> Result<Vec<DeletionVectorDescriptor>> {
    let path = vector_file(id);
    let mut bytes = vec![VERSION];
    let mut descriptors = Vec::with_capacity(vectors.len());
    for vector in vectors {
        let blob = blob::encode(vector.bitmap());
        let too_large = || Error::invalid_argument("the deletion vectors of one commit need more than 2 GiB");
        let offset = i32::try_from(bytes.len()).map_err(|_| too_large())?;
        let size = i32::try_from(blob.len()).map_err(|_| too_large())?;
        let mut crc = Crc::new();
        crc.update(&blob);
        bytes.extend(size.to_be_bytes());
        bytes.extend(&blob);
        bytes.extend(crc.sum().to_be_bytes());
        descriptors.push(DeletionVectorDescriptor {
            storage_type: DeletionVectorStorage::UuidRelativePath,
            path_or_inline_dv: z85::encode(id.as_bytes()),
            offset: Some(offset),
            size_in_bytes: size,
            cardinality: i64::try_from(vector.cardinality()).map_err(|_| too_large())?,
        });
    }
    let mut file = storage.create_file(&path)?;
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Unavailable, "the deletion vectors could not be written")
            .at_path(&path)
            .in_table(storage.url())
            .with_source(error)
    };
    file.write_all(&bytes).map_err(failed)?;
    file.finish()?;
    Ok(descriptors)
}
