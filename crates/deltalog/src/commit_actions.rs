//! The actions of each version, as the log has them. Protocol: "Actions". (The rows that they changed are in
//! [`crate::changes`].)
//!
//! - Every line is a row, in the order of the log, actions of later protocols included.
//! - The JSON of an action is the text of the log, byte for byte; the columns beside it only make the common
//!   fields of file actions easy to reach.
//! - Nothing is reconciled: what a compaction or a checkpoint holds is not asked for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Int64Builder, MapBuilder, MapFieldNames, RecordBatch, StringBuilder,
    TimestampMillisecondBuilder,
};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::log::{CommitFile, CommitTimes};
use crate::protocol::{CommitInfo, DeletionVectorDescriptor, LogPath, PathResolver, path};
use crate::storage::Storage;

/// The columns of [`CommitActions`].
///
/// | column | what it is |
/// | --- | --- |
/// | `version: Int64` | the version |
/// | `timestamp: Timestamp(ms, UTC)` | when it was committed |
/// | `action: Utf8` | the action's name in the log, such as `add`; null for a line without one |
/// | `path: Utf8` | of `add`, `remove` and `cdc`: decoded, relative to the table's root if it lies there |
/// | `size: Int64` | of the same: bytes |
/// | `partition_values: Map<Utf8, Utf8>` | of the same, as the log has them |
/// | `data_change: Boolean` | of the same |
/// | `modification_time: Timestamp(ms, UTC)` | of `add`; of `remove` its `deletionTimestamp` |
/// | `deletion_vector: Utf8` | of `add` and `remove`: the vector's unique id |
/// | `json: Utf8` | the action's content as it stands in the log |
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

/// The actions of a range of versions, a batch a version, read as they are asked for.
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
                .in_table(storage.url()));
        }
        let commits = (start..=end).map(|version| times.commit(version)).collect::<Result<Vec<_>>>()?;
        Ok(Self { storage: storage.clone(), resolver: resolver.clone(), times, commits: commits.into_iter() })
    }

    fn read(&self, commit: CommitFile) -> Result<RecordBatch> {
        let located = |error: Error| {
            error.at_path(commit.path()).at_version(commit.version).in_table(self.storage.url())
        };
        let bytes = self.storage.read(&commit.path()).map_err(located)?;
        let mut lines = Vec::new();
        for (line, number) in bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).zip(1..) {
            if !line.is_empty() {
                lines.push((number, Line::parse(line).map_err(|error| located(error.at_line(number)))?));
            }
        }
        let info = lines.iter().find(|(_, line)| line.action.as_deref() == Some("commitInfo"));
        let info = info.and_then(|(_, line)| serde_json::from_str::<CommitInfo>(line.json).ok());
        let timestamp = self.times.shown(&commit, info.as_ref());
        let mut rows = Rows::new();
        for (number, line) in &lines {
            rows.append(line, &self.resolver).map_err(|error| located(error.at_line(*number)))?;
        }
        rows.finish(commit.version, timestamp, lines.len()).map_err(located)
    }
}

impl Iterator for CommitActions {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let commit = self.commits.next()?;
        Some(self.read(commit))
    }
}

/// A line: the first action in it that is not null.
struct Line<'a> {
    action: Option<Cow<'a, str>>,
    json: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Result<Self> {
        let text = std::str::from_utf8(line)
            .map_err(|error| Error::corrupt_log("the line is not UTF-8").with_source(error))?;
        let actions: BTreeMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(text)
            .map_err(|error| Error::corrupt_log("the line is not an action").with_source(error))?;
        let found = actions.into_iter().find(|(_, value)| value.get() != "null");
        Ok(found.map_or(Self { action: None, json: text }, |(name, value)| Self {
            action: Some(name),
            json: value.get(),
        }))
    }
}

/// What file actions have in common.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileFields<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    size: Option<i64>,
    partition_values: Option<BTreeMap<String, Option<String>>>,
    data_change: Option<bool>,
    modification_time: Option<i64>,
    deletion_timestamp: Option<i64>,
    deletion_vector: Option<DeletionVectorDescriptor>,
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
        let file: Option<FileFields<'_>> =
            match line.action.as_deref() {
                Some("add" | "remove" | "cdc") => Some(serde_json::from_str(line.json).map_err(|error| {
                    Error::corrupt_log("the line is not a file action").with_source(error)
                })?),
                _ => None,
            };
        let file = file.as_ref();
        self.action.append_option(line.action.as_deref());
        self.path.append_option(file.map(|file| decoded(&file.path, resolver)).transpose()?);
        self.size.append_option(file.and_then(|file| file.size));
        let values = file.and_then(|file| file.partition_values.as_ref());
        for (key, value) in values.into_iter().flatten() {
            self.partition_values.keys().append_value(key);
            self.partition_values.values().append_option(value.as_ref());
        }
        self.partition_values.append(values.is_some()).map_err(too_much)?;
        self.data_change.append_option(file.and_then(|file| file.data_change));
        self.modification_time
            .append_option(file.and_then(|file| file.modification_time.or(file.deletion_timestamp)));
        self.deletion_vector.append_option(
            file.and_then(|file| file.deletion_vector.as_ref()).map(DeletionVectorDescriptor::unique_id),
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
    Error::corrupt_log("the actions of the version do not fit a batch").with_source(error)
}

/// A path as the file list shows it.
fn decoded(raw: &str, resolver: &PathResolver) -> Result<String> {
    match resolver.parse(raw)? {
        LogPath::Relative(path) => Ok(path),
        LogPath::Absolute(_) => Ok(path::decode(raw)?.into_owned()),
    }
}
