//! The actions of each version, exactly as they are in the log. Protocol: "Actions". (For changed rows, see
//! [`crate::scan::changes`].)
//!
//! - Every line of a commit becomes a row, in the same order. This includes actions that this crate does not know.
//! - The column `json` has the action's JSON text, byte for byte as in the log. The other columns make the common
//!   fields of file actions easy to use.
//! - Actions are not reconciled, and compactions and checkpoints are not read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Int64Builder, MapBuilder, MapFieldNames, RecordBatch, StringBuilder,
    TimestampMillisecondBuilder,
};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind, Result};
use crate::log::{CommitFile, CommitTimes};
use crate::protocol::{
    Action, ActionLine, CommitInfo, DeletionVectorDescriptor, LogPath, Pairs, PathResolver, path,
};
use crate::storage::Storage;

/// The columns of [`CommitActions`].
///
/// | column | content |
/// | --- | --- |
/// | `version: Int64` | the version |
/// | `timestamp: Timestamp(ms, UTC)` | when the version was committed |
/// | `action: Utf8` | the action's name in the log, such as `add`; null for a line without an action |
/// | `path: Utf8` | the decoded path of `add`, `remove` and `cdc`; relative if the file is below the table's root |
/// | `size: Int64` | the file's size in bytes |
/// | `partition_values: Map<Utf8, Utf8>` | the file's partition values, spelled as in the log and ordered by key |
/// | `data_change: Boolean` | whether the action changes rows; true if the action does not state it |
/// | `modification_time: Timestamp(ms, UTC)` | `modificationTime` of `add`, `deletionTimestamp` of `remove` |
/// | `deletion_vector: Utf8` | the unique id of the file's deletion vector |
/// | `json: Utf8` | the action's JSON text, exactly as it is in the log |
pub fn commit_actions_schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    let map = DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false);
    Arc::new(Schema::new(vec![
        Field::new("version", DataType::Int64, false),
        Field::new("timestamp", time.clone(), false),
        Field::new("action", DataType::Utf8, true),
        Field::new("path", DataType::Utf8, true),
        Field::new("size", DataType::Int64, true),
        Field::new("partition_values", map, true),
        Field::new("data_change", DataType::Boolean, true),
        Field::new("modification_time", time, true),
        Field::new("deletion_vector", DataType::Utf8, true),
        Field::new("json", DataType::Utf8, false),
    ]))
}

/// An iterator over the actions of a range of versions. It returns one batch per version and reads each one on demand.
pub struct CommitActions {
    storage: Storage,
    resolver: PathResolver,
    times: CommitTimes,
    commits: std::vec::IntoIter<CommitFile>,
}

impl CommitActions {
    pub(crate) fn new(
        storage: &Storage,
        resolver: &PathResolver,
        times: CommitTimes,
        start: u64,
        end: u64,
    ) -> Result<Self> {
        if start > end {
            return Err(Error::invalid_argument(format!("there are no versions from {start} to {end}"))
                .in_table(storage.url())
                .with_hint("begin with a version that is not after the last one"));
        }
        let commits = times.commits_of(start..=end)?;
        Ok(Self { storage: storage.clone(), resolver: resolver.clone(), times, commits: commits.into_iter() })
    }

    fn read(&self, commit: CommitFile) -> Result<CommitEntry> {
        let located = |error: Error| {
            error.at_path(commit.path()).at_version(commit.version).in_table(self.storage.url())
        };
        // The commit may have been cleaned up since the listing.
        let read = self.storage.read_listed(&commit.path(), commit.listed);
        let bytes = read.map_err(|error| match error.kind() {
            ErrorKind::FileNotFound => cleaned_up(&self.storage, commit.version),
            _ => located(error),
        })?;
        let mut lines = Vec::new();
        for (line, number) in bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).zip(1..) {
            if !line.is_empty() {
                lines.push((number, Line::parse(line).map_err(|error| located(error.at_line(number)))?));
            }
        }
        let info = lines.iter().find_map(|(_, line)| match &line.known {
            Some(ActionLine::Other(Action::CommitInfo(info))) => Some(info),
            _ => None,
        });
        let timestamp = self.times.shown(&commit, info);
        let mut rows = Rows::new();
        for (number, line) in &lines {
            rows.append(line, &self.resolver).map_err(|error| located(error.at_line(*number)))?;
        }
        let actions = rows.finish(commit.version, timestamp, lines.len()).map_err(located)?;
        Ok(CommitEntry { version: commit.version, timestamp_ms: timestamp, info: info.cloned(), actions })
    }
}

