//! Tests that the written files contain the rows that were written, in the right partition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{DataType, Field, Fields, Int32Type, Int64Type, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use super::{DataWriter, TableWriteSpec, WriteOptions};
use crate::protocol::{Add, path};
use crate::storage::Storage;
use crate::values::stats::IndexedColumns;
use crate::{Environment, ErrorKind};

fn options() -> WriteOptions {
    let (clock, names) = (AtomicU64::new(1000), AtomicU64::new(0));
    let now_ms = move || clock.fetch_add(1, Ordering::Relaxed) as i64;
    let new_uuid = move || Uuid::from_u128(names.fetch_add(1, Ordering::Relaxed).into());
    WriteOptions::new(Environment::new(now_ms, new_uuid))
}

fn table() -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    (directory, storage)
}

fn spec(schema: &SchemaRef, partition_columns: &[String]) -> TableWriteSpec {
    TableWriteSpec::unmapped(schema, partition_columns, IndexedColumns::All)
}

fn writer(
    storage: &Storage,
    schema: &SchemaRef,
    partition_columns: &[&str],
    options: WriteOptions,
) -> DataWriter {
    let columns: Vec<String> = partition_columns.iter().map(|&column| column.to_owned()).collect();
    DataWriter::new(storage.clone(), spec(schema, &columns), options).unwrap()
}

fn read(storage: &Storage, add: &Add) -> RecordBatch {
    let file = storage.open_file(&path::decode(&add.path).unwrap()).unwrap();
    assert_eq!(i64::try_from(file.size()).unwrap(), add.size);
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = Arc::clone(reader.schema());
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

fn files(storage: &Storage) -> Vec<String> {
    storage.list_after("", "").map(|files| files.into_iter().map(|file| file.name).collect()).unwrap()
}

fn schema_of(batch: &RecordBatch) -> SchemaRef {
    batch.schema()
}

/// Returns a batch with one column of each type that a table can have.
pub(super) fn every_type() -> RecordBatch {
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let inner =
        Fields::from(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, true)]);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("é"), None, Some("")]));
    let nested = StructArray::new(
        inner,
        vec![Arc::clone(&ints), Arc::clone(&texts)],
        Some(NullBuffer::from(vec![true, true, false])),
    );
    let list = ListArray::new(
        Arc::new(Field::new("item", DataType::Int32, true)),
        OffsetBuffer::from_lengths([2, 0, 1]),
        Arc::clone(&ints),
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let entries = Fields::from(vec![
        Field::new("keys", DataType::Utf8, false),
        Field::new("values", DataType::Int32, true),
    ]);
    let pairs = StructArray::new(
        entries.clone(),
        vec![Arc::new(StringArray::from(vec!["a", "b", "c"])), Arc::clone(&ints)],
        None,
    );
    let entries = Arc::new(Field::new("entries", DataType::Struct(entries), false));
    let map = MapArray::new(entries, OffsetBuffer::from_lengths([1, 2, 0]), pairs, None, false);
    let micros = TimestampMicrosecondArray::from(vec![Some(-1), None, Some(1_700_000_000_123_456)]);
    let decimal = |precision| {
        Decimal128Array::from(vec![Some(-5), None, Some(123)]).with_precision_and_scale(precision, 2).unwrap()
    };
    RecordBatch::try_from_iter_with_nullable([
        ("boolean", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])) as ArrayRef, true),
        ("byte", Arc::new(Int8Array::from(vec![Some(-128), None, Some(127)])), true),
        ("short", Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(1)])), true),
        ("integer", ints, true),
        ("long", Arc::new(Int64Array::from(vec![i64::MIN, 0, i64::MAX])), false),
        ("float", Arc::new(Float32Array::from(vec![Some(0.5), None, Some(-0.0)])), true),
        ("double", Arc::new(Float64Array::from(vec![Some(0.5), None, Some(1e300)])), true),
        ("small", Arc::new(decimal(9)), true),
        ("middle", Arc::new(decimal(18)), true),
        ("large", Arc::new(decimal(38)), true),
        ("string", texts, true),
        ("binary", Arc::new(BinaryArray::from(vec![Some(&[0u8, 255][..]), None, Some(&[])])), true),
        ("date", Arc::new(Date32Array::from(vec![Some(-1), None, Some(20_000)])), true),
        ("timestamp", Arc::new(micros.clone().with_timezone("UTC")), true),
        ("timestamp_ntz", Arc::new(micros), true),
        ("struct", Arc::new(nested), true),
        ("array", Arc::new(list), true),
        ("map", Arc::new(map), true),
    ])
    .unwrap()
}

