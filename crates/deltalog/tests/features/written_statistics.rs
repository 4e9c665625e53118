//! Statistics and partition values in the checkpoints that the crate writes. Protocol: "Checkpoints", "Checkpoint
//! Schema", "Per-file Statistics", "Column Mapping".

use std::fs::{self, File};
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::util::display::array_value_to_string;
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::scan::FileListing;
use deltalog::{Environment, Snapshot, Storage, write_checkpoint};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

/// The columns with their types. `day` and `city` are partition columns.
const COLUMNS: [(&str, &str); 13] = [
    ("n", "long"),
    ("small", "byte"),
    ("f", "float"),
    ("money", "decimal(20,2)"),
    ("text", "string"),
    ("yes", "boolean"),
    ("date", "date"),
    ("at", "timestamp"),
    ("local", "timestamp_ntz"),
    ("bytes", "binary"),
    ("x", "integer"),
    ("day", "date"),
    ("city", "string"),
];

fn metadata(mapped: bool, properties: &[(&str, &str)]) -> Value {
    let field = |(number, (name, kind)): (usize, &(&str, &str))| {
        let metadata = match mapped {
            true => json!({
                "delta.columnMapping.id": number + 1, "delta.columnMapping.physicalName": physical(mapped, name),
            }),
            false => json!({}),
        };
        json!({"name": name, "type": kind, "nullable": true, "metadata": metadata})
    };
    let fields: Vec<Value> = COLUMNS.iter().enumerate().map(field).collect();
    let mode = if mapped { "name" } else { "none" };
    let mut configuration = json!({"delta.columnMapping.mode": mode});
    for (name, value) in properties {
        configuration[name] = json!(value);
    }
    json!({"metaData": {
        "id": "t", "format": {"provider": "parquet", "options": {}},
        "schemaString": json!({"type": "struct", "fields": fields}).to_string(),
        "partitionColumns": ["day", "city"], "configuration": configuration,
    }})
}

fn physical(mapped: bool, name: &str) -> String {
    if mapped { format!("col-{name}") } else { name.to_owned() }
}

/// Returns the `add` action of file `k`. Some files have no statistics, or wrong ones.
fn add(mapped: bool, k: i64) -> Value {
    let named = |values: Value| -> Value {
        let values = values.as_object().unwrap().iter();
        values
            .map(|(name, value)| (physical(mapped, name), value.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let bounds = |k: i64| {
        named(json!({
            "n": 10 * k, "small": k, "f": k as f64 + 0.5, "money": 100.25 * k as f64, "text": format!("t{k}"),
            "date": format!("2024-01-{:02}", k + 1), "at": format!("2024-01-01T00:00:{k:02}.123Z"),
            "local": format!("2024-01-01T00:00:{k:02}.123456"), "x": k,
        }))
    };
    let statistics = match k {
        5 => None,
        6 => Some("{\"numRecords\":".to_owned()),
        7 => Some(
            json!({"numRecords": 10, "minValues": named(json!({
                "n": "many", "small": 1000, "money": 0.001, "date": "2024-13-01", "x": 7,
            }))})
            .to_string(),
        ),
        k => Some(
            json!({
                "numRecords": 10, "minValues": bounds(k), "maxValues": bounds(k + 1),
                "nullCount": named(json!({"n": k % 2, "bytes": 3, "yes": 10, "text": 0})),
                "tightBounds": k % 3 != 0,
            })
            .to_string(),
        ),
    };
    let values = named(json!({
        "day": if k == 3 { Value::Null } else { json!(format!("2024-02-{:02}", k % 4 + 1)) },
        "city": if k == 4 { "" } else { ["Rome", "a b/c%"][k as usize % 2] },
    }));
    json!({"add": {
        "path": k.to_string(), "partitionValues": values, "size": 1, "modificationTime": 1, "dataChange": true,
        "stats": statistics,
    }})
}

/// Writes a table of ten files and its checkpoint, and removes the commit. Returns the file lists before and after the
/// removal.
fn lists_of(directory: &Path, mapped: bool, properties: &[(&str, &str)]) -> [Vec<Vec<String>>; 2] {
    let log = directory.join("_delta_log");
    fs::create_dir(&log).unwrap();
    let features = ["columnMapping", "timestampNtz"];
    let protocol = json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
    }});
    let mut lines = vec![protocol.to_string(), metadata(mapped, properties).to_string()];
    lines.extend((0..10).map(|k| add(mapped, k).to_string()));
    let commit = log.join("00000000000000000000.json");
    fs::write(&commit, lines.join("\n")).unwrap();
    let storage = Storage::open(directory.to_str().unwrap(), []).unwrap();
    let before = lists(&storage);
    write_checkpoint(&Snapshot::open(&storage, None).unwrap(), &Environment::system()).unwrap();
    fs::remove_file(commit).unwrap();
    [before, lists(&storage)]
}