impl Iterator for CommitActions {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let commit = self.commits.next()?;
        Some(self.read(commit).map(|entry| entry.actions))
    }
}

/// A commit in the log of a table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommitEntry {
    /// The version.
    pub version: u64,
    /// The time when the version was committed, in milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// The content of the commit's `commitInfo`, if the writer has recorded one.
    pub info: Option<CommitInfo>,
    /// All actions, one row each, with the columns of [`commit_actions_schema`].
    pub actions: RecordBatch,
}

/// An iterator over the commits of a table, version by version. Each commit is read on demand, so that only one is in
/// memory at a time.
pub struct Commits(CommitActions);

impl Commits {
    /// Returns the commits from version `start` on; none if `start` is the version after the newest one.
    pub(crate) fn since(
        storage: &Storage,
        resolver: &PathResolver,
        times: CommitTimes,
        start: u64,
    ) -> Result<Self> {
        let end = times.commits().last().map_or(0, |newest| newest.version);
        if times.commits().is_empty() || start == end + 1 {
            let commits = Vec::new().into_iter();
            let (storage, resolver) = (storage.clone(), resolver.clone());
            return Ok(Self(CommitActions { storage, resolver, times, commits }));
        }
        // If `start` is even later, the range is `start..=start`, so that the error names this version.
        CommitActions::new(storage, resolver, times, start, end.max(start)).map(Self)
    }
}

impl Iterator for Commits {
    type Item = Result<CommitEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        let commit = self.0.commits.next()?;
        Some(self.0.read(commit))
    }
}

fn cleaned_up(storage: &Storage, version: u64) -> Error {
    Error::new(
        ErrorKind::VersionNotFound,
        "the commit no longer exists: it was cleaned up while commits were read",
    )
    .in_table(storage.url())
    .at_version(version)
}

/// One line of a commit.
struct Line<'a> {
    known: Option<ActionLine<'a>>,
    /// The key of the action: the known key if the line has one, otherwise the first key whose value is not null.
    name: Option<Cow<'a, str>>,
    json: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Result<Self> {
        let known = ActionLine::parse(line)?;
        let text = std::str::from_utf8(line)
            .map_err(|error| Error::corrupt_log("the line is not UTF-8").with_source(error))?;
        let actions: BTreeMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(text)
            .map_err(|error| Error::corrupt_log("the line is not a valid action").with_source(error))?;
        let found = actions.into_iter().find(|(name, json)| match &known {
            Some(known) => name == known.name(),
            None => json.get() != "null",
        });
        let (name, json) = found.map_or((None, text), |(name, json)| (Some(name), json.get()));
        Ok(Self { known, name, json })
    }
}

/// The fields that file actions have in common.
#[derive(Default)]
struct FileFields<'l> {
    path: &'l str,
    size: Option<i64>,
    partition_values: Option<BTreeMap<&'l str, Option<&'l str>>>,
    data_change: bool,
    modification_time: Option<i64>,
    deletion_vector: Option<&'l DeletionVectorDescriptor>,
}

