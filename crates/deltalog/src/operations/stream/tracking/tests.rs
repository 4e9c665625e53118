//! Tests of streams with schema tracking, and of the files of their schema logs.

use std::fs;
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use serde_json::{Value, json};

use super::entry::Entry;
use super::{AllowedVersion, SchemaChange, SchemaTracking};
use crate::error::{ErrorKind, Result};
use crate::operations::stream::tests::offset;
use crate::operations::stream::{StreamLimits, StreamOffset, StreamOptions, TableStream};
use crate::runtime::environment::Environment;
use crate::scan::changes::test_table::{Table, ints};
use crate::snapshot::Snapshot;
use crate::storage::Storage;

fn protocol() -> Value {
    let features = ["columnMapping", "typeWidening", "deletionVectors"];
    json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
    }})
}

/// Returns the metadata of a table whose columns are given by their name, their name in files, and their type.
fn metadata(columns: &[(&str, &str, &str)]) -> Value {
    let field = |(id, (name, physical, of_type)): (usize, &(&str, &str, &str))| {
        json!({"name": name, "type": of_type, "nullable": true, "metadata": {
            "delta.columnMapping.id": id + 1, "delta.columnMapping.physicalName": physical,
        }})
    };
    let fields: Vec<_> = columns.iter().enumerate().map(field).collect();
    json!({"metaData": {
        "id": "t", "format": {"provider": "parquet", "options": {}},
        "schemaString": json!({"type": "struct", "fields": fields}).to_string(),
        "partitionColumns": [],
        "configuration": {
            "delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": columns.len().to_string(),
            "delta.enableTypeWidening": "true",
        },
    }})
}

const ID: (&str, &str, &str) = ("id", "id", "long");

struct Case {
    table: Table,
    checkpoint: tempfile::TempDir,
}

impl Case {
    fn new(columns: &[(&str, &str, &str)]) -> Self {
        let mut table = Table::empty();
        table.commit(vec![protocol(), metadata(columns)]);
        Self { table, checkpoint: tempfile::tempdir().unwrap() }
    }

    fn append(&mut self, column: &str, value: i64) {
        let path = self.table.write(vec![(column, ints(&[value]))]);
        self.table.commit(vec![self.table.add(&path)]);
    }

    fn tracking(&self) -> SchemaTracking {
        let location = Storage::open(self.checkpoint.path().to_str().unwrap(), []).unwrap();
        SchemaTracking::new(&location).source("/checkpoint/sources/0")
    }

    fn open(&self, tracking: SchemaTracking) -> Result<TableStream> {
        let snapshot = Snapshot::open(&self.table.storage(), None)?;
        let options = StreamOptions::new().track_schema(tracking).pause(Duration::ZERO);
        TableStream::open(&snapshot, options, &Environment::system())
    }

    fn entry(&self, number: u64) -> String {
        fs::read_to_string(self.checkpoint.path().join(format!("_schema_log_t/{number}"))).unwrap()
    }
}

fn barrier(version: u64, index: i64) -> String {
    offset(version, index, false).replace("\"sourceVersion\":1", "\"sourceVersion\":3")
}

fn latest(stream: &TableStream, start: Option<&str>) -> Result<String> {
    let start = start.map(|start| StreamOffset::parse(start).unwrap());
    let next = stream.latest(start.as_ref(), StreamLimits::default())?;
    Ok(next.map(|next| next.to_string()).unwrap_or_default())
}

fn rows(stream: &TableStream, start: Option<&str>, end: &str) -> Vec<RecordBatch> {
    let [start, end] = [start, Some(end)].map(|text| text.map(|text| StreamOffset::parse(text).unwrap()));
    let batch = stream.batch(start.as_ref(), &end.unwrap()).unwrap();
    batch.read(None).unwrap().map(Result::unwrap).collect()
}

fn values(batches: &[RecordBatch], column: &str) -> Vec<i64> {
    let values = |batch: &RecordBatch| {
        let column = batch.column_by_name(column).unwrap();
        column.as_primitive::<Int64Type>().values().to_vec()
    };
    batches.iter().flat_map(values).collect()
}

fn release(stream: &TableStream, offset: &str) -> Result<()> {
    stream.release(&StreamOffset::parse(offset).unwrap())
}

