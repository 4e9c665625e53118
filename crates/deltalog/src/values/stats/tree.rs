//! The statistics of one file as a tree of JSON values, which can be read, changed and written again. (PROTOCOL,
//! "Per-file Statistics".)
//!
//! - Values are kept as text, because numbers must not lose digits.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::collect::ColumnStats;
use super::origin::{MARK, RULES};
use crate::protocol::text::json_string;

/// The statistics of one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatsTree {
    rows: Option<i64>,
    is_tight: Option<bool>,
    min: Object,
    max: Object,
    nulls: Object,
    is_own: bool,
}

impl StatsTree {
    /// Creates the statistics of a file with this number of rows, without statistics of columns.
    pub(crate) fn of_rows(rows: i64) -> Self {
        Self { rows: Some(rows), ..Self::default() }
    }

    /// Parses statistics. Unknown fields are dropped. Returns `None` if the text is not a JSON object.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
        let object =
            |name: &str| fields.get(name).and_then(|json| Object::parse(json.get())).unwrap_or_default();
        let scalar = |name: &str| fields.get(name).map(|json| json.get());
        Some(Self {
            rows: scalar("numRecords").and_then(|json| json.parse().ok()),
            is_tight: scalar("tightBounds").and_then(|json| json.parse().ok()),
            min: object("minValues"),
            max: object("maxValues"),
            nulls: object("nullCount"),
            is_own: scalar(MARK).is_some_and(|json| json.parse() == Ok(RULES)),
        })
    }

    /// Returns the number of rows of the data file.
    pub(crate) fn rows(&self) -> Option<i64> {
        self.rows
    }

    /// Returns whether the statistics explicitly say that minima and maxima are values that occur in the file.
    pub(crate) fn says_tight(&self) -> bool {
        self.is_tight == Some(true)
    }

    /// Returns whether minima and maxima are values that occur in the file.
    pub(crate) fn is_tight(&self) -> bool {
        self.is_tight != Some(false)
    }

    /// Returns the number of NULLs of a column.
    pub(crate) fn null_count(&self, path: &[String]) -> Option<i64> {
        self.nulls.get(path)?.parse().ok()
    }

    /// Returns whether a column has a minimum and a maximum.
    pub(crate) fn has_bounds(&self, path: &[String]) -> bool {
        let is_known = |object: &Object| object.get(path).is_some_and(|json| json != "null");
        is_known(&self.min) && is_known(&self.max)
    }

    /// Returns whether the statistics of a column are incomplete: they lack the NULL count or, unless it
    /// `may_lack_bounds`, a bound although the column has values.
    pub(crate) fn lacks(&self, path: &[String], may_lack_bounds: bool) -> bool {
        match self.null_count(path) {
            None => true,
            Some(nulls) => !may_lack_bounds && Some(nulls) != self.rows && !self.has_bounds(path),
        }
    }

    /// Returns whether this crate has computed the statistics ([`super::origin`]).
    pub(crate) fn is_own(&self) -> bool {
        self.is_own
    }

    /// Marks the statistics as computed by this crate, or removes the mark.
    pub(crate) fn set_own(&mut self, is_own: bool) {
        self.is_own = is_own;
    }

    /// Returns whether there are no statistics of any column.
    pub(crate) fn has_no_columns(&self) -> bool {
        [&self.min, &self.max, &self.nulls].iter().all(|object| object.is_empty())
    }

    /// Sets the number of rows, and whether minima and maxima are values that occur in the file.
    pub(crate) fn set_rows(&mut self, rows: i64, is_tight: Option<bool>) {
        (self.rows, self.is_tight) = (Some(rows), is_tight);
    }

    /// Removes the statistics of a column.
    pub(crate) fn forget(&mut self, path: &[String]) {
        for object in [&mut self.min, &mut self.max, &mut self.nulls] {
            object.set(path, None);
        }
    }

    /// Replaces the statistics of a column.
    pub(crate) fn set(&mut self, column: &ColumnStats) {
        let path = column.path.parts();
        self.min.set(path, column.min.clone());
        self.max.set(path, column.max.clone());
        self.nulls.set(path, column.nulls.map(|nulls| nulls.to_string()));
    }

    /// Returns the statistics as the JSON text of `add.stats`.
    pub(crate) fn text(&self) -> String {
        let mut members = Vec::new();
        members.extend(self.rows.map(|rows| format!("\"numRecords\":{rows}")));
        members.extend(self.is_tight.map(|is_tight| format!("\"tightBounds\":{is_tight}")));
        for (name, object) in [("minValues", &self.min), ("maxValues", &self.max), ("nullCount", &self.nulls)]
        {
            members.push(format!("\"{name}\":{}", object.text()));
        }
        members.extend(self.is_own.then(|| format!("\"{MARK}\":{RULES}")));
        format!("{{{}}}", members.join(","))
    }
}

