//! Tests of scans: statistics from the log, limits, projections, versions, errors, and streams that are dropped.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion_common::stats::Precision;
use datafusion_common::{ScalarValue, Statistics};
use datafusion_execution::TaskContext;
use datafusion_expr::{Expr, col, lit};
use datafusion_physical_plan::{ExecutionPlan, StatisticsArgs, StatisticsContext, displayable};
use deltalog::ErrorKind;
use deltalog_datafusion::DeltaTableProvider;
use futures::StreamExt;

use crate::support::{ids, integers, kind, rows, scan};
use crate::table::{Table, wait_for_threads};

const VECTORS: [(&str, &str); 1] = [("delta.enableDeletionVectors", "true")];

fn batch(ids: Range<i64>) -> RecordBatch {
    let cities: StringArray = ids.clone().map(|id| Some(["Oslo", "Rome", "Bern"][id as usize % 3])).collect();
    let years: Int32Array = ids.clone().map(|id| Some(2020 + id as i32 % 2)).collect();
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(ids)), true),
        ("city", Arc::new(cities), true),
        ("year", Arc::new(years), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn table() -> Table {
    Table::new(&VECTORS, &["year"], &[batch(0..1000), batch(1000..1500)])
}

fn statistics(plan: &dyn ExecutionPlan) -> Arc<Statistics> {
    StatisticsContext::new().compute(plan, &StatisticsArgs::new()).unwrap()
}

async fn count(provider: &DeltaTableProvider, filters: &[Expr], limit: Option<usize>) -> Precision<usize> {
    statistics(&*scan(provider, Some(&[0]), filters, limit).await).num_rows
}

#[tokio::test]
async fn counts_and_bounds_come_from_the_log() {
    let table = table();
    let provider = table.provider();
    assert_eq!(count(&provider, &[], None).await, Precision::Exact(1500));
    assert_eq!(count(&provider, &[col("year").eq(lit(2020))], None).await, Precision::Exact(750));
    // With a condition on rows, the count is only an estimate. Here the log excludes the files of the first commit.
    let rest = count(&provider, &[col("id").gt_eq(lit(1200_i64))], None).await;
    assert!(matches!(rest, Precision::Inexact(300..=1200)), "{rest}");
    assert_eq!(count(&provider, &[], Some(7)).await.is_exact(), Some(false));
    assert_eq!(count(&provider, &[], Some(1500)).await, Precision::Exact(1500));
    let all = statistics(&*scan(&provider, None, &[], None).await);
    let bounds = |column: usize| {
        let column = &all.column_statistics[column];
        (column.min_value.clone(), column.max_value.clone())
    };
    let exact = |value: ScalarValue| Precision::Exact(value);
    assert_eq!(bounds(0), (exact(0_i64.into()), exact(1499_i64.into())));
    assert_eq!(bounds(1), (Precision::Absent, Precision::Absent));
    assert_eq!(bounds(2), (exact(2020_i32.into()), exact(2021_i32.into())));
    // If rows are deleted, the log still contains the number of rows, but no bounds.
    table.delete("id >= 1490 OR id < 10");
    let all = statistics(&*scan(&table.provider(), Some(&[0]), &[], None).await);
    assert_eq!(
        (all.num_rows, &all.column_statistics[0].max_value),
        (Precision::Exact(1480), &Precision::Absent)
    );
    // The first provider still reads the version with which it was created.
    assert_eq!(ids(&provider).await.len(), 1500);
    assert_eq!(ids(&table.provider()).await, (10..1490).collect::<Vec<_>>());
}

#[tokio::test]
async fn limits_and_projections() {
    let table = table();
    let provider = table.provider();
    for limit in [1, 7, 1499, 5000] {
        let plan = scan(&provider, Some(&[0]), &[], Some(limit)).await;
        let partitions = plan.properties().partitioning.partition_count();
        let found = rows(plan).await.unwrap().iter().map(RecordBatch::num_rows).sum::<usize>();
        // The limit applies to each partition. DataFusion then takes as many rows as it needs.
        assert!((limit.min(1500)..=(limit * partitions).min(1500)).contains(&found), "{limit}: {found}");
    }
    // The limit must not be applied before a filter that DataFusion evaluates again.
    let years = col("year").eq(lit(2020)).and((col("id") + lit(0_i64)).gt(lit(1490_i64)));
    let plan = scan(&provider, Some(&[0]), &[years], Some(1)).await;
    assert_eq!(rows(plan).await.unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(), 750);
    let plan = scan(&provider, Some(&[2, 0]), &[col("city").eq(lit("Oslo"))], None).await;
    let text = displayable(plan.as_ref()).one_line().to_string();
    assert!(text.contains("columns=[year, id], predicate=city = 'Oslo'"), "{text}");
    let batches = rows(plan).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 500);
    // A scan without columns still counts rows.
    let batches = rows(scan(&provider, Some(&[]), &[], None).await).await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_columns() == 0));
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1500);
}

/// Passing a batch to DataFusion takes time, so a batch of the scan has the rows of eight of DataFusion's batches.
#[tokio::test]
async fn batches_are_larger_than_those_of_datafusion() {
    let table = Table::new(&VECTORS, &[], &[batch(0..100_000)]);
    let lengths = |batches: Vec<RecordBatch>| batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>();
    let found = lengths(rows(scan(&table.provider(), Some(&[0]), &[], None).await).await.unwrap());
    assert_eq!(found, [65_536, 34_464]);
    table.delete("id % 2 = 0");
    let found = lengths(rows(scan(&table.provider(), Some(&[0]), &[], None).await).await.unwrap());
    assert_eq!(found, [50_000]);
}

#[tokio::test]
async fn a_table_without_files() {
    let table = table();
    table.delete("true");
    let plan = scan(&table.provider(), None, &[], None).await;
    assert_eq!(statistics(&*plan).num_rows, Precision::Exact(0));
    assert_eq!(integers(&rows(plan).await.unwrap()), [0; 0]);
}

/// A missing file is an error of deltalog with its kind, and does not look like the end of the rows.
#[tokio::test]
async fn a_missing_file_is_an_error_with_its_kind() {
    let table = table();
    let plan = scan(&table.provider(), None, &[], None).await;
    table.remove_data_files();
    let error = rows(plan).await.unwrap_err();
    assert_eq!(kind(&error), ErrorKind::FileNotFound, "{error}");
}

#[tokio::test]
async fn a_dropped_stream_stops_its_threads() {
    let table = table();
    let plan = scan(&table.provider(), Some(&[0]), &[], None).await;
    let partitions = plan.properties().partitioning.partition_count();
    assert_eq!(partitions, 3);
    let run = |partition| plan.execute(partition, Arc::new(TaskContext::default())).unwrap();
    let mut streams: Vec<_> = (0..partitions).map(run).collect();
    for stream in &mut streams {
        assert!(stream.next().await.unwrap().unwrap().num_rows() > 0);
    }
    drop(streams);
    wait_for_threads("deltalog-scan");
}