#[test]
fn every_type_is_read_back() {
    let (_directory, storage) = table();
    let batch = every_type();
    let mut writer = writer(&storage, &schema_of(&batch), &[], options());
    writer.write(&batch).unwrap();
    writer.write(&batch.slice(1, 2)).unwrap();
    let adds = writer.finish().unwrap();
    let [add] = &adds[..] else { panic!("{adds:?}") };
    assert_eq!(add.path, "part-00000-00000000-0000-0000-0000-000000000000.c000.snappy.parquet");
    assert_eq!((add.modification_time, add.data_change), (1000, true));
    let expected = concat_batches(&batch.schema(), &[batch.clone(), batch.slice(1, 2)]).unwrap();
    let found = super::fit(&read(&storage, add), &batch.schema()).unwrap();
    assert_eq!(found, expected);
    let stats: serde_json::Value = serde_json::from_str(add.stats.as_deref().unwrap()).unwrap();
    assert_eq!(stats["numRecords"], 5);
    assert_eq!((&stats["minValues"]["byte"], &stats["maxValues"]["byte"]), (&json!(-128), &json!(127)));
    assert_eq!((&stats["nullCount"]["byte"], &stats["nullCount"]["struct"]["x"]), (&json!(2), &json!(4)));
}

/// The file can be read without an Arrow schema in its footer.
#[test]
fn the_file_is_standard_parquet() {
    let (_directory, storage) = table();
    let batch = every_type();
    let mut writer = writer(&storage, &schema_of(&batch), &[], options());
    writer.write(&batch).unwrap();
    let adds = writer.finish().unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(storage.open_file(&adds[0].path).unwrap()).unwrap();
    let file = reader.metadata().file_metadata();
    assert!(
        file.key_value_metadata().is_none_or(|pairs| pairs.iter().all(|pair| pair.key != "ARROW:schema"))
    );
    assert!(file.created_by().unwrap().starts_with("deltalog version "));
    let leaves: Vec<String> =
        file.schema_descr().columns().iter().map(|column| column.path().string()).collect();
    assert!(leaves.contains(&"array.list.element".to_owned()), "{leaves:?}");
    assert!(
        leaves.contains(&"map.key_value.key".to_owned())
            && leaves.contains(&"map.key_value.value".to_owned()),
        "{leaves:?}"
    );
    let group = reader.metadata().row_group(0);
    assert!(group.columns().iter().all(|column| column.compression() == parquet::basic::Compression::SNAPPY));
    assert!(group.columns().iter().all(|column| column.statistics().is_some()));
}

/// A file has no maximum if any batch contains a NaN, at any nesting depth.
#[test]
fn a_file_with_nan_has_no_maximum() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("part", DataType::Int32, true),
        Field::new("s", DataType::Struct(Fields::from(vec![Field::new("x", DataType::Float64, true)])), true),
    ]));
    let batch = |part: i32, x: f64| {
        let x: ArrayRef = Arc::new(Float64Array::from(vec![x]));
        let nested = StructArray::from(vec![(Arc::new(Field::new("x", DataType::Float64, true)), x)]);
        RecordBatch::try_new(
            Arc::clone(&schema),
            vec![Arc::new(Int32Array::from(vec![part])), Arc::new(nested)],
        )
        .unwrap()
    };
    let (_directory, storage) = table();
    let mut writer = writer(&storage, &schema, &["part"], options());
    for (part, x) in [(1, 1.0), (2, 1.0), (1, f64::NAN), (1, 2.0)] {
        writer.write(&batch(part, x)).unwrap();
    }
    let stats: Vec<_> = writer.finish().unwrap().into_iter().map(|add| add.stats.unwrap()).collect();
    assert_eq!(
        stats[0],
        r#"{"numRecords":3,"minValues":{"s":{"x":1.0}},"maxValues":{},"nullCount":{"s":{"x":0}},"deltalog":1}"#
    );
    assert_eq!(
        stats[1],
        concat!(
            r#"{"numRecords":1,"minValues":{"s":{"x":1.0}},"maxValues":{"s":{"x":1.0}},"#,
            r#""nullCount":{"s":{"x":0}},"deltalog":1}"#
        )
    );
}

