//! Files of tables with Iceberg compatibility, or with partition columns in files. Protocol: "Iceberg Compatibility
//! V1", "Iceberg Compatibility V2"; protocol RFC: "Iceberg Compatibility V3".

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use deltalog::engine::protocol::ArrayType;
use deltalog::{
    Environment, ErrorKind, Operation, PendingWrite, PrimitiveType, ReplaceWhere, Result, SaveMode, Snapshot,
    Storage, StructField, StructType, TableChange, WriteRequest, alter_table,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;
use serde_json::Value;

use crate::common::empty;
use crate::common::store::FaultyStore;

const V2: &str = "delta.enableIcebergCompatV2";
const V3: &str = "delta.enableIcebergCompatV3";
const VECTORS: &str = "delta.enableDeletionVectors";
const MAPPED: (&str, &str) = ("delta.columnMapping.mode", "name");

/// Appends rows of two partitions to a table. Creates the table with these properties if it does not exist.
fn write(storage: &Storage, properties: &[(&str, &str)]) -> Result<()> {
    let schema = StructType::try_new(vec![
        StructField::new("p", PrimitiveType::String, true),
        StructField::new("id", PrimitiveType::Long, true),
        StructField::new("list", ArrayType::new(PrimitiveType::Long, true), true),
    ])?;
    let mut request = WriteRequest::new(schema, SaveMode::Append);
    request.partition_by = Some(vec!["p".to_owned()]);
    request.configuration =
        properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let pending = PendingWrite::begin(storage, request, &Environment::system())?.unwrap();
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None]), None, None]);
    let columns: [(&str, ArrayRef); 3] = [
        ("p", Arc::new(StringArray::from(vec![Some("a"), None, Some("a")]))),
        ("id", Arc::new(Int64Array::from(vec![1, 2, 1]))),
        ("list", Arc::new(lists)),
    ];
    let mut writer = pending.writer()?;
    writer.write(&RecordBatch::try_from_iter(columns).unwrap())?;
    let files = writer.finish()?;
    pending.commit_or_fail(files, Operation::new("WRITE")).map(drop)
}

/// Collects the field ids of a file's columns and their parts, by paths of physical names. Repeated groups have no ids.
fn ids(group: &Type, parent: &str, found: &mut BTreeMap<String, Option<i32>>) {
    for field in group.get_fields() {
        let (info, place) = (field.get_basic_info(), format!("{parent}{}", field.name()));
        let is_part = matches!(field.name(), "list" | "key_value");
        if !is_part {
            found.insert(place.clone(), info.has_id().then(|| info.id()));
        }
        if field.is_group() {
            ids(field, &if is_part { parent.to_owned() } else { format!("{place}.") }, found);
        }
    }
}

/// Returns the field ids in all data files of the store.
fn schemas(store: &FaultyStore, storage: &Storage) -> Vec<BTreeMap<String, Option<i32>>> {
    let paths = store.objects().list("t", "").into_iter().map(|entry| entry.path);
    let paths = paths.filter(|path| path.ends_with(".parquet") && !path.contains("_delta_log"));
    let read = |path: String| {
        let bytes = storage.get(path.strip_prefix("t/").unwrap_or(&path)).unwrap().unwrap();
        let file = SerializedFileReader::new(bytes).unwrap();
        let mut found = BTreeMap::new();
        ids(file.metadata().file_metadata().schema_descr().root_schema(), "", &mut found);
        found
    };
    paths.map(read).collect()
}

/// Returns the field ids in the table's schema, by paths of physical names.
fn ids_of_the_log(newest: &Snapshot) -> BTreeMap<String, Option<i32>> {
    let mut found = BTreeMap::new();
    let number = |id: &Value| id.as_i64().and_then(|id| i32::try_from(id).ok());
    for field in newest.schema().fields() {
        let entries = field.metadata.entries();
        let physical = entries["delta.columnMapping.physicalName"].as_str().unwrap();
        found.insert(physical.to_owned(), number(&entries["delta.columnMapping.id"]));
        let parts = entries.get("delta.columnMapping.nested.ids").and_then(Value::as_object);
        found.extend(parts.into_iter().flatten().map(|(place, id)| (place.clone(), number(id))));
    }
    found
}

