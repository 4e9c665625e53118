//! Records in the log where the rows of a rewritten file are now, for concurrent transactions that commit later.
//!
//! A transaction that deletes rows by deletion vectors identifies them by file and position. If an OPTIMIZE moves the
//! rows and commits first, the transaction must find them in the new files, or fail. For this, the `remove` action of
//! an old file has a tag:
//!
//! ```text
//!   "tags": {"deltalog.moved": "{\"parts\":[{\"path\":\"new.parquet\",\"start\":100,\"rows\":50}]}"}
//!
//!   old file    0 1 x 3      x: deleted when it was read; `deletionVector` is the vector
//!   its rows    0 1   2      in this order in one new file, or in the next ones: `start` is a position there
//! ```
//!
//! - Tags are "metadata about this logical file" (protocol, "Add File and Remove File"). Writers that do not know this
//!   tag treat the removal as a conflict.
//! - The tag is only written for rows whose order did not change.

use std::collections::BTreeMap;

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::protocol::{DeletionVectorDescriptor, Tags};

/// The name of the tag in a `remove` action.
const TAG: &str = "deltalog.moved";

/// Describes where the rows of an old file are now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RowMove {
    /// The deletion vector that the old file had when it was read. Rows in this vector were not copied to the new
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_vector: Option<DeletionVectorDescriptor>,
    /// The places of the rows that were copied, in their order in the old file.
    pub(crate) parts: Vec<MovedPart>,
}

/// Successive rows of an old file that are together in one new file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MovedPart {
    /// The path of the new file, as in its `add` action.
    pub(crate) path: String,
    /// The position of the first moved row in the new file.
    pub(crate) start: u64,
    /// The number of rows.
    pub(crate) rows: u64,
}

impl RowMove {
    /// Describes where the rows of an old file are, except those that `deletion_vector` has deleted. The rows of
    /// several old files are stored one after another in the new `files`, which are given as pairs of a path and a
    /// number of rows. `rows` is the number of rows copied from this old file; `start` is the number of rows copied
    /// before them.
    pub(crate) fn new<'f>(
        deletion_vector: Option<DeletionVectorDescriptor>,
        start: u64,
        rows: u64,
        files: impl IntoIterator<Item = (&'f str, u64)>,
    ) -> Self {
        let (mut parts, mut first, end) = (Vec::new(), 0, start + rows);
        for (path, rows) in files {
            let (from, to) = (start.max(first), end.min(first + rows));
            if from < to {
                parts.push(MovedPart { path: path.to_owned(), start: from - first, rows: to - from });
            }
            first += rows;
        }
        Self { deletion_vector, parts }
    }

    /// Returns `tags` with this tag added.
    ///
    /// # Errors
    /// `InvalidArgument` if it cannot be encoded.
    pub(crate) fn added_to(&self, tags: Option<&Tags>) -> Result<Tags> {
        let mut tags = tags.cloned().unwrap_or_default();
        let text = serde_json::to_string(self).map_err(|error| {
            Error::invalid_argument("the position of moved rows cannot be encoded as JSON").with_source(error)
        })?;
        tags.insert(TAG.to_owned(), Some(text));
        Ok(tags)
    }

    /// Returns `tags` without this tag, for a `remove` action whose rows are not where the tag says.
    pub(crate) fn without(tags: Option<&Tags>) -> Option<Tags> {
        let mut tags = tags?.clone();
        tags.remove(TAG);
        Some(tags)
    }

    /// Parses `tags`. Returns `None` if they do not record where the rows are, or if the record is not understood.
    pub(crate) fn of(tags: Option<&Tags>) -> Option<Self> {
        serde_json::from_str(tags?.get(TAG)?.as_deref()?).ok()
    }