fn partitioned(rows: &[(Option<&str>, i64)]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("p", Arc::new(StringArray::from_iter(rows.iter().map(|row| row.0))) as ArrayRef, true),
        ("id", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1))), true),
    ])
    .unwrap()
}

/// Returns the rows in the files of `adds`, by partition value.
fn contents(storage: &Storage, adds: &[Add]) -> BTreeMap<Option<String>, Vec<i64>> {
    let mut found: BTreeMap<Option<String>, Vec<i64>> = BTreeMap::new();
    for add in adds {
        let batch = read(storage, add);
        assert_eq!(batch.num_columns(), 1, "the partition column is not in the file");
        let ids = batch.column(0).as_primitive::<Int64Type>();
        found.entry(add.partition_values["p"].clone()).or_default().extend(ids.values());
    }
    found
}

/// An empty string becomes NULL, and every other string is a partition of its own. (PROTOCOL, "Partition Value
/// Serialization".)
#[test]
fn every_special_character_has_its_own_partition() {
    let mut values: Vec<String> = (1..=0x7e).map(|code| char::from(code).to_string()).collect();
    values.extend(["😀", "é/ü", "a=b", "%2F", "..", "x ", "__HIVE_DEFAULT_PARTITION__x"].map(str::to_owned));
    let mut rows: Vec<(Option<&str>, i64)> =
        values.iter().zip(10..).map(|(value, id)| (Some(value.as_str()), id)).collect();
    rows.extend([(None, 1), (Some(""), 2)]);
    let batch = partitioned(&rows);
    let (directory, storage) = table();
    let mut writer = writer(&storage, &schema_of(&batch), &["p"], options());
    writer.write(&batch).unwrap();
    let adds = writer.finish().unwrap();
    let mut expected: BTreeMap<Option<String>, Vec<i64>> =
        values.iter().zip(10..).map(|(value, id)| (Some(value.clone()), vec![id])).collect();
    expected.insert(None, vec![1, 2]);
    assert_eq!(contents(&storage, &adds), expected);
    assert!(directory.path().join("p=__HIVE_DEFAULT_PARTITION__").is_dir());
    assert!(
        directory.path().join("p=%2F").is_dir()
            && directory.path().join("p= ").is_dir()
            && directory.path().join("p=~").is_dir()
    );
    let add = adds.iter().find(|add| add.partition_values["p"].as_deref() == Some("/")).unwrap();
    assert!(add.path.starts_with("p=%252F/part-00000-"), "{}", add.path);
}

#[test]
fn a_partition_value_too_long_for_a_directory_is_in_the_log() {
    let long = "x".repeat(1000);
    let batch = partitioned(&[(Some(&long), 1)]);
    let (_directory, storage) = table();
    let mut writer = writer(&storage, &schema_of(&batch), &["p"], options());
    writer.write(&batch).unwrap();
    assert_eq!(contents(&storage, &writer.finish().unwrap()), BTreeMap::from([(Some(long), vec![1])]));
}

#[test]
fn files_are_closed_at_their_target_size() {
    let (_directory, storage) = table();
    let texts: Vec<String> = (0..40_000).map(|_| Uuid::new_v4().to_string()).collect();
    let batch =
        RecordBatch::try_from_iter([("text", Arc::new(StringArray::from(texts)) as ArrayRef)]).unwrap();
    let target = 500_000;
    let mut writer = writer(
        &storage,
        &schema_of(&batch),
        &[],
        WriteOptions { target_file_size: Some(target), ..options() },
    );
    for start in (0..40_000).step_by(1000) {
        writer.write(&batch.slice(start, 1000)).unwrap();
    }
    let adds = writer.finish().unwrap();
    assert!((2..=4).contains(&adds.len()), "{}", adds.len());
    assert!(
        adds.iter().rev().skip(1).all(|add| add.size as u64 > target / 2 && (add.size as u64) < 4 * target)
    );
    let found: Vec<RecordBatch> = adds.iter().map(|add| read(&storage, add)).collect();
    assert_eq!(concat_batches(&found[0].schema(), &found).unwrap().column(0), batch.column(0));
}

