//! Computes statistics by reading rows, for files whose Parquet footers have none. Protocol: "Per-file Statistics".

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    CheckLevel, Environment, RecomputeRequest, Snapshot, Storage, check_files, recompute_statistics,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The columns with their types. The files lack the last column.
const COLUMNS: [(&str, &str); 10] = [
    ("byte", "byte"),
    ("long", "long"),
    ("money", "decimal(20,2)"),
    ("double", "double"),
    ("text", "string"),
    ("yes", "boolean"),
    ("date", "date"),
    ("at", "timestamp"),
    ("bytes", "binary"),
    ("later", "long"),
];

fn batch(numbers: &[Option<i64>]) -> RecordBatch {
    let values = || numbers.iter().copied();
    let long: ArrayRef = Arc::new(Int64Array::from_iter(values()));
    let fields = Fields::from(vec![Field::new("x", DataType::Int64, true)]);
    let nulls = numbers.iter().map(|number| *number != Some(3)).collect::<Vec<_>>().into();
    RecordBatch::try_from_iter_with_nullable(vec![
        ("byte", Arc::new(Int8Array::from_iter(values().map(|n| n.map(|n| n as i8)))) as ArrayRef, true),
        ("long", long.clone(), true),
        (
            "money",
            Arc::new(
                Decimal128Array::from_iter(values().map(|n| n.map(i128::from)))
                    .with_precision_and_scale(20, 2)
                    .unwrap(),
            ),
            true,
        ),
        ("double", Arc::new(Float64Array::from_iter(values().map(|n| n.map(|n| n as f64 / 4.0)))), true),
        (
            "text",
            Arc::new(StringArray::from_iter(values().map(|n| n.map(|n| "x".repeat(35) + &n.to_string())))),
            true,
        ),
        ("yes", Arc::new(BooleanArray::from_iter(values().map(|n| n.map(|n| n > 0)))), true),
        ("date", Arc::new(Date32Array::from_iter(values().map(|n| n.map(|n| n as i32)))), true),
        ("at", Arc::new(TimestampMicrosecondArray::from_iter(values()).with_timezone("UTC")), true),
        ("bytes", Arc::new(BinaryArray::from_iter(values().map(|n| n.map(i64::to_be_bytes)))), true),
        ("nested", Arc::new(StructArray::new(fields, vec![long], Some(nulls))), true),
    ])
    .unwrap()
}

