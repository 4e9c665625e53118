//! The key of a logical file: its resolved path and the id of its deletion vector. Protocol: "Action
//! Reconciliation".

use arrow::array::{Array, AsArray, Int32Array, RecordBatch, StringArray, StructArray};
use arrow::datatypes::Int32Type;

use crate::error::{Error, Result};
use crate::protocol::{DeletionVectorDescriptor, LogPath, PathResolver, write_unique_id};

/// The keys of a batch of file actions that has the log's columns.
#[derive(Debug)]
pub(super) struct Keys {
    paths: StringArray,
    /// Whether every path is plain, so that the path itself is the key.
    all_plain: bool,
    deletion_vectors: Option<DeletionVectorIds>,
}

#[derive(Debug)]
struct DeletionVectorIds {
    whole: StructArray,
    storage_type: StringArray,
    path_or_inline_dv: StringArray,
    offset: Int32Array,
}

impl Keys {
    pub(super) fn new(batch: &RecordBatch) -> Result<Self> {
        let missing = |name: &str| Error::corrupt_log(format!("file actions have no column '{name}'"));
        let paths = batch
            .column_by_name("path")
            .and_then(|column| column.as_string_opt())
            .ok_or_else(|| missing("path"))?;
        let whole = batch.column_by_name("deletionVector").and_then(|column| column.as_struct_opt());
        let deletion_vectors = match whole {
            Some(whole) if whole.null_count() < whole.len() => {
                let text = |name: &str| {
                    whole
                        .column_by_name(name)
                        .and_then(|column| column.as_string_opt::<i32>())
                        .ok_or_else(|| missing(name))
                };
                let offset =
                    whole.column_by_name("offset").and_then(|column| column.as_primitive_opt::<Int32Type>());
                Some(DeletionVectorIds {
                    whole: whole.clone(),
                    storage_type: text("storageType")?.clone(),
                    path_or_inline_dv: text("pathOrInlineDv")?.clone(),
                    offset: offset.ok_or_else(|| missing("offset"))?.clone(),
                })
            }
            _ => None,
        };
        Ok(Self { all_plain: are_plain(paths), paths: paths.clone(), deletion_vectors })
    }

    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns the key of `row`. If the key is more than the plain path, it is built in `scratch`.
    pub(super) fn key<'a>(
        &'a self,
        row: usize,
        resolver: &PathResolver,
        scratch: &'a mut String,
    ) -> Result<&'a str> {
        let path = self.paths.value(row);
        let ids = self.deletion_vectors.as_ref().filter(|ids| ids.whole.is_valid(row));
        let is_plain = self.all_plain || is_plain(path);
        if is_plain && ids.is_none() {
            return Ok(path);
        }
        scratch.clear();
        write_path(scratch, path, is_plain, resolver)?;
        if let Some(ids) = ids {
            let offset = ids.offset.is_valid(row).then(|| ids.offset.value(row));
            let (storage_type, place) = (ids.storage_type.value(row), ids.path_or_inline_dv.value(row));
            scratch.push(SEPARATOR);
            write_unique_id(scratch, storage_type, place, offset);
        }
        Ok(scratch)
    }

    /// Returns the resolved path of `row`, which is the key without the deletion vector.
    pub(super) fn path<'a>(
        &'a self,
        row: usize,
        resolver: &PathResolver,
        scratch: &'a mut String,
    ) -> Result<&'a str> {
        let key = self.key(row, resolver, scratch)?;
        Ok(key.split_once(SEPARATOR).map_or(key, |(path, _)| path))
    }
}

/// Separates a path from the id of a deletion vector. A path never contains a NUL character, so different keys cannot
/// collide.
const SEPARATOR: char = '\0';

/// Returns the key of a single file.
///
/// # Errors
/// `CorruptLog` for a path that the table must not refer to.
pub(crate) fn file_key(
    path: &str,
    vector: Option<&DeletionVectorDescriptor>,
    resolver: &PathResolver,
) -> Result<String> {
    let mut key = String::new();
    write_path(&mut key, path, is_plain(path), resolver)?;
    if let Some(vector) = vector {
        key.push(SEPARATOR);
        key.push_str(&vector.unique_id());
    }
    Ok(key)
}

fn write_path(key: &mut String, path: &str, is_plain: bool, resolver: &PathResolver) -> Result<()> {
    if is_plain {
        key.push_str(path);
        return Ok(());
    }
    match resolver.parse(path)? {
        LogPath::Relative(path) => key.push_str(&path),
        LogPath::Absolute(path) => key.push_str(&path.to_uri()),
    }
    Ok(())
}

/// Returns whether all paths are plain (see [`is_plain`]).
///
/// Checks the bytes of all paths at once, including the bytes on both sides of a boundary between two paths. If a
/// boundary looks like a special character sequence, the result is false, and the paths are decoded one by one, which
/// only takes longer.
pub(crate) fn are_plain(paths: &StringArray) -> bool {
    let offsets = paths.value_offsets();
    let (Some(start), Some(end)) = (offsets.first(), offsets.last()) else { return true };
    let bytes = usize::try_from(*start)
        .ok()
        .zip(usize::try_from(*end).ok())
        .and_then(|(start, end)| paths.value_data().get(start..end));
    let ends = |path: &str| !path.is_empty() && !path.starts_with(['/', '.']) && !path.ends_with('/');
    bytes.is_some_and(has_plain_bytes) && paths.iter().all(|path| path.is_some_and(ends))
}

/// Returns whether a path is relative and needs no decoding. This is true for nearly all paths.
pub(crate) fn is_plain(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with(['/', '.'])
        && !path.ends_with('/')
        && has_plain_bytes(path.as_bytes())
}

/// Returns whether the path has no `%`, `:` or NUL and no segments that are empty, `.` or `..`. The loop does not stop
/// early, so that the compiler can compare many bytes at once.
fn has_plain_bytes(bytes: &[u8]) -> bool {
    let special =
        bytes.iter().fold(false, |found, byte| found | (*byte == b'%') | (*byte == b':') | (*byte == 0));
    let next = bytes.get(1..).unwrap_or_default();
    let segment = bytes
        .iter()
        .zip(next)
        .fold(false, |found, (a, b)| found | ((*a == b'/') & ((*b == b'.') | (*b == b'/'))));
    !special && !segment
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Checking all paths together never accepts paths that are refused one by one.
        #[test]
        fn paths_are_all_plain_only_if_each_of_them_is(paths in proptest::collection::vec("[a./%:=]{0,4}", 0..6)) {
            let array = StringArray::from_iter_values(&paths);
            prop_assert!(!are_plain(&array) || paths.iter().all(|path| is_plain(path)));
            prop_assert_eq!(are_plain(&array.slice(0, 0)), true);
        }

        /// A plain path is its own key.
        #[test]
        fn plain_paths_resolve_to_themselves(path in "[ab./%:0-9=\0]{0,8}") {
            let resolver = PathResolver::new(&url::Url::parse("file:///t/").unwrap()).unwrap();
            if is_plain(&path) {
                prop_assert_eq!(resolver.parse(&path).unwrap(), LogPath::Relative(path));
            }
        }
    }
}
