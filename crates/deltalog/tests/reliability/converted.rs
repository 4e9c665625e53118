//! Conversions of directories of Parquet files to tables. Protocol: "Add File and Remove File", "Partition Value
//! Serialization", "Per-file Statistics", "Delta Data Type to Parquet Type Mappings".

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Date32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    MapBuilder, RecordBatch, RecordBatchIterator, StringArray, StringBuilder, StructArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray, UInt32Array,
};
use arrow::datatypes::{DataType, Field, TimeUnit};
use deltalog::engine::protocol::Add;
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    Conversion, ConvertRequest, ConvertSource, CreationMode, ErrorKind, PendingWrite, PrimitiveType, Result,
    SaveMode, Snapshot, Storage, StructField, StructType, TableDefinition, WriteRequest, plan_conversion,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use tempfile::TempDir;

use crate::common::ids::{environment, ids};
use crate::common::newest;

fn directory() -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    (directory, storage)
}

/// Writes a file with these columns, and the directories above it.
fn put(directory: &TempDir, path: &str, columns: &[(&str, ArrayRef)]) {
    put_with(directory.path(), path, columns, WriterProperties::builder().build());
}

fn put_with(directory: &Path, path: &str, columns: &[(&str, ArrayRef)], properties: WriterProperties) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let rows = RecordBatch::try_from_iter_with_nullable(
        columns.iter().map(|(name, column)| (*name, Arc::clone(column), true)),
    )
    .unwrap();
    let mut writer =
        ArrowWriter::try_new(fs::File::create(path).unwrap(), rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
}

fn longs(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn texts<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(StringArray::from_iter(values))
}

fn planned(storage: &Storage, set: impl FnOnce(&mut ConvertRequest)) -> Result<Conversion> {
    let mut request = ConvertRequest::default();
    set(&mut request);
    Ok(plan_conversion(storage, request, &environment())?.unwrap())
}

fn converted(storage: &Storage) -> Snapshot {
    planned(storage, |_| ()).unwrap().commit().unwrap().unwrap();
    newest(storage)
}

/// Runs a conversion that must fail. Checks that nothing was committed, and returns the kind and the message of the
/// error.
fn refused(storage: &Storage, set: impl FnOnce(&mut ConvertRequest)) -> (ErrorKind, String) {
    let error = planned(storage, set).unwrap_err();
    assert_eq!(Snapshot::open(storage, None).unwrap_err().kind(), ErrorKind::NotATable);
    assert_eq!(error.table(), Some(storage.url().as_str()), "{error}");
    (error.kind(), error.to_string())
}

fn adds(snapshot: &Snapshot) -> Vec<Add> {
    let mut adds: Vec<Add> = listed_files(snapshot, None).unwrap().into_iter().map(|file| file.add).collect();
    adds.sort_by(|a, b| a.path.cmp(&b.path));
    adds
}

fn columns(fields: &[(&str, PrimitiveType)]) -> StructType {
    let fields = fields.iter().map(|(name, data_type)| StructField::new(*name, *data_type, true));
    StructType::try_new(fields.collect()).unwrap()
}

#[test]
fn a_directory_becomes_a_table_where_it_is() {
    let (directory, storage) = directory();
    put(
        &directory,
        "a.parquet",
        &[("id", longs(0..5)), ("s", texts([Some("x"), None, Some("z"), None, None]))],
    );
    put(&directory, "deep/er/b c%.parquet", &[("id", longs(5..7)), ("s", texts([None, None]))]);
    for hidden in ["_SUCCESS", ".a.parquet.crc", "_temporary/0/c.parquet", ".hidden/d.parquet", "empty"] {
        let path = directory.path().join(hidden);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, if hidden == "empty" { "" } else { "no Parquet" }).unwrap();
    }
    let plan = planned(&storage, |_| ()).unwrap();
    let length = |path: &str| fs::metadata(directory.path().join(path)).unwrap().len();
    assert_eq!((plan.files(), plan.bytes()), (2, length("a.parquet") + length("deep/er/b c%.parquet")));
    assert_eq!(plan.batches().unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    assert_eq!(
        Snapshot::open(&storage, None).unwrap_err().kind(),
        ErrorKind::NotATable,
        "a plan commits nothing"
    );
    assert_eq!(plan.commit().unwrap().unwrap().version, 0);
    let table = newest(&storage);
    assert_eq!(*table.schema(), columns(&[("id", PrimitiveType::Long), ("s", PrimitiveType::String)]));
    assert_eq!(ids(&table), (0..7).collect::<Vec<i64>>());
    let [a, b] = adds(&table).try_into().unwrap();
    assert_eq!((a.path.as_str(), b.path.as_str()), ("a.parquet", "deep/er/b%20c%25.parquet"));
    assert!(a.data_change && a.modification_time > 0 && a.size as u64 == length("a.parquet"));
    assert_eq!(
        a.stats.unwrap(),
        r#"{"numRecords":5,"minValues":{"id":0,"s":"x"},"maxValues":{"id":4,"s":"z"},"nullCount":{"id":0,"s":3}}"#
    );
    assert_eq!(
        b.stats.unwrap(),
        r#"{"numRecords":2,"minValues":{"id":5},"maxValues":{"id":6},"nullCount":{"id":0,"s":2}}"#
    );
    // The new table can be written.
    let request = WriteRequest::new(table.schema().clone(), SaveMode::Append);
    let write = PendingWrite::begin(&storage, request, &environment()).unwrap().unwrap();
    write.commit(Vec::new(), deltalog::Operation::new("WRITE")).unwrap();
}