/// The JVM connector writes the same offsets at a schema change.
#[test]
fn a_stream_ends_before_a_rename_and_continues_if_that_is_allowed() {
    let mut case = Case::new(&[ID]);
    case.append("id", 1);
    let stream = case.open(case.tracking()).unwrap();
    let first = latest(&stream, None).unwrap();
    assert_eq!(first, offset(2, -1, false));
    case.table.commit(vec![metadata(&[("key", "id", "long")])]);
    case.append("id", 2);

    let before = latest(&stream, Some(&first)).unwrap();
    assert_eq!(before, barrier(2, -20));
    assert_eq!(rows(&stream, Some(&first), &before).len(), 0);
    assert_eq!(latest(&stream, Some(&before)).unwrap(), barrier(2, -19));
    assert_eq!(latest(&stream, Some(&barrier(2, -19))).unwrap(), barrier(2, -19), "it waits");
    release(&stream, &first).unwrap();
    let ended = release(&stream, &before).unwrap_err();
    assert_eq!((ended.kind(), ended.version()), (ErrorKind::SchemaMismatch, Some(2)), "{ended}");
    assert!(ended.hint().unwrap().contains("again") && ended.table().is_some(), "{ended}");

    let renamed = |version| case.tracking().allow(SchemaChange::Rename, version);
    for tracking in [case.tracking(), renamed(AllowedVersion::Of(3))] {
        let refused = case.open(tracking).unwrap_err();
        assert_eq!((refused.kind(), refused.version()), (ErrorKind::SchemaMismatch, Some(2)), "{refused}");
        assert!(refused.to_string().contains("'id' to 'key'"), "{refused}");
        assert!(refused.hint().unwrap().contains("allowSourceColumnRename"), "{refused}");
    }
    for version in [AllowedVersion::Of(2), AllowedVersion::Always] {
        let again = case.open(renamed(version)).unwrap();
        assert_eq!(latest(&again, Some(&before)).unwrap(), barrier(2, -19));
        release(&again, &before).unwrap();
        let last = latest(&again, Some(&barrier(2, -19))).unwrap();
        assert_eq!(last, offset(4, -1, false));
        assert_eq!(values(&rows(&again, Some(&barrier(2, -19)), &last), "key"), [2]);
    }
}

/// Rows before a schema change are always read with the schema with which they were written.
#[test]
fn a_stream_that_is_opened_after_a_change_reads_older_rows_with_the_old_schema() {
    let mut case = Case::new(&[ID]);
    case.append("id", 1);
    let first = latest(&case.open(case.tracking()).unwrap(), None).unwrap();
    case.append("id", 2);
    case.table.commit(vec![metadata(&[("key", "id", "long")])]);
    let stream = case.open(case.tracking()).unwrap();
    let before = latest(&stream, Some(&first)).unwrap();
    assert_eq!(before, barrier(3, -20));
    assert_eq!(values(&rows(&stream, Some(&first), &before), "id"), [2]);
}

#[test]
fn a_new_column_needs_no_permission() {
    let mut case = Case::new(&[ID]);
    case.append("id", 1);
    let stream = case.open(case.tracking()).unwrap();
    let first = latest(&stream, None).unwrap();
    case.table.commit(vec![metadata(&[ID, ("more", "more", "long")])]);
    let before = latest(&stream, Some(&first)).unwrap();
    release(&stream, &before).unwrap_err();
    case.append("more", 7);
    let again = case.open(case.tracking()).unwrap();
    let last = latest(&again, Some(&barrier(2, -19))).unwrap();
    assert_eq!(values(&rows(&again, Some(&barrier(2, -19)), &last), "more"), [7]);
}

#[test]
fn dropped_and_widened_columns_must_be_allowed_separately() {
    let mut case = Case::new(&[("a", "a", "integer"), ("b", "b", "long")]);
    case.append("b", 1);
    let stream = case.open(case.tracking()).unwrap();
    let first = latest(&stream, None).unwrap();
    case.table.commit(vec![metadata(&[("a", "a", "long")])]);
    let before = latest(&stream, Some(&first)).unwrap();
    release(&stream, &before).unwrap_err();
    let drop = case.tracking().allow(SchemaChange::Drop, AllowedVersion::Always);
    let refused = case.open(drop.clone()).unwrap_err();
    assert!(refused.to_string().contains("it widens 'a'"), "{refused}");
    assert!(!refused.to_string().contains("'b'"), "{refused}");
    assert!(refused.hint().unwrap().contains("allowSourceColumnTypeChange"), "{refused}");
    case.open(drop.allow(SchemaChange::TypeChange, AllowedVersion::Of(2))).unwrap();
}

#[test]
fn commits_that_change_nothing_for_readers_do_not_end_a_stream() {
    let mut case = Case::new(&[ID]);
    case.append("id", 1);
    let stream = case.open(case.tracking()).unwrap();
    let first = latest(&stream, None).unwrap();
    let mut described = metadata(&[ID]);
    described["metaData"]["description"] = json!("numbers");
    case.table.commit(vec![described, protocol()]);
    assert_eq!(latest(&stream, Some(&first)).unwrap(), offset(3, -1, false));
}

