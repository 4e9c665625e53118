//! A table that a test crafts: it writes the log as JSON, and data files with Arrow's Parquet writer from given arrays.

use std::fs;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::Schema;
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::scan::{FileListing, ListColumn, TableScan};
use deltalog::{Result, Snapshot, Storage};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

pub(crate) struct Crafted {
    directory: tempfile::TempDir,
    version: u64,
    actions: Vec<Value>,
}

/// The definition of a table.
pub(crate) struct Definition<'a> {
    pub(crate) schema: &'a Value,
    pub(crate) partition_columns: &'a [&'a str],
    pub(crate) reader_features: &'a [&'a str],
    pub(crate) writer_features: &'a [&'a str],
    pub(crate) configuration: Value,
}

/// Returns a field of a schema.
pub(crate) fn field(name: &str, data_type: Value, metadata: Value) -> Value {
    json!({"name": name, "type": data_type, "nullable": true, "metadata": metadata})
}

/// Returns a schema or a struct.
pub(crate) fn fields(fields: Vec<Value>) -> Value {
    json!({"type": "struct", "fields": fields})
}

impl Crafted {
    /// Returns a table without rows that is not yet committed.
    pub(crate) fn new(definition: &Definition<'_>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("_delta_log")).unwrap();
        let writer_features = [definition.reader_features, definition.writer_features].concat();
        let mut table = Self { directory, version: 0, actions: Vec::new() };
        table.actions.push(json!({"protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": definition.reader_features,
            "writerFeatures": writer_features,
        }}));
        table.define(definition);
        table
    }

    /// Changes the metadata with the next commit.
    pub(crate) fn define(&mut self, definition: &Definition<'_>) {
        self.actions.push(json!({"metaData": {
            "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": definition.schema.to_string(),
            "partitionColumns": definition.partition_columns, "configuration": definition.configuration,
        }}));
    }

    /// Adds a data file with row groups of `group_rows` rows to the next commit. `rest` are additional fields of the
    /// file's `add` action.
    pub(crate) fn add(&mut self, name: &str, batch: &RecordBatch, group_rows: usize, rest: Value) {
        let file = self.directory.path().join(name);
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
        let mut writer =
            ArrowWriter::try_new(fs::File::create(&file).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        let mut add = json!({
            "path": name, "partitionValues": {}, "size": fs::metadata(&file).unwrap().len(),
            "modificationTime": 0, "dataChange": true,
        });
        add.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        self.actions.push(json!({"add": add}));
    }

    /// Adds any other action to the next commit.
    pub(crate) fn action(&mut self, action: Value) {
        self.actions.push(action);
    }

    /// Commits everything that was added since the last commit.
    pub(crate) fn commit(&mut self) {
        let lines: String = self.actions.drain(..).map(|action| format!("{action}\n")).collect();
        fs::write(self.directory.path().join(format!("_delta_log/{:020}.json", self.version)), lines)
            .unwrap();
        self.version += 1;
    }

    pub(crate) fn open(&self) -> Result<Snapshot> {
        Snapshot::open(&Storage::open(self.directory.path().to_str().unwrap(), []).unwrap(), None)
    }
}

/// Returns the rows of a scan as one batch.
pub(crate) fn rows(
    snapshot: &Snapshot,
    columns: Option<&[&str]>,
    predicate: Option<&str>,
) -> Result<RecordBatch> {
    let mut scan = TableScan::new(snapshot);
    if let Some(columns) = columns {
        scan = scan.columns(columns.iter().copied());
    }
    if let Some(predicate) = predicate {
        scan = scan.predicate(parse(predicate, "UTC", ParseMode::Strict)?);
    }
    let schema = scan.schema()?;
    let batches = scan.read()?.collect::<Result<Vec<_>>>()?;
    assert!(batches.iter().all(|batch| batch.schema() == schema));
    Ok(concat_batches(&schema, &batches).unwrap())
}

/// Returns the file list.
pub(crate) fn listed(snapshot: &Snapshot, columns: &[ListColumn], predicate: Option<&str>) -> RecordBatch {
    let mut listing = FileListing::new(snapshot).columns(columns.to_vec());
    if let Some(predicate) = predicate {
        listing = listing.predicate(&parse(predicate, "UTC", ParseMode::Strict).unwrap()).unwrap();
    }
    let list = listing.read().unwrap();
    let schema: Arc<Schema> = list.schema().clone();
    concat_batches(&schema, &list.collect::<Result<Vec<_>>>().unwrap()).unwrap()
}
