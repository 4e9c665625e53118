//! Tests files of tables with Iceberg compatibility, and of tables whose files contain the partition columns.
//! (PROTOCOL, "Iceberg Compatibility V1", "… V2"; "Iceberg Compatibility V3" of the protocol's requests for
//! comments.)

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::Type;
use tempfile::TempDir;

use super::iceberg::fault;
use super::{DataWriter, TableWriteSpec, WriteOptions, read_footer};
use crate::operations::define::TableDefinition;
use crate::protocol::{
    Add, ArrayType, MapType, MaterializedRowTracking, PrimitiveType, StructField, StructType, path,
};
use crate::storage::Storage;
use crate::{Environment, ErrorKind, Result};

const V1: &str = "delta.enableIcebergCompatV1";
const V2: &str = "delta.enableIcebergCompatV2";
const V3: &str = "delta.enableIcebergCompatV3";

fn definition(property: &str) -> TableDefinition {
    let long = || PrimitiveType::Long;
    let inner =
        StructType::try_new(vec![StructField::new("deep", ArrayType::new(long(), true), true)]).unwrap();
    let mut fields = vec![
        StructField::new("p", PrimitiveType::String, true),
        StructField::new("id", long(), true),
        StructField::new("t", PrimitiveType::Timestamp, true),
    ];
    if property != V1 {
        fields.push(StructField::new("l", ArrayType::new(ArrayType::new(long(), true), true), true));
        fields.push(StructField::new("m", MapType::new(PrimitiveType::String, inner, true), true));
    }
    let mut definition = TableDefinition::new(StructType::try_new(fields).unwrap());
    definition.partition_columns = vec!["p".to_owned()];
    definition.configuration.insert(property.to_owned(), "true".to_owned());
    definition
}

fn spec(definition: &TableDefinition) -> Result<TableWriteSpec> {
    let table = definition.resolve(&Environment::system())?;
    TableWriteSpec::new(&table.protocol, &table.metadata)
}

/// Writes rows that have values only in `p` and `id`. Returns the file of each partition, with its footer.
fn written(spec: &TableWriteSpec) -> (TempDir, Storage, Vec<(Add, ParquetMetaData)>) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let options = WriteOptions::new(Environment::system());
    let mut writer = DataWriter::new(storage.clone(), spec.clone(), options).unwrap();
    let columns: [(&str, ArrayRef); 2] = [
        ("p", Arc::new(StringArray::from(vec![Some("a"), Some(""), None, Some("a")]))),
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))),
    ];
    writer.write(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
    let files = writer.finish().unwrap().into_iter().map(|add| {
        let file = storage.open_file(&path::decode(&add.path).unwrap()).unwrap();
        (add, read_footer(&file).unwrap())
    });
    let files = files.collect();
    (directory, storage, files)
}

/// Returns the footer of an empty file with this schema.
fn footer_of(message: &str) -> ParquetMetaData {
    let schema = parquet::schema::parser::parse_message_type(message).unwrap();
    let schema = parquet::schema::types::SchemaDescriptor::new(Arc::new(schema));
    let file = parquet::file::metadata::FileMetaData::new(2, 0, None, None, Arc::new(schema), None);
    ParquetMetaData::new(file, Vec::new())
}

/// Collects the field id of each column and part of a file, with its path. Repeated groups have no id.
fn ids(group: &Type, parent: &str, found: &mut Vec<(String, Option<i32>)>) {
    for field in group.get_fields() {
        let info = field.get_basic_info();
        let place = format!("{parent}{}", field.name());
        if !matches!(field.name(), "list" | "key_value") {
            found.push((place.clone(), info.has_id().then(|| info.id())));
        }
        if field.is_group() {
            ids(field, &format!("{place}."), found);
        }
    }
}

