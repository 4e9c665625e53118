//! A checkpoint in several files. Protocol: "Multi-part checkpoint", "Problems with multi-part checkpoints".
//!
//! - "Multi-part checkpoints MUST be clustered by spark-style hash partitioning": the part of an action is the hash of
//!   its path, and of the id of its deletion vector if the table has the feature, as Spark computes it. Two writers of
//!   the same parts then write the same actions to the same part.
//! - All parts are open at once, so that the actions are read only once.
//! - Tables with the feature `v2Checkpoint` must not have them.

use std::num::NonZeroU32;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, StringArray, StructArray};
use arrow::compute::filter;
use arrow::datatypes::{Int32Type, Schema};

use super::action_file::{ActionFile, ActionRows};
use super::file_actions::FileActions;
use super::gone::take_back_if_gone;
use super::has_v2_feature;
use super::table_actions::{rows, v1_actions, v1_fields};
use crate::error::{Error, Result};
use crate::log::LastCheckpoint;
use crate::log::replay::FileAction;
use crate::protocol::log_name::LogFileName;
use crate::protocol::{TableFeature, write_unique_id};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;

/// The seed of Spark's hash, and therefore the hash of NULL.
const SEED: i32 = 42;

/// Writes the checkpoint in `parts` files.
pub(super) fn write(
    snapshot: &Snapshot,
    actions: &FileActions,
    parts: NonZeroU32,
    environment: &Environment,
) -> Result<LastCheckpoint> {
    if has_v2_feature(snapshot) {
        return Err(Error::invalid_argument(
            "the table feature 'v2Checkpoint' forbids multi-part checkpoints",
        ));
    }
    let schema = Arc::new(Schema::new([v1_fields(), actions.fields().to_vec()].concat()));
    let table = rows(&v1_actions(snapshot, environment.now_ms())?, &schema)?;
    let path =
        |part| LogFileName::CheckpointPart { version: snapshot.version(), part, parts: parts.get() }.path();
    let paths: Vec<String> = (1..=parts.get()).map(path).collect();
    let open = |path: &String| {
        ActionFile::new(snapshot.storage().replace_file(path)?, path.clone(), Arc::clone(&schema))
    };
    let mut files = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
    let keys = Keys {
        parts,
        with_vectors: snapshot.protocol().reader_features().contains(&TableFeature::DeletionVectors),
    };
    if let Some(file) = files.get_mut(keys.part_of(SEED)) {
        file.write_group(&table)?;
    }
    let mut adds = 0;
    for rows in actions.all(snapshot)? {
        let rows = rows?;
        adds += if rows.kind == FileAction::Add { rows.len() } else { 0 };
        let parts = keys.parts_of(&rows.column)?;
        for (index, file) in files.iter_mut().enumerate() {
            let own: BooleanArray = parts.iter().map(|part| Some(*part == index)).collect();
            if own.true_count() > 0 {
                let column = filter(&rows.column, &own).map_err(|error| unfit().with_source(error))?;
                let column = column.as_struct_opt().ok_or_else(unfit)?.clone();
                file.write_actions(ActionRows { kind: rows.kind, column })?;
            }
        }
    }
    snapshot.check_still_there()?;
    let (mut size, mut bytes) = (0, 0);
    for file in files {
        let written = file.finish()?;
        size += written.rows;
        bytes += written.bytes;
    }
    take_back_if_gone(snapshot, &paths)?;
    Ok(LastCheckpoint {
        version: snapshot.version(),
        size: i64::try_from(size).unwrap_or(i64::MAX),
        parts: Some(parts.get()),
        size_in_bytes: i64::try_from(bytes).ok(),
        num_of_add_files: i64::try_from(adds).ok(),
        ..LastCheckpoint::default()
    })
}

/// How actions are distributed.
struct Keys {
    parts: NonZeroU32,
    with_vectors: bool,
}

impl Keys {
    /// Returns the index of the part for actions with this hash.
    fn part_of(&self, hash: i32) -> usize {
        usize::try_from(i64::from(hash).rem_euclid(self.parts.get().into())).unwrap_or_default()
    }

    /// Returns the index of the part of each action.
    fn parts_of(&self, actions: &StructArray) -> Result<Vec<usize>> {
        let paths: &StringArray =
            actions.column_by_name("path").and_then(|column| column.as_string_opt()).ok_or_else(unfit)?;
        let vectors = actions.column_by_name("deletionVector").and_then(|column| column.as_struct_opt());
        let vectors = vectors.filter(|vectors| self.with_vectors && vectors.null_count() < vectors.len());
        let part = |row: usize| {
            let hash = spark_hash(paths.value(row).as_bytes(), SEED);
            let id = vectors.filter(|vectors| vectors.is_valid(row)).map(|vectors| unique_id(vectors, row));
            Ok(self.part_of(id.transpose()?.map_or(hash, |id| spark_hash(id.as_bytes(), hash))))
        };
        (0..paths.len()).map(part).collect()
    }
}

/// Returns the unique id of a deletion vector. Protocol: "Derived Fields".
fn unique_id(vectors: &StructArray, row: usize) -> Result<String> {
    let text = |name: &str| {
        let column: Option<&StringArray> =
            vectors.column_by_name(name).and_then(|column| column.as_string_opt());
        column.map(|column| column.value(row)).ok_or_else(unfit)
    };
    let offsets = vectors.column_by_name("offset").and_then(|column| column.as_primitive_opt::<Int32Type>());
    let offset = offsets.filter(|offsets| offsets.is_valid(row)).map(|offsets| offsets.value(row));
    let mut id = String::new();
    write_unique_id(&mut id, text("storageType")?, text("pathOrInlineDv")?, offset);
    Ok(id)
}

fn unfit() -> Error {
    Error::corrupt_log("file actions cannot be distributed to the parts of a checkpoint")
}

/// Returns Spark's hash of a string: Murmur3 for 32 bits, but with each of the last bytes mixed in as a number of its
/// own.
fn spark_hash(bytes: &[u8], seed: i32) -> i32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let words = words.iter().map(|word| i32::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| i32::from(byte.cast_signed()));
    let hash = words.chain(rest).fold(seed, |hash, word| {
        let word = word.wrapping_mul(0xcc9e_2d51_u32.cast_signed()).rotate_left(15);
        let mixed = (hash ^ word.wrapping_mul(0x1b87_3593)).rotate_left(13);
        mixed.wrapping_mul(5).wrapping_add(0xe654_6b64_u32.cast_signed())
    });
    let mut hash = hash.cast_unsigned() ^ bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    (hash ^ (hash >> 16)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers come from `hash` in Spark SQL.
    #[test]
    fn hashes_are_those_of_spark() {
        for (text, expected) in [("", 142_593_372), ("a", 1_485_273_170)] {
            assert_eq!(spark_hash(text.as_bytes(), SEED), expected, "{text}");
        }
    }
}
