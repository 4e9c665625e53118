//! Scans skip files by the statistics that a checkpoint stores as structs.
//!
//! Protocol: "Checkpoint Schema", "Per-file Statistics".

use std::fs;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, MapBuilder, RecordBatch, StringArray,
    StringBuilder, StructArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::scan::{FileListing, ListColumn};
use deltalog::{Snapshot, Storage};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde_json::json;

fn structs(fields: Vec<(&str, ArrayRef)>, nulls: Option<NullBuffer>) -> ArrayRef {
    let (names, arrays): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let fields: Fields = names
        .iter()
        .zip(&arrays)
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    Arc::new(StructArray::new(fields, arrays, nulls))
}

/// Returns a table of the files `0` to `7`, with two files per row group of the checkpoint.
///
/// In file `k`, `n` is in `10 k..=10 k + 9`, `t` is between `200 k` seconds and 5 milliseconds later, `f` is `k`, and
/// `p` is `k / 4`. `at` is `k` seconds into 2024 in UTC, but the checkpoint's writer interpreted it in a zone eight
/// hours ahead. File 5 has no bounds. The last row group has no files. If `texts` is set, the checkpoint also has
/// statistics as JSON. `spark` is the version of Spark in the checkpoint's footer.
fn table_of(texts: bool, spark: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("_delta_log");
    fs::create_dir(&log).unwrap();
    let field =
        |name: &str, kind: &str| json!({"name": name, "type": kind, "nullable": true, "metadata": {}});
    let fields = [
        field("n", "long"),
        field("t", "timestamp"),
        field("f", "double"),
        field("p", "integer"),
        field("at", "timestamp"),
    ];
    let schema = json!({"type": "struct", "fields": fields}).to_string();
    let metadata = json!({"metaData": {
        "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
        "partitionColumns": ["p", "at"], "configuration": {},
    }});
    let protocol = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}});
    fs::write(log.join("00000000000000000001.json"), format!("{protocol}\n{metadata}\n")).unwrap();

    let files: Vec<i64> = (0..8).collect();
    let known =
        |value: fn(i64) -> i64| files.iter().map(|k| (*k != 5).then(|| value(*k))).collect::<Vec<_>>();
    let times = |value: fn(i64) -> i64| Arc::new(TimestampNanosecondArray::from(known(value))) as ArrayRef;
    let floats = |value: fn(i64) -> f64| {
        Arc::new(files.iter().map(|k| (*k != 5).then(|| value(*k))).collect::<Float64Array>()) as ArrayRef
    };
    // The checkpoint stores column `n` with a narrower type, which the column had earlier.
    let ints = |value: fn(i64) -> i64| {
        Arc::new(known(value).into_iter().map(|v| v.map(|v| v as i32)).collect::<Int32Array>()) as ArrayRef
    };
    let stats = structs(
        vec![
            ("numRecords", Arc::new(Int64Array::from(vec![10; 8]))),
            (
                "minValues",
                structs(
                    vec![
                        ("n", ints(|k| 10 * k)),
                        ("t", times(|k| k * 200_000_000_000)),
                        ("f", floats(|k| k as f64)),
                    ],
                    None,
                ),
            ),
            (
                "maxValues",
                structs(
                    vec![
                        ("n", ints(|k| 10 * k + 9)),
                        ("t", times(|k| k * 200_000_000_000 + 5_000_000)),
                        ("f", floats(|k| k as f64)),
                    ],
                    None,
                ),
            ),
            ("nullCount", structs(vec![("n", Arc::new(Int64Array::from(known(|k| k % 2))))], None)),
        ],
        None,
    );
    let mut values = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for file in &files {
        values.keys().append_value("p");
        values.values().append_value((file / 4).to_string());
        values.keys().append_value("at");
        values.values().append_value(format!("2024-01-01 00:00:0{file}"));
        values.append(true).unwrap();
    }
    let mut columns = vec![
        ("path", Arc::new(files.iter().map(|k| Some(k.to_string())).collect::<StringArray>()) as ArrayRef),
        ("partitionValues", Arc::new(values.finish())),
        ("size", Arc::new(Int64Array::from(vec![1; 8]))),
        ("modificationTime", Arc::new(Int64Array::from(vec![1; 8]))),
        (
            "partitionValues_parsed",
            structs(
                vec![
                    ("p", Arc::new(files.iter().map(|k| Some((k / 4) as i32)).collect::<Int32Array>())),
                    (
                        "at",
                        Arc::new(
                            files
                                .iter()
                                .map(|k| Some((1_704_067_200 - 8 * 3600 + k) * 1_000_000))
                                .collect::<TimestampMicrosecondArray>()
                                .with_timezone("UTC"),
                        ),
                    ),
                ],
                None,
            ),
        ),
        ("stats_parsed", stats),
    ];
    if texts {
        let text = |k: &i64| {
            (*k != 5).then(|| {
                json!({"numRecords": 10, "minValues": {"n": 10 * k}, "maxValues": {"n": 10 * k + 9}})
                    .to_string()
            })
        };
        columns.push(("stats", Arc::new(files.iter().map(text).collect::<StringArray>())));
    }
    let adds = structs(columns, None);
    let actions = Schema::new(vec![
        Field::new("add", adds.data_type().clone(), true),
        Field::new(
            "metaData",
            DataType::Struct(Fields::from(vec![Field::new("id", DataType::Utf8, true)])),
            true,
        ),
    ]);
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(2))
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "org.apache.spark.version".to_owned(),
            spark.to_owned(),
        )]))
        .build();
    let file = fs::File::create(log.join("00000000000000000000.checkpoint.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, Arc::new(actions.clone()), Some(properties)).unwrap();
    let nothing = |rows| arrow::array::new_null_array(actions.field(1).data_type(), rows);
    writer
        .write(&RecordBatch::try_new(writer_schema(&actions), vec![adds.clone(), nothing(8)]).unwrap())
        .unwrap();
    let none = arrow::array::new_null_array(adds.data_type(), 2);
    writer.write(&RecordBatch::try_new(writer_schema(&actions), vec![none, nothing(2)]).unwrap()).unwrap();
    writer.close().unwrap();
    directory
}

fn table(texts: bool) -> tempfile::TempDir {
    table_of(texts, "3.5.0")
}

fn writer_schema(schema: &Schema) -> Arc<Schema> {
    Arc::new(schema.clone())
}

fn kept(table: &tempfile::TempDir, sql: &str, columns: &[ListColumn]) -> (Vec<i64>, u64) {
    let snapshot = Snapshot::open(&Storage::open(table.path().to_str().unwrap(), []).unwrap(), None).unwrap();
    let predicate = parse(sql, "UTC", ParseMode::Strict).unwrap();
    let mut list =
        FileListing::new(&snapshot).columns(columns.to_vec()).predicate(&predicate).unwrap().read().unwrap();
    let mut kept = Vec::new();
    for batch in list.by_ref() {
        let batch = batch.unwrap();
        kept.extend(
            batch
                .column_by_name("path")
                .unwrap()
                .as_string::<i32>()
                .iter()
                .map(|path| path.unwrap().parse::<i64>().unwrap()),
        );
    }
    (kept, list.seen())
}

#[test]
fn files_are_skipped_by_structs_and_row_groups() {
    for texts in [false, true] {
        let table = table(texts);
        for (sql, expected) in [
            ("n = 23", vec![2, 5]),
            ("n < 15 AND p = 0", vec![0, 1]),
            ("n < 15 OR p = 1", vec![0, 1, 4, 5, 6, 7]),
            ("p = 1 AND n > 75", vec![5, 7]),
            ("p > 7", vec![]),
            ("n IS NULL", vec![1, 3, 5, 7]),
            ("year(t) = 2024", vec![5]),
            // Maxima are rounded to milliseconds, times long ago may be off by 59 seconds, and NaN is greater than
            // every number.
            ("t = TIMESTAMP '1970-01-01 00:10:59.005999Z'", vec![3, 5]),
            ("t = TIMESTAMP '1970-01-01 00:09:01Z'", vec![3, 5]),
            ("t = TIMESTAMP '1970-01-01 00:10:59.006Z'", vec![5]),
            ("t = TIMESTAMP '1970-01-01 00:09:00.999999Z'", vec![5]),
            ("f > 6.5", vec![0, 1, 2, 3, 4, 5, 6, 7]),
            // JSON statistics are preferred, because only they show which writer computed a maximum. Here they lack
            // this column.
            ("f < 0.5", if texts { (0..8).collect() } else { vec![0, 5] }),
            // PROTOCOL, "Partition Value Serialization": the string is authoritative, not its typed copy in the
            // checkpoint.
            ("at = TIMESTAMP '2024-01-01 00:00:03Z'", vec![3]),
            ("at < TIMESTAMP '2024-01-01 00:00:00Z'", vec![]),
        ] {
            let (found, seen) = kept(&table, sql, &[ListColumn::Path]);
            assert_eq!((found, seen), (expected, 8), "{sql}");
        }
        // A file list that includes statistics takes them from the JSON, which has fewer of them here.
        let (found, _) = kept(&table, "n = 23", &[ListColumn::Path, ListColumn::Stats]);
        assert_eq!(found, [2, 5]);
    }
}

/// Spark 2.4 writes dates in the old hybrid calendar, so in its checkpoints only the JSON statistics are used.
#[test]
fn structs_in_an_old_calendar_are_ignored() {
    let table = table_of(false, "2.4.8");
    let all: Vec<i64> = (0..8).collect();
    assert_eq!(kept(&table, "n = 23", &[ListColumn::Path]).0, all);
    assert_eq!(kept(&table, "p = 1", &[ListColumn::Path]).0, [4, 5, 6, 7]);
    assert!(kept(&table, "p > 7", &[ListColumn::Path]).0.is_empty());
}

#[test]
fn row_groups_without_a_match_are_not_read() {
    let table = table(false);
    let file = table.path().join("_delta_log/00000000000000000000.checkpoint.parquet");
    let mut bytes = fs::read(&file).unwrap();
    let metadata = parquet::file::metadata::ParquetMetaDataReader::new()
        .parse_and_finish(&bytes::Bytes::from(bytes.clone()))
        .unwrap();
    for column in metadata.row_group(0).columns() {
        let (start, length) = column.byte_range();
        bytes[start as usize..(start + length) as usize].fill(0xff);
    }
    fs::write(&file, bytes).unwrap();
    assert_eq!(kept(&table, "n BETWEEN 23 AND 33", &[ListColumn::Path]).0, [2, 3, 5]);
    let snapshot = Snapshot::open(&Storage::open(table.path().to_str().unwrap(), []).unwrap(), None).unwrap();
    assert!(FileListing::new(&snapshot).read().unwrap().any(|batch| batch.is_err()));
}