/// Tests two rules of the protocol for files: "These identifiers must be also written to the `field_id` field", and
/// "partition column values are materialized … placed *after* the data columns".
#[test]
fn files_have_all_ids_and_the_partition_columns_last() {
    for (property, expected, version) in [(V1, 3, None), (V2, 11, Some("2")), (V3, 11, Some("3"))] {
        let spec = spec(&definition(property)).unwrap();
        let (_directory, storage, files) = written(&spec);
        // The empty string and NULL share a file, because an empty string becomes NULL.
        assert_eq!(files.len(), 2);
        for (add, footer) in &files {
            assert_eq!(fault(footer, &spec), None);
            let root = footer.file_metadata().schema_descr().root_schema();
            let [partition] = spec.physical_partition_columns() else { panic!() };
            assert_eq!(root.get_fields().last().map(|last| last.name()), Some(partition.as_str()));
            let mut found = Vec::new();
            ids(root, "", &mut found);
            assert_eq!(found.len(), expected, "{found:?}");
            assert!(found.iter().all(|(_, id)| id.is_some()), "{found:?}");
            let mut numbers: Vec<_> = found.iter().filter_map(|(_, id)| *id).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (1..=expected as i32).collect::<Vec<_>>());
            let stats: serde_json::Value = serde_json::from_str(add.stats.as_deref().unwrap()).unwrap();
            assert_eq!(stats["numRecords"], 2);
            assert!(
                stats["minValues"].get(partition).is_none() && stats["nullCount"].get(partition).is_none()
            );
            let tag =
                add.tags.as_ref().and_then(|tags| tags.get("ICEBERG_COMPAT_VERSION").cloned().flatten());
            assert_eq!(tag.as_deref(), version);
            let file = storage.open_file(&path::decode(&add.path).unwrap()).unwrap();
            let rows = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
            for batch in rows {
                let batch = batch.unwrap();
                let values = batch.column_by_name(partition).unwrap().as_string::<i32>();
                let in_log = add.partition_values.get(partition).cloned().flatten();
                assert!(values.iter().all(|value| value == in_log.as_deref()), "{values:?} {in_log:?}");
            }
        }
        let rows = files.iter().map(|(add, _)| add.partition_values.values().next().cloned().flatten());
        assert_eq!(rows.collect::<std::collections::BTreeSet<_>>(), [None, Some("a".to_owned())].into());
    }
}

#[test]
fn files_of_other_writers_are_compared_with_the_schema() {
    let plain = |definition: &TableDefinition| {
        let mut plain = definition.clone();
        plain.configuration.clear();
        plain
    };
    for property in [V1, V2, V3] {
        let compatible = definition(property);
        let spec = spec(&compatible).unwrap();
        // A file from a table without column mapping has other names, no field ids, and no partition columns.
        let (_directory, _, files) = written(&self::spec(&plain(&compatible)).unwrap());
        let fault_of_plain = fault(&files[0].1, &spec).unwrap();
        assert!(fault_of_plain.contains("does not have the partition column 'p'"), "{fault_of_plain}");
        // A table without Iceberg compatibility has no requirements for its files.
        assert_eq!(fault(&files[0].1, &self::spec(&plain(&compatible)).unwrap()), None);
    }
}

/// Tests that files which break two rules of the protocol are found: "Require writing timestamp columns as int64", and
/// "be assigned 32 bit integer identifiers".
#[test]
fn missing_field_ids_and_int96_are_found() {
    let spec = spec(&definition(V2)).unwrap();
    let name = |logical: &str| {
        let index = spec.arrow().index_of(logical).unwrap();
        spec.physical_arrow().field(index).clone()
    };
    let message = |fields: &[String]| {
        let text = format!("message m {{ optional binary {} = 1; {} }}", name("p").name(), fields.join(" "));
        fault(&footer_of(&text), &spec)
    };
    let id = |field: &Field| field.metadata()["PARQUET:field_id"].clone();
    let [l, t] = ["l", "t"].map(name);
    let ArrowType::List(element) = l.data_type() else { panic!() };
    let ArrowType::List(inner) = element.data_type() else { panic!() };
    let list = |element_id: &str, inner_id: &str| {
        format!(
            "optional group {} (LIST) = {} {{ repeated group list {{ optional group element (LIST){element_id} \
             {{ repeated group list {{ optional int64 element{inner_id}; }} }} }} }}",
            l.name(),
            id(&l)
        )
    };
    let (outer_id, inner_id) = (format!(" = {}", id(element)), format!(" = {}", id(inner)));
    let time = |kind: &str, id: &str| format!("optional {kind} {}{id};", t.name());
    let time_id = format!(" = {}", id(&t));
    for (fields, expected) in [
        (vec![], None),
        (vec![list(&outer_id, &inner_id), time("int64", &time_id)], None),
        (vec![time("int96", &time_id)], Some("INT96")),
        (vec![time("int64", "")], Some("no field id")),
        (vec![time("int64", " = 77")], Some("the field id 77")),
        (vec![list("", &inner_id)], Some(".element' has no field id")),
        (vec![list(&outer_id, "")], Some(".element.element' has no field id")),
        (vec![list(&inner_id, &outer_id)], Some("element' has the field id")),
        (
            vec![format!("optional group {} (LIST) = {} {{ repeated int64 element; }}", l.name(), id(&l))],
            Some("standard structure"),
        ),
    ] {
        let found = message(&fields);
        match expected {
            None => assert_eq!(found, None, "{fields:?}"),
            Some(expected) => {
                assert!(found.as_ref().is_some_and(|found| found.contains(expected)), "{found:?}")
            }
        }
    }
}

