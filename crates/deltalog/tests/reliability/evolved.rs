//! Writes that add the columns of their rows to the table's schema, or widen its types. Protocol: "Change Metadata",
//! "Type Widening", "Metadata Cleanup".

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{Decimal128Type, Int64Type};
use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{
    CreationMode, Environment, ErrorKind, Operation, PendingWrite, PrimitiveType, SaveMode, SchemaMode,
    Snapshot, Storage, StructField, StructType, TableDefinition, TableScan, WriteRequest,
};

use crate::common::store::FaultyStore;
use crate::common::{append, empty, environment};

fn column(name: &str, data_type: PrimitiveType) -> StructField {
    StructField::new(name, data_type, true)
}

/// Returns a write of rows with `columns`, which may add columns and make types wider.
fn merging(base: &Snapshot, columns: &[StructField]) -> deltalog::Result<PendingWrite> {
    let mut request = WriteRequest::new(StructType::try_new(columns.to_vec())?, SaveMode::Append);
    request.schema_mode = SchemaMode::Merge;
    Ok(PendingWrite::on(base.storage(), Some(base.clone()), request, &Environment::system())?.unwrap())
}

fn commit(pending: PendingWrite, rows: &RecordBatch) -> deltalog::Result<u64> {
    let mut writer = pending.writer()?;
    writer.write(rows)?;
    let files = writer.finish()?;
    pending.commit_or_fail(files, Operation::new("WRITE")).map(|committed| committed.version)
}

fn batch(columns: &[(&str, i64)]) -> RecordBatch {
    let columns =
        columns.iter().map(|(name, value)| (*name, Arc::new(Int64Array::from(vec![*value])) as ArrayRef));
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Creates a table with these columns.
fn table(columns: &[StructField], properties: &[(&str, &str)]) -> (FaultyStore, Storage, Snapshot) {
    let (store, storage) = empty();
    let mut definition = TableDefinition::new(StructType::try_new(columns.to_vec()).unwrap());
    let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    definition.configuration = properties.collect();
    let mode = CreationMode::ErrorIfExists;
    let creation = PendingWrite::define(&storage, &definition, mode, Vec::new(), &environment()).unwrap();
    creation.unwrap().commit_or_fail(Vec::new(), Operation::new("CREATE TABLE")).unwrap();
    let base = Snapshot::open(&storage, None).unwrap();
    (store, storage, base)
}

/// Returns the paths of data files.
fn data_files(store: &FaultyStore) -> Vec<String> {
    let paths = store.objects().list("t", "").into_iter().map(|entry| entry.path);
    paths.filter(|path| path.ends_with(".parquet") && !path.contains("_delta_log")).collect()
}

/// The metadata changes of commits that were cleaned up are unknown, so a schema cannot be merged on top of them. Rows
/// that fit the current schema can be added.
#[test]
fn a_schema_is_not_merged_across_a_gap() {
    let id = column("id", PrimitiveType::Long);
    let more = column("more", PrimitiveType::Long);
    let (store, storage, base) = table(std::slice::from_ref(&id), &[]);
    let merges = merging(&base, &[id.clone(), more.clone()]).unwrap();
    let adds_rows = merging(&base, std::slice::from_ref(&id)).unwrap();
    let added = column("other", PrimitiveType::Long);
    let other = merging(&base, &[id.clone(), added]).unwrap();
    assert_eq!(commit(other, &batch(&[("id", 1), ("other", 2)])).unwrap(), 1);
    for file in ["a", "b"] {
        append(&Snapshot::open(&storage, None).unwrap(), file, &environment()).commit_or_fail().unwrap();
    }
    write_checkpoint(&Snapshot::open(&storage, None).unwrap(), &environment()).unwrap();
    (0..3).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
    let before = data_files(&store);

    let error = commit(merges, &batch(&[("id", 3), ("more", 4)])).unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::CommitConflict, Some("log_cleaned_up")));
    assert_eq!(data_files(&store), before, "the files of the failed write are deleted");
    assert_eq!(commit(adds_rows, &batch(&[("id", 5)])).unwrap(), 4);
    let newest = Snapshot::open(&storage, None).unwrap();
    let again = merging(&newest, &[id, more]).unwrap();
    assert_eq!(commit(again, &batch(&[("id", 3), ("more", 4)])).unwrap(), 5);
    let newest = newest.refresh().unwrap();
    let names: Vec<&str> = newest.schema().fields().iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["id", "other", "more"]);
}

/// Two writers each add a different column.
#[test]
fn two_schemas_are_not_merged_at_once() {
    let id = column("id", PrimitiveType::Long);
    let (_, storage, base) = table(std::slice::from_ref(&id), &[]);
    let [first, second] =
        ["a", "b"].map(|name| merging(&base, &[id.clone(), column(name, PrimitiveType::Long)]));
    assert_eq!(commit(first.unwrap(), &batch(&[("id", 1), ("a", 1)])).unwrap(), 1);
    let error = commit(second.unwrap(), &batch(&[("id", 2), ("b", 2)])).unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::CommitConflict, Some("metadata_changed")));
    assert_eq!(Snapshot::open(&storage, None).unwrap().schema().fields().len(), 2);
}

