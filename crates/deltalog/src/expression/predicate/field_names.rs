//! An index of field names, for statements that refer to thousands of columns.

use arrow::datatypes::{DataType, FieldRef, Fields};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The positions of fields, by their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldNames {
    exact: HashMap<String, usize>,
    /// The positions of fields by name in lower case, in ascending order.
    folded: HashMap<String, Vec<usize>>,
    /// The length of the longest name in lower case, in bytes.
    longest: usize,
    /// For each field that is a struct, the index of its own fields. It is built when one of them is looked up.
    inside: HashMap<usize, OnceLock<Box<Self>>>,
}

impl FieldNames {
    pub(crate) fn new(fields: &[FieldRef]) -> Self {
        let mut names = Self::default();
        for (place, field) in fields.iter().enumerate() {
            names.exact.entry(field.name().clone()).or_insert(place);
            let folded = field.name().to_lowercase();
            names.longest = names.longest.max(folded.len());
            names.folded.entry(folded).or_default().push(place);
            if matches!(field.data_type(), DataType::Struct(_)) {
                names.inside.insert(place, OnceLock::new());
            }
        }
        names
    }

    /// Returns the position of the field `name`: the exact match, or else the only match that ignores case.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.exact(name).or_else(|| match self.similar(&name.to_lowercase()) {
            [only] => Some(*only),
            _ => None,
        })
    }

    /// Returns the position of the field with exactly this name.
    pub(crate) fn exact(&self, name: &str) -> Option<usize> {
        self.exact.get(name).copied()
    }

    /// Returns whether there is a field with this name, ignoring case.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.folded.contains_key(&name.to_lowercase())
    }

    /// Returns the index of the nested fields `children` of the field at position `place`.
    pub(crate) fn inside(&self, place: usize, children: &Fields) -> Option<&Self> {
        Some(self.inside.get(&place)?.get_or_init(|| Box::new(Self::new(children))))
    }

    /// Returns the path of the field that `text` refers to, ignoring case: either one of `fields` with that name, or
    /// a nested field with that path.
    pub(super) fn path_of(&self, text: &str, fields: &[FieldRef]) -> Option<Vec<String>> {
        let folded = text.to_lowercase();
        let name_at = |place: usize| fields.get(place).map(|field| field.name().clone());
        if let Some(place) = self.similar(&folded).first() {
            return Some(vec![name_at(*place)?]);
        }
        let dots = folded.match_indices('.').map(|(dot, _)| dot).take_while(|dot| *dot <= self.longest);
        dots.filter_map(|dot| folded.split_at_checked(dot)).find_map(|(outer, rest)| {
            let inner = rest.strip_prefix('.')?;
            self.similar(outer).iter().find_map(|place| {
                let DataType::Struct(children) = fields.get(*place)?.data_type() else { return None };
                let inner = self.inside(*place, children)?.path_of(inner, children)?;
                Some(std::iter::once(name_at(*place)?).chain(inner).collect())
            })
        })
    }

    fn similar(&self, folded: &str) -> &[usize] {
        self.folded.get(folded).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};
    use std::sync::Arc;

    #[test]
    fn an_exact_match_takes_precedence_over_one_that_ignores_case() {
        let fields = ["a", "B", "b", "Ç"].map(|name| Arc::new(Field::new(name, DataType::Null, true)));
        let names = FieldNames::new(&fields);
        let found = ["a", "A", "b", "B", "ç", "c"].map(|name| names.find(name));
        assert_eq!(found, [Some(0), Some(0), Some(2), Some(1), Some(3), None]);
        let fields = ["x", "X"].map(|name| Arc::new(Field::new(name, DataType::Null, true)));
        let names = FieldNames::new(&fields);
        assert_eq!((names.find("x"), names.exact("X"), names.exact("y")), (Some(0), Some(1), None));
        assert_eq!((names.has("X"), names.has("xx")), (true, false));
        // A third spelling matches neither of the two names exactly, so it is ambiguous.
        let fields = ["xy", "XY"].map(|name| Arc::new(Field::new(name, DataType::Null, true)));
        assert_eq!(FieldNames::new(&fields).find("Xy"), None);
    }
    #[test]
    fn a_string_may_be_the_path_of_a_field() {
        let field = |name: &str, of: DataType| Arc::new(Field::new(name, of, true));
        let of = |fields: Vec<FieldRef>| DataType::Struct(fields.into());
        let fields = [
            field("a.B", DataType::Null),
            field(
                "S",
                of(vec![field("x.y", of(vec![field("Z", DataType::Null)])), field("x", DataType::Null)]),
            ),
            field("s.x", of(vec![field("Q", DataType::Null)])),
        ];
        let names = FieldNames::new(&fields);
        for (text, path) in [
            ("A.b", Some(&["a.B"][..])),
            ("s.X", Some(&["s.x"][..])),
            ("S.x.Y.z", Some(&["S", "x.y", "Z"][..])),
            ("s.x.q", Some(&["s.x", "Q"][..])),
            ("s", Some(&["S"][..])),
            ("s.", None),
            (".s", None),
            ("a", None),
            ("s.x.y.z.w", None),
            ("", None),
        ] {
            let found = names.path_of(text, &fields);
            assert_eq!(
                found.as_deref(),
                path.map(|path| path.iter().map(|&part| part.to_owned()).collect::<Vec<_>>()).as_deref(),
                "{text}"
            );
        }
    }
}
