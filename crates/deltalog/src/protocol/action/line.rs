//! Parses a line of the log, a JSON object that contains one action. (PROTOCOL, "Actions".)
//!
//! This parser accepts every valid line. Commits, compactions and JSON checkpoints are parsed with it, and so are the
//! few rows of Parquet checkpoints that become structs. The only other parser, `log::replay::quick`, is a faster one
//! for `add` lines in their usual form, and returns the same results. File actions borrow their strings from the line,
//! because a log may have millions of them; [`Action::parse_line`] returns owned structs.
//!
//! ```text
//! {"add":{"path":"part-0.parquet","partitionValues":{},"size":10,"modificationTime":0,"dataChange":true}}
//!   │      └ AddLine                                                                                  │
//!   └ ActionLine::Add ────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! - A line with two known actions is corrupt, and so is a map with a repeated key, because readers would disagree
//!   about which one counts. Actions that are `null` are ignored.
//! - Unknown actions and unknown fields are ignored, as "Protocol Evolution" requires.
//! - A missing or `null` `modificationTime` becomes 0, and a missing `dataChange` becomes `true`, so that no change is
//!   hidden. All other required fields must be present.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    Action, Add, AddCdcFile, CheckpointMetadata, CommitInfo, DeletionVectorDescriptor, DomainMetadata,
    Metadata, Protocol, Remove, SetTransaction, Sidecar,
};
use crate::error::{Error, Result};

/// The action in a line.
pub(crate) enum ActionLine<'a> {
    Add(AddLine<'a>),
    Remove(RemoveLine<'a>),
    /// Any other action. It is owned, because there are only a few such actions.
    Other(Action),
}

impl<'a> ActionLine<'a> {
    /// Parses a line; returns `None` for a line without a known action.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::ErrorKind::CorruptLog), with a hint that depends on whether the line was cut off.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Option<Self>> {
        match serde_json::from_slice(line) {
            Ok(Line(action)) => Ok(action),
            Err(error) => {
                let (message, hint) = match error.is_eof() {
                    true => (
                        "the line is cut off",
                        "its writer died while writing; restore the file, or read a version before it",
                    ),
                    false => (
                        "the line is not a valid action",
                        "the file was damaged; restore it, or read a version before it",
                    ),
                };
                Err(Error::corrupt_log(message).with_hint(hint).with_source(error))
            }
        }
    }

    /// Returns the key of the action in the log's JSON.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Remove(_) => "remove",
            Self::Other(action) => action.name(),
        }
    }
}

impl From<ActionLine<'_>> for Action {
    fn from(line: ActionLine<'_>) -> Self {
        match line {
            ActionLine::Add(add) => Self::Add(add.into()),
            ActionLine::Remove(remove) => Self::Remove(remove.into()),
            ActionLine::Other(action) => action,
        }
    }
}

struct Line<'a>(Option<ActionLine<'a>>);

/// The keys of known actions in a line.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Add,
    Remove,
    Cdc,
    MetaData,
    Protocol,
    Txn,
    CommitInfo,
    DomainMetadata,
    CheckpointMetadata,
    Sidecar,
    #[serde(other)]
    Unknown,
}

