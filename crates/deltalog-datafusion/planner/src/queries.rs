//! Tests of queries: counts and bounds from the log, joins, limits, projections, versions, and dropped streams.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::catalog::TableProvider;
use futures::StreamExt;

use crate::support::{context, integers, plan, rows};
use crate::table::Table;

fn batch(ids: std::ops::Range<i64>) -> RecordBatch {
    let cities: StringArray = ids.clone().map(|id| Some(["Oslo", "Rome", "Bern"][id as usize % 3])).collect();
    let years: Int32Array = ids.clone().map(|id| Some(2020 + id as i32 % 2)).collect();
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(ids)), true),
        ("city", Arc::new(cities), true),
        ("year", Arc::new(years), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn table(properties: &[(&str, &str)]) -> Table {
    Table::new(properties, &["year"], &[batch(0..1000), batch(1000..1500)])
}

const VECTORS: [(&str, &str); 1] = [("delta.enableDeletionVectors", "true")];

#[tokio::test]
async fn counts_and_bounds_come_from_the_log() {
    let table = table(&VECTORS);
    let context = context();
    context.register_table("t", table.provider()).unwrap();
    for (query, expected) in [
        ("SELECT count(*) FROM t", 1500),
        ("SELECT count(*) FROM t WHERE year = 2020", 750),
        ("SELECT max(id) FROM t", 1499),
        ("SELECT min(id) FROM t", 0),
    ] {
        assert_eq!(integers(&context, query).await.unwrap(), [expected], "{query}");
        assert!(!plan(&context, query).await.contains("DeltaScanExec"), "{query} reads files");
    }
    // If rows are deleted, the log still contains the number of rows, but no bounds.
    table.delete("id >= 1490 OR id < 10");
    context.register_table("d", table.provider()).unwrap();
    assert_eq!(integers(&context, "SELECT count(*) FROM d").await.unwrap(), [1480]);
    assert!(!plan(&context, "SELECT count(*) FROM d").await.contains("DeltaScanExec"));
    assert_eq!(integers(&context, "SELECT max(id) FROM d").await.unwrap(), [1489]);
    // With a condition on rows, the count is not in the log.
    assert_eq!(integers(&context, "SELECT count(*) FROM d WHERE id < 100").await.unwrap(), [90]);
    // The first provider still shows the version with which it was created.
    assert_eq!(integers(&context, "SELECT count(*) FROM t").await.unwrap(), [1500]);
    assert_eq!(integers(&context, "SELECT id FROM t WHERE id > 1495").await.unwrap().len(), 4);
}

#[tokio::test]
async fn joins_and_groups() {
    let (table, context) = (table(&[]), context());
    context.register_table("t", table.provider()).unwrap();
    let joined =
        "SELECT count(*) FROM t JOIN (VALUES ('Oslo'), ('Rome')) AS k(city) USING (city) WHERE id < 300";
    assert_eq!(integers(&context, joined).await.unwrap(), [200]);
    let itself = "SELECT count(*) FROM t AS a JOIN t AS b ON a.id = b.id + 1 WHERE b.id >= 700";
    assert_eq!(integers(&context, itself).await.unwrap(), [799]);
    let grouped = "SELECT count(*) FROM t GROUP BY city, year";
    assert_eq!(integers(&context, grouped).await.unwrap(), [250; 6]);
}

#[tokio::test]
async fn limits_and_projections() {
    let (table, context) = (table(&[]), context());
    context.register_table("t", table.provider()).unwrap();
    for limit in [0, 1, 7, 1499, 1500, 5000] {
        let query = format!("SELECT id FROM t LIMIT {limit}");
        assert_eq!(integers(&context, &query).await.unwrap().len(), limit.min(1500), "{query}");
        let query = format!("SELECT id FROM t WHERE id >= 1000 LIMIT {limit} OFFSET 3");
        assert_eq!(integers(&context, &query).await.unwrap().len(), limit.min(497), "{query}");
    }
    assert!(plan(&context, "SELECT id FROM t LIMIT 7").await.contains("limit=7"));
    assert!(plan(&context, "SELECT year FROM t").await.contains("columns=[year]"));
    let batches = rows(&context, "SELECT year, id FROM t WHERE city = 'Oslo'").await.unwrap();
    let schema = batches[0].schema();
    assert_eq!(schema.fields().iter().map(|field| field.name()).collect::<Vec<_>>(), ["year", "id"]);
    // A scan without columns still counts rows.
    assert_eq!(integers(&context, "SELECT count(*) FROM t WHERE id + 0 >= 0").await.unwrap(), [1500]);
}

#[tokio::test]
async fn a_table_without_files() {
    let table = table(&VECTORS);
    table.delete("true");
    let context = context();
    context.register_table("t", table.provider()).unwrap();
    assert_eq!(integers(&context, "SELECT count(*) FROM t").await.unwrap(), [0]);
    assert_eq!(integers(&context, "SELECT id FROM t").await.unwrap(), [0; 0]);
    assert_eq!(integers(&context, "SELECT max(id) FROM t").await.unwrap(), [0; 0]);
}

/// A missing file is an error of deltalog with its kind, and does not look like the end of the rows.
#[tokio::test]
async fn errors_have_a_kind() {
    let table = table(&[]);
    let context = context();
    context.register_table("t", table.provider()).unwrap();
    table.remove_data_files();
    let error = rows(&context, "SELECT id FROM t").await.unwrap_err();
    assert_eq!(crate::support::cause(&error).kind(), deltalog::ErrorKind::FileNotFound, "{error}");
}

/// Dropping a stream ends its threads.
#[tokio::test]
async fn a_dropped_stream_stops_its_threads() {
    let table = table(&[]);
    let provider = table.provider();
    let context = context();
    let state = context.state();
    let plan = provider.scan(&state, Some(&vec![0]), &[], None).await.unwrap();
    let partitions = plan.properties().partitioning.partition_count();
    assert_eq!(partitions, 3);
    let mut streams: Vec<_> =
        (0..partitions).map(|partition| plan.execute(partition, context.task_ctx()).unwrap()).collect();
    for stream in &mut streams {
        assert!(stream.next().await.unwrap().unwrap().num_rows() > 0);
    }
    drop(streams);
    crate::table::wait_for_threads("deltalog-scan");
}