fn lists(storage: &Storage) -> Vec<Vec<String>> {
    let snapshot = Snapshot::open(storage, None).unwrap();
    let list = |sql: &&str| {
        let predicate = parse(sql, "UTC", ParseMode::Strict).unwrap();
        let paths = FileListing::new(&snapshot).predicate(&predicate).unwrap().paths().unwrap();
        let mut paths: Vec<String> = paths.map(|path| path.unwrap().to_string()).collect();
        paths.sort();
        paths
    };
    PREDICATES.iter().map(list).collect()
}

const PREDICATES: &[&str] = &[
    "n = 25",
    "n IS NULL",
    "small > 8",
    "f < 1.5",
    "money > 700.50",
    "text < 't2'",
    "yes IS NOT NULL",
    "date = DATE '2024-01-04'",
    "at > TIMESTAMP '2024-01-01 00:00:09.1239Z'",
    "local >= TIMESTAMP_NTZ '2024-01-01 00:00:10.123456'",
    "x = 3",
    "day = DATE '2024-02-02'",
    "day IS NULL",
    "city = 'a b/c%' AND n > 60",
    "city IS NULL",
];

fn adds(directory: &Path) -> Vec<StructArray> {
    let file = File::open(directory.join("_delta_log/00000000000000000000.checkpoint.parquet")).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batches: Vec<RecordBatch> = batches.map(|batch| batch.unwrap()).collect();
    batches.iter().map(|batch| batch.column_by_name("add").unwrap().as_struct().clone()).collect()
}

/// The files that a predicate keeps do not depend on where statistics and partition values come from.
#[test]
fn text_and_structs_skip_the_same_files() {
    for mapped in [false, true] {
        for (text, structs) in [("true", "false"), ("true", "true"), ("false", "true")] {
            let directory = tempfile::tempdir().unwrap();
            let properties = [
                ("delta.checkpoint.writeStatsAsJson", text),
                ("delta.checkpoint.writeStatsAsStruct", structs),
            ];
            let [before, after] = lists_of(directory.path(), mapped, &properties);
            for (sql, (before, after)) in PREDICATES.iter().zip(before.iter().zip(&after)) {
                assert_eq!(before, after, "{sql}, mapped: {mapped}, text: {text}, structs: {structs}");
                assert!(before.len() < 10, "{sql} skips nothing");
            }
            for add in adds(directory.path()) {
                assert_eq!(add.column_by_name("stats").is_some(), text == "true");
                assert_eq!(add.column_by_name("stats_parsed").is_some(), structs == "true");
                assert_eq!(add.column_by_name("partitionValues_parsed").is_some(), structs == "true");
            }
        }
    }
}

/// A checkpoint with neither JSON nor struct statistics has no statistics, so no file is skipped.
#[test]
fn statistics_can_be_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let [_, after] = lists_of(directory.path(), false, &[("delta.checkpoint.writeStatsAsJson", "false")]);
    assert_eq!(after[0].len(), 10);
    assert!(adds(directory.path()).iter().all(|add| add.column_by_name("stats").is_none()));
}

fn child(parent: &StructArray, path: &[&str]) -> ArrayRef {
    let (name, below) = path.split_first().unwrap();
    let column =
        parent.column_by_name(name).unwrap_or_else(|| panic!("no {name} in {:?}", parent.column_names()));
    if below.is_empty() { column.clone() } else { child(column.as_struct(), below) }
}