    /// Finds `rows` of the old file in the new files. Returns their positions in each new file, by path, or `None` if
    /// one of the rows is in no new file. `deleted` are the rows of [`RowMove::deletion_vector`].
    pub(crate) fn positions(
        &self,
        rows: &RoaringTreemap,
        deleted: &RoaringTreemap,
    ) -> Option<BTreeMap<&str, RoaringTreemap>> {
        let mut found: BTreeMap<&str, RoaringTreemap> = BTreeMap::new();
        for row in rows {
            if deleted.contains(row) {
                return None;
            }
            let mut at = row.checked_sub(deleted.rank(row))?;
            let part = self.parts.iter().find(|part| match at.checked_sub(part.rows) {
                None => true,
                Some(rest) => {
                    at = rest;
                    false
                }
            })?;
            found.entry(&part.path).or_default().insert(part.start.checked_add(at)?);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn part(path: &str, start: u64, rows: u64) -> MovedPart {
        MovedPart { path: path.to_owned(), start, rows }
    }

    #[test]
    fn the_tag_is_kept_beside_other_tags() {
        let moved = RowMove { deletion_vector: None, parts: vec![part("new", 7, 3)] };
        let others = Tags::from([("a".to_owned(), Some("b".to_owned()))]);
        let tags = moved.added_to(Some(&others)).unwrap();
        assert_eq!(tags["a"].as_deref(), Some("b"));
        assert_eq!(tags[TAG].as_deref(), Some(r#"{"parts":[{"path":"new","start":7,"rows":3}]}"#));
        assert_eq!(RowMove::of(Some(&tags)), Some(moved));
        assert_eq!(RowMove::without(Some(&tags)), Some(others));
        let unknown = [r#"{"into":"new"}"#, r#"{"parts":[],"order":"reversed"}"#];
        for text in [None, Some("".to_owned())].into_iter().chain(unknown.map(|text| Some(text.to_owned()))) {
            assert_eq!(RowMove::of(Some(&Tags::from([(TAG.to_owned(), text)]))), None);
        }
        assert_eq!(RowMove::of(None), None);
    }

    #[test]
    fn rows_continue_in_the_next_file() {
        let parts = |start, rows| RowMove::new(None, start, rows, [("a", 10), ("b", 5), ("c", 10)]).parts;
        assert_eq!(parts(0, 4), [part("a", 0, 4)]);
        assert_eq!(parts(4, 6), [part("a", 4, 6)]);
        assert_eq!(parts(8, 10), [part("a", 8, 2), part("b", 0, 5), part("c", 0, 3)]);
        assert_eq!(parts(10, 5), [part("b", 0, 5)]);
        assert_eq!(parts(20, 0), []);
    }

    proptest! {
        /// A row is found at the position that it has in a copy of the file without the deleted rows.
        #[test]
        fn positions_match_a_copy_without_deleted_rows(
            rows in 1..200_u64,
            deleted in prop::collection::btree_set(0..200_u64, 0..100),
            asked in prop::collection::btree_set(0..200_u64, 0..20),
            start in 0..1_000_u64,
            cuts in prop::collection::btree_set(0..200_u64, 0..3),
        ) {
            let live: Vec<u64> = (0..rows).filter(|row| !deleted.contains(row)).collect();
            // The first part is at the end of a file. Each of the other parts fills a file.
            let bounds: Vec<u64> = cuts.into_iter().chain([live.len() as u64])
                .map(|cut| cut.min(live.len() as u64)).collect();
            let (mut parts, mut copy, mut last) = (Vec::new(), BTreeMap::new(), 0);
            for (number, bound) in bounds.into_iter().enumerate() {
                let first = if number == 0 { start } else { 0 };
                parts.push(part(&number.to_string(), first, bound - last));
                for at in last..bound {
                    copy.insert(live[at as usize], (number.to_string(), first + at - last));
                }
                last = bound;
            }
            let moved = RowMove { deletion_vector: None, parts };
            let of = |set: &BTreeSet<u64>| set.iter().copied().collect::<RoaringTreemap>();
            let expected: Option<BTreeSet<(String, u64)>> =
                asked.iter().map(|row| copy.get(row).cloned()).collect();
            let deleted = deleted.into_iter().filter(|row| *row < rows).collect();
            let found = moved.positions(&of(&asked), &deleted).map(|found| {
                found.into_iter()
                    .flat_map(|(path, rows)| rows.into_iter().map(|row| (path.to_owned(), row)).collect::<Vec<_>>())
                    .collect::<BTreeSet<_>>()
            });
            prop_assert_eq!(found, expected);
        }
    }
}