/// A JSON object that is being built. Its members are kept in the order in which they were added.
#[derive(Debug, Clone, Default)]
struct Object {
    /// The names and values of the members; `None` for a member that was removed.
    members: Vec<Option<(String, Member)>>,
    /// The index of each member, by name. It is needed because tables may have many thousand columns.
    by_name: HashMap<String, usize>,
}

#[derive(Debug, Clone)]
enum Member {
    Value(String),
    Object(Object),
}

impl Object {
    fn parse(json: &str) -> Option<Self> {
        if !json.starts_with('{') {
            return None;
        }
        let mut object = Self::default();
        for (name, json) in serde_json::from_str::<Members<'_>>(json).ok()?.0 {
            let member = match Self::parse(json.get()) {
                Some(inner) => Member::Object(inner),
                None => Member::Value(json.get().to_owned()),
            };
            // If several members have the same name, all of them are kept, and the first one is found.
            object.by_name.entry(name.clone()).or_insert(object.members.len());
            object.members.push(Some((name, member)));
        }
        Some(object)
    }

    /// Returns whether neither this object nor any nested object contains a value.
    fn is_empty(&self) -> bool {
        self.members.iter().flatten().all(|(_, member)| match member {
            Member::Value(_) => false,
            Member::Object(inner) => inner.is_empty(),
        })
    }

    fn member(&mut self, name: &str) -> Option<&mut Member> {
        let (_, member) = self.members.get_mut(*self.by_name.get(name)?)?.as_mut()?;
        Some(member)
    }

    fn push(&mut self, name: &str, member: Member) {
        self.by_name.insert(name.to_owned(), self.members.len());
        self.members.push(Some((name.to_owned(), member)));
    }

    fn get(&self, path: &[String]) -> Option<&str> {
        let (name, rest) = path.split_first()?;
        let (_, member) = self.members.get(*self.by_name.get(name)?)?.as_ref()?;
        match (member, rest) {
            (Member::Value(json), []) => Some(json),
            (Member::Object(inner), [_, ..]) => inner.get(rest),
            _ => None,
        }
    }

    /// Sets the value at `path`, or removes it if `json` is `None`.
    fn set(&mut self, path: &[String], json: Option<String>) {
        let Some((name, rest)) = path.split_first() else { return };
        match (rest, json) {
            ([], None) => {
                if let Some(slot) = self.by_name.remove(name).and_then(|at| self.members.get_mut(at)) {
                    *slot = None;
                }
            }
            ([], Some(json)) => match self.member(name) {
                Some(member) => *member = Member::Value(json),
                None => self.push(name, Member::Value(json)),
            },
            (_, json) => match self.member(name) {
                Some(Member::Object(inner)) => inner.set(rest, json),
                Some(member) => {
                    if json.is_some() {
                        let mut inner = Self::default();
                        inner.set(rest, json);
                        *member = Member::Object(inner);
                    }
                }
                None => {
                    if json.is_some() {
                        let mut inner = Self::default();
                        inner.set(rest, json);
                        self.push(name, Member::Object(inner));
                    }
                }
            },
        }
    }

    fn text(&self) -> String {
        let member = |(name, member): &(String, Member)| {
            let value = match member {
                Member::Value(json) => json.clone(),
                Member::Object(inner) => inner.text(),
            };
            format!("{}:{value}", json_string(name))
        };
        format!("{{{}}}", self.members.iter().flatten().map(member).collect::<Vec<_>>().join(","))
    }
}

/// The members of a JSON object, in order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::predicate::ColumnPath;

    #[test]
    fn members_that_are_not_set_stay_unchanged() {
        let text = concat!(
            r#"{"numRecords":3,"minValues":{"d":1234567890123456.70,"s":{"x":1,"y":"b"}},"maxValues":{},"#,
            r#""nullCount":{"s":{"x":0},"l":2}}"#
        );
        let mut stats = StatsTree::parse(text).unwrap();
        assert_eq!(stats.text(), text);
        let path = ColumnPath::new(["s", "x"]);
        let set = |stats: &mut StatsTree, value: Option<&str>| {
            let value = value.map(str::to_owned);
            stats.set(&ColumnStats { path: path.clone(), min: value.clone(), max: value, nulls: None });
        };
        set(&mut stats, Some("7"));
        assert!(stats.has_bounds(path.parts()) && stats.null_count(path.parts()).is_none());
        set(&mut stats, None);
        stats.set_rows(4, Some(true));
        assert_eq!(
            stats.text(),
            concat!(
                r#"{"numRecords":4,"tightBounds":true,"minValues":{"d":1234567890123456.70,"s":{"y":"b"}},"#,
                r#""maxValues":{"s":{}},"nullCount":{"s":{},"l":2}}"#
            )
        );
        assert_eq!(stats.null_count(&["l".to_owned()]), Some(2));
        assert!(StatsTree::parse("[1]").is_none());
    }
}
