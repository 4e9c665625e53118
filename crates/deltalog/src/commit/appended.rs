//! Finds the files with new rows among the files that a commit adds.
//!
//! A commit that deletes rows by a deletion vector adds the data file again, with the new vector. Such a file has no
//! new rows, so it does not conflict with a transaction that has read the rows that match a predicate.

use std::collections::HashMap;

use arrow::array::{BooleanArray, RecordBatch};

use crate::error::Result;
use crate::log::deletion_vector::DeletionVectors;
use crate::log::replay::{Commit, adds_of, filtered, removes_of};
use crate::protocol::{DeletionVectorDescriptor, PathResolver};

/// Returns the `add` actions of `commit`, without those that only delete rows from an existing file.
///
/// # Errors
/// `CorruptLog` for a path that the table must not refer to.
pub(super) fn appended(
    commit: &Commit,
    resolver: &PathResolver,
    vectors: &DeletionVectors,
) -> Result<RecordBatch> {
    if commit.adds.num_rows() == 0 || commit.removes.num_rows() == 0 {
        return Ok(commit.adds.clone());
    }
    let mut removed = HashMap::new();
    for remove in removes_of(&commit.removes)? {
        removed.insert(resolver.parse(&remove.path)?, remove.deletion_vector);
    }
    let mut has_new_rows = Vec::with_capacity(commit.adds.num_rows());
    for add in adds_of(&commit.adds)? {
        has_new_rows.push(match removed.get(&resolver.parse(&add.path)?) {
            None => true,
            Some(old) => {
                let grows = only_grows(old.as_ref(), add.deletion_vector.as_ref(), vectors);
                // The old vector may have been deleted, because no version that is kept needs it. In that case, assume
                // that the file has new rows.
                !grows.unwrap_or_else(|error| {
                    tracing::debug!(%error, file = add.path, "a deletion vector of another commit cannot be read");
                    false
                })
            }
        });
    }
    filtered(&commit.adds, &BooleanArray::from(has_new_rows))
}

/// Returns whether the deletion vector `new` contains all rows of `old`.
fn only_grows(
    old: Option<&DeletionVectorDescriptor>,
    new: Option<&DeletionVectorDescriptor>,
    vectors: &DeletionVectors,
) -> Result<bool> {
    match (old, new) {
        (None, _) => Ok(true),
        (Some(_), None) => Ok(false),
        (Some(old), Some(new)) => {
            let (old, new) = (vectors.read(old, None)?, vectors.read(new, None)?);
            Ok(old.bitmap().is_subset(new.bitmap()))
        }
    }
}