/// "Commit Provenance Information", with the names of the JVM implementation.
#[test]
fn the_commit_says_what_was_done() {
    let (directory, storage) = directory();
    put(&directory, "p=1/a.parquet", &[("id", longs(0..5))]);
    let definition = |request: ConvertRequest| {
        let mut definition = TableDefinition::new(StructType::default());
        definition.name = Some("n".to_owned());
        definition.configuration = [("delta.appendOnly".to_owned(), "true".to_owned())].into();
        request.defined_as(definition)
    };
    let mut request = definition(ConvertRequest::default());
    request.statistics = false;
    let fields = serde_json::json!({"userMetadata": "mine"});
    request.operation = request.operation.custom_metadata(fields.as_object().unwrap().clone()).unwrap();
    plan_conversion(&storage, request, &environment()).unwrap().unwrap().commit().unwrap();
    let text =
        String::from_utf8(storage.read("_delta_log/00000000000000000000.json").unwrap().to_vec()).unwrap();
    let info: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let info = &info["commitInfo"];
    assert_eq!((&info["operation"], &info["userMetadata"]), (&"CONVERT".into(), &"mine".into()));
    assert_eq!(
        info["operationParameters"],
        serde_json::json!({
            "numFiles": 1, "partitionedBy": "[\"p\"]", "collectStats": false, "sourceFormat": "parquet"
        })
    );
    assert_eq!(info["operationMetrics"], serde_json::json!({"numConvertedFiles": "1"}));
    let table = newest(&storage);
    assert_eq!(
        (table.metadata().name.as_deref(), table.metadata().property("delta.appendOnly")),
        (Some("n"), Some("true"))
    );
    assert_eq!(adds(&table)[0].stats.as_deref(), Some(r#"{"numRecords":5}"#));
}

/// "Partition Value Serialization": values in directory names have types, and are escaped in the same way as in Spark,
/// Hive and pyarrow.
#[test]
fn directories_give_partition_values() {
    let (directory, storage) = directory();
    for (number, path) in [
        "day=2024-01-31/n=01/s=a%2Fb/_k=x=y",
        "day=__HIVE_DEFAULT_PARTITION__/n=2/s=caf%C3%A9/_k=1",
        "day=2024-02-01/n=__HIVE_DEFAULT_PARTITION__/s=50%/_k=__HIVE_DEFAULT_PARTITION__",
    ]
    .iter()
    .enumerate()
    {
        put(&directory, &format!("{path}/f.parquet"), &[("id", longs([number as i64]))]);
    }
    let table = converted(&storage);
    use PrimitiveType as P;
    let expected =
        [("id", P::Long), ("day", P::Date), ("n", P::Integer), ("s", P::String), ("_k", P::String)];
    assert_eq!(*table.schema(), columns(&expected));
    assert_eq!(table.metadata().partition_columns, ["day", "n", "s", "_k"]);
    let values: Vec<Vec<Option<String>>> = adds(&table)
        .into_iter()
        .map(|add| ["day", "n", "s", "_k"].iter().map(|name| add.partition_values[*name].clone()).collect())
        .collect();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        values,
        [
            vec![text("2024-01-31"), text("1"), text("a/b"), text("x=y")],
            vec![text("2024-02-01"), None, text("50%"), None],
            vec![None, text("2"), text("café"), text("1")],
        ]
    );
    assert_eq!(ids(&table), [0, 1, 2]);
}

#[test]
fn given_types_win_and_times_are_in_the_zone() {
    let (directory, storage) = directory();
    put(&directory, "T=2024-07-01 12%3A00%3A00/n=01/a.parquet", &[("id", longs([1]))]);
    put(&directory, "T=2024-07-01T12%3A00%3A00.5Z/n=02/a.parquet", &[("id", longs([2]))]);
    let given = columns(&[("n", PrimitiveType::String), ("t", PrimitiveType::Timestamp)]);
    let set = |request: &mut ConvertRequest| {
        request.partition_by = Some(given.clone());
        request.time_zone = "Europe/Berlin".to_owned();
    };
    planned(&storage, set).unwrap().commit().unwrap();
    let table = newest(&storage);
    assert_eq!(table.metadata().partition_columns, ["n", "t"]);
    let values: Vec<_> = adds(&table)
        .iter()
        .map(|add| (add.partition_values["n"].clone(), add.partition_values["t"].clone()))
        .collect();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        values,
        [
            (text("01"), text("2024-07-01T10:00:00.000000Z")),
            (text("02"), text("2024-07-01T12:00:00.500000Z"))
        ]
    );
}

