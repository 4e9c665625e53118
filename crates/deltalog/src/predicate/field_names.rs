//! An index of the names of fields: a statement may refer to each of many thousand columns.

use arrow::datatypes::FieldRef;
use std::collections::HashMap;

/// The places of fields, by their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldNames {
    exact: HashMap<String, usize>,
    /// By the name in lower case; `None` if several fields have it.
    folded: HashMap<String, Option<usize>>,
}

impl FieldNames {
    pub(crate) fn new(fields: &[FieldRef]) -> Self {
        let mut names = Self::default();
        for (place, field) in fields.iter().enumerate() {
            names.exact.entry(field.name().clone()).or_insert(place);
            let same = names.folded.entry(field.name().to_lowercase());
            same.and_modify(|place| *place = None).or_insert(Some(place));
        }
        names
    }

    /// Returns the place of the field `name`: the exact match, or else the only match that ignores case.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let exact = self.exact.get(name).copied();
        exact.or_else(|| self.folded.get(&name.to_lowercase()).copied().flatten())
    }

    /// Returns the place of the field with exactly this name.
    pub(crate) fn exact(&self, name: &str) -> Option<usize> {
        self.exact.get(name).copied()
    }

    /// Returns whether there is a field with the name in any case.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.folded.contains_key(&name.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};
    use std::sync::Arc;

    #[test]
    fn an_exact_match_goes_before_one_in_another_case() {
        let fields = ["a", "B", "b", "Ç"].map(|name| Arc::new(Field::new(name, DataType::Null, true)));
        let names = FieldNames::new(&fields);
        let found = ["a", "A", "b", "B", "ç", "c"].map(|name| names.find(name));
        assert_eq!(found, [Some(0), Some(0), Some(2), Some(1), Some(3), None]);
        let fields = ["x", "X"].map(|name| Arc::new(Field::new(name, DataType::Null, true)));
        let names = FieldNames::new(&fields);
        assert_eq!((names.find("x"), names.exact("X"), names.exact("y")), (Some(0), Some(1), None));
        assert_eq!((names.has("X"), names.has("xx")), (true, false));
        // Neither is meant by a third spelling.
        let fields = ["xy", "XY"].map(|name| Arc::new(Field::new(name, DataType::Null, true)));
        assert_eq!(FieldNames::new(&fields).find("Xy"), None);
    }
}