#[test]
fn a_change_of_a_delta_property_ends_a_stream() {
    let mut case = Case::new(&[ID]);
    case.append("id", 1);
    let stream = case.open(case.tracking()).unwrap();
    let first = latest(&stream, None).unwrap();
    let mut changed = metadata(&[ID]);
    changed["metaData"]["configuration"]["delta.appendOnly"] = json!("true");
    case.table.commit(vec![changed]);
    assert_eq!(latest(&stream, Some(&first)).unwrap(), barrier(2, -20));
}

/// If a stream recorded a schema but failed before it finished its first batch, it begins again with a newer
/// snapshot.
#[test]
fn a_stream_that_begins_again_records_the_schema_of_its_new_snapshot() {
    let mut case = Case::new(&[ID]);
    case.append("id", 1);
    latest(&case.open(case.tracking()).unwrap(), None).unwrap();
    case.table.commit(vec![metadata(&[("key", "id", "long")])]);
    let ended = latest(&case.open(case.tracking()).unwrap(), None).unwrap_err();
    assert_eq!(ended.version(), Some(2), "{ended}");
    let again = case.open(case.tracking()).unwrap();
    let first = latest(&again, None).unwrap();
    assert_eq!(values(&rows(&again, None, &first), "key"), [1]);
    assert!(case.entry(1).contains(r#""previousMetadataSeqNum":-1"#), "{}", case.entry(1));
}

#[test]
fn schema_tracking_can_begin_at_an_offset() {
    let mut case = Case::new(&[ID]);
    case.append("id", 1);
    let stream = case.open(case.tracking()).unwrap();
    latest(&stream, Some(&offset(2, -1, false))).unwrap();
    assert!(case.entry(0).contains(r#""deltaCommitVersion":1"#), "{}", case.entry(0));
}

#[test]
fn the_log_of_another_source_is_refused() {
    let mut case = Case::new(&[ID]);
    case.append("id", 1);
    latest(&case.open(case.tracking()).unwrap(), None).unwrap();
    let error = case.open(case.tracking().source("/checkpoint/sources/1")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    case.open(case.tracking().source("/checkpoint/sources/1").id("second")).unwrap();
}

#[test]
fn two_streams_with_one_schema_log_are_refused() {
    let mut case = Case::new(&[ID]);
    case.append("id", 1);
    let first = case.open(case.tracking()).unwrap();
    case.table.commit(vec![metadata(&[("key", "id", "long")])]);
    let second = case.open(case.tracking()).unwrap();
    latest(&first, None).unwrap();
    let error = latest(&second, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.hint().unwrap().contains("schemaTrackingLocation"), "{error}");
}

/// The JVM connector 4.4 wrote the expected file.
#[test]
fn entries_are_written_as_the_jvm_connector_writes_them() {
    let schema = concat!(
        r#"{\"type\":\"struct\",\"fields\":["#,
        r#"{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}"#
    );
    let text = format!(
        "v1\n{}{schema}{}",
        r#"{"tableId":"9b1f","deltaCommitVersion":3,"dataSchemaJson":""#,
        concat!(
            r#"","partitionSchemaJson":"{\"type\":\"struct\",\"fields\":[]}","#,
            r#""sourceMetadataPath":"file:/c/sources/0","#,
            r#""tableConfigurations":{"delta.columnMapping.mode":"name"},"#,
            r#""protocolJson":"{\"protocol\":{\"minReaderVersion\":2,\"minWriterVersion\":5}}"}"#
        )
    );
    let entry = Entry::parse(text.as_bytes()).unwrap();
    assert_eq!(entry.to_text().unwrap(), text);
}

#[test]
fn errors_about_damaged_and_unknown_entries() {
    let mut case = Case::new(&[ID]);
    case.append("id", 1);
    latest(&case.open(case.tracking()).unwrap(), None).unwrap();
    let path = case.checkpoint.path().join("_schema_log_t/0");
    for (text, kind) in [
        ("", ErrorKind::CorruptLog),
        ("v1\n{", ErrorKind::CorruptLog),
        ("v2\n{}", ErrorKind::Unsupported),
        ("v1\n{}", ErrorKind::CorruptLog),
    ] {
        fs::write(&path, text).unwrap();
        let error = case.open(case.tracking()).unwrap_err();
        assert_eq!((error.kind(), error.path()), (kind, Some("_schema_log_t/0")), "{text}: {error}");
    }
}

#[test]
fn allowed_versions_are_parsed_from_text() {
    assert_eq!("Always".parse::<AllowedVersion>().unwrap(), AllowedVersion::Always);
    assert_eq!("7".parse::<AllowedVersion>().unwrap(), AllowedVersion::Of(7));
    for text in ["", "-1", "sometimes"] {
        assert_eq!(text.parse::<AllowedVersion>().unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}
