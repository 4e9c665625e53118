//! Tables whose properties define Bloom filters. Parquet: "Bloom Filter"; protocol: "Column Mapping".

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow::datatypes::DataType;
use deltalog::engine::dml::{Request, delete, update};
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    ColumnPath, Environment, ErrorKind, Operation, OptimizeRequest, ParseMode, PendingWrite, Result,
    SaveMode, Snapshot, Storage, StructType, TableChange, TableScan, WriteRequest, alter_table, optimize,
    parse_predicate,
};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

const SCHEMA: &str = r#"{"type":"struct","fields":[
    {"name":"the day","type":"string","nullable":true,"metadata":{}},
    {"name":"id","type":"long","nullable":true,"metadata":{}},
    {"name":"s","type":{"type":"struct","fields":[
        {"name":"a.b","type":"string","nullable":true,"metadata":{}},
        {"name":"x","type":"double","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}},
    {"name":"v","type":"long","nullable":true,"metadata":{}}]}"#;

fn write(storage: &Storage, properties: &[(&str, &str)], ids: &[i64]) -> Result<()> {
    let mut request = WriteRequest::new(StructType::from_json(SCHEMA).unwrap(), SaveMode::Append);
    request.partition_by = Some(vec!["the day".to_owned()]);
    request.configuration =
        properties.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let write = PendingWrite::begin(storage, request, &Environment::system())?.unwrap();
    let mut writer = write.writer()?;
    let longs: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
    let DataType::Struct(fields) = write.arrow_schema().field(2).data_type().clone() else { panic!() };
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(ids.iter().map(|id| format!("t{id}"))));
    let doubles = arrow::compute::cast(&longs, &DataType::Float64).unwrap();
    let inner: ArrayRef = Arc::new(StructArray::new(fields, vec![texts, doubles], None));
    let day: ArrayRef = Arc::new(StringArray::from(vec!["d"; ids.len()]));
    let rows = RecordBatch::try_new(Arc::clone(write.arrow_schema()), vec![day, longs.clone(), inner, longs])
        .unwrap();
    writer.write(&rows)?;
    write.commit(writer.finish()?, Operation::new("WRITE"))?;
    Ok(())
}

fn newest(storage: &Storage) -> Snapshot {
    Snapshot::open(storage, None).unwrap()
}

fn footer(path: &Path) -> ParquetMetaData {
    ParquetMetaDataReader::new().parse_and_finish(&File::open(path).unwrap()).unwrap()
}

/// Returns, for each file, the logical names of the columns that have Bloom filters.
fn filtered(directory: &Path, storage: &Storage) -> Vec<Vec<String>> {
    let snapshot = newest(storage);
    let files = listed_files(&snapshot, None).unwrap().into_iter();
    let columns = |file: deltalog::engine::rewrite::ListedFile| {
        let footer = footer(&directory.join(file.file.path.to_string()));
        let columns =
            footer.row_group(0).columns().iter().filter(|column| column.bloom_filter_offset().is_some());
        let logical = |path: &[String]| snapshot.mapped_schema().logical_path(path).unwrap().join("/");
        columns.map(|column| logical(column.column_path().parts())).collect()
    };
    files.map(columns).collect()
}

fn count(storage: &Storage, predicate: &str) -> usize {
    let scan = TableScan::new(&newest(storage))
        .predicate(parse_predicate(predicate, "UTC", ParseMode::Strict).unwrap());
    scan.read().unwrap().map(|batch| batch.unwrap().num_rows()).sum()
}

const PROPERTIES: [(&str, &str); 3] = [
    ("delta.columnMapping.mode", "name"),
    ("delta.enableDeletionVectors", "true"),
    ("deltalog.bloomFilterColumns", "ID, s, `the day`"),
];

fn directory() -> (tempfile::TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    (directory, storage)
}

/// Appends, rewrites and statements all write the filters that the table properties ask for. Renaming a column also
/// changes its name in the properties.
#[test]
fn files_have_the_filters_that_properties_request() {
    let (directory, storage) = directory();
    let environment = Environment::system();
    let ids: Vec<i64> = (0..4000).map(|id| id * 2).collect();
    write(&storage, &PROPERTIES, &ids).unwrap();
    // Doubles and partition columns have no filters.
    assert_eq!(filtered(directory.path(), &storage), [["id", "s/a.b"]]);
    assert_eq!((count(&storage, "id = 4001"), count(&storage, "s.`a.b` = 't4000'")), (0, 1));
    let rename = TableChange::RenameColumn { column: ColumnPath::new(["id"]), name: "key".to_owned() };
    alter_table(&newest(&storage), &rename, serde_json::Map::new(), &environment).unwrap();
    write(&storage, &[], &[1, 3]).unwrap();
    assert_eq!(filtered(directory.path(), &storage), [["key", "s/a.b"]; 2]);
    optimize(&newest(&storage), purged(&storage), &environment).unwrap();
    assert!(filtered(directory.path(), &storage).iter().all(|columns| columns == &["key", "s/a.b"]));
    update(
        &newest(&storage),
        &[("v".to_owned(), "v + 1".to_owned())],
        Some("key = 6"),
        Request::new(&environment),
    )
    .unwrap();
    assert!(filtered(directory.path(), &storage).iter().all(|columns| columns == &["key", "s/a.b"]));
    delete(&newest(&storage), Some("key = 8"), Request::new(&environment)).unwrap();
    assert_eq!((count(&storage, "key = 6"), count(&storage, "key in (7, 8, 10)")), (1, 1));
}

/// Returns a request to rewrite all files, after some of their rows were deleted.
fn purged(storage: &Storage) -> OptimizeRequest {
    delete(&newest(storage), Some("v = 0"), Request::new(&Environment::system())).unwrap();
    let mut request = OptimizeRequest::default();
    request.purges = true;
    request
}

/// If the filter shows that a file does not have the value, the scan reads none of the file's pages.
#[test]
fn scans_read_the_filters_of_mapped_columns() {
    let (directory, storage) = directory();
    let ids: Vec<i64> = (0..4000).map(|id| id * 2).collect();
    write(&storage, &PROPERTIES, &ids).unwrap();
    let [file] = listed_files(&newest(&storage), None).unwrap().try_into().unwrap();
    let path = directory.path().join(file.file.path.to_string());
    let mut bytes = std::fs::read(&path).unwrap();
    for column in footer(&path).row_group(0).columns() {
        let (start, length) = column.byte_range();
        bytes[start as usize..(start + length) as usize].fill(0xff);
    }
    std::fs::write(&path, bytes).unwrap();
    for predicate in ["id = 3001", "s.`a.b` = 't3001'", "id in (1, 3, 9) or s.`a.b` <=> 't7'"] {
        assert_eq!(count(&storage, predicate), 0, "{predicate}");
    }
    let scan = TableScan::new(&newest(&storage));
    let scan = scan.predicate(parse_predicate("id = 3000", "UTC", ParseMode::Strict).unwrap());
    let error = scan.read().unwrap().find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
}

#[test]
fn invalid_properties_are_named() {
    for (name, value) in [
        ("deltalog.bloomFilterColumns", "a,,b"),
        ("deltalog.bloomFilterFpp", "2"),
        ("deltalog.bloomFilterNdv", "0"),
    ] {
        let (_directory, storage) = directory();
        let error = write(&storage, &[PROPERTIES[0], PROPERTIES[2], (name, value)], &[1]).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    let (directory, storage) = directory();
    write(&storage, &PROPERTIES[..1], &[1]).unwrap();
    for (name, value, expected) in [
        ("deltalog.bloomFilterColumns", "id, gone", "the column gone, which does not exist"),
        ("deltalog.bloomFilterColumns", "s.x", "the column s.x cannot have a Bloom filter"),
        ("deltalog.bloomFilterColumns", "a,,b", "invalid value"),
        ("deltalog.bloomFilterFpp", "0", "invalid value"),
        ("deltalog.bloomFilterNdv", "many", "invalid value"),
    ] {
        let set = TableChange::SetProperties([(name.to_owned(), value.to_owned())].into());
        let error =
            alter_table(&newest(&storage), &set, serde_json::Map::new(), &Environment::system()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(expected), "{error}");
    }
    drop(directory);
    let (directory, storage) = self::directory();
    let properties = [
        ("deltalog.bloomFilterColumns", "id"),
        ("deltalog.bloomFilterFpp", "0.1"),
        ("deltalog.bloomFilterNdv", "100"),
    ];
    let mapped = [("delta.columnMapping.mode", "name")];
    write(&storage, &[properties.as_slice(), &mapped].concat(), &(0..4000).collect::<Vec<_>>()).unwrap();
    assert_eq!(filtered(directory.path(), &storage), [["id"]]);
}
