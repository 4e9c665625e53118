//! The key of a logical file: its resolved path and the id of its deletion vector. Protocol: "Action Reconciliation".

use arrow::array::{Array, AsArray, RecordBatch, StringArray, StructArray};
use arrow::datatypes::Int32Type;

use crate::error::{Error, Result};
use crate::protocol::{LogPath, PathResolver};

/// Reads the keys of a batch of file actions in the form of the log.
pub(super) struct Keys<'a> {
    resolver: &'a PathResolver,
    paths: &'a StringArray,
    deletion_vectors: Option<DeletionVectorIds<'a>>,
}

struct DeletionVectorIds<'a> {
    whole: &'a StructArray,
    storage_type: &'a StringArray,
    path_or_inline_dv: &'a StringArray,
    offset: &'a arrow::array::Int32Array,
}

impl<'a> Keys<'a> {
    pub(super) fn new(batch: &'a RecordBatch, resolver: &'a PathResolver) -> Result<Self> {
        let missing = |name: &str| Error::corrupt_log(format!("file actions have no column '{name}'"));
        let paths = batch.column_by_name("path").and_then(|column| column.as_string_opt()).ok_or_else(|| missing("path"))?;
        let whole = batch.column_by_name("deletionVector").and_then(|column| column.as_struct_opt());
        let deletion_vectors = match whole {
            Some(whole) if whole.null_count() < whole.len() => {
                let text =
                    |name: &str| whole.column_by_name(name).and_then(|column| column.as_string_opt::<i32>()).ok_or_else(|| missing(name));
                Some(DeletionVectorIds {
                    whole,
                    storage_type: text("storageType")?,
                    path_or_inline_dv: text("pathOrInlineDv")?,
                    offset: whole
                        .column_by_name("offset")
                        .and_then(|column| column.as_primitive_opt::<Int32Type>())
                        .ok_or_else(|| missing("offset"))?,
                })
            }
            _ => None,
        };
        Ok(Self { resolver, paths, deletion_vectors })
    }

    /// Writes the key of `row` into `key`, which is cleared first.
    pub(super) fn write(&self, row: usize, key: &mut String) -> Result<()> {
        key.clear();
        let path = self.paths.value(row);
        if is_plain(path) {
            key.push_str(path);
        } else {
            match self.resolver.parse(path)? {
                LogPath::Relative(path) => key.push_str(&path),
                LogPath::Absolute(path) => key.push_str(&path.to_uri()),
            }
        }
        if let Some(ids) = &self.deletion_vectors
            && ids.whole.is_valid(row)
        {
            // No path holds NUL, so no two keys run into each other.
            key.push('\0');
            key.push_str(ids.storage_type.value(row));
            key.push_str(ids.path_or_inline_dv.value(row));
            if ids.offset.is_valid(row) {
                key.push('@');
                key.push_str(&ids.offset.value(row).to_string());
            }
        }
        Ok(())
    }
}

/// Whether a path is relative and nothing in it needs decoding, which is nearly always so.
pub(crate) fn is_plain(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with('/')
        && !path.bytes().any(|byte| matches!(byte, b'%' | b':' | 0))
        && !has_dot_or_empty_segment(path)
}

fn has_dot_or_empty_segment(path: &str) -> bool {
    path.as_bytes().last() == Some(&b'/')
        || path.starts_with('.')
        || path.as_bytes().windows(2).any(|pair| pair[0] == b'/' && matches!(pair[1], b'.' | b'/'))
}