#[test]
fn structs_have_the_types_of_the_schema_and_the_names_of_the_log() {
    for mapped in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        lists_of(directory.path(), mapped, &[("delta.checkpoint.writeStatsAsStruct", "true")]);
        let add = adds(directory.path()).remove(0);
        let name = |name: &str| physical(mapped, name);
        let rows = child(&add, &["path"]);
        let row_of =
            |path: &str| rows.as_string::<i32>().iter().position(|found| found == Some(path)).unwrap();
        let of = |path: &str, column: &[&str]| {
            let column = child(&add, column);
            let row = row_of(path);
            column.is_valid(row).then(|| array_value_to_string(&column, row).unwrap())
        };
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        for (column, data_type, value) in [
            ("n", DataType::Int64, "20"),
            ("small", DataType::Int8, "2"),
            ("f", DataType::Float32, "2.5"),
            ("money", DataType::Decimal128(20, 2), "200.50"),
            ("text", DataType::Utf8, "t2"),
            ("date", DataType::Date32, "2024-01-03"),
            ("at", utc, "2024-01-01T00:00:02.123Z"),
            ("local", DataType::Timestamp(TimeUnit::Microsecond, None), "2024-01-01T00:00:02.123456"),
            ("x", DataType::Int32, "2"),
        ] {
            let path = ["stats_parsed", "minValues", &name(column)];
            assert_eq!(child(&add, &path).data_type(), &data_type, "{column}");
            assert_eq!(of("2", &path).as_deref(), Some(value), "{column}");
            // One file has no statistics, and the JSON of another file's statistics is cut off.
            assert_eq!((of("5", &path), of("6", &path)), (None, None), "{column}");
        }
        // Values that do not have the column's type are unknown; the other values of the same file are kept.
        for (column, value) in
            [("n", None), ("small", None), ("money", None), ("date", None), ("x", Some("7"))]
        {
            assert_eq!(of("7", &["stats_parsed", "minValues", &name(column)]).as_deref(), value, "{column}");
        }
        assert_eq!(of("1", &["stats_parsed", "nullCount", &name("bytes")]).as_deref(), Some("3"));
        assert_eq!(of("3", &["stats_parsed", "tightBounds"]).as_deref(), Some("false"));
        assert_eq!(of("1", &["partitionValues_parsed", &name("day")]).as_deref(), Some("2024-02-02"));
        assert_eq!(of("3", &["partitionValues_parsed", &name("day")]), None);
        assert_eq!(of("1", &["partitionValues_parsed", &name("city")]).as_deref(), Some("a b/c%"));
        assert_eq!(of("4", &["partitionValues_parsed", &name("city")]), None);
        // "partitionValues_parsed" has only partition columns, and "stats_parsed" has none.
        let names = |struct_: &[&str]| child(&add, struct_).as_struct().column_names().len();
        assert_eq!(names(&["partitionValues_parsed"]), 2);
        assert_eq!(names(&["stats_parsed", "nullCount"]), 11);
    }
}

/// Protocol: "Partition Value Serialization": a value that does not have the column's type is an error, not NULL.
#[test]
fn invalid_partition_values_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("_delta_log");
    fs::create_dir(&log).unwrap();
    let protocol = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}});
    let fields = json!([{"name": "p", "type": "integer", "nullable": true, "metadata": {}}]);
    let metadata = json!({"metaData": {
        "id": "t", "format": {"provider": "parquet", "options": {}},
        "schemaString": json!({"type": "struct", "fields": fields}).to_string(),
        "partitionColumns": ["p"], "configuration": {"delta.checkpoint.writeStatsAsStruct": "true"},
    }});
    let add = json!({"add": {
        "path": "a", "partitionValues": {"p": "x"}, "size": 1, "modificationTime": 1, "dataChange": true,
    }});
    fs::write(log.join("00000000000000000000.json"), format!("{protocol}\n{metadata}\n{add}\n")).unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let snapshot = Snapshot::open(&storage, None).unwrap();
    let error = write_checkpoint(&snapshot, &Environment::system()).unwrap_err();
    assert!(error.to_string().contains("partition value \"x\" of column 'p'"), "{error}");
    // The failed attempt leaves no files behind.
    assert_eq!(fs::read_dir(&log).unwrap().count(), 1);
}
