//! Reads and writes the tags that say which cube a file belongs to. (Protocol: "Clustered Table".)
//!
//! - A cube is a set of files whose rows were ordered together, so that their bounds hardly overlap.
//! - The provider and the tags are the same as in the JVM implementation, so that both can continue each other's
//!   clustering: `clusteringProvider` is `liquid`, `ZCUBE_ID` is the id of the cube, `ZCUBE_ZORDER_BY` is a JSON list
//!   of the columns by their logical names, and `ZCUBE_ZORDER_CURVE` is the curve. The JVM implementation ignores the
//!   curve.
//! - In both implementations, a file that has the provider but not these tags does not belong to a cube.

use crate::expression::predicate::ColumnPath;
use crate::protocol::{Add, Tags};

/// The name of the clustering implementation, in `clusteringProvider`.
pub(super) const PROVIDER: &str = "liquid";

const ID: &str = "ZCUBE_ID";
const COLUMNS: &str = "ZCUBE_ZORDER_BY";
const CURVE: &str = "ZCUBE_ZORDER_CURVE";

/// A cube, as the tags of a file describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cube {
    pub(super) id: String,
    /// The columns by which the cube was ordered.
    pub(super) columns: Vec<ColumnPath>,
}

impl Cube {
    /// Returns the cube of a file; `None` if it belongs to no cube, or if its tags cannot be read.
    pub(super) fn of(add: &Add) -> Option<Self> {
        let tag = |name: &str| add.tags.as_ref()?.get(name)?.as_deref();
        let (id, columns) = (tag(ID)?, tag(COLUMNS)?);
        let columns: Vec<String> = serde_json::from_str(columns).ok()?;
        Some(Self {
            id: id.to_owned(),
            columns: columns.iter().map(|name| ColumnPath::parse(name)).collect(),
        })
    }

    /// Marks a new file as part of the cube.
    pub(super) fn mark(&self, add: &mut Add) {
        add.clustering_provider = Some(PROVIDER.to_owned());
        let tags = add.tags.get_or_insert_default();
        let tag = |name: &str, value: String| (name.to_owned(), Some(value));
        tags.extend([
            tag(ID, self.id.clone()),
            tag(COLUMNS, serde_json::Value::from(names(&self.columns)).to_string()),
            tag(CURVE, "hilbert".to_owned()),
        ]);
    }
}

/// Copies the clustering tags of `old` to `new`, which contains the same rows.
pub(super) fn keep(old: &Add, new: &mut Add) {
    new.clustering_provider.clone_from(&old.clustering_provider);
    let Some(tags) = &old.tags else { return };
    let kept: Tags = [ID, COLUMNS, CURVE]
        .iter()
        .filter_map(|name| tags.get(*name).map(|value| ((*name).to_owned(), value.clone())))
        .collect();
    if !kept.is_empty() {
        new.tags.get_or_insert_default().extend(kept);
    }
}

/// Returns the names of columns as Spark writes them: a part of a name is in backquotes unless it is a plain
/// identifier. The JVM implementation compares the names as strings.
pub(super) fn names(columns: &[ColumnPath]) -> Vec<String> {
    let quoted = |part: &String| {
        let is_plain = part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_plain { part.clone() } else { format!("`{}`", part.replace('`', "``")) }
    };
    columns.iter().map(|path| path.parts().iter().map(quoted).collect::<Vec<_>>().join(".")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cube(columns: &[&[&str]]) -> Cube {
        let columns = columns.iter().map(|parts| ColumnPath::new(parts.iter().copied())).collect();
        Cube { id: "c".to_owned(), columns }
    }

    #[test]
    fn the_cube_of_a_marked_file_is_read_back() {
        for columns in [&[&["a"][..]][..], &[&["s", "odd.na`me"], &["order"]], &[&["1a"], &["ü"]]] {
            let mut add = Add::default();
            assert_eq!(Cube::of(&add), None);
            cube(columns).mark(&mut add);
            assert_eq!(add.clustering_provider.as_deref(), Some("liquid"));
            assert_eq!(Cube::of(&add), Some(cube(columns)));
            let mut copy = Add::default();
            keep(&add, &mut copy);
            assert_eq!(copy, add);
        }
    }

    /// Spark's `quoteIfNeeded` does not put reserved words in backquotes.
    #[test]
    fn names_are_those_of_spark() {
        let columns = cube(&[&["order"], &["s", "a b"], &["x`y", "_1"]]).columns;
        assert_eq!(names(&columns), ["order", "s.`a b`", "`x``y`._1"]);
    }

    #[test]
    fn a_file_with_other_tags_has_no_cube() {
        let mut add = Add::default();
        cube(&[&["a"]]).mark(&mut add);
        for text in ["a", "[1]", "{}"] {
            let mut add = add.clone();
            add.tags.as_mut().unwrap().insert(COLUMNS.to_owned(), Some(text.to_owned()));
            assert_eq!(Cube::of(&add), None, "{text}");
        }
        add.tags.as_mut().unwrap().insert("other".to_owned(), Some("x".to_owned()));
        let mut copy = Add::default();
        keep(&add, &mut copy);
        assert_eq!(copy.tags.unwrap().len(), 3);
        assert_eq!(Cube::of(&Add::default()), None);
    }
}
