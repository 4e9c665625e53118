//! Hand-made tables whose change data feed is on, and their changes as rows that can be compared.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use arrow::array::*;
use arrow::datatypes::Int64Type;
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use super::{ChangeBound, ChangeFeed};
use crate::error::{Error, Result};
use crate::log::deletion_vector::testing::write_vectors;
use crate::protocol::DeletionVectorDescriptor;
use crate::scan::TableScan;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

pub(crate) const SCHEMA: &str =
    r#"{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}"#;
/// The time of version 0, in milliseconds since the epoch. Each later version is ten seconds after the one before it.
pub(crate) const EPOCH: i64 = 1_700_000_000_000;

/// `(change type, id, version)`, sorted.
pub(crate) type Rows = Vec<(String, i64, i64)>;

pub(crate) struct Table {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) versions: i64,
    files: usize,
}

impl Table {
    /// Creates a table with the feed on, at version 0.
    pub(crate) fn new() -> Self {
        let mut table = Self::empty();
        table.commit(vec![protocol(), metadata(SCHEMA, &[], true)]);
        table
    }

    pub(crate) fn empty() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("_delta_log")).unwrap();
        Self { directory, versions: 0, files: 0 }
    }

    pub(crate) fn storage(&self) -> Storage {
        Storage::open(self.directory.path().to_str().unwrap(), []).unwrap()
    }

    pub(crate) fn commit(&mut self, actions: Vec<Value>) {
        self.commit_as(json!({"operation": "TEST"}), actions);
    }

    pub(crate) fn commit_as(&mut self, info: Value, mut actions: Vec<Value>) {
        actions.insert(0, json!({"commitInfo": info}));
        let lines: String = actions.iter().map(|action| format!("{action}\n")).collect();
        let path = self.directory.path().join(format!("_delta_log/{:020}.json", self.versions));
        fs::write(&path, lines).unwrap();
        let time = UNIX_EPOCH + Duration::from_millis((EPOCH + self.versions * 10_000) as u64);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        self.versions += 1;
    }

    pub(crate) fn write(&mut self, columns: Vec<(&str, ArrayRef)>) -> String {
        let name = format!("file-{}.parquet", self.files);
        self.files += 1;
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = fs::File::create(self.directory.path().join(&name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        name
    }

    pub(crate) fn write_ids(&mut self, ids: &[i64]) -> String {
        self.write(vec![("id", ints(ids))])
    }

    pub(crate) fn size(&self, path: &str) -> u64 {
        fs::metadata(self.directory.path().join(path)).map_or(0, |meta| meta.len())
    }

    pub(crate) fn vector(&self, deleted: &BTreeSet<u64>) -> Option<DeletionVectorDescriptor> {
        (!deleted.is_empty())
            .then(|| write_vectors(self.directory.path(), std::slice::from_ref(deleted)).remove(0))
    }

    pub(crate) fn action(
        &self,
        kind: &str,
        path: &str,
        vector: Option<&DeletionVectorDescriptor>,
        data_change: bool,
    ) -> Value {
        let mut action = json!({
            "path": path, "partitionValues": {}, "size": self.size(path),
            "modificationTime": 0, "dataChange": data_change,
        });
        if let Some(vector) = vector {
            action["deletionVector"] = serde_json::to_value(vector).unwrap();
        }
        json!({ kind: action })
    }

    pub(crate) fn add(&self, path: &str) -> Value {
        self.action("add", path, None, true)
    }

    pub(crate) fn remove(&self, path: &str) -> Value {
        self.action("remove", path, None, true)
    }

    pub(crate) fn feed(&self) -> ChangeFeed {
        ChangeFeed::new(&Snapshot::open(&self.storage(), None).unwrap())
    }

    pub(crate) fn changes(&self, feed: ChangeFeed) -> Result<Rows> {
        let mut rows = Vec::new();
        for batch in feed.plan()?.read(None)? {
            rows.extend(rows_of(&batch?));
        }
        rows.sort();
        Ok(rows)
    }

    pub(crate) fn between(&self, start: u64, end: u64) -> Result<Rows> {
        self.changes(self.feed().from(ChangeBound::Version(start)).to(ChangeBound::Version(end)))
    }

    pub(crate) fn refused(&self, start: u64, end: u64) -> Error {
        let error = self.between(start, end).unwrap_err();
        assert!(error.table().is_some(), "{error}");
        error
    }
}

pub(crate) fn protocol() -> Value {
    json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors", "changeDataFeed"],
    }})
}

pub(crate) fn metadata(schema: &str, partition_columns: &[&str], is_on: bool) -> Value {
    let configuration = if is_on { json!({"delta.enableChangeDataFeed": "true"}) } else { json!({}) };
    json!({"metaData": {
        "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
        "partitionColumns": partition_columns, "configuration": configuration,
    }})
}

pub(crate) fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

pub(crate) fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

pub(crate) fn rows_of(batch: &RecordBatch) -> Rows {
    let [kinds, ids, versions] =
        ["_change_type", "id", "_commit_version"].map(|name| batch.column_by_name(name).unwrap());
    let (ids, versions) = (ids.as_primitive::<Int64Type>(), versions.as_primitive::<Int64Type>());
    (0..batch.num_rows())
        .map(|row| (kinds.as_string::<i32>().value(row).to_owned(), ids.value(row), versions.value(row)))
        .collect()
}

pub(crate) fn change(kind: &str, ids: impl IntoIterator<Item = i64>, version: i64) -> Rows {
    ids.into_iter().map(|id| (kind.to_owned(), id, version)).collect()
}

pub(crate) fn sorted(parts: impl IntoIterator<Item = Rows>) -> Rows {
    let mut rows: Rows = parts.into_iter().flatten().collect();
    rows.sort();
    rows
}

pub(crate) fn ids_at(table: &Table, version: i64) -> Vec<i64> {
    let snapshot = Snapshot::open(&table.storage(), Some(version as u64)).unwrap();
    let batches = TableScan::new(&snapshot).read().unwrap();
    let mut ids: Vec<i64> = batches
        .flat_map(|batch| batch.unwrap().column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    ids.sort_unstable();
    ids
}