#[test]
fn wrong_partition_columns_are_refused_with_the_paths() {
    let (directory, storage) = directory();
    put(&directory, "p=1/q=x/a.parquet", &[("id", longs([1]))]);
    put(&directory, "p=one/q=y/a.parquet", &[("id", longs([2]))]);
    let given = |fields: &[(&str, PrimitiveType)]| {
        let given = columns(fields);
        refused(&storage, |request| request.partition_by = Some(given))
    };
    use PrimitiveType as P;
    for (fields, text) in [
        (
            &[("p", P::Integer), ("q", P::String)][..],
            "the partition value 'one' is not of type integer, the type of the column 'p': p=one/q=y",
        ),
        (
            &[("p", P::String), ("r", P::String)],
            "the partition column 'r' is not in the paths of the files: p=1/q=x, p=one/q=y",
        ),
        (
            &[("p", P::String)],
            "the paths of the files have a partition column that is not given, 'q': p=1/q=x",
        ),
        (&[], "the paths of the files have a partition column that is not given, 'p'"),
    ] {
        let (kind, message) = given(fields);
        assert!(kind == ErrorKind::InvalidArgument && message.contains(text), "{message}");
    }
    put(&directory, "p=2/b.parquet", &[("id", longs([3]))]);
    let (kind, message) = refused(&storage, |_| ());
    let text = "files have different partition columns: p, q in 'p=1/q=x', and p in 'p=2'";
    assert!(kind == ErrorKind::InvalidArgument && message.contains(text), "{message}");
    for (path, text) in [
        ("p=", "the name of a directory looks like a partition, but is not one"),
        ("p=%FF", "the name of a directory looks like a partition, but is not one"),
        ("p=1/P=2", "a directory names a partition column twice"),
    ] {
        let (directory, storage) = self::directory();
        put(&directory, &format!("{path}/a.parquet"), &[("id", longs([1]))]);
        let (kind, message) = refused(&storage, |_| ());
        assert!(
            kind == ErrorKind::InvalidArgument && message.contains(text) && message.contains(path),
            "{message}"
        );
    }
    let (directory, storage) = self::directory();
    put(&directory, "ID=1/a.parquet", &[("id", longs([1])), ("x", longs([1]))]);
    let (kind, message) = refused(&storage, |_| ());
    assert!(
        message.contains("the partition column 'id' is also a column of the file")
            && message.contains("ID=1/a.parquet"),
        "{message}"
    );
    assert_eq!(kind, ErrorKind::SchemaMismatch);
    let (directory, storage) = self::directory();
    put(&directory, "t=2024-01-01 00%3A00%3A00/a.parquet", &[("id", longs([1]))]);
    let (kind, message) = refused(&storage, |request| request.time_zone = "Mars".to_owned());
    assert!(
        kind == ErrorKind::InvalidArgument && message.contains("the time zone 'Mars' is unknown"),
        "{message}"
    );
}

