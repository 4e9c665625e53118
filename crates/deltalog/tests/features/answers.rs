//! Counts and bounds from the log agree with the rows that a scan returns (protocol: "Per-file Statistics",
//! "Deletion Vectors").

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Date32Type, Decimal128Type, Int64Type};
use arrow::util::display::array_value_to_string;
use deltalog::Snapshot;
use deltalog::engine::predicate::{ColumnPath, ParseMode, parse};
use deltalog::engine::scan::Answers;
use serde_json::{Value, json};

use crate::crafted::{Crafted, Definition, field, fields, rows};

fn table() -> (Crafted, Snapshot) {
    let columns = [
        ("id", "long"),
        ("price", "decimal(10,2)"),
        ("day", "date"),
        ("ratio", "double"),
        ("name", "string"),
        ("part", "date"),
    ];
    let schema =
        fields(columns.iter().map(|(name, data_type)| field(name, json!(data_type), json!({}))).collect());
    let definition = Definition {
        schema: &schema,
        partition_columns: &["part"],
        reader_features: &[],
        writer_features: &[],
        configuration: json!({}),
    };
    let mut table = Crafted::new(&definition);
    let batch = |ids: &[i64]| {
        let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
        let ratios: ArrayRef = Arc::new(
            ids.as_primitive::<Int64Type>().unary::<_, arrow::datatypes::Float64Type>(|id| id as f64),
        );
        let names: ArrayRef = Arc::new((0..ids.len()).map(|_| Some("n")).collect::<StringArray>());
        RecordBatch::try_from_iter([("id", ids), ("ratio", ratios), ("name", names)]).unwrap()
    };
    let add = |table: &mut Crafted, name: &str, ids: &[i64], part: Value, stats: Option<Value>| {
        let mut rest = json!({"partitionValues": {"part": part}});
        if let Some(stats) = stats {
            rest["stats"] = stats.to_string().into();
        }
        table.add(name, &batch(ids), 2, rest);
    };
    let stats = |ids: &[i64]| {
        let (min, max) = (ids.iter().min(), ids.iter().max());
        json!({
            "numRecords": ids.len(),
            "minValues": {"id": min, "price": -0.05, "day": "2024-02-29"},
            "maxValues": {"id": max, "price": 1.5, "day": "2024-03-01", "name": "n"},
            "nullCount": {"id": 0, "name": 0, "ratio": 0},
        })
    };
    add(&mut table, "a", &[1, 2, 3], json!("2024-01-01"), Some(stats(&[1, 2, 3])));
    add(&mut table, "b", &[-4, 9], json!("2024-01-02"), Some(stats(&[-4, 9])));
    add(&mut table, "c", &[5], json!("2024-01-01"), Some(stats(&[5])));
    table.commit();
    let snapshot = table.open().unwrap();
    (table, snapshot)
}

fn answers(snapshot: &Snapshot, predicate: Option<&str>) -> Answers {
    let answers = Answers::new(snapshot);
    match predicate {
        Some(sql) => answers.predicate(&parse(sql, "UTC", ParseMode::Strict).unwrap()).unwrap(),
        None => answers,
    }
}

/// Counts the rows by reading them.
fn read_counts(snapshot: &Snapshot, predicate: Option<&str>) -> BTreeMap<String, i64> {
    let read = rows(snapshot, Some(&["part"]), predicate).unwrap();
    let mut counts = BTreeMap::new();
    for row in 0..read.num_rows() {
        *counts.entry(array_value_to_string(read.column(0), row).unwrap()).or_default() += 1;
    }
    counts
}

fn answered_counts(snapshot: &Snapshot, predicate: Option<&str>) -> BTreeMap<String, i64> {
    let batch = answers(snapshot, predicate).count_by_partition().unwrap();
    let counts = batch.column_by_name("count").unwrap().as_primitive::<Int64Type>();
    (0..batch.num_rows())
        .map(|row| (array_value_to_string(batch.column(0), row).unwrap(), counts.value(row)))
        .collect()
}