/// Version 3 also requires that timestamps have the unit and the zone of Iceberg's type, in addition to "Require
/// writing timestamp columns as int64".
#[test]
fn timestamps_of_another_unit_or_zone_are_found_in_version_3() {
    let mut definition = definition(V3);
    let array = ArrayType::new(PrimitiveType::TimestampNtz, true);
    let more = [StructField::new("n", PrimitiveType::TimestampNtz, true), StructField::new("a", array, true)];
    let fields = definition.schema.fields().iter().cloned().chain(more);
    definition.schema = StructType::try_new(fields.collect()).unwrap();
    definition.partition_columns.clear();
    let spec_3 = spec(&definition).unwrap();
    let (_directory, _, files) = written(&spec_3);
    assert_eq!(fault(&files[0].1, &spec_3), None);
    // The same columns, with the same ids, are allowed in a table of version 2.
    let mut older = definition.resolve(&Environment::system()).unwrap();
    for (property, value) in [(V3, "false"), (V2, "true")] {
        older.metadata.configuration.insert(property.to_owned(), value.to_owned());
    }
    let protocol = older.protocol.supporting(&[crate::protocol::TableFeature::IcebergCompatV2]);
    let spec_2 = TableWriteSpec::new(&protocol, &older.metadata).unwrap();
    let field = |spec: &TableWriteSpec, name: &str| {
        spec.physical_arrow().field(spec.arrow().index_of(name).unwrap()).clone()
    };
    let id = |field: &Field| field.metadata()["PARQUET:field_id"].clone();
    let message = |spec: &TableWriteSpec, column: &str, kind: &str| {
        let field = field(spec, column);
        let (name, id_of_column) = (field.name(), id(&field));
        let text = match field.data_type() {
            ArrowType::List(element) => {
                let element = format!("optional int64 element {kind} = {};", id(element));
                format!(
                    "optional group {name} (LIST) = {id_of_column} {{ repeated group list {{ {element} }} }}"
                )
            }
            _ => format!("optional int64 {name} {kind} = {id_of_column};"),
        };
        fault(&footer_of(&format!("message m {{ {text} }}")), spec)
    };
    let unit = Some("has no timestamps in microseconds in the file");
    let zone = Some("has timestamps in UTC in the file, but without a time zone in the table's schema");
    let no_zone = Some("has timestamps without a time zone in the file, but in UTC in the table's schema");
    for (column, kind, expected) in [
        ("t", "(TIMESTAMP(MICROS, true))", None),
        ("t", "(TIMESTAMP_MICROS)", None),
        ("t", "(TIMESTAMP(MICROS, false))", no_zone),
        ("t", "(TIMESTAMP(MILLIS, true))", unit),
        ("t", "(TIMESTAMP(NANOS, true))", unit),
        ("t", "(TIMESTAMP_MILLIS)", unit),
        ("t", "", unit),
        ("n", "(TIMESTAMP(MICROS, false))", None),
        ("n", "(TIMESTAMP(MICROS, true))", zone),
        ("n", "(TIMESTAMP_MICROS)", zone),
        ("a", "(TIMESTAMP(MICROS, false))", None),
        ("a", "(TIMESTAMP(MICROS, true))", zone),
        ("id", "", None),
    ] {
        let found = message(&spec_3, column, kind);
        match expected {
            None => assert_eq!(found, None, "{column} {kind}"),
            Some(expected) => {
                assert!(found.as_ref().is_some_and(|found| found.ends_with(expected)), "{kind} {found:?}")
            }
        }
        assert_eq!(message(&spec_2, column, kind), None, "{column} {kind}");
    }
}