impl<'de: 'a, 'a> Deserialize<'de> for Line<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LineVisitor;
        impl<'de> Visitor<'de> for LineVisitor {
            type Value = Line<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one action")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found: Option<ActionLine<'de>> = None;
                while let Some(key) = map.next_key()? {
                    let action = match key {
                        Key::Add => map.next_value::<Option<AddLine<'de>>>()?.map(ActionLine::Add),
                        Key::Remove => map.next_value::<Option<RemoveLine<'de>>>()?.map(ActionLine::Remove),
                        Key::Cdc => other::<AddCdcFile, A>(&mut map)?,
                        Key::MetaData => other::<Metadata, A>(&mut map)?,
                        Key::Protocol => other::<Protocol, A>(&mut map)?,
                        Key::Txn => other::<SetTransaction, A>(&mut map)?,
                        Key::CommitInfo => other::<CommitInfo, A>(&mut map)?,
                        Key::DomainMetadata => other::<DomainMetadata, A>(&mut map)?,
                        Key::CheckpointMetadata => other::<CheckpointMetadata, A>(&mut map)?,
                        Key::Sidecar => other::<Sidecar, A>(&mut map)?,
                        Key::Unknown => {
                            map.next_value::<IgnoredAny>()?;
                            None
                        }
                    };
                    if let (Some(first), Some(second)) = (&found, &action) {
                        let (first, second) = (first.name(), second.name());
                        return Err(A::Error::custom(format_args!(
                            "the line holds two actions, '{first}' and '{second}'"
                        )));
                    }
                    found = found.or(action);
                }
                Ok(Line(found))
            }
        }
        deserializer.deserialize_map(LineVisitor)
    }
}

fn other<'de, T, A>(map: &mut A) -> Result<Option<ActionLine<'de>>, A::Error>
where
    T: Deserialize<'de> + Into<Action>,
    A: MapAccess<'de>,
{
    Ok(map.next_value::<Option<T>>()?.map(|action| ActionLine::Other(action.into())))
}

/// An `add` action that borrows from its line. See [`Add`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddLine<'a> {
    #[serde(borrow)]
    pub(crate) path: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) partition_values: Option<Pairs<'a>>,
    pub(crate) size: i64,
    pub(crate) modification_time: Option<i64>,
    pub(crate) data_change: Option<bool>,
    #[serde(borrow)]
    pub(crate) stats: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) tags: Option<Pairs<'a>>,
    pub(crate) deletion_vector: Option<DeletionVectorDescriptor>,
    pub(crate) base_row_id: Option<i64>,
    pub(crate) default_row_commit_version: Option<i64>,
    pub(crate) clustering_provider: Option<String>,
}

impl AddLine<'_> {
    pub(crate) fn modification_time(&self) -> i64 {
        self.modification_time.unwrap_or_default()
    }

    pub(crate) fn data_change(&self) -> bool {
        self.data_change.unwrap_or(true)
    }
}

impl From<AddLine<'_>> for Add {
    fn from(line: AddLine<'_>) -> Self {
        Self {
            size: line.size,
            modification_time: line.modification_time(),
            data_change: line.data_change(),
            path: line.path.into_owned(),
            partition_values: line.partition_values.map(Pairs::into_map).unwrap_or_default(),
            stats: line.stats.map(|stats| stats.0.into_owned()),
            tags: line.tags.map(Pairs::into_map),
            deletion_vector: line.deletion_vector,
            base_row_id: line.base_row_id,
            default_row_commit_version: line.default_row_commit_version,
            clustering_provider: line.clustering_provider,
        }
    }
}

impl<'a> From<&'a Add> for AddLine<'a> {
    fn from(add: &'a Add) -> Self {
        Self {
            path: Cow::Borrowed(&add.path),
            partition_values: Some(Pairs::of(&add.partition_values)),
            size: add.size,
            modification_time: Some(add.modification_time),
            data_change: Some(add.data_change),
            stats: add.stats.as_deref().map(|stats| Text(Cow::Borrowed(stats))),
            tags: add.tags.as_ref().map(Pairs::of),
            deletion_vector: add.deletion_vector.clone(),
            base_row_id: add.base_row_id,
            default_row_commit_version: add.default_row_commit_version,
            clustering_provider: add.clustering_provider.clone(),
        }
    }
}

/// Deserializes an `add` action that is not a whole line. Version checksum files contain such actions.
impl<'de> Deserialize<'de> for Add {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        AddLine::deserialize(deserializer).map(Self::from)
    }
}