#[test]
fn counts_from_the_log_agree_with_the_rows() {
    let (mut table, _) = table();
    // If statistics are missing or lack the number of rows, the number comes from the files' Parquet footers.
    let ids =
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![7, 8, 9])) as ArrayRef)]).unwrap();
    table.add("d", &ids, 2, json!({"partitionValues": {"part": null}, "stats": "{\"minValues\":{}}"}));
    table.add(
        "e",
        &ids,
        2,
        json!({"partitionValues": {"part": "2024-01-02"}, "stats": "{\"numRecords\":-1}"}),
    );
    table.add("f", &ids, 2, json!({"partitionValues": {"part": "2024-01-03"}}));
    table.commit();
    let snapshot = table.open().unwrap();
    for predicate in [
        None,
        Some("part = '2024-01-02'"),
        Some("part IS NULL OR part > '2024-01-02'"),
        Some("year(part) = 2023"),
        Some("(part > '2024-01-01') IS UNKNOWN"),
        Some("id > 2"),
        Some("part = '2024-01-02' AND id > 2"),
    ] {
        let expected = read_counts(&snapshot, predicate);
        assert_eq!(answered_counts(&snapshot, predicate), expected, "{predicate:?}");
        assert_eq!(
            answers(&snapshot, predicate).count().unwrap() as i64,
            expected.values().sum::<i64>(),
            "{predicate:?}"
        );
    }
}

#[test]
fn bounds_are_returned_only_if_they_are_values() {
    let (_table, snapshot) = table();
    let min_max = |column: &str, predicate| answers(&snapshot, predicate).min_max(column).unwrap();
    let ids = min_max("ID", None).unwrap();
    assert_eq!(
        (ids.min.as_primitive::<Int64Type>().value(0), ids.max.as_primitive::<Int64Type>().value(0)),
        (-4, 9)
    );
    let first = min_max("id", Some("part = '2024-01-01'")).unwrap();
    assert_eq!(
        (first.min.as_primitive::<Int64Type>().value(0), first.max.as_primitive::<Int64Type>().value(0)),
        (1, 5)
    );
    let prices = min_max("price", None).unwrap();
    assert_eq!(
        (
            prices.min.as_primitive::<Decimal128Type>().value(0),
            prices.max.as_primitive::<Decimal128Type>().value(0)
        ),
        (-5, 150)
    );
    let parts = min_max("part", None).unwrap();
    assert_eq!(
        (parts.min.as_primitive::<Date32Type>().value(0), parts.max.as_primitive::<Date32Type>().value(0)),
        (19_723, 19_724)
    );
    let none = min_max("id", Some("part = '1999-01-01'")).unwrap();
    assert!(none.min.is_null(0) && none.max.is_null(0));
    // There is no answer if bounds are truncated or may leave out a NaN, or if they cannot decide the condition.
    assert!(
        min_max("name", None).is_none()
            && min_max("ratio", None).is_none()
            && min_max("id", Some("id > 2")).is_none()
    );
    assert!(answers(&snapshot, None).min_max("nothing").is_err());
}

#[test]
fn wide_or_missing_bounds_are_not_values() {
    let ids = |ids: Vec<Option<i64>>| {
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids)) as ArrayRef)]).unwrap()
    };
    let bounded = |stats: Value| {
        let (mut table, _) = table();
        table.add(
            "d",
            &ids(vec![Some(100), None]),
            2,
            json!({"partitionValues": {"part": null}, "stats": stats.to_string()}),
        );
        table.commit();
        answers(&table.open().unwrap(), None)
            .min_max("id")
            .unwrap()
            .map(|bounds| bounds.max.as_primitive::<Int64Type>().value(0))
    };
    let stats = |max: Value, nulls: i64| {
        json!({
            "numRecords": 2, "minValues": {"id": max}, "maxValues": {"id": max}, "nullCount": {"id": nulls},
        })
    };
    let mut wide = stats(json!(100), 1);
    wide["tightBounds"] = json!(false);
    assert_eq!(bounded(stats(json!(100), 1)), Some(100));
    assert_eq!(bounded(wide), None);
    assert_eq!(bounded(stats(Value::Null, 1)), None);
    assert_eq!(bounded(stats(Value::Null, 2)), Some(9));
    assert_eq!(bounded(json!({"numRecords": 0})), Some(9));
}