/// With many partitions, the memory and the number of open files stay within their limits. No row is lost, and each
/// partition has one file.
#[test]
fn memory_and_open_files_are_limited() {
    let (_directory, storage) = table();
    let budget = 2 << 20;
    let padding = "x".repeat(100);
    let batch = |start: i64| {
        let ids = start..start + 2000;
        RecordBatch::try_from_iter_with_nullable([
            (
                "p",
                Arc::new(Int32Array::from_iter_values(ids.clone().map(|id| (id * 7919 % 300) as i32)))
                    as ArrayRef,
                true,
            ),
            ("id", Arc::new(Int64Array::from_iter_values(ids.clone())), true),
            ("text", Arc::new(StringArray::from_iter_values(ids.map(|id| format!("{id}{padding}")))), true),
        ])
        .unwrap()
    };
    let mut writer =
        writer(&storage, &schema_of(&batch(0)), &["p"], WriteOptions { memory_budget: budget, ..options() });
    for step in 0..20 {
        writer.write(&batch(step * 2000)).unwrap();
        assert!(writer.memory() <= budget, "{}", writer.memory());
        assert!(writer.open_files() <= 1, "{}", writer.open_files());
    }
    assert!(writer.overflowed() > 0, "the budget was not used up");
    let adds = writer.finish().unwrap();
    assert_eq!(adds.len(), 300);
    let mut found = Vec::new();
    for add in &adds {
        let partition: i64 = add.partition_values["p"].as_deref().unwrap().parse().unwrap();
        let batch = read(&storage, add);
        let ids = batch.column(0).as_primitive::<Int64Type>();
        assert!(ids.values().iter().all(|id| id * 7919 % 300 == partition));
        found.extend_from_slice(ids.values());
    }
    found.sort_unstable();
    assert_eq!(found, (0..40_000).collect::<Vec<i64>>());
}

/// Rows that are written one by one end up in few files, and the writer accounts for their memory.
#[test]
fn single_rows_are_merged() {
    let (_directory, storage) = table();
    let texts = ["a", "b", "c"];
    let rows: Vec<(Option<&str>, i64)> = texts.iter().cycle().map(|text| Some(*text)).zip(0..600).collect();
    let mut writer = writer(&storage, &schema_of(&partitioned(&[])), &["p"], options());
    for row in &rows {
        writer.write(&partitioned(std::slice::from_ref(row))).unwrap();
        assert!(writer.memory() < 3 * 64 * 300, "{}", writer.memory());
    }
    assert_eq!(writer.open_files(), 0);
    let adds = writer.finish().unwrap();
    assert_eq!(adds.len(), 3);
    let expected = texts
        .iter()
        .zip(0..)
        .map(|(text, first)| (Some((*text).to_owned()), (first..600).step_by(3).collect()))
        .collect();
    assert_eq!(contents(&storage, &adds), expected);
}