impl<'l> FileFields<'l> {
    fn of(action: &'l ActionLine<'_>) -> Option<Self> {
        let pairs = |pairs: &'l Pairs<'_>| {
            pairs.0.iter().map(|(key, value)| (&*key.0, value.as_ref().map(|value| &*value.0))).collect()
        };
        Some(match action {
            ActionLine::Add(add) => Self {
                path: &add.path,
                size: Some(add.size),
                partition_values: add.partition_values.as_ref().map(pairs),
                data_change: add.data_change(),
                modification_time: Some(add.modification_time()),
                deletion_vector: add.deletion_vector.as_ref(),
            },
            ActionLine::Remove(remove) => Self {
                path: &remove.path,
                size: remove.size,
                partition_values: remove.partition_values.as_ref().map(pairs),
                data_change: remove.data_change(),
                modification_time: remove.deletion_timestamp,
                deletion_vector: remove.deletion_vector.as_ref(),
            },
            ActionLine::Other(Action::Cdc(cdc)) => Self {
                path: &cdc.path,
                size: Some(cdc.size),
                partition_values: Some(
                    cdc.partition_values.iter().map(|(key, value)| (&**key, value.as_deref())).collect(),
                ),
                data_change: cdc.data_change,
                modification_time: None,
                deletion_vector: None,
            },
            ActionLine::Other(_) => return None,
        })
    }
}

struct Rows {
    action: StringBuilder,
    path: StringBuilder,
    size: Int64Builder,
    partition_values: MapBuilder<StringBuilder, StringBuilder>,
    data_change: BooleanBuilder,
    modification_time: TimestampMillisecondBuilder,
    deletion_vector: StringBuilder,
    json: StringBuilder,
}

impl Rows {
    fn new() -> Self {
        let names =
            MapFieldNames { entry: "entries".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
        Self {
            action: StringBuilder::new(),
            path: StringBuilder::new(),
            size: Int64Builder::new(),
            partition_values: MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new()),
            data_change: BooleanBuilder::new(),
            modification_time: TimestampMillisecondBuilder::new().with_timezone("UTC"),
            deletion_vector: StringBuilder::new(),
            json: StringBuilder::new(),
        }
    }

    fn append(&mut self, line: &Line<'_>, resolver: &PathResolver) -> Result<()> {
        let file = line.known.as_ref().and_then(FileFields::of);
        let file = file.as_ref();
        self.action.append_option(line.name.as_deref());
        self.path.append_option(file.map(|file| decoded(file.path, resolver)).transpose()?);
        self.size.append_option(file.and_then(|file| file.size));
        let values = file.and_then(|file| file.partition_values.as_ref());
        for (key, value) in values.into_iter().flatten() {
            self.partition_values.keys().append_value(key);
            self.partition_values.values().append_option(*value);
        }
        self.partition_values.append(values.is_some()).map_err(too_much)?;
        self.data_change.append_option(file.map(|file| file.data_change));
        self.modification_time.append_option(file.and_then(|file| file.modification_time));
        self.deletion_vector.append_option(
            file.and_then(|file| file.deletion_vector).map(DeletionVectorDescriptor::unique_id),
        );
        self.json.append_value(line.json);
        Ok(())
    }

    fn finish(mut self, version: u64, timestamp_ms: i64, rows: usize) -> Result<RecordBatch> {
        let version = i64::try_from(version).unwrap_or(i64::MAX);
        let times =
            arrow::array::TimestampMillisecondArray::from(vec![timestamp_ms; rows]).with_timezone("UTC");
        let columns: Vec<ArrayRef> = vec![
            Arc::new(arrow::array::Int64Array::from(vec![version; rows])),
            Arc::new(times),
            Arc::new(self.action.finish()),
            Arc::new(self.path.finish()),
            Arc::new(self.size.finish()),
            Arc::new(self.partition_values.finish()),
            Arc::new(self.data_change.finish()),
            Arc::new(self.modification_time.finish()),
            Arc::new(self.deletion_vector.finish()),
            Arc::new(self.json.finish()),
        ];
        RecordBatch::try_new(commit_actions_schema(), columns).map_err(too_much)
    }
}

fn too_much(error: arrow::error::ArrowError) -> Error {
    Error::corrupt_log("the actions of the version do not fit in one batch").with_source(error)
}

/// Decodes a path from the log. The result has the same form as the paths in the list of the table's files.
fn decoded(raw: &str, resolver: &PathResolver) -> Result<String> {
    match resolver.parse(raw)? {
        LogPath::Relative(path) => Ok(path),
        LogPath::Absolute(_) => Ok(path::decode(raw)?.into_owned()),
    }
}
