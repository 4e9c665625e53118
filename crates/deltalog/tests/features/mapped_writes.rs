//! Writes to tables with column mapping. Protocol: "Column Mapping", "Writer Requirements for Column Mapping".

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Int64Array, ListArray, MapArray, RecordBatch, StringArray, StructArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Fields};
use deltalog::engine::protocol::{Action, Add, ColumnMappingMode};
use deltalog::{
    Environment, ErrorKind, FileListing, Operation, ParseMode, PendingWrite, SaveMode, Snapshot, Storage,
    StructType, TableScan, WriteRequest, parse_predicate,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;

/// These column names contain characters that Parquet does not allow, so they need column mapping.
const SCHEMA: &str = r#"{"type":"struct","fields":[
    {"name":"the day","type":"string","nullable":true,"metadata":{}},
    {"name":"id, or key","type":"long","nullable":true,"metadata":{"comment":"c"}},
    {"name":"s","type":{"type":"struct","fields":[
        {"name":"a;b","type":"long","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}},
    {"name":"l","type":{"type":"array","elementType":{"type":"struct","fields":[
        {"name":"x","type":"long","nullable":true,"metadata":{}}]},"containsNull":true},
        "nullable":true,"metadata":{}},
    {"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[
        {"name":"y","type":"long","nullable":true,"metadata":{}}]},"valueContainsNull":true},
        "nullable":true,"metadata":{}}]}"#;

fn table(mode: &str) -> (tempfile::TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    for ids in [1..4, 4..6] {
        write(&storage, mode, ids);
    }
    (directory, storage)
}

fn write(storage: &Storage, mode: &str, ids: std::ops::Range<i64>) {
    let mut request = WriteRequest::new(StructType::from_json(SCHEMA).unwrap(), SaveMode::Append);
    request.partition_by = Some(vec!["the day".to_owned()]);
    request.configuration = [
        ("delta.columnMapping.mode".to_owned(), mode.to_owned()),
        ("delta.dataSkippingStatsColumns".to_owned(), "`id, or key`, s.`a;b`".to_owned()),
    ]
    .into();
    let write = PendingWrite::begin(storage, request, &Environment::system()).unwrap().unwrap();
    let mut writer = write.writer().unwrap();
    writer.write(&batch(write.arrow_schema().fields(), ids)).unwrap();
    write.commit(writer.finish().unwrap(), Operation::new("WRITE")).unwrap();
}

/// Returns a row for each id, with values derived from the id in all columns.
fn batch(fields: &Fields, ids: std::ops::Range<i64>) -> RecordBatch {
    let count = usize::try_from(ids.end - ids.start).unwrap();
    let longs: ArrayRef = Arc::new(Int64Array::from_iter_values(ids.clone()));
    let inner = |data_type: &DataType| {
        let DataType::Struct(fields) = data_type else { panic!("{data_type}") };
        StructArray::new(fields.clone(), vec![Arc::clone(&longs)], None)
    };
    let column = |index: usize| -> ArrayRef {
        match fields[index].data_type() {
            DataType::Utf8 => {
                Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("d{}", id % 2))))
            }
            DataType::Int64 => Arc::clone(&longs),
            data_type @ DataType::Struct(_) => Arc::new(inner(data_type)),
            DataType::List(element) => {
                let offsets = OffsetBuffer::from_lengths(vec![1; count]);
                Arc::new(ListArray::new(
                    Arc::clone(element),
                    offsets,
                    Arc::new(inner(element.data_type())),
                    None,
                ))
            }
            DataType::Map(entries, sorted) => {
                let DataType::Struct(pair) = entries.data_type() else { panic!("no pair") };
                let keys = Arc::new(StringArray::from_iter_values(ids.clone().map(|id| id.to_string())));
                let values = Arc::new(inner(pair[1].data_type()));
                let pairs = StructArray::new(pair.clone(), vec![keys, values], None);
                let offsets = OffsetBuffer::from_lengths(vec![1; count]);
                Arc::new(MapArray::new(Arc::clone(entries), offsets, pairs, None, *sorted))
            }
            other => panic!("{other}"),
        }
    };
    let columns = (0..fields.len()).map(column).collect();
    RecordBatch::try_new(Arc::new(arrow::datatypes::Schema::new(fields.clone())), columns).unwrap()
}

fn adds(directory: &Path) -> Vec<Add> {
    let text =
        |version: u64| std::fs::read(directory.join(format!("_delta_log/{version:020}.json"))).unwrap();
    let mut adds = Vec::new();
    for version in 0..2 {
        for line in text(version).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if let Some(Action::Add(add)) = Action::parse_line(line).unwrap() {
                adds.push(add);
            }
        }
    }
    adds
}

