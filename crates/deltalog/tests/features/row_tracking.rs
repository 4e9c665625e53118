//! "Row Tracking": the ids and commit versions of rows come from the log or from files. Tables without them are
//! covered, too.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::Int64Type;
use deltalog::ErrorKind;
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::scan::{ListColumn, TableScan};
use serde_json::{Value, json};

use crate::crafted::{Crafted, Definition, field, fields, listed};

fn configuration() -> Value {
    json!({
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-x",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-x",
    })
}

fn definition(schema: &Value, configuration: Value) -> Definition<'_> {
    Definition {
        schema,
        partition_columns: &[],
        reader_features: &[],
        writer_features: &["rowTracking", "domainMetadata"],
        configuration,
    }
}

fn ints(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn schema() -> Value {
    fields(vec![field("c", json!("long"), json!({}))])
}

/// Returns a table with both kinds of row ids: one file has new rows with generated ids, and another file has updated
/// and copied rows with stored ids.
fn table(definition: &Definition<'_>, name: &str) -> Crafted {
    let mut table = Crafted::new(definition);
    table.commit();
    let new = RecordBatch::try_from_iter([(name, ints(&[Some(1), Some(2)]))]).unwrap();
    table.add("new.parquet", &new, 1, json!({"baseRowId": 0, "defaultRowCommitVersion": 1}));
    table.commit();
    let rewritten = RecordBatch::try_from_iter([
        (name, ints(&[Some(10), Some(20), Some(30)])),
        ("_row-id-col-x", ints(&[Some(1), Some(0), None])),
        ("_row-commit-version-col-x", ints(&[Some(1), None, None])),
    ])
    .unwrap();
    table.add("rewritten.parquet", &rewritten, 2, json!({"baseRowId": 2, "defaultRowCommitVersion": 2}));
    table.commit();
    table
}

fn tracked(crafted: &Crafted) -> Vec<[i64; 3]> {
    let snapshot = crafted.open().unwrap();
    let scan = TableScan::new(&snapshot).row_ids();
    assert_eq!(
        scan.schema().unwrap().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(),
        ["c", "_row_id", "_row_commit_version"]
    );
    let batches = scan.read().unwrap().collect::<deltalog::Result<Vec<_>>>().unwrap();
    let values = |batch: &RecordBatch, column: usize| {
        batch.column(column).as_primitive::<Int64Type>().values().to_vec()
    };
    let rows = |batch: &RecordBatch| {
        let columns = [0, 1, 2].map(|column| values(batch, column));
        (0..batch.num_rows())
            .map(|row| [columns[0][row], columns[1][row], columns[2][row]])
            .collect::<Vec<_>>()
    };
    batches.iter().flat_map(rows).collect()
}

const EXPECTED: [[i64; 3]; 5] = [[10, 1, 1], [20, 0, 2], [30, 4, 2], [1, 0, 1], [2, 1, 1]];

#[test]
fn ids_are_materialized_if_there_is_a_value_else_generated() {
    let schema = schema();
    let crafted = table(&definition(&schema, configuration()), "c");
    assert_eq!(tracked(&crafted), EXPECTED);
    let snapshot = crafted.open().unwrap();
    let list = listed(&snapshot, &[ListColumn::BaseRowId, ListColumn::DefaultRowCommitVersion], None);
    assert_eq!(list.column(0).as_primitive::<Int64Type>().values(), &[2, 0]);
    assert_eq!(list.column(1).as_primitive::<Int64Type>().values(), &[2, 1]);
    // "hidden from readers": the columns that store ids are not columns of the table.
    let found = crate::crafted::rows(&snapshot, None, None).unwrap();
    assert_eq!(found.num_columns(), 1);
}

/// Whatever columns a scan returns, a filter on ids gives the same rows as filtering the full result afterwards.
#[test]
fn predicates_can_name_the_id_columns() {
    let schema = schema();
    let crafted = table(&definition(&schema, configuration()), "c");
    let snapshot = crafted.open().unwrap();
    let predicate = |sql: &str| parse(sql, "UTC", ParseMode::Strict).unwrap();
    type Holds = fn(&[i64; 3]) -> bool;
    let cases: [(&str, Holds); 8] = [
        ("_row_id < 2", |row| row[1] < 2),
        ("_ROW_ID = 4", |row| row[1] == 4),
        ("_row_id IN (0, 4) AND c > 1", |row| [0, 4].contains(&row[1]) && row[0] > 1),
        ("_row_commit_version = 1", |row| row[2] == 1),
        ("_row_commit_version > 1 OR c = 2", |row| row[2] > 1 || row[0] == 2),
        ("_row_id < _row_commit_version", |row| row[1] < row[2]),
        ("NOT _row_id IS NULL AND c < 15", |row| row[0] < 15),
        ("_row_id > 100", |_| false),
    ];
    for (sql, holds) in cases {
        let expected: Vec<[i64; 3]> = EXPECTED.into_iter().filter(holds).collect();
        // The scan returns the table's column with the ids, and then only the ids.
        for (columns, found) in [(&["c"] as &[&str], [0, 1, 2].as_slice()), (&[], &[1, 2])] {
            let scan = TableScan::new(&snapshot)
                .row_ids()
                .columns(columns.iter().copied())
                .predicate(predicate(sql));
            let batches = scan.read().unwrap().collect::<deltalog::Result<Vec<_>>>().unwrap();
            for (at, of) in found.iter().enumerate() {
                let values: Vec<i64> = batches
                    .iter()
                    .flat_map(|b| b.column(at).as_primitive::<Int64Type>().values().to_vec())
                    .collect();
                assert_eq!(
                    values,
                    expected.iter().map(|row| row[*of]).collect::<Vec<_>>(),
                    "{sql} {columns:?}"
                );
            }
        }
        let error = TableScan::new(&snapshot).predicate(predicate(sql)).read().unwrap_err();
        assert!(
            error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("there is no column"),
            "{error}"
        );
    }
}

/// "If Column Mapping is enabled, then the assigned column name must be distinct from the physical column
/// names": here the column name is itself a physical name.
#[test]
fn with_column_mapping() {
    let schema = fields(vec![field(
        "c",
        json!("long"),
        json!({"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}),
    )]);
    let mut configuration = configuration();
    configuration["delta.columnMapping.mode"] = json!("name");
    let definition = Definition { reader_features: &["columnMapping"], ..definition(&schema, configuration) };
    assert_eq!(tracked(&table(&definition, "col-1")), EXPECTED);
}

#[test]
fn tables_without_row_ids() {
    let schema = schema();
    let mut supported = configuration();
    supported["delta.enableRowTracking"] = json!("false");
    let mut unnamed = configuration();
    unnamed.as_object_mut().unwrap().remove("delta.rowTracking.materializedRowIdColumnName");
    let unlisted = Definition { writer_features: &[], ..definition(&schema, configuration()) };
    for (definition, kind, text) in [
        (definition(&schema, supported), ErrorKind::InvalidArgument, "not enabled"),
        (unlisted, ErrorKind::InvalidArgument, "not enabled"),
        (definition(&schema, unnamed), ErrorKind::CorruptLog, "materializedRowIdColumnName"),
    ] {
        let crafted = table(&definition, "c");
        let error = TableScan::new(&crafted.open().unwrap()).row_ids().read().unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(text), "{error}");
    }
}