/// "Schema Serialization Format": the schemas of all files are merged into one, or there is an error.
#[test]
fn schemas_are_merged_or_refused_with_the_paths() {
    let (directory, storage) = directory();
    put(
        &directory,
        "a.parquet",
        &[("id", Arc::new(Int8Array::from(vec![1])) as ArrayRef), ("x", texts([Some("x")]))],
    );
    put(
        &directory,
        "b.parquet",
        &[("y", longs([7])), ("id", Arc::new(Int16Array::from(vec![300])) as ArrayRef)],
    );
    put(&directory, "c.parquet", &[("id", Arc::new(UInt32Array::from(vec![3])) as ArrayRef)]);
    let (kind, message) = refused(&storage, |_| ());
    let text = "the files have different schemas: the column 'id' is of type byte in a.parquet, and of type long \
                in c.parquet";
    assert!(kind == ErrorKind::SchemaMismatch && message.contains(text), "{message}");
    fs::remove_file(directory.path().join("c.parquet")).unwrap();
    let table = converted(&storage);
    let expected = [("id", PrimitiveType::Short), ("x", PrimitiveType::String), ("y", PrimitiveType::Long)];
    assert_eq!(*table.schema(), columns(&expected));
    assert_eq!(ids(&table), [1, 300]);
}

/// "Delta Data Type to Parquet Type Mappings".
#[test]
fn columns_that_no_table_has_are_refused() {
    let nanoseconds: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1]).with_timezone("UTC"));
    let nested = StructArray::from(vec![(
        Arc::new(Field::new("t", nanoseconds.data_type().clone(), true)),
        Arc::clone(&nanoseconds),
    )]);
    for (column, kind, text) in [
        (nanoseconds, ErrorKind::Unsupported, "the column 'c' has timestamps in nanoseconds"),
        (Arc::new(nested), ErrorKind::Unsupported, "the column 'c' has timestamps in nanoseconds"),
        (
            Arc::new(Time64MicrosecondArray::from(vec![1])),
            ErrorKind::Unsupported,
            "column 'c' has the Arrow type Time64",
        ),
    ] {
        let (directory, storage) = directory();
        put(&directory, "p=1/a.parquet", &[("c", column)]);
        let (found, message) = refused(&storage, |_| ());
        assert!(found == kind && message.contains(text) && message.contains("p=1/a.parquet"), "{message}");
    }
    let (directory, storage) = directory();
    put(&directory, "a.parquet", &[("a b", longs([1]))]);
    let (kind, message) = refused(&storage, |_| ());
    let hint = "write the rows to a new table";
    assert!(kind == ErrorKind::SchemaMismatch && message.contains(hint), "{message}");
}

#[test]
fn other_directories_are_refused() {
    let (directory, storage) = directory();
    let (kind, message) = refused(&storage, |_| ());
    assert!(
        kind == ErrorKind::InvalidArgument && message.contains("there are no Parquet files to convert"),
        "{message}"
    );
    put(&directory, "a.parquet", &[("id", longs([1]))]);
    fs::write(directory.path().join("README.md"), "# Files").unwrap();
    let (kind, message) = refused(&storage, |_| ());
    let text = "the file has no readable Parquet footer";
    assert!(
        kind == ErrorKind::CorruptData && message.contains(text) && message.contains("README.md"),
        "{message}"
    );
    fs::remove_file(directory.path().join("README.md")).unwrap();
    fs::create_dir_all(directory.path().join("in/ner/_delta_log")).unwrap();
    fs::write(directory.path().join("in/ner/_delta_log/00000000000000000000.json"), "").unwrap();
    let (kind, message) = refused(&storage, |_| ());
    let text = "the directory contains other Delta tables: in/ner";
    assert!(kind == ErrorKind::InvalidArgument && message.contains(text), "{message}");
    for (name, value) in [("delta.columnMapping.mode", "name"), ("delta.enableIcebergCompatV2", "true")] {
        let mut definition = TableDefinition::new(StructType::default());
        definition.configuration = [(name.to_owned(), value.to_owned())].into();
        let request = ConvertRequest::default().defined_as(definition);
        let error = plan_conversion(&storage, request, &environment()).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Unsupported && error.to_string().contains("cannot map columns"),
            "{error}"
        );
    }
}

/// An existing table does not change, even if another writer has created it concurrently.
#[test]
fn a_table_is_not_converted() {
    let (directory, storage) = directory();
    put(&directory, "a.parquet", &[("id", longs([1]))]);
    let ignore = |request: &mut ConvertRequest| request.mode = CreationMode::Ignore;
    let (late, late_ignoring) = (planned(&storage, |_| ()).unwrap(), planned(&storage, ignore).unwrap());
    let table = converted(&storage);
    let error = planned(&storage, |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TableAlreadyExists);
    assert!(error.to_string().contains("the directory is already a Delta table"), "{error}");
    let mut request = ConvertRequest::default();
    ignore(&mut request);
    assert!(plan_conversion(&storage, request, &environment()).unwrap().is_none());
    assert_eq!(late.commit().unwrap_err().kind(), ErrorKind::TableAlreadyExists);
    assert_eq!(late_ignoring.commit().unwrap(), None);
    assert_eq!(newest(&storage).version(), table.version());
}