/// A `remove` action that borrows from its line. See [`Remove`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoveLine<'a> {
    #[serde(borrow)]
    pub(crate) path: Cow<'a, str>,
    pub(crate) deletion_timestamp: Option<i64>,
    pub(crate) data_change: Option<bool>,
    pub(crate) extended_file_metadata: Option<bool>,
    #[serde(borrow)]
    pub(crate) partition_values: Option<Pairs<'a>>,
    pub(crate) size: Option<i64>,
    #[serde(borrow)]
    pub(crate) stats: Option<EscapedText<'a>>,
    #[serde(borrow)]
    pub(crate) tags: Option<Pairs<'a>>,
    pub(crate) deletion_vector: Option<DeletionVectorDescriptor>,
    pub(crate) base_row_id: Option<i64>,
    pub(crate) default_row_commit_version: Option<i64>,
}

impl RemoveLine<'_> {
    pub(crate) fn data_change(&self) -> bool {
        self.data_change.unwrap_or(true)
    }
}

impl From<RemoveLine<'_>> for Remove {
    fn from(line: RemoveLine<'_>) -> Self {
        Self {
            data_change: line.data_change(),
            path: line.path.into_owned(),
            deletion_timestamp: line.deletion_timestamp,
            extended_file_metadata: line.extended_file_metadata,
            partition_values: line.partition_values.map(Pairs::into_map),
            size: line.size,
            stats: line.stats.map(|stats| stats.unescaped().into_owned()),
            tags: line.tags.map(Pairs::into_map),
            deletion_vector: line.deletion_vector,
            base_row_id: line.base_row_id,
            default_row_commit_version: line.default_row_commit_version,
        }
    }
}

/// A string that borrows from the line, unless it has escapes.
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// A JSON string that keeps its quotes and escapes. It is used for statistics, which few readers need.
#[derive(Clone, Copy)]
pub(crate) struct EscapedText<'a>(&'a RawValue);

impl<'a> EscapedText<'a> {
    pub(crate) fn unescaped(self) -> Cow<'a, str> {
        // Decoding cannot fail, because the text was checked when it was read.
        serde_json::from_str::<Text<'a>>(self.0.get()).map(|text| text.0).unwrap_or_default()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for EscapedText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        if !raw.get().starts_with('"') {
            return Err(D::Error::custom("statistics are not a string"));
        }
        // Reading a raw JSON value does not check for unpaired surrogates.
        if raw.get().contains("\\u") {
            serde_json::from_str::<String>(raw.get()).map_err(D::Error::custom)?;
        }
        Ok(Self(raw))
    }
}

/// A map from string to nullable string, in the order of the JSON text. No key occurs twice.
pub(crate) struct Pairs<'a>(pub(crate) Vec<(Text<'a>, Option<Text<'a>>)>);

impl<'a> Pairs<'a> {
    fn of(map: &'a BTreeMap<String, Option<String>>) -> Self {
        let text = |text: &'a String| Text(Cow::Borrowed(text.as_str()));
        Self(map.iter().map(|(key, value)| (text(key), value.as_ref().map(text))).collect())
    }
}

impl Pairs<'_> {
    fn into_map<T: FromIterator<(String, Option<String>)>>(self) -> T {
        let owned = |text: Text<'_>| text.0.into_owned();
        self.0.into_iter().map(|(key, value)| (owned(key), value.map(owned))).collect()
    }

    /// Returns a key that occurs twice, if there is one.
    pub(crate) fn duplicate(&self) -> Option<&str> {
        let keys = || self.0.iter().map(|(key, _)| key.0.as_ref());
        // Tables have few partition columns, and comparing a few keys takes less time than hashing them.
        if self.0.len() <= 8 {
            return keys()
                .enumerate()
                .find(|(at, key)| keys().take(*at).any(|other| other == *key))
                .map(|(_, key)| key);
        }
        let mut seen = HashSet::new();
        keys().find(|key| !seen.insert(*key))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from string to string")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                let pairs = Pairs(pairs);
                match pairs.duplicate() {
                    Some(key) => Err(A::Error::custom(format_args!("key '{key}' occurs twice in one map"))),
                    None => Ok(pairs),
                }
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}