#[test]
fn deleting_more_rows_than_exist_is_a_corrupt_log() {
    let (mut table, _) = table();
    let batch =
        RecordBatch::try_from_iter([("ratio", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef)]).unwrap();
    let vector = json!({"storageType": "i", "pathOrInlineDv": "00000", "sizeInBytes": 4, "cardinality": 2});
    table.add(
        "d",
        &batch,
        2,
        json!({"partitionValues": {"part": null}, "stats": "{\"numRecords\":1}", "deletionVector": vector}),
    );
    table.commit();
    let error = answers(&table.open().unwrap(), None).count().unwrap_err();
    assert_eq!(error.kind(), deltalog::ErrorKind::CorruptLog, "{error}");
}

#[test]
fn either_every_partition_has_an_answer_or_no_partition() {
    let (mut table, snapshot) = table();
    let by_partition = |answers: Answers, columns: &[&str]| {
        let columns: Vec<ColumnPath> = columns.iter().map(|name| ColumnPath::new([*name])).collect();
        answers.by_partition(&columns).unwrap()
    };
    let text = |batch: RecordBatch| -> Vec<String> {
        let row = |row| {
            batch
                .columns()
                .iter()
                .map(|column| array_value_to_string(column, row).unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        };
        (0..batch.num_rows()).map(row).collect()
    };
    let all = by_partition(Answers::new(&snapshot), &["ID", "price"]).unwrap();
    assert_eq!(
        all.schema().fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(),
        ["part", "count", "min(id)", "max(id)", "min(price)", "max(price)"]
    );
    assert_eq!(text(all), ["2024-01-01 4 1 5 -0.05 1.50", "2024-01-02 2 -4 9 -0.05 1.50"]);
    let pruned = Answers::new(&snapshot)
        .pruning(parse("part > '2024-01-01' AND some(thing)", "UTC", ParseMode::Pruning).unwrap());
    assert_eq!(text(by_partition(pruned, &["id"]).unwrap()), ["2024-01-02 2 -4 9"]);
    let strict = answers(&snapshot, Some("part = '2024-01-01'"));
    assert_eq!(text(by_partition(strict, &[]).unwrap()), ["2024-01-01 4"]);
    // There is no answer if bounds are not values of rows, if there is a condition on rows, or if a file has no
    // statistics. No file is opened.
    assert!(
        by_partition(Answers::new(&snapshot), &["name"]).is_none()
            && by_partition(Answers::new(&snapshot), &["part"]).is_none()
    );
    assert!(by_partition(answers(&snapshot, Some("id > 2")), &[]).is_none());
    let ids = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![7])) as ArrayRef)]).unwrap();
    table.add("d", &ids, 2, json!({"partitionValues": {"part": null}, "stats": "{\"numRecords\":0}"}));
    table.commit();
    assert_eq!(text(by_partition(Answers::new(&table.open().unwrap()), &["id"]).unwrap()).len(), 2);
    table.add("e", &ids, 2, json!({"partitionValues": {"part": null}, "stats": "{\"numRecords\":1}"}));
    table.commit();
    assert_eq!(text(by_partition(Answers::new(&table.open().unwrap()), &[]).unwrap())[0], " 1");
    assert!(by_partition(Answers::new(&table.open().unwrap()), &["id"]).is_none());
    table.add("f", &ids, 2, json!({"partitionValues": {"part": null}}));
    table.commit();
    assert!(by_partition(Answers::new(&table.open().unwrap()), &[]).is_none());
}