/// Returns a table with one file of these rows and no statistics in the log; the footer's statistics are
/// optional.
fn table(rows: &RecordBatch, has_statistics: bool) -> (tempfile::TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("_delta_log")).unwrap();
    let statistics = if has_statistics { EnabledStatistics::Chunk } else { EnabledStatistics::None };
    let properties = WriterProperties::builder().set_statistics_enabled(statistics).build();
    let path = directory.path().join("a.parquet");
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), rows.schema(), Some(properties)).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
    let field =
        |name: &str, kind: Value| json!({"name": name, "type": kind, "nullable": true, "metadata": {}});
    let mut fields: Vec<Value> = COLUMNS.iter().map(|(name, kind)| field(name, json!(kind))).collect();
    fields.push(field("nested", json!({"type": "struct", "fields": [field("x", json!("long"))]})));
    let lines = [
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
        json!({"metaData": {
            "id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {},
            "schemaString": json!({"type": "struct", "fields": fields}).to_string(),
        }}),
        json!({"add": {
            "path": "a.parquet", "partitionValues": {}, "size": fs::metadata(&path).unwrap().len(),
            "modificationTime": 0, "dataChange": true,
        }}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(directory.path().join("_delta_log/00000000000000000000.json"), text).unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    (directory, storage)
}

/// Computes statistics and returns them, and whether rows were read.
fn recomputed(storage: &Storage) -> (BTreeMap<String, Value>, bool) {
    let base = Snapshot::open(storage, None).unwrap();
    let environment = Environment::system();
    let done = recompute_statistics(&base, RecomputeRequest::default(), &environment).unwrap();
    assert_eq!(done.metrics.updated_files, 1);
    let new = Snapshot::open(storage, None).unwrap();
    let again = recompute_statistics(&new, RecomputeRequest::default(), &environment).unwrap();
    assert_eq!(again.metrics.chosen_files, 0);
    assert_eq!(check_files(&new, CheckLevel::Rows).unwrap().batch().unwrap().num_rows(), 0);
    let [file] = listed_files(&new, None).unwrap().try_into().unwrap();
    (serde_json::from_str(&file.add.stats.unwrap()).unwrap(), done.metrics.files_by_rows > 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The results are the same for a footer without statistics and for one with statistics.
    #[test]
    fn statistics_of_rows_and_of_footers_agree(numbers in prop::collection::vec(prop::option::of(-60i64..60), 1..40)) {
        let rows = batch(&numbers);
        let (_by_rows, by_rows) = table(&rows, false);
        let (_by_footer, by_footer) = table(&rows, true);
        let ((by_rows, _), (by_footer, _)) = (recomputed(&by_rows), recomputed(&by_footer));
        prop_assert_eq!(&by_rows, &by_footer);
        // Both equal the expected statistics of the numbers.
        let known: Vec<i64> = numbers.iter().flatten().copied().collect();
        let least = known.iter().min().map_or(Value::Null, |least| json!(least));
        prop_assert_eq!(&by_rows["minValues"]["long"], &least);
        let greatest = known.iter().max().map_or(Value::Null, |greatest| json!(*greatest as f64 / 4.0));
        prop_assert_eq!(&by_rows["maxValues"]["double"], &greatest);
        prop_assert_eq!(&by_rows["nullCount"]["later"], &json!(numbers.len()));
        prop_assert_eq!(&by_rows["numRecords"], &json!(numbers.len()));
        let nulls = numbers.iter().filter(|number| matches!(number, None | Some(3))).count();
        prop_assert_eq!(&by_rows["nullCount"]["nested"]["x"], &json!(nulls));
    }
}

/// A column with NaN has no maximum. This is recorded, so the rows are read only once.
#[test]
fn nan_is_not_looked_for_again() {
    let rows = RecordBatch::try_from_iter([(
        "double",
        Arc::new(Float64Array::from(vec![f64::NAN, -1.5, f64::NAN])) as ArrayRef,
    )]);
    let schema: Schema = rows.as_ref().unwrap().schema().as_ref().clone();
    assert_eq!(schema.fields().len(), 1);
    let (_directory, storage) = table(&rows.unwrap(), true);
    let (stats, has_read) = recomputed(&storage);
    assert!(has_read);
    assert_eq!((&stats["minValues"]["double"], &stats["maxValues"]["double"]), (&json!(-1.5), &Value::Null));
}

/// Column mapping by ids: the names in a file may belong to other columns. Protocol: "Column Mapping".
#[test]
fn columns_are_found_by_their_ids() {
    let column = |name: &str, id: i64| {
        Field::new(name, DataType::Int64, true)
            .with_metadata([("PARQUET:field_id".to_owned(), id.to_string())].into())
    };
    let schema = Arc::new(Schema::new(vec![column("a", 1), column("b", 2)]));
    let values: [ArrayRef; 2] =
        [Arc::new(Int64Array::from(vec![1, 2])), Arc::new(Int64Array::from(vec![100, 200]))];
    let rows = RecordBatch::try_new(schema, values.to_vec()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("_delta_log")).unwrap();
    let path = directory.path().join("f.parquet");
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let in_table = |name: &str, id: i64| {
        let mapping = json!({"delta.columnMapping.id": id, "delta.columnMapping.physicalName": name});
        json!({"name": name, "type": "long", "nullable": true, "metadata": mapping})
    };
    // Two columns were renamed to each other's name after the file was written.
    let fields = json!({"type": "struct", "fields": [in_table("a", 2), in_table("b", 1)]}).to_string();
    let mode = json!({"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "2"});
    let size = fs::metadata(&path).unwrap().len();
    let lines = [
        json!({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}),
        json!({"metaData": {"id": "x", "format": {"provider": "parquet", "options": {}}, "schemaString": fields,
                            "partitionColumns": [], "configuration": mode, "createdTime": 0}}),
        json!({"add": {"path": "f.parquet", "partitionValues": {}, "size": size, "modificationTime": 0,
                       "dataChange": true}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(directory.path().join("_delta_log/00000000000000000000.json"), text).unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let (stats, _) = recomputed(&storage);
    assert_eq!(stats["minValues"], json!({"a": 100, "b": 1}));
    assert_eq!(stats["maxValues"], json!({"a": 200, "b": 2}));
}
