//! Tests that each file reported by an engine's tasks becomes an `add` or `cdc` action, or is refused with an error
//! that names the file.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::task_report::FileReport;
use super::task_report::tests::{written, written_with_changes};
use super::{Reported, TableWriteSpec, has_change_files, removed_rows, reported, reported_paths};
use crate::operations::define::TableDefinition;
use crate::protocol::{Add, AddCdcFile, PrimitiveType, StructField, StructType, path};
use crate::{Environment, ErrorKind, Result};

/// Returns a Parquet file with ids from 0 to `rows` - 1.
fn parquet(rows: i64) -> Vec<u8> {
    let columns: [(&str, ArrayRef); 2] = [
        ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("x", Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64 + 1.5)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    file
}

/// Returns the end of a file, from the beginning of the footer's metadata.
fn footer(file: &[u8]) -> &[u8] {
    let (rest, end) = file.split_at(file.len() - 8);
    let metadata = u32::from_le_bytes(end[..4].try_into().unwrap()) as usize;
    &file[rest.len() - metadata..]
}

fn report<'a>(path: &'a str, file: &'a [u8], rows: u64, values: &[Option<&'a str>]) -> FileReport<'a> {
    FileReport {
        path,
        size: i64::try_from(file.len()).unwrap(),
        modification_time_ms: 1_700_000_000_000,
        rows,
        partition_values: values.to_vec(),
        footer: footer(file),
    }
}

fn spec(partition_columns: &[&str]) -> TableWriteSpec {
    let types = [
        ("a", PrimitiveType::Integer),
        ("B", PrimitiveType::String),
        ("id", PrimitiveType::Long),
        ("x", PrimitiveType::Double),
    ];
    let fields = types.into_iter().map(|(name, kind)| StructField::new(name, kind, true)).collect();
    let mut definition = TableDefinition::new(StructType::try_new(fields).unwrap());
    definition.partition_columns = partition_columns.iter().map(|&column| column.to_owned()).collect();
    let table = definition.resolve(&Environment::system()).unwrap();
    TableWriteSpec::new(&table.protocol, &table.metadata).unwrap()
}