/// The environment makes both writers choose the same file name.
#[test]
fn an_existing_file_is_neither_overwritten_nor_deleted() {
    let batch = partitioned(&[(Some("a"), 1)]);
    let (directory, storage) = table();
    let same = || WriteOptions::new(Environment::new(|| 0, Uuid::nil));
    let mut first = writer(&storage, &schema_of(&batch), &["p"], same());
    first.write(&batch).unwrap();
    let adds = first.finish().unwrap();
    let mut second = writer(&storage, &schema_of(&batch), &["p"], same());
    second.write(&batch).unwrap();
    assert_eq!(second.finish().unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(contents(&storage, &adds), BTreeMap::from([(Some("a".into()), vec![1])]));
    assert!(directory.path().join(&adds[0].path).is_file());
}

/// Returns enough rows of two partitions for each partition to get a file.
fn rows_of_two_partitions() -> RecordBatch {
    let padding = "x".repeat(600);
    RecordBatch::try_from_iter_with_nullable([
        (
            "p",
            Arc::new(StringArray::from_iter_values((0..4096).map(|row| if row < 2048 { "a" } else { "b" })))
                as ArrayRef,
            true,
        ),
        ("text", Arc::new(StringArray::from_iter_values((0..4096).map(|_| &padding))), true),
    ])
    .unwrap()
}

/// Returns options with which a file is closed as soon as it has rows.
fn eager() -> WriteOptions {
    WriteOptions { target_file_size: Some(1), ..options() }
}

#[test]
fn files_of_an_unfinished_write_are_deleted() {
    let (batch, small) = (rows_of_two_partitions(), eager);
    let (_directory, storage) = table();
    let mut aborted = writer(&storage, &schema_of(&batch), &["p"], small());
    aborted.write(&batch).unwrap();
    assert_eq!(files(&storage).len(), 2);
    aborted.abort().unwrap();
    assert_eq!(files(&storage), Vec::<String>::new());
    let mut dropped = writer(&storage, &schema_of(&batch), &["p"], small());
    dropped.write(&batch).unwrap();
    drop(dropped);
    assert_eq!(files(&storage), Vec::<String>::new());
    let mut finished = writer(&storage, &schema_of(&batch), &["p"], small());
    finished.write(&batch).unwrap();
    assert_eq!(finished.finish().unwrap().len(), 2);
    assert_eq!(files(&storage).len(), 2);
}

#[test]
fn a_batch_that_does_not_fit_changes_nothing() {
    let batch = partitioned(&[(Some("a"), 1)]);
    let (_directory, storage) = table();
    let mut writer =
        writer(&storage, &schema_of(&batch), &["p"], WriteOptions { memory_budget: 1, ..options() });
    let wrong = RecordBatch::try_from_iter([
        ("p", Arc::new(StringArray::from(vec!["a"])) as ArrayRef),
        ("x", batch.column(1).clone()),
    ]);
    assert_eq!(writer.write(&wrong.unwrap()).unwrap_err().kind(), ErrorKind::SchemaMismatch);
    assert_eq!(files(&storage), Vec::<String>::new());
    writer.write(&batch).unwrap();
    assert_eq!(contents(&storage, &writer.finish().unwrap()), BTreeMap::from([(Some("a".into()), vec![1])]));
}

#[test]
fn after_a_failure_of_the_store_the_writer_can_only_be_aborted() {
    let batch = rows_of_two_partitions();
    let (directory, storage) = table();
    std::fs::write(directory.path().join("p=a"), "a file where the directory should be").unwrap();
    let mut writer = writer(&storage, &schema_of(&batch), &["p"], eager());
    assert_eq!(writer.write(&batch).unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(writer.write(&batch).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(files(&storage), ["p=a"]);
}

#[test]
fn without_rows_there_is_no_file() {
    let batch = partitioned(&[]);
    let (_directory, storage) = table();
    let mut writer = writer(&storage, &schema_of(&batch), &["p"], options());
    writer.write(&batch).unwrap();
    assert_eq!(writer.finish().unwrap(), []);
    assert_eq!(files(&storage), Vec::<String>::new());
}

#[test]
fn invalid_partition_columns_are_refused() {
    let (_directory, storage) = table();
    let schema = schema_of(&every_type());
    for columns in [&["gone"][..], &["struct"], &["array"]] {
        let columns: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
        let error = DataWriter::new(storage.clone(), spec(&schema, &columns), options()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(&columns[0]), "{error}");
    }
    let only = Arc::new(Schema::new(vec![Field::new("p", DataType::Int32, true)]));
    assert!(DataWriter::new(storage, spec(&only, &["p".to_owned()]), options()).is_err());
}

/// The log stores the empty string as NULL.
#[test]
fn an_empty_string_is_refused_in_a_required_partition_column() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("p", DataType::Utf8, false),
        Field::new("id", DataType::Int64, true),
    ]));
    let (_directory, storage) = table();
    let mut writer = writer(&storage, &schema, &["p"], options());
    let error = writer.write(&partitioned(&[(Some("a"), 1), (Some(""), 2)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.to_string().contains("'p'"), "{error}");
}

/// Tests values of every type. (PROTOCOL, "Partition Value Serialization".)
#[test]
fn equal_values_of_every_type_share_a_partition() {
    let batch = every_type();
    let types = [
        "boolean",
        "byte",
        "short",
        "long",
        "float",
        "double",
        "small",
        "string",
        "date",
        "timestamp",
        "timestamp_ntz",
    ];
    for column in types {
        let (_directory, storage) = table();
        let mut writer = writer(&storage, &schema_of(&batch), &[column], options());
        writer.write(&batch).unwrap();
        let adds = writer.finish().unwrap();
        let rows: usize = adds.iter().map(|add| read(&storage, add).num_rows()).sum();
        assert_eq!(rows, 3, "{column}");
        let values: std::collections::BTreeSet<_> =
            adds.iter().map(|add| add.partition_values[column].clone()).collect();
        assert_eq!(values.len(), adds.len(), "{column}");
    }
}

fn sorted(batch: &RecordBatch) -> RecordBatch {
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|values| arrow::compute::SortColumn { values: Arc::clone(values), options: None })
        .collect();
    take_record_batch(batch, &lexsort_to_indices(&columns, None).unwrap()).unwrap()
}