/// Readers find columns by name, but Iceberg finds them by id. If two columns in a file had each other's ids, Iceberg
/// would exchange their values. A file of the mode `id` may have other names.
#[test]
fn columns_are_matched_by_name_and_not_by_id() {
    let mut definition = definition(V2);
    let long = || StructField::new("other", PrimitiveType::Long, true);
    let fields = definition.schema.fields().iter().cloned().chain([long()]);
    definition.schema = StructType::try_new(fields.collect()).unwrap();
    definition.partition_columns.clear();
    let spec = spec(&definition).unwrap();
    let [id, other] = ["id", "other"].map(|logical| {
        let field = spec.physical_arrow().field(spec.arrow().index_of(logical).unwrap()).clone();
        (field.name().clone(), field.metadata()["PARQUET:field_id"].clone())
    });
    let fault_of = |columns: [(&str, &str); 2]| {
        let columns = columns.map(|(name, id)| format!("optional int64 {name} = {id};"));
        let text = format!("message m {{ {} }}", columns.concat());
        fault(&footer_of(&text), &spec)
    };
    assert_eq!(fault_of([(&id.0, &id.1), (&other.0, &other.1)]), None);
    assert_eq!(fault_of([("x", &id.1), ("y", &other.1)]), None);
    let found = fault_of([(&id.0, &other.1), (&other.0, &id.1)]).unwrap();
    let expected =
        format!("'{}' has the field id {} in the file, but {} in the table's schema", id.0, other.1, id.1);
    assert_eq!(found, expected);
}

/// Engines write the partition columns to the files too, so the directories must use different names for them.
#[test]
fn an_engine_names_directories_differently_from_columns() {
    let mut definition = definition(V2);
    definition.configuration.insert("delta.columnMapping.mode".to_owned(), "name".to_owned());
    let spec = spec(&definition).unwrap();
    let [column] = spec.physical_partition_columns() else { panic!() };
    assert_eq!(spec.directory_columns(), [format!("{column}-text")]);
    let schema =
        Schema::new(vec![Field::new("p", ArrowType::Utf8, true), Field::new("x", ArrowType::Int64, true)]);
    let unmapped = TableWriteSpec::unmapped(
        &Arc::new(schema),
        &["p".to_owned()],
        crate::values::stats::IndexedColumns::All,
    );
    assert_eq!(unmapped.directory_columns(), ["p"]);
}