fn adds(files: &[FileReport<'_>], partition_columns: &[&str]) -> Result<Vec<Add>> {
    reported(&written(files), 0..usize::MAX, &spec(partition_columns)).map(|reported| reported.files)
}

#[test]
fn reported_files_are_added_with_the_statistics_of_their_footers() {
    let (three, one) = (parquet(3), parquet(1));
    let names = ["a=1/B=x%3Ay/part-0.parquet", "a=__HIVE_DEFAULT_PARTITION__/B=é/part-0.parquet"];
    let files = [
        report(names[0], &three, 3, &[Some("1"), Some("x:y")]),
        report(names[1], &one, 1, &[None, Some("__HIVE_DEFAULT_PARTITION__")]),
    ];
    let found = adds(&files, &["a", "B"]).unwrap();
    assert_eq!(reported_paths(&written(&files)).unwrap(), names);
    for ((add, file), name) in found.iter().zip(&files).zip(names) {
        assert_eq!(path::decode(&add.path).unwrap(), name);
        assert_eq!((add.size, add.modification_time), (file.size, file.modification_time_ms));
        assert_eq!(add.partition_values["a"].as_deref(), file.partition_values[0]);
        assert_eq!(add.partition_values["B"].as_deref(), file.partition_values[1]);
        let (rows, last) = (file.rows, file.rows - 1);
        let bounds = format!(r#""minValues":{{"id":0,"x":1.5}},"maxValues":{{"id":{last}}}"#);
        let stats = format!(r#"{{"numRecords":{rows},{bounds},"nullCount":{{"id":0,"x":0}},"deltalog":1}}"#);
        assert_eq!(add.stats.as_deref(), Some(stats.as_str()));
        assert!(add.data_change);
    }
}

/// An empty string is NULL. (PROTOCOL, "Partition Value Serialization".)
#[test]
fn an_empty_partition_value_is_null() {
    let file = parquet(1);
    let found = adds(&[report("part", &file, 1, &[Some("")])], &["B"]).unwrap();
    assert_eq!(found[0].partition_values["B"], None);
}

#[test]
fn files_of_all_tasks_keep_their_order() {
    let file = parquet(2);
    let names: Vec<String> = (0..40).map(|index| format!("part-{index:05}.parquet")).collect();
    let reports: Vec<u8> = names.iter().flat_map(|name| written(&[report(name, &file, 2, &[])])).collect();
    let found = reported(&reports, 0..usize::MAX, &spec(&[])).unwrap().files;
    assert_eq!(found.iter().map(|add| add.path.as_str()).collect::<Vec<_>>(), names);
    assert_eq!(reported(&[], 0..usize::MAX, &spec(&[])).unwrap(), Reported::default());
}

/// Two tasks of a MERGE may process the same row. The row then matches twice, whether one of them removes it or both
/// keep it.
#[test]
fn rows_that_two_tasks_match_are_found() {
    let task = |kind: u8, file: i32, rows: &[u32]| {
        let mut record = [file.to_be_bytes(), 0i32.to_be_bytes()].concat();
        RoaringBitmap::from_iter(rows).serialize_into(&mut record).unwrap();
        let report =
            [vec![1, kind], i32::try_from(record.len()).unwrap().to_be_bytes().to_vec(), record].concat();
        [i32::try_from(report.len()).unwrap().to_be_bytes().to_vec(), report].concat()
    };
    let (removed, staying) = (2, 6);
    let twice =
        |tasks: [Vec<u8>; 2]| reported(&tasks.concat(), 0..usize::MAX, &spec(&[])).unwrap().matched_twice;
    for (first, second) in [(removed, removed), (staying, staying), (removed, staying), (staying, removed)] {
        assert_eq!(twice([task(first, 3, &[1, 7]), task(second, 3, &[7, 9])]), Some(3));
        assert_eq!(twice([task(first, 3, &[1, 7]), task(second, 3, &[8, 9])]), None);
        assert_eq!(twice([task(first, 3, &[1, 7]), task(second, 4, &[7])]), None);
    }
    let both = [task(removed, 3, &[1]), task(staying, 3, &[2])].concat();
    assert_eq!(removed_rows(&both).unwrap(), [(3, RoaringTreemap::from_iter([1]))].into());
}

#[test]
fn reports_that_do_not_fit_the_table_are_refused() {
    let file = parquet(2);
    let good = report("part", &file, 2, &[Some("1")]);
    assert_eq!(adds(std::slice::from_ref(&good), &["a"]).unwrap().len(), 1);
    let cases = [
        (FileReport { rows: 3, ..good.clone() }, "3 rows"),
        (FileReport { footer: &file[..20], ..good.clone() }, "footer"),
        (FileReport { footer: b"", ..good.clone() }, "footer"),
        (FileReport { partition_values: vec![], ..good.clone() }, "0 partition values"),
        (FileReport { partition_values: vec![Some("x")], ..good.clone() }, "'a'"),
    ];
    for (file, named) in cases {
        let error = adds(&[file], &["a"]).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::CorruptData, Some("part")));
        assert!(error.to_string().contains(named), "{error}");
    }
    for path in ["", "/part", "../part", "a/../../part", "a//part", "./part", "_delta_log/0.json"] {
        let file = FileReport { path, ..good.clone() };
        let error = adds(std::slice::from_ref(&file), &["a"]).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::CorruptData, Some(path)));
        assert_eq!(reported_paths(&written(&[file])).unwrap_err().kind(), ErrorKind::CorruptData);
    }
}

/// Tests the `cdc` actions for reported files. (PROTOCOL, "Add CDC File".)
#[test]
fn reported_change_files_are_cdc_actions_with_the_values_of_their_partition() {
    let file = parquet(2);
    let data = report("a=1/part-0.parquet", &file, 2, &[Some("1")]);
    let change = report("_change_data/a=1 2/part-0.parquet", &file, 2, &[Some("1")]);
    let reports = written_with_changes(std::slice::from_ref(&data), std::slice::from_ref(&change));
    let found = reported(&reports, 0..usize::MAX, &spec(&["a"])).unwrap();
    assert_eq!(found.files.len(), 1);
    let expected = AddCdcFile {
        path: "_change_data/a=1%202/part-0.parquet".to_owned(),
        partition_values: [("a".to_owned(), Some("1".to_owned()))].into(),
        size: change.size,
        ..AddCdcFile::default()
    };
    assert_eq!(found.changes, [expected]);
    assert_eq!(reported_paths(&reports).unwrap(), [data.path, change.path]);
    assert!(has_change_files(&reports).unwrap());
    assert!(!has_change_files(&written(std::slice::from_ref(&data))).unwrap());
    // A file is refused if it is reported as a file of the other kind, because each kind has its own directory.
    for (files, changes) in [(vec![change.clone()], vec![]), (vec![], vec![data.clone()])] {
        let reports = written_with_changes(&files, &changes);
        assert_eq!(
            reported(&reports, 0..usize::MAX, &spec(&["a"])).unwrap_err().kind(),
            ErrorKind::CorruptData
        );
        assert_eq!(reported_paths(&reports).unwrap_err().kind(), ErrorKind::CorruptData);
    }
    let other = FileReport { rows: 3, ..change };
    let error = reported(&written_with_changes(&[], &[other]), 0..usize::MAX, &spec(&["a"])).unwrap_err();
    assert!(error.to_string().contains("reported 3 rows"), "{error}");
}
