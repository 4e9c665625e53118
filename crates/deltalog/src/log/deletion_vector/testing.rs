//! Helpers that write deletion vectors for tests. (PROTOCOL, "Deletion Vector File Storage Format".)

use std::path::Path;

use flate2::Crc;
use roaring::RoaringTreemap;
use uuid::Uuid;

use crate::protocol::{DeletionVectorDescriptor, DeletionVectorStorage};

/// Returns the bytes of a file of deletion vectors, and the offset of each vector in it.
pub(crate) fn vector_file(vectors: &[Vec<u8>]) -> (Vec<u8>, Vec<i32>) {
    let (mut bytes, mut offsets) = (vec![1], Vec::new());
    for vector in vectors {
        offsets.push(bytes.len() as i32);
        let mut crc = Crc::new();
        crc.update(vector);
        bytes.extend((vector.len() as u32).to_be_bytes());
        bytes.extend(vector);
        bytes.extend(crc.sum().to_be_bytes());
    }
    (bytes, offsets)
}

/// Writes one vector per element of `rows` to a new file in `directory`, and returns their descriptors.
pub(crate) fn write_vectors<'a, R>(directory: &Path, rows: &'a [R]) -> Vec<DeletionVectorDescriptor>
where
    &'a R: IntoIterator<Item = &'a u64>,
{
    let mut cardinalities = Vec::new();
    let vector = |rows: &'a R| {
        let rows = RoaringTreemap::from_iter(rows);
        cardinalities.push(rows.len() as i64);
        let mut bytes = 1_681_511_377u32.to_le_bytes().to_vec();
        rows.serialize_into(&mut bytes).unwrap();
        bytes
    };
    let vectors: Vec<_> = rows.iter().map(vector).collect();
    let (bytes, offsets) = vector_file(&vectors);
    let path = directory.join(format!("deletion_vector_{}.bin", Uuid::new_v4()));
    std::fs::write(&path, bytes).unwrap();
    let url = url::Url::from_file_path(&path).unwrap().to_string();
    let descriptor = |((vector, offset), cardinality): ((&Vec<u8>, i32), i64)| DeletionVectorDescriptor {
        storage_type: DeletionVectorStorage::AbsolutePath,
        path_or_inline_dv: url.clone(),
        offset: Some(offset),
        size_in_bytes: vector.len() as i32,
        cardinality,
    };
    vectors.iter().zip(offsets).zip(cardinalities).map(descriptor).collect()
}
