//! The history of a table: its commits and their `commitInfo`. (PROTOCOL, "Commit Provenance Information".)
//!
//! - `commitInfo` may contain any JSON. Fields that are defined by the protocol or written by all writers have typed
//!   columns. All other fields, and known fields with a value of another type, are kept as JSON.
//! - Commits that were cleaned up are not in the history.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, MapBuilder, MapFieldNames, RecordBatch, StringArray, StringBuilder,
    TimestampMillisecondArray,
};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::log::{CommitTimes, read_commit_info};
use crate::protocol::CommitInfo;
use crate::snapshot::Snapshot;

/// A commit in the history of a table.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The version of the commit.
    pub version: u64,
    /// The time of the commit in milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// The `commitInfo` that the writer has recorded; empty if there is none.
    pub commit_info: CommitInfo,
}

impl HistoryEntry {
    /// Returns the `commitInfo` as JSON, as it is in the log.
    ///
    /// # Errors
    /// `CorruptLog` if it cannot be written as JSON.
    pub fn fields(&self) -> Result<Map<String, Value>> {
        match serde_json::to_value(&self.commit_info) {
            Ok(Value::Object(fields)) => Ok(fields),
            Ok(_) => Ok(Map::new()),
            Err(error) => Err(Error::corrupt_log("commitInfo cannot be converted to JSON")
                .with_source(error)
                .at_version(self.version)),
        }
    }
}

/// Returns the newest `limit` commits in `times`, newest first.
pub(crate) fn history(
    snapshot: &Snapshot,
    times: &CommitTimes,
    limit: Option<usize>,
) -> Result<Vec<HistoryEntry>> {
    let commits = times.commits_of_log().iter().rev().take(limit.unwrap_or(usize::MAX));
    let entries = commits.map(|commit| {
        let info = match snapshot.known_commit_info(commit.version) {
            Some(info) => Some(info),
            None => read_commit_info(snapshot.storage(), *commit)?,
        };
        let timestamp_ms = times.shown(commit, info.as_ref());
        Ok(HistoryEntry { version: commit.version, timestamp_ms, commit_info: info.unwrap_or_default() })
    });
    entries.collect()
}

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

fn text_map() -> DataType {
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}

/// Returns the schema of [`history_batch`]: `version`; `timestamp`; the known fields of `commitInfo`, which are null if
/// a commit lacks them; and `other`, a JSON object with all other fields.
pub fn history_schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    Arc::new(Schema::new(vec![
        Field::new("version", DataType::Int64, false),
        Field::new("timestamp", timestamp(), false),
        text("operation"),
        Field::new("operation_parameters", text_map(), true),
        Field::new("operation_metrics", text_map(), true),
        text("user_id"),
        text("user_name"),
        text("user_metadata"),
        text("engine_info"),
        text("txn_id"),
        Field::new("read_version", DataType::Int64, true),
        text("isolation_level"),
        Field::new("is_blind_append", DataType::Boolean, true),
        Field::new("in_commit_timestamp", timestamp(), true),
        Field::new("commit_timestamp", timestamp(), true),
        text("other"),
    ]))
}

/// Converts the history to an Arrow batch, with one row per commit.
///
/// # Errors
/// `CorruptLog` if the history is too large for one batch.
pub fn history_batch(entries: &[HistoryEntry]) -> Result<RecordBatch> {
    let info = || entries.iter().map(|entry| &entry.commit_info);
    let texts = |of: fn(&CommitInfo) -> Option<&String>| -> ArrayRef {
        Arc::new(info().map(of).collect::<StringArray>())
    };
    let times = |times: Vec<Option<i64>>| -> ArrayRef {
        Arc::new(TimestampMillisecondArray::from(times).with_timezone("UTC"))
    };
    // The protocol's example has this field, but the parser of `commitInfo` does not know it.
    let user_id = |info: &CommitInfo| info.other.get("userId").and_then(Value::as_str).map(str::to_owned);
    let other = |info: &CommitInfo| {
        let mut other = info.other.clone();
        if user_id(info).is_some() {
            other.remove("userId");
        }
        (!other.is_empty()).then(|| Value::Object(other).to_string())
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(entries.iter().map(|entry| i64::try_from(entry.version).ok()).collect::<Int64Array>()),
        times(entries.iter().map(|entry| Some(entry.timestamp_ms)).collect()),
        texts(|info| info.operation.as_ref()),
        maps(info().map(|info| info.operation_parameters.as_ref()))?,
        maps(info().map(|info| info.operation_metrics.as_ref()))?,
        Arc::new(info().map(user_id).collect::<StringArray>()),
        texts(|info| info.user_name.as_ref()),
        texts(|info| info.user_metadata.as_ref()),
        texts(|info| info.engine_info.as_ref()),
        texts(|info| info.txn_id.as_ref()),
        Arc::new(info().map(|info| info.read_version).collect::<Int64Array>()),
        texts(|info| info.isolation_level.as_ref()),
        Arc::new(info().map(|info| info.is_blind_append).collect::<BooleanArray>()),
        times(info().map(|info| info.in_commit_timestamp).collect()),
        times(info().map(|info| info.timestamp).collect()),
        Arc::new(info().map(other).collect::<StringArray>()),
    ];
    RecordBatch::try_new(history_schema(), columns).map_err(too_large)
}

fn too_large(error: arrow::error::ArrowError) -> Error {
    Error::corrupt_log("the history does not fit in a batch").with_source(error)
}

/// Converts JSON objects to maps of strings: strings stay as they are, and other values become JSON.
fn maps<'a>(objects: impl Iterator<Item = Option<&'a Map<String, Value>>>) -> Result<ArrayRef> {
    let names =
        MapFieldNames { entry: "entries".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
    let mut builder = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for object in objects {
        for (key, value) in object.into_iter().flatten() {
            builder.keys().append_value(key);
            match value {
                Value::Null => builder.values().append_null(),
                Value::String(text) => builder.values().append_value(text),
                value => builder.values().append_value(value.to_string()),
            }
        }
        builder.append(object.is_some()).map_err(too_large)?;
    }
    Ok(Arc::new(builder.finish()))
}