fn rows_of_two_partition_columns() -> impl Strategy<Value = Vec<(Option<i32>, Option<String>, i64)>> {
    let a = prop::option::of(0i32..5);
    let b = prop::option::of("[ab/]{0,1}");
    prop::collection::vec((a, b, any::<i64>()), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The sizes of batches, the memory budget and the file sizes vary.
    #[test]
    fn all_files_together_hold_the_rows_that_were_written(
        batches in prop::collection::vec(rows_of_two_partition_columns(), 0..6),
        memory_budget in prop::sample::select(vec![1usize, 3 << 20, 256 << 20]),
        target_file_size in prop::sample::select(vec![1u64, 1 << 20]),
    ) {
        let micros = TimeUnit::Microsecond;
        let schema = Arc::new(Schema::new(vec![
            Field::new("a", DataType::Int32, true),
            Field::new("id", DataType::Int64, true),
            Field::new("t", DataType::Timestamp(micros, None), true),
            Field::new("b", DataType::Utf8, true),
        ]));
        let make = |rows: &[(Option<i32>, Option<String>, i64)]| RecordBatch::try_new(Arc::clone(&schema), vec![
            Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.0))),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2))),
            Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.2))),
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1.as_deref()))),
        ]).unwrap();
        let (_directory, storage) = table();
        let target_file_size = Some(target_file_size);
        let limits = WriteOptions { memory_budget, target_file_size, ..options() };
        let mut writer = writer(&storage, &schema, &["b", "a"], limits);
        for rows in &batches {
            writer.write(&make(rows)).unwrap();
        }
        let adds = writer.finish().unwrap();
        let mut found = vec![RecordBatch::new_empty(Arc::clone(&schema))];
        for add in &adds {
            let data = read(&storage, add);
            let rows = data.num_rows();
            let a = add.partition_values["a"].as_deref().map(|text| text.parse::<i32>().unwrap());
            let columns: Vec<ArrayRef> = vec![
                Arc::new(PrimitiveArray::<Int32Type>::from_iter(std::iter::repeat_n(a, rows))),
                Arc::clone(data.column_by_name("id").unwrap()),
                Arc::clone(data.column_by_name("t").unwrap()),
                Arc::new(StringArray::from_iter(std::iter::repeat_n(add.partition_values["b"].as_deref(), rows))),
            ];
            found.push(RecordBatch::try_new(Arc::clone(&schema), columns).unwrap());
        }
        let non_empty = |(a, b, id): (_, Option<String>, _)| (a, b.filter(|b| !b.is_empty()), id);
        let all: Vec<_> = batches.into_iter().flatten().map(non_empty).collect();
        prop_assert_eq!(sorted(&concat_batches(&schema, &found).unwrap()), sorted(&make(&all)));
        prop_assert_eq!(files(&storage).len(), adds.len());
    }
}
