//! Adopting directories in the form that Spark's Parquet writer leaves.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;

use super::{Adopted, TableWriteSpec, Written, adopt};
use crate::protocol::path;
use crate::stats::IndexedColumns;
use crate::{Error, ErrorKind, Storage};

/// Writes a Parquet file of `rows` rows.
fn put(root: &TempDir, name: &str, rows: i64) {
    let path = root.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let columns: [(&str, ArrayRef); 2] = [
        ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("x", Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64 + 1.5)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create_new(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn adopted(root: &TempDir, partition_columns: &[&str]) -> Result<Adopted, Error> {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    let schema = Arc::new(Schema::new(vec![
        field("a", DataType::Int32),
        field("B", DataType::Utf8),
        field("id", DataType::Int64),
        field("x", DataType::Float64),
    ]));
    let partition_columns: Vec<String> = partition_columns.iter().map(|&column| column.to_owned()).collect();
    let spec = TableWriteSpec::unmapped(&schema, &partition_columns, IndexedColumns::All);
    adopt(&Storage::open(root.path().to_str().unwrap(), []).unwrap(), "0c5f", &spec)
}

/// Spark writes such directories, although it hides others that start so.
#[test]
fn directories_of_partition_columns_are_never_hidden() {
    let root = tempfile::tempdir().unwrap();
    put(&root, "0c5f/_a=1/.b=2/part-0.parquet", 3);
    put(&root, "0c5f/_other=1/.b=2/part-0.parquet", 3);
    put(&root, "0c5f/_a=1/.b=2/_part-0.parquet", 3);
    let adopted = adopted(&root, &["_a", ".b"]).unwrap();
    let paths: Vec<_> = adopted.adds.iter().map(|add| add.path.as_str()).collect();
    assert_eq!(paths, ["0c5f/_a=1/.b=2/part-0.parquet"]);
}

#[test]
fn a_partitioned_directory_is_adopted() {
    let root = tempfile::tempdir().unwrap();
    let names = [
        ("0c5f/a=1/b=x%3Ay/part-00000-1.c000.snappy.parquet", 3),
        ("0c5f/a=1/b=__HIVE_DEFAULT_PARTITION__/part-00000-1.c000.snappy.parquet", 1),
        ("0c5f/a=__HIVE_DEFAULT_PARTITION__/b=é %25/part-00001-1.c000.snappy.parquet", 2),
        ("0c5f/a=2/b=y/part-00002-1.c000.snappy.parquet", 0),
        ("0c5f/_temporary/0/a=1/b=y/part-00000-1.c000.snappy.parquet", 1),
        ("0c5f/.hidden/part-00000-1.c000.snappy.parquet", 1),
        ("elsewhere/a=1/b=y/part-00000-1.c000.snappy.parquet", 1),
    ];
    for (name, rows) in names {
        put(&root, name, rows);
    }
    for name in
        ["0c5f/_SUCCESS", "0c5f/._SUCCESS.crc", "0c5f/a=1/b=x%3Ay/.part-00000-1.c000.snappy.parquet.crc"]
    {
        fs::write(root.path().join(name), "x").unwrap();
    }
    let found = adopted(&root, &["a", "B"]).unwrap();
    assert_eq!(found.empty, [names[3].0]);
    let mut expected =
        vec![(names[0], Some("1"), Some("x:y")), (names[1], Some("1"), None), (names[2], None, Some("é %"))];
    expected.sort_unstable();
    assert_eq!(found.adds.len(), expected.len());
    for (add, ((name, rows), a, b)) in found.adds.iter().zip(expected) {
        assert_eq!(path::decode(&add.path).unwrap(), name);
        let value = |column: &str| add.partition_values[column].as_deref();
        assert_eq!((add.partition_values.len(), value("a"), value("B")), (2, a, b));
        let file = fs::metadata(root.path().join(name)).unwrap();
        assert_eq!(add.size as u64, file.len());
        let modified = file.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(add.modification_time as u128, modified.as_millis());
        let (last, nulls) = (rows - 1, r#""nullCount":{"id":0,"x":0}"#);
        let stats = format!(
            r#"{{"numRecords":{rows},"minValues":{{"id":0,"x":1.5}},"maxValues":{{"id":{last}}},{nulls}}}"#
        );
        assert_eq!(add.stats.as_deref(), Some(stats.as_str()));
        assert!(add.data_change);
    }
}

#[test]
fn many_files_keep_their_order() {
    let root = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..40).map(|index| format!("0c5f/part-{index:05}.parquet")).collect();
    for (name, rows) in names.iter().zip(1..) {
        put(&root, name, rows);
    }
    let found = adopted(&root, &[]).unwrap();
    assert_eq!(found.adds.iter().map(|add| add.path.clone()).collect::<Vec<_>>(), names);
    for (add, rows) in found.adds.iter().zip(1..) {
        assert!(add.stats.as_ref().unwrap().starts_with(&format!("{{\"numRecords\":{rows},")));
    }
}

#[test]
fn a_missing_directory_has_nothing_to_add() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(adopted(&root, &["a"]).unwrap(), Adopted::default());
}

#[test]
fn misplaced_and_malformed_files_are_refused() {
    let cases: [(&str, &[&str], &str); 5] = [
        ("0c5f/part.parquet", &["a"], "'a'"),
        ("0c5f/a=1/part.parquet", &["a", "B"], "'B'"),
        ("0c5f/a=1/b=2/part.parquet", &["a"], "'b'"),
        ("0c5f/a=1/A=2/part.parquet", &["a"], "'A=2'"),
        ("0c5f/plain/part.parquet", &[], "'plain'"),
    ];
    for (name, columns, named) in cases {
        let root = tempfile::tempdir().unwrap();
        put(&root, name, 1);
        let error = adopted(&root, columns).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::CorruptData, Some(name)));
        assert!(error.to_string().contains(named), "{error}");
    }
    let root = tempfile::tempdir().unwrap();
    put(&root, "0c5f/good.parquet", 1);
    let truncate_to = |path: &Path| {
        fs::write(path, &fs::read(root.path().join("0c5f/good.parquet")).unwrap()[..50]).unwrap()
    };
    truncate_to(&root.path().join("0c5f/torn.parquet"));
    let error = adopted(&root, &[]).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::CorruptData, Some("0c5f/torn.parquet")));
    fs::write(root.path().join("0c5f/torn.parquet"), "").unwrap();
    assert_eq!(adopted(&root, &[]).unwrap_err().kind(), ErrorKind::CorruptData);
}

#[test]
fn adopted_files_must_hold_what_the_engine_reports() {
    let root = TempDir::new().unwrap();
    put(&root, "0c5f/a=1/B=x/part-0.parquet", 3);
    put(&root, "0c5f/a=1/B=y/part-0.parquet", 2);
    put(&root, "0c5f/a=1/B=y/part-1.parquet", 1);
    let adds = adopted(&root, &["a", "B"]).unwrap().adds;
    let checked = |rows, partitions| Written { rows, partitions }.check(&adds).map_err(|error| error.kind());
    assert_eq!(checked(6, None), Ok(()));
    assert_eq!(checked(6, Some(2)), Ok(()));
    assert_eq!(checked(7, Some(2)), Err(ErrorKind::FileNotFound));
    assert_eq!(checked(5, Some(2)), Err(ErrorKind::CorruptData));
    assert_eq!(checked(6, Some(3)), Err(ErrorKind::Unsupported));
    let nothing = Written { rows: 0, partitions: Some(0) };
    assert!(nothing.check(&[]).is_ok());
    assert_eq!(Written { rows: 1, ..nothing }.check(&[]).unwrap_err().kind(), ErrorKind::FileNotFound);
}