/// "These identifiers must be also written to the `field_id` field"; "partition column values be materialized".
#[test]
fn files_have_the_ids_of_the_log_and_the_partition_columns() {
    let (store, storage) = empty();
    write(&storage, &[(V2, "true")]).unwrap();
    write(&storage, &[]).unwrap();
    let newest = Snapshot::open(&storage, None).unwrap();
    let expected = ids_of_the_log(&newest);
    assert_eq!(expected.len(), 4);
    assert!(expected.values().all(Option::is_some), "{expected:?}");
    let files = schemas(&store, &storage);
    assert_eq!(files.len(), 4);
    for file in files {
        assert_eq!(file, expected);
    }
}

/// "Require that Deletion Vectors are not active": for a new table, and when an existing table enables the
/// compatibility.
#[test]
fn deletion_vectors_and_version_2_exclude_each_other() {
    let refused = |outcome: Result<()>, expected: &str| {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let (_, storage) = empty();
    refused(write(&storage, &[(V2, "true"), (VECTORS, "true")]), "deletion vectors are on");
    write(&storage, &[MAPPED, (VECTORS, "true")]).unwrap();
    let alter = |properties: &[(&str, &str)]| {
        let base = Snapshot::open(&storage, None)?;
        let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let change = TableChange::SetProperties(properties.collect());
        alter_table(&base, &change, serde_json::Map::new(), &Environment::system()).map(drop)
    };
    refused(alter(&[(V2, "true")]), "deletion vectors are on");
    assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 0);
}

/// "Materialized Row ID column must use field ID 2147483540", and the column of row commit versions 2147483539.
/// "Unlike IcebergCompatV1 and IcebergCompatV2, this feature does _NOT_ forbid supporting and enabling Deletion
/// Vectors".
#[test]
fn version_3_copies_rows_with_ids_that_iceberg_knows_or_deletes_them_by_vectors() {
    for (vectors, copied) in [("false", 1), ("true", 0)] {
        let (store, storage) = empty();
        write(&storage, &[(V3, "true"), (VECTORS, vectors)]).unwrap();
        let mut request = WriteRequest::new(StructType::try_new(Vec::new()).unwrap(), SaveMode::Overwrite);
        request.replace_where = Some(ReplaceWhere::new("list IS NOT NULL"));
        let pending = PendingWrite::begin(&storage, request, &Environment::system()).unwrap().unwrap();
        pending.commit_or_fail(Vec::new(), Operation::new("WRITE")).unwrap();
        let newest = Snapshot::open(&storage, None).unwrap();
        let expected = ids_of_the_log(&newest);
        let name = |what: &str| {
            newest.metadata().property(&format!("delta.rowTracking.materialized{what}ColumnName")).unwrap()
        };
        let hidden = [(name("RowId"), 2_147_483_540), (name("RowCommitVersion"), 2_147_483_539)];
        let hidden = hidden.map(|(name, id)| (name.to_owned(), Some(id)));
        let with_ids: BTreeMap<_, _> = expected.clone().into_iter().chain(hidden).collect();
        let files = schemas(&store, &storage);
        assert_eq!(files.iter().filter(|file| **file == with_ids).count(), copied);
        assert!(files.iter().all(|file| *file == expected || *file == with_ids), "{files:?}");
        assert_eq!(newest.totals().unwrap().files, 2);
    }
}

/// "Materialize Partition Columns": "writers must materialize partition columns into any newly created data file".
#[test]
fn files_have_the_partition_columns_that_a_feature_requires() {
    for (property, expected) in
        [("delta.enableMaterializePartitionColumnsFeature", true), ("delta.appendOnly", false)]
    {
        let (store, storage) = empty();
        write(&storage, &[(property, "true")]).unwrap();
        let files = schemas(&store, &storage);
        assert_eq!(files.len(), 2);
        assert!(files.iter().all(|file| file.contains_key("p") == expected), "{files:?}");
    }
}