/// Collects the names and ids of the fields in a file, including nested fields. The groups of lists and maps are left
/// out.
fn fields_of(field: &Type, found: &mut BTreeSet<(String, i32)>) {
    if field.get_basic_info().has_id() {
        found.insert((field.name().to_owned(), field.get_basic_info().id()));
    }
    if field.is_group() {
        field.get_fields().iter().for_each(|field| fields_of(field, found));
    }
}

/// Collects the physical names and ids of the columns, including nested fields.
fn mapping(fields: &serde_json::Value, found: &mut BTreeSet<(String, i32)>) {
    match fields {
        serde_json::Value::Object(object) => {
            if let Some(metadata) = object.get("metadata") {
                let name = metadata["delta.columnMapping.physicalName"].as_str().unwrap().to_owned();
                let id = metadata["delta.columnMapping.id"].as_i64().unwrap();
                assert!(found.insert((name, i32::try_from(id).unwrap())));
            }
            object.iter().filter(|(key, _)| *key != "metadata").for_each(|(_, value)| mapping(value, found));
        }
        serde_json::Value::Array(all) => all.iter().for_each(|value| mapping(value, found)),
        _ => {}
    }
}

#[test]
fn files_partition_values_and_statistics_have_physical_names() {
    for mode in ["name", "id"] {
        let (directory, storage) = table(mode);
        let snapshot = Snapshot::open(&storage, None).unwrap();
        assert_eq!(snapshot.mapped_schema().mode().name(), mode);
        let mut columns = BTreeSet::new();
        mapping(&serde_json::from_str(&snapshot.metadata().schema_string).unwrap(), &mut columns);
        assert_eq!(columns.len(), 8, "{columns:?}");
        let ids: BTreeSet<i32> = columns.iter().map(|(_, id)| *id).collect();
        assert_eq!(ids, (1..=8).collect());
        assert_eq!(snapshot.metadata().property("delta.columnMapping.maxColumnId"), Some("8"));
        let physical = |name: &str| snapshot.mapped_schema().physical_name(name).unwrap().to_owned();
        let partition = physical("the day");
        for add in adds(directory.path()) {
            assert_eq!(add.partition_values.keys().collect::<Vec<_>>(), [&partition]);
            let stats: serde_json::Value = serde_json::from_str(add.stats.as_deref().unwrap()).unwrap();
            let bounded: BTreeSet<&String> = stats["minValues"].as_object().unwrap().keys().collect();
            assert_eq!(bounded, [&physical("id, or key"), &physical("s")].into());
            let file =
                SerializedFileReader::new(File::open(directory.path().join(&add.path)).unwrap()).unwrap();
            let mut found = BTreeSet::new();
            fields_of(file.metadata().file_metadata().schema(), &mut found);
            let expected: BTreeSet<_> =
                columns.iter().filter(|(name, _)| *name != partition).cloned().collect();
            assert_eq!(found, expected, "{mode}");
        }
    }
}

#[test]
fn rows_are_read_back_under_their_names() {
    for mode in ["name", "id"] {
        let (_directory, storage) = table(mode);
        let snapshot = Snapshot::open(&storage, None).unwrap();
        let batches: Vec<_> = TableScan::new(&snapshot).read().unwrap().map(Result::unwrap).collect();
        let rows = concat_batches(snapshot.arrow_schema(), &batches).unwrap();
        let mut ids: Vec<i64> = Vec::new();
        for row in 0..rows.num_rows() {
            let id = rows.column(1).as_primitive::<arrow::datatypes::Int64Type>().value(row);
            let expected = batch(snapshot.arrow_schema().fields(), id..id + 1);
            assert_eq!(rows.slice(row, 1), expected, "{mode}");
            ids.push(id);
        }
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3, 4, 5]);
        // Filters on logical names use the statistics and partition values, which have physical names.
        let predicate =
            parse_predicate("`id, or key` > 3 AND `the day` = 'd1'", "UTC", ParseMode::Strict).unwrap();
        let files = FileListing::new(&snapshot).predicate(&predicate).unwrap().read().unwrap();
        assert_eq!(files.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1);
    }
}

#[test]
fn unknown_modes_are_refused_and_none_means_no_mapping() {
    let create = |mode: &str| {
        let directory = tempfile::tempdir().unwrap();
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        let schema =
            r#"{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}"#;
        let mut request = WriteRequest::new(StructType::from_json(schema).unwrap(), SaveMode::Append);
        request.configuration = [("delta.columnMapping.mode".to_owned(), mode.to_owned())].into();
        let write = PendingWrite::begin(&storage, request, &Environment::system())?.unwrap();
        write.commit(Vec::new(), Operation::new("CREATE TABLE"))?;
        Ok::<_, deltalog::Error>(Snapshot::open(&storage, None).unwrap())
    };
    assert_eq!(create("maybe").unwrap_err().kind(), ErrorKind::InvalidArgument);
    let plain = create("none").unwrap();
    assert_eq!(plain.mapped_schema().mode(), ColumnMappingMode::None);
    assert!(!plain.metadata().schema_string.contains("physicalName"));
}