/// "Per-file Statistics": statistics that the Parquet footer does not determine for certain are left out.
#[test]
fn statistics_are_bounds() {
    let (directory, storage) = directory();
    let float: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.5), Some(f64::NAN), None]));
    let long = "é".repeat(50);
    let rows = [
        ("f", float),
        ("d", Arc::new(Date32Array::from(vec![Some(0), None, Some(31)])) as ArrayRef),
        (
            "t",
            Arc::new(TimestampMicrosecondArray::from(vec![Some(1), Some(-1), None]).with_timezone("UTC"))
                as ArrayRef,
        ),
        ("s", texts([Some(long.as_str()), Some("a"), None])),
        ("b", Arc::new(BinaryArray::from_opt_vec(vec![Some(b"x"), None, None])) as ArrayRef),
    ];
    let truncated = WriterProperties::builder().set_statistics_truncate_length(Some(10)).build();
    put_with(directory.path(), "a.parquet", &rows, truncated);
    let none = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None).build();
    put_with(directory.path(), "b.parquet", &rows, none);
    let [a, b] = adds(&converted(&storage)).try_into().unwrap();
    let stats: serde_json::Value = serde_json::from_str(a.stats.as_deref().unwrap()).unwrap();
    assert_eq!(stats["nullCount"], serde_json::json!({"f": 1, "d": 1, "t": 1, "s": 1, "b": 2}));
    assert_eq!(stats["maxValues"].get("f"), None, "{stats}");
    assert_eq!(
        (&stats["minValues"]["d"], &stats["maxValues"]["d"]),
        (&"1970-01-01".into(), &"1970-02-01".into())
    );
    assert_eq!(stats["minValues"]["s"], "a");
    let greatest = stats["maxValues"]["s"].as_str().unwrap();
    assert!(greatest >= long.as_str() && greatest.chars().count() < 50, "{stats}");
    assert_eq!(b.stats.as_deref(), Some(r#"{"numRecords":3,"minValues":{},"maxValues":{},"nullCount":{}}"#));
}

fn list(columns: Vec<(&str, ArrayRef)>) -> ConvertSource {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    ConvertSource::Files(Box::new(RecordBatchIterator::new([Ok(batch.clone())], batch.schema())))
}

fn sizes(directory: &TempDir, paths: &[&str]) -> ArrayRef {
    longs(paths.iter().map(|path| fs::metadata(directory.path().join(path)).unwrap().len() as i64))
}

/// If a list of files is given, it determines which files belong to the table, and their partition values. Names of
/// directories are ignored.
#[test]
fn a_list_of_files_becomes_a_table() {
    let (directory, storage) = directory();
    for (at, path) in ["data/x=9/a.parquet", "data/b c.parquet", "data/not listed.parquet"].iter().enumerate()
    {
        put(&directory, path, &[("id", longs([at as i64]))]);
    }
    let full = format!("{}/data/b c.parquet", directory.path().display());
    let paths = ["data/x=9/a.parquet", "data/b c.parquet"];
    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for value in [Some("7"), None] {
        map.keys().append_value("p");
        map.values().append_option(value);
        map.append(true).unwrap();
    }
    let typed = StructArray::from(vec![(
        Arc::new(Field::new("p", DataType::Int32, true)),
        Arc::new(Int32Array::from(vec![Some(7), None])) as ArrayRef,
    )]);
    for values in [Arc::new(map.finish()) as ArrayRef, Arc::new(typed)] {
        let source = list(vec![
            ("path", texts([Some(paths[0]), Some(full.as_str())])),
            ("size", sizes(&directory, &paths)),
            ("modification_time", longs([5, 6])),
            ("partition_values", values),
        ]);
        planned(&storage, |request| request.source = source).unwrap().commit().unwrap();
        let table = newest(&storage);
        assert_eq!(*table.schema(), columns(&[("id", PrimitiveType::Long), ("p", PrimitiveType::Integer)]));
        let found: Vec<_> = adds(&table)
            .into_iter()
            .map(|add| (add.path, add.modification_time, add.partition_values))
            .collect();
        let value = |value: Option<&str>| [("p".to_owned(), value.map(str::to_owned))].into_iter().collect();
        assert_eq!(
            found,
            [
                ("data/b%20c.parquet".to_owned(), 6, value(None)),
                ("data/x=9/a.parquet".to_owned(), 5, value(Some("7")))
            ]
        );
        assert_eq!(ids(&table), [0, 1]);
        fs::remove_dir_all(directory.path().join("_delta_log")).unwrap();
    }
}

/// Partition values that are given as a struct determine the types of the partition columns. Their times are instants,
/// so the time zone of the request does not matter.
#[test]
fn a_list_gives_the_types_of_partition_columns() {
    let (directory, storage) = directory();
    put(&directory, "a.parquet", &[("id", longs([1]))]);
    let field = |name: &str, data_type: DataType| Arc::new(Field::new(name, data_type, true));
    let nanoseconds = arrow::array::TimestampNanosecondArray::from(vec![3_600_000_001_000]);
    let typed = StructArray::from(vec![
        (field("zip", DataType::Utf8), texts([Some("00123")])),
        (field("n", DataType::Int64), longs([7])),
        (
            field("at", DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into()))),
            Arc::new(nanoseconds.with_timezone("Europe/Berlin")) as ArrayRef,
        ),
    ]);
    let source = list(vec![
        ("path", texts([Some("a.parquet")])),
        ("size", sizes(&directory, &["a.parquet"])),
        ("modification_time", longs([5])),
        ("partition_values", Arc::new(typed)),
    ]);
    let plan = planned(&storage, |request| {
        request.source = source;
        request.time_zone = "America/New_York".to_owned();
    });
    plan.unwrap().commit().unwrap();
    let table = newest(&storage);
    assert_eq!(
        *table.schema(),
        columns(&[
            ("id", PrimitiveType::Long),
            ("zip", PrimitiveType::String),
            ("n", PrimitiveType::Long),
            ("at", PrimitiveType::Timestamp)
        ])
    );
    let values = &adds(&table)[0].partition_values;
    let value = |name: &str| values[name].as_deref().unwrap();
    assert_eq!((value("zip"), value("n"), value("at")), ("00123", "7", "1970-01-01T01:00:00.000001Z"));
}