/// "Type Widening": a column's type only becomes wider. Rows of a narrower type are converted. Rows of a wider type
/// are refused, unless the table allows widening or the values fit.
#[test]
fn a_merge_makes_no_type_narrower() {
    use PrimitiveType::{Byte, Date, Double, Float, Integer, Long, Short, Timestamp};
    let decimal = |precision, scale| PrimitiveType::Decimal { precision, scale };
    let narrower = [
        (Long, Integer),
        (Integer, Short),
        (Short, Byte),
        (Double, Float),
        (decimal(20, 2), decimal(10, 2)),
        (decimal(20, 4), decimal(18, 2)),
        (Timestamp, Date),
    ];
    for widens in ["true", "false"] {
        for (of_table, of_rows) in narrower {
            let (_, _, base) = table(&[column("v", of_table)], &[("delta.enableTypeWidening", widens)]);
            let pending = merging(&base, &[column("V", of_rows)]).unwrap();
            assert_eq!(pending.table_schema(), base.schema(), "{of_rows} into {of_table}, widening {widens}");
        }
    }
    for (widens, expected) in [("true", Long), ("false", Integer)] {
        let (_, storage, base) = table(&[column("v", Integer)], &[("delta.enableTypeWidening", widens)]);
        let wide = || merging(&base, &[column("v", Long)]).unwrap();
        assert_eq!(wide().table_schema().fields()[0].data_type, expected.into());
        let large = commit(wide(), &batch(&[("v", 1 << 40)]));
        match widens {
            "true" => assert_eq!(large.unwrap(), 1),
            _ => assert_eq!(large.unwrap_err().kind(), ErrorKind::SchemaMismatch),
        }
        let narrow: ArrayRef = Arc::new(Int32Array::from(vec![7]));
        let base = Snapshot::open(&storage, None).unwrap();
        let pending = merging(&base, &[column("v", Integer)]).unwrap();
        commit(pending, &RecordBatch::try_from_iter([("v", narrow)]).unwrap()).unwrap();
        let newest = base.refresh().unwrap();
        assert_eq!(newest.schema().fields()[0].data_type, expected.into(), "widening {widens}");
        let mut values = Vec::new();
        for batch in TableScan::new(&newest).read().unwrap() {
            let column = arrow::compute::cast(batch.unwrap().column(0), &arrow::datatypes::DataType::Int64);
            values.extend(column.unwrap().as_primitive::<Int64Type>().values().iter().copied());
        }
        values.sort_unstable();
        assert_eq!(values, if widens == "true" { vec![7, 1 << 40] } else { vec![7] });
    }
}

/// "Writers must reject applying type changes not supported by Iceberg V2 when either … feature is supported": a
/// schema merge does not attempt such changes. Values are converted to the column's type, or refused.
#[test]
fn a_merge_widens_as_iceberg_does_where_the_table_supports_its_compatibility() {
    use PrimitiveType::{Byte, Date, Double, Float, Integer, Long, Short, TimestampNtz};
    let decimal = |precision, scale| PrimitiveType::Decimal { precision, scale };
    let types = [
        Byte,
        Short,
        Integer,
        Long,
        Float,
        Double,
        decimal(6, 2),
        decimal(8, 2),
        decimal(8, 4),
        decimal(24, 4),
        Date,
        TimestampNtz,
    ];
    let wholes = [Byte, Short, Integer, Long];
    let is_of_iceberg = |from: PrimitiveType, to: PrimitiveType| {
        let rank = |kind| wholes.iter().position(|whole| *whole == kind);
        match (from, to) {
            (Float, Double) => true,
            (
                PrimitiveType::Decimal { precision: p, scale: s },
                PrimitiveType::Decimal { precision: q, scale: t },
            ) => s == t && p < q,
            _ => rank(from).zip(rank(to)).is_some_and(|(from, to)| from < to),
        }
    };
    let properties = [("delta.enableTypeWidening", "true"), ("delta.enableIcebergCompatV2", "true")];
    for of_table in types {
        let (_, _, base) = table(&[column("v", of_table)], &properties);
        for of_rows in types {
            let merged = merging(&base, &[column("v", of_rows)]).unwrap();
            let expected = if is_of_iceberg(of_table, of_rows) { of_rows } else { of_table };
            let found = &merged.table_schema().fields()[0].data_type;
            assert_eq!(*found, expected.into(), "{of_rows} into {of_table}");
        }
    }
    // The table feature alone has this effect, even if the property is not set.
    let (_, _, base) = table(
        &[column("v", decimal(6, 2))],
        &[
            ("delta.enableTypeWidening", "true"),
            ("delta.feature.icebergCompatV2", "supported"),
            ("delta.columnMapping.mode", "name"),
        ],
    );
    let finer = || merging(&base, &[column("v", decimal(8, 4))]).unwrap();
    assert_eq!(finer().table_schema(), base.schema());
    let row = |value: i128| {
        let values = Decimal128Array::from(vec![value]).with_precision_and_scale(8, 4).unwrap();
        RecordBatch::try_from_iter([("v", Arc::new(values) as ArrayRef)]).unwrap()
    };
    let error = commit(finer(), &row(12_345)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.to_string().contains("'v'") && error.to_string().contains("rounded"), "{error}");
    assert_eq!(commit(finer(), &row(12_300)).unwrap(), 1);
    let newest = base.refresh().unwrap();
    let rows: Vec<RecordBatch> =
        TableScan::new(&newest).read().unwrap().collect::<deltalog::Result<_>>().unwrap();
    assert_eq!(rows[0].column(0).as_primitive::<Decimal128Type>().values(), &[123]);
}
