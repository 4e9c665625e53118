//! An index of the names of a struct's fields. A table may have tens of thousands of columns, and each of them is
//! looked up.
//!
//! - The index is built from the fields when it is first needed. Comparisons of structs ignore it.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use super::StructField;

/// The maximum number of fields that are searched one by one, without an index.
const MOST_COMPARED: usize = 16;

/// The positions of fields by their names.
#[derive(Default)]
pub(super) struct NameIndex(OnceLock<Box<Positions>>);

/// The position of the first field with each name.
#[derive(Default)]
struct Positions {
    exact: HashMap<String, usize>,
    /// The position of the first field with each name in lower case.
    folded: HashMap<String, usize>,
}

impl NameIndex {
    /// Returns the position of the first field `name`, ignoring case.
    pub(super) fn find(&self, fields: &[StructField], name: &str) -> Option<usize> {
        let folded = name.to_lowercase();
        match fields.len() <= MOST_COMPARED {
            true => fields.iter().position(|field| field.name.to_lowercase() == folded),
            false => self.positions(fields).folded.get(&folded).copied(),
        }
    }

    /// Returns the position of the first field with exactly this name.
    pub(super) fn find_exact(&self, fields: &[StructField], name: &str) -> Option<usize> {
        match fields.len() <= MOST_COMPARED {
            true => fields.iter().position(|field| field.name == name),
            false => self.positions(fields).exact.get(name).copied(),
        }
    }

    fn positions(&self, fields: &[StructField]) -> &Positions {
        self.0.get_or_init(|| {
            let mut positions = Positions::default();
            for (at, field) in fields.iter().enumerate() {
                positions.exact.entry(field.name.clone()).or_insert(at);
                positions.folded.entry(field.name.to_lowercase()).or_insert(at);
            }
            Box::new(positions)
        })
    }
}

impl Clone for NameIndex {
    /// Returns an empty index for a copy of the fields, because the copy may be changed soon.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for NameIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for NameIndex {}

impl fmt::Debug for NameIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NameIndex")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{PrimitiveType, StructType};

    #[test]
    fn fields_are_found_in_small_and_large_structs() {
        for count in [3, 40] {
            let field = |at| StructField::new(format!("Field{at}"), PrimitiveType::Long, true);
            let fields = StructType::try_new((0..count).map(field).collect()).unwrap();
            for (name, index, exact) in [
                ("Field2", Some(2), Some(2)),
                ("fIELD2", Some(2), None),
                ("Field0", Some(0), Some(0)),
                ("Field40", None, None),
                ("", None, None),
            ] {
                assert_eq!(fields.index_of(name), index, "{name}");
                assert_eq!(fields.exact_index_of(name), exact, "{name}");
                // The result does not depend on earlier lookups, which may have built the index.
                assert_eq!(fields, fields.clone());
            }
        }
    }

    /// Physical names may differ only by case.
    #[test]
    fn names_that_differ_by_case_are_distinguished() {
        for more in [0, 40] {
            let names = ["a", "A"].into_iter().map(str::to_owned).chain((0..more).map(|at| format!("f{at}")));
            let fields: Vec<_> =
                names.map(|name| StructField::new(name, PrimitiveType::Long, true)).collect();
            let index = NameIndex::default();
            assert_eq!((index.find_exact(&fields, "a"), index.find_exact(&fields, "A")), (Some(0), Some(1)));
            assert_eq!((index.find(&fields, "a"), index.find(&fields, "A")), (Some(0), Some(0)));
        }
    }
}