#[test]
fn lists_that_cannot_be_right_are_refused() {
    let (directory, storage) = directory();
    put(&directory, "a.parquet", &[("id", longs([1]))]);
    let size = || sizes(&directory, &["a.parquet"]);
    let one = |path: &str| -> Vec<(&str, ArrayRef)> {
        vec![("path", texts([Some(path)])), ("size", size()), ("modification_time", longs([5]))]
    };
    let twice = vec![
        ("path", texts([Some("a.parquet"), Some("./a.parquet")])),
        ("size", sizes(&directory, &["a.parquet"; 2])),
        ("modification_time", longs([5, 5])),
    ];
    let wrong_size =
        vec![("path", texts([Some("a.parquet")])), ("size", longs([1])), ("modification_time", longs([5]))];
    let null = vec![("path", texts([None])), ("size", longs([1])), ("modification_time", longs([5]))];
    let negative =
        vec![("path", texts([Some("a.parquet")])), ("size", longs([-1])), ("modification_time", longs([5]))];
    let mut values = one("a.parquet");
    values.push(("partition_values", longs([1])));
    for (columns, kind, text) in [
        (one("../b.parquet"), ErrorKind::InvalidArgument, "is not below the directory"),
        (one("s3://else/where.parquet"), ErrorKind::InvalidArgument, "is not below the directory"),
        (one("missing.parquet"), ErrorKind::FileNotFound, "the file is not there"),
        (
            one("a.parquet")[..2].to_vec(),
            ErrorKind::SchemaMismatch,
            "the list of files has no column 'modification_time'",
        ),
        (twice, ErrorKind::InvalidArgument, "the list of files names a file twice"),
        (wrong_size, ErrorKind::CorruptData, "not 1 as expected"),
        (null, ErrorKind::InvalidArgument, "row 0 of the list of files has no value in 'path'"),
        (negative, ErrorKind::InvalidArgument, "row 0 of the list of files has a negative size"),
        (
            values,
            ErrorKind::SchemaMismatch,
            "the column 'partition_values' of the list of files has the type Int64",
        ),
    ] {
        let source = list(columns);
        let (found, message) = refused(&storage, |request| request.source = source);
        assert!(found == kind && message.contains(text), "{message}");
    }
}
