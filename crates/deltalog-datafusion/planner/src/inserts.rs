//! Tests of INSERT: rows are inserted once, a failed statement leaves nothing behind, and changes by other writers
//! are noticed.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::prelude::SessionContext;
use deltalog::{ErrorKind, SaveMode, StructType, WriteRequest};
use futures::StreamExt;

use crate::support::{cause, context, integers, plan, rows};
use crate::table::{Table, wait_for_threads};

fn batch(ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    let names: StringArray = ids.iter().map(|id| Some(format!("n{id}"))).collect();
    let columns: Vec<(&str, ArrayRef, bool)> =
        vec![("id", Arc::new(Int64Array::from(ids)), true), ("name", Arc::new(names), true)];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn opened(ids: impl IntoIterator<Item = i64>) -> (Table, SessionContext) {
    let table = Table::new(&[("delta.enableDeletionVectors", "true")], &[], &[batch(ids)]);
    let context = context();
    context.register_table("t", table.provider()).unwrap();
    (table, context)
}

async fn inserted(context: &SessionContext, statement: &str) -> datafusion::error::Result<u64> {
    let counts = rows(context, statement).await?;
    let counts = counts.iter().flat_map(|batch| {
        let counts = arrow::array::AsArray::as_primitive::<arrow::datatypes::UInt64Type>(batch.column(0));
        counts.values().to_vec()
    });
    Ok(counts.sum())
}

const IDS: &str = "SELECT id FROM t";

#[tokio::test]
async fn rows_are_appended_once_and_seen_by_the_next_query() {
    let (table, context) = opened([1, 2]);
    assert_eq!(inserted(&context, "INSERT INTO t VALUES (3, 'x'), (4, NULL)").await.unwrap(), 2);
    assert_eq!(integers(&context, IDS).await.unwrap(), [1, 2, 3, 4]);
    // A column that is left out is NULL.
    assert_eq!(inserted(&context, "INSERT INTO t (id) VALUES (5)").await.unwrap(), 1);
    assert_eq!(integers(&context, "SELECT id FROM t WHERE name IS NULL").await.unwrap(), [4, 5]);
    assert_eq!(table.snapshot().version(), 2);
    let history = table.snapshot().history(Some(1)).unwrap();
    assert_eq!(history[0].commit_info.operation.as_deref(), Some("WRITE"));
}

/// The input has several partitions, and all of them are written.
#[tokio::test]
async fn all_partitions_of_the_input_are_written() {
    let (_table, context) = opened([]);
    let source =
        Table::new(&[], &[], &(0..7).map(|part| batch(part * 10..part * 10 + 10)).collect::<Vec<_>>());
    context.register_table("s", source.provider()).unwrap();
    assert_eq!(inserted(&context, "INSERT INTO t SELECT * FROM s WHERE id < 65").await.unwrap(), 65);
    assert_eq!(integers(&context, IDS).await.unwrap(), (0..65).collect::<Vec<_>>());
    // The same is true of a plan that was not optimized.
    let provider = source.provider();
    let state = context.state();
    let input = datafusion::catalog::TableProvider::scan(&*provider, &state, None, &[], None).await.unwrap();
    assert_eq!(input.properties().partitioning.partition_count(), 3);
    let target = context.table_provider("t").await.unwrap();
    let operation = datafusion::logical_expr::dml::InsertOp::Append;
    let plan = target.insert_into(&state, input, operation).await.unwrap();
    datafusion::physical_plan::collect(plan, context.task_ctx()).await.unwrap();
    assert_eq!(integers(&context, IDS).await.unwrap().len(), 135);
}

#[tokio::test]
async fn an_overwrite_replaces_the_rows_that_the_provider_shows() {
    let (table, context) = opened(0..10);
    assert_eq!(inserted(&context, "INSERT OVERWRITE t SELECT * FROM t WHERE id < 4").await.unwrap(), 4);
    assert_eq!(integers(&context, IDS).await.unwrap(), [0, 1, 2, 3]);
    table.append(&batch([100]));
    let error = inserted(&context, "INSERT OVERWRITE t VALUES (7, 'x')").await.unwrap_err();
    assert_eq!(cause(&error).kind(), ErrorKind::CommitConflict, "{error}");
    context.register_table("u", table.provider()).unwrap();
    assert_eq!(integers(&context, "SELECT id FROM u").await.unwrap(), [0, 1, 2, 3, 100]);
}

#[tokio::test]
async fn an_insert_that_changes_nothing_commits_nothing() {
    let (table, context) = opened([1]);
    assert_eq!(inserted(&context, "INSERT INTO t SELECT * FROM t WHERE id > 5").await.unwrap(), 0);
    assert_eq!((table.snapshot().version(), integers(&context, IDS).await.unwrap()), (0, vec![1]));
    // Without rows, an overwrite still removes the rows of the table.
    assert_eq!(inserted(&context, "INSERT OVERWRITE t SELECT * FROM t WHERE id > 5").await.unwrap(), 0);
    assert_eq!((table.snapshot().version(), integers(&context, IDS).await.unwrap()), (1, vec![]));
    assert_eq!(inserted(&context, "INSERT OVERWRITE t SELECT * FROM t").await.unwrap(), 0);
    assert_eq!(table.snapshot().version(), 1);
    assert_eq!(inserted(&context, "INSERT INTO t VALUES (3, 'x')").await.unwrap(), 1);
    assert_eq!((table.snapshot().version(), integers(&context, IDS).await.unwrap()), (2, vec![3]));
}

/// The rows that an INSERT reads from the table itself must still exist when it commits.
#[tokio::test]
async fn an_insert_depends_on_the_rows_that_it_reads_from_the_table() {
    let (table, context) = opened(0..10);
    let copy = "INSERT INTO t SELECT id + 1000, name FROM t WHERE id < 5";
    let planned = context.sql(copy).await.unwrap().create_physical_plan().await.unwrap();
    table.delete("id = 3");
    let error = datafusion::physical_plan::collect(planned, context.task_ctx()).await.unwrap_err();
    assert_eq!(cause(&error).kind(), ErrorKind::CommitConflict, "{error}");
    // Other writers may append rows, which the INSERT has not read.
    let (table, context) = opened(0..10);
    let planned = context.sql(copy).await.unwrap().create_physical_plan().await.unwrap();
    table.append(&batch([100]));
    datafusion::physical_plan::collect(planned, context.task_ctx()).await.unwrap();
    let expected: Vec<i64> = (0..10).chain([100]).chain(1000..1005).collect();
    assert_eq!(integers(&context, IDS).await.unwrap(), expected);
}

/// An INSERT depends on values that it computes from the table, even if they come from the log's statistics or from a
/// subquery.
#[tokio::test]
async fn an_insert_depends_on_what_it_computes_from_the_table() {
    for (statement, is_conflict) in [
        ("INSERT INTO t SELECT max(id) + 1, 'x' FROM t", true),
        ("INSERT INTO t SELECT count(*), 'x' FROM t", true),
        ("INSERT INTO t SELECT (SELECT max(id) FROM t) + 1, 'x'", true),
        ("INSERT INTO t SELECT id, 'x' FROM (SELECT 10 AS id) AS v WHERE id > (SELECT max(id) FROM t)", true),
        ("INSERT INTO t VALUES (10, 'x')", false),
    ] {
        let (_table, context) = opened(0..10);
        let planned = context.sql(statement).await.unwrap().create_physical_plan().await.unwrap();
        assert_eq!(inserted(&context, statement).await.unwrap(), 1, "{statement}");
        // The plan is based on the previous version.
        let result = datafusion::physical_plan::collect(planned, context.task_ctx()).await;
        let kind = result.as_ref().map_err(|error| cause(error).kind()).err();
        assert_eq!(kind, is_conflict.then_some(ErrorKind::CommitConflict), "{statement}");
        assert_eq!(integers(&context, IDS).await.unwrap().len(), if is_conflict { 11 } else { 12 });
    }
}

#[tokio::test]
async fn the_partitions_of_the_input_have_their_own_tasks() {
    let (_table, context) = opened([]);
    let source = Table::new(&[], &[], &[batch(0..10), batch(10..20), batch(20..30)]);
    context.register_table("s", source.provider()).unwrap();
    let text = plan(&context, "INSERT INTO t SELECT id + 1, name FROM s").await;
    let (insert, merge) = (text.find("DeltaInsertExec"), text.find("CoalescePartitionsExec"));
    assert!(insert.is_some() && insert < merge, "{text}");
}

#[tokio::test]
async fn a_statement_that_fails_leaves_nothing() {
    let (table, context) = opened([1]);
    let files = table.files().len();
    let failing = "INSERT INTO t SELECT id, name FROM (SELECT value AS id, 'x' AS name FROM generate_series(1, 50000)) \
                   WHERE 10 / (40000 - id) > -100";
    let error = inserted(&context, failing).await.unwrap_err();
    assert!(error.to_string().to_lowercase().contains("divide by zero"), "{error}");
    assert_eq!((table.snapshot().version(), table.files().len()), (0, files));
    assert_eq!(integers(&context, IDS).await.unwrap(), [1]);
}

/// An INSERT that is dropped before it is complete commits nothing.
#[tokio::test]
async fn a_statement_that_is_dropped_commits_nothing() {
    let (table, context) = opened([1]);
    let files = table.files().len();
    let endless = "INSERT INTO t SELECT value, 'x' FROM generate_series(1, 100000000)";
    let mut stream = context.sql(endless).await.unwrap().execute_stream().await.unwrap();
    assert!(futures::poll!(stream.next()).is_pending());
    drop(stream);
    wait_for_threads("deltalog-insert");
    assert_eq!((table.snapshot().version(), table.files().len()), (0, files));
}

#[tokio::test]
async fn what_datafusion_would_get_wrong_is_refused() {
    let (table, context) = opened([1]);
    let error = inserted(&context, "REPLACE INTO t VALUES (1, 'x')").await.unwrap_err();
    assert_eq!(cause(&error).kind(), ErrorKind::Unsupported, "{error}");
    let schema = StructType::from_arrow(&batch([]).schema()).unwrap();
    let fields = schema.fields().iter().cloned();
    let fields = fields.map(|field| if field.name == "name" { field.with_default("'none'") } else { field });
    let mut request =
        WriteRequest::new(StructType::try_new(fields.collect()).unwrap(), SaveMode::ErrorIfExists);
    request.configuration = [("delta.feature.allowColumnDefaults".to_owned(), "supported".to_owned())].into();
    let defaults = Table::empty();
    defaults.write(request, &batch([1]));
    context.register_table("d", defaults.provider()).unwrap();
    let error = inserted(&context, "INSERT INTO d (id) VALUES (2)").await.unwrap_err();
    assert_eq!(cause(&error).kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("'name'"), "{error}");
    assert_eq!((table.snapshot().version(), defaults.snapshot().version()), (0, 0));
}