#[test]
fn violations_of_a_version_are_refused_before_files_are_written() {
    for (change, expected) in [
        (("delta.columnMapping.mode", "none"), "not mapped"),
        (("delta.enableDeletionVectors", "true"), "deletion vectors are on"),
        ((V1, "true"), "exclude each other"),
        ((V3, "true"), "exclude each other"),
    ] {
        let mut definition = definition(V2);
        definition.configuration.insert(change.0.to_owned(), change.1.to_owned());
        let error = spec(&definition).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut untracked = definition(V3);
    untracked.configuration.insert("delta.enableRowTracking".to_owned(), "false".to_owned());
    let error = spec(&untracked).unwrap_err();
    assert!(error.to_string().contains("the rows of the table have no ids"), "{error}");
}

/// Tests a rule of the protocol for IcebergCompatV3: "Require that any column write default is a literal value."
#[test]
fn default_values_are_constants_in_version_3() {
    for (property, sql, is_allowed) in
        [(V3, "'none'", true), (V3, "NULL", true), (V3, "upper('none')", false), (V2, "upper('none')", true)]
    {
        let mut definition = definition(property);
        let column = StructField::new("d", PrimitiveType::String, true).with_default(sql);
        let fields = definition.schema.fields().iter().cloned().chain([column]);
        definition.schema = StructType::try_new(fields.collect()).unwrap();
        let feature = "delta.feature.allowColumnDefaults".to_owned();
        definition.configuration.insert(feature, "supported".to_owned());
        let outcome = spec(&definition);
        assert_eq!(outcome.is_ok(), is_allowed, "{property} {sql}");
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            let expected = format!("the default value ({sql}) of the column 'd' is computed");
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }
}

/// Tests two rules of the protocol for IcebergCompatV3: "Materialized Row ID column must use field ID 2147483540", and
/// "Materialized Row Commit Version column must use field ID 2147483539".
#[test]
fn copied_rows_have_the_field_ids_of_iceberg_in_version_3() {
    for (property, expected) in [(V2, [None, None]), (V3, [Some(2_147_483_540), Some(2_147_483_539)])] {
        let mut definition = definition(property);
        definition.configuration.insert("delta.enableRowTracking".to_owned(), "true".to_owned());
        let table = definition.resolve(&Environment::system()).unwrap();
        let names = MaterializedRowTracking::of(&table.protocol, &table.metadata).unwrap();
        let spec = TableWriteSpec::new(&table.protocol, &table.metadata).unwrap();
        let (_directory, _, files) = written(&spec.clone().with_row_ids(&names));
        for (_, footer) in &files {
            assert_eq!(fault(footer, &spec), None);
            let mut found = Vec::new();
            ids(footer.file_metadata().schema_descr().root_schema(), "", &mut found);
            let id_of = |name: &str| found.iter().find(|(place, _)| place == name).unwrap().1;
            assert_eq!([id_of(&names.row_id), id_of(&names.row_commit_version)], expected);
        }
        let foreign = |name: &str, id: &str| {
            let p = spec.physical_arrow().field(spec.arrow().index_of("p").unwrap()).clone();
            let p_id = &p.metadata()["PARQUET:field_id"];
            let text =
                format!("message m {{ optional binary {} = {p_id}; optional int64 {name}{id}; }}", p.name());
            fault(&footer_of(&text), &spec)
        };
        for (name, id) in [(&names.row_id, ""), (&names.row_commit_version, " = 2147483540")] {
            let found = foreign(name, id);
            assert_eq!(found.is_some(), property == V3, "{found:?}");
            assert!(found.is_none_or(|found| found.contains(&format!("'{name}' has"))));
        }
        assert_eq!(foreign("another", ""), None);
    }
}

/// Tests the cases of the section "Materialize Partition Columns": the feature is supported, or only the property is
/// set.
#[test]
fn files_contain_the_partition_columns_if_the_table_requires_it() {
    let write = "delta.writePartitionColumnsToParquet";
    let feature = ("delta.feature.materializePartitionColumns", "supported");
    for (properties, expected) in [
        (vec![], false),
        (vec![(write, "false")], false),
        (vec![(write, "true")], true),
        (vec![feature], true),
        (vec![feature, (write, "false")], true),
        (vec![feature, (write, "true")], true),
        (vec![("delta.enableMaterializePartitionColumnsFeature", "true")], true),
        (vec![("delta.columnMapping.mode", "name"), feature], true),
    ] {
        let mut definition = definition(V1);
        definition.configuration =
            properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let spec = spec(&definition).unwrap();
        assert_eq!(spec.keeps_partition_columns(), expected, "{properties:?}");
        let (_directory, storage, files) = written(&spec);
        assert_eq!(files.len(), 2);
        let [partition] = spec.physical_partition_columns() else { panic!() };
        for (add, footer) in files {
            assert_eq!(fault(&footer, &spec), None);
            let root = footer.file_metadata().schema_descr().root_schema();
            assert_eq!(root.get_fields().last().map(|last| last.name()) == Some(partition), expected);
            assert_eq!(root.get_fields().len(), 2 + usize::from(expected));
            // "File-level statistics should not be present for partition columns in partitioned tables in any case."
            let stats: serde_json::Value = serde_json::from_str(add.stats.as_deref().unwrap()).unwrap();
            assert_eq!(stats["minValues"].get(partition), None);
            assert_eq!(stats["nullCount"].get(partition), None);
            assert_eq!(add.tags, None);
            let file = storage.open_file(&path::decode(&add.path).unwrap()).unwrap();
            for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
                let batch = batch.unwrap();
                let Some(values) = batch.column_by_name(partition) else { continue };
                let in_log = add.partition_values.get(partition).cloned().flatten();
                assert!(values.as_string::<i32>().iter().all(|value| value == in_log.as_deref()));
            }
        }
        // A file from a writer that ignores the feature.
        let lacks = fault(&footer_of("message m { optional int64 id; }"), &spec);
        assert_eq!(lacks.is_some(), expected, "{lacks:?}");
    }
}
