//! Tests of INSERT: rows are inserted once, a failed statement leaves nothing behind, and changes by other writers
//! are noticed.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::UInt64Type;
use datafusion_common::{DataFusionError, Result, exec_datafusion_err};
use datafusion_execution::TaskContext;
use datafusion_expr::dml::InsertOp;
use datafusion_expr::{col, lit};
use datafusion_physical_plan::test::TestMemoryExec;
use datafusion_physical_plan::test::exec::{BlockingExec, MockExec};
use datafusion_physical_plan::{ExecutionPlan, collect};
use datafusion_session::TableProvider;
use deltalog::{ErrorKind, SaveMode, StructType, WriteRequest};
use deltalog_datafusion::DeltaTableProvider;
use futures::StreamExt;

use crate::session::Planner;
use crate::support::{ids, kind, scan};
use crate::table::{Table, wait_for_threads};

fn batch(ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    let names: StringArray = ids.iter().map(|id| Some(format!("n{id}"))).collect();
    let columns: Vec<(&str, ArrayRef, bool)> =
        vec![("id", Arc::new(Int64Array::from(ids)), true), ("name", Arc::new(names), true)];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn table(ids: impl IntoIterator<Item = i64>) -> Table {
    Table::new(&[("delta.enableDeletionVectors", "true")], &[], &[batch(ids)])
}

/// Plans an INSERT of the rows of `input`.
async fn planned(
    provider: &DeltaTableProvider,
    input: Arc<dyn ExecutionPlan>,
    operation: InsertOp,
) -> Result<Arc<dyn ExecutionPlan>> {
    provider.insert_into(&Planner::new(), input, operation).await
}

/// Executes an INSERT, and returns the number of inserted rows that it reports.
async fn run(plan: Arc<dyn ExecutionPlan>) -> Result<u64> {
    let counts = collect(plan, Arc::new(TaskContext::default())).await?;
    Ok(counts.iter().map(|batch| batch.column(0).as_primitive::<UInt64Type>().value(0)).sum())
}

/// Returns a plan that yields these batches, each in its own partition.
fn values(batches: &[RecordBatch]) -> Arc<dyn ExecutionPlan> {
    let partitions: Vec<Vec<RecordBatch>> = batches.iter().map(|batch| vec![batch.clone()]).collect();
    TestMemoryExec::try_new_exec(&partitions, batch([]).schema(), None).unwrap()
}

#[tokio::test]
async fn rows_are_appended_once_and_the_next_scan_returns_them() {
    let table = table([1, 2]);
    let provider = table.provider();
    // All partitions of the input are written.
    let input = values(&[batch([3]), batch([4, 5]), batch([]), batch([6])]);
    let plan = planned(&provider, input, InsertOp::Append).await.unwrap();
    assert_eq!(run(plan).await.unwrap(), 4);
    assert_eq!(ids(&provider).await, [1, 2, 3, 4, 5, 6]);
    let snapshot = table.snapshot();
    assert_eq!((snapshot.version(), provider.snapshot().unwrap().version()), (1, 1));
    let history = snapshot.history(Some(1)).unwrap();
    assert_eq!(history[0].commit_info.operation.as_deref(), Some("WRITE"));
    // The provider sees the commits of other writers together with its own next commit.
    table.append(&batch([7]));
    assert_eq!(ids(&provider).await.len(), 6);
    run(planned(&provider, values(&[batch([8])]), InsertOp::Append).await.unwrap()).await.unwrap();
    assert_eq!(ids(&provider).await, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[tokio::test]
async fn an_overwrite_replaces_the_rows_that_the_provider_shows() {
    let table = table(0..10);
    let provider = table.provider();
    let some = scan(&provider, None, &[col("id").lt(lit(4_i64))], None).await;
    assert_eq!(run(planned(&provider, some, InsertOp::Overwrite).await.unwrap()).await.unwrap(), 4);
    assert_eq!(ids(&provider).await, [0, 1, 2, 3]);
    table.append(&batch([100]));
    let plan = planned(&provider, values(&[batch([7])]), InsertOp::Overwrite).await.unwrap();
    let error = run(plan).await.unwrap_err();
    assert_eq!(kind(&error), ErrorKind::CommitConflict, "{error}");
    assert_eq!(ids(&table.provider()).await, [0, 1, 2, 3, 100]);
}

/// The rows that an INSERT reads from the table itself must still exist when it commits.
#[tokio::test]
async fn an_insert_depends_on_the_rows_that_it_reads_from_the_table() {
    for (change, is_conflict) in [("id = 3", true), ("id = 7", false)] {
        let table = table(0..5);
        table.append(&batch(5..10));
        let provider = table.provider();
        let some = scan(&provider, None, &[col("id").lt(lit(5_i64))], None).await;
        let plan = planned(&provider, some, InsertOp::Append).await.unwrap();
        table.delete(change);
        match run(plan).await {
            Ok(count) => {
                assert_eq!((is_conflict, count, ids(&provider).await.len()), (false, 5, 14), "{change}")
            }
            Err(error) => {
                assert_eq!((is_conflict, kind(&error)), (true, ErrorKind::CommitConflict), "{error}")
            }
        }
    }
    // A scan by another provider does not count as reading the table, because the user chose its version.
    let table = table(0..10);
    let (provider, other) = (table.provider(), table.provider());
    let plan = planned(&provider, scan(&other, None, &[], None).await, InsertOp::Append).await.unwrap();
    table.delete("id = 3");
    assert_eq!(run(plan).await.unwrap(), 10);
}

#[tokio::test]
async fn an_insert_that_fails_or_is_dropped_leaves_no_files() {
    let table = table([1]);
    let provider = table.provider();
    let files = table.files().len();
    let torn = vec![Ok(batch(0..20_000)), Err(exec_datafusion_err!("torn")), Ok(batch([7]))];
    let input = Arc::new(MockExec::new(torn, batch([]).schema()));
    let error = run(planned(&provider, input, InsertOp::Append).await.unwrap()).await.unwrap_err();
    assert!(matches!(error.find_root(), DataFusionError::Execution(text) if text == "torn"), "{error}");
    // The input never ends, and the query is dropped.
    let endless = Arc::new(BlockingExec::new(batch([]).schema(), 1));
    let plan = planned(&provider, endless, InsertOp::Append).await.unwrap();
    let mut stream = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
    assert!(futures::poll!(stream.next()).is_pending());
    drop(stream);
    wait_for_threads("deltalog-insert");
    assert_eq!((table.snapshot().version(), table.files().len()), (0, files));
    assert_eq!(ids(&provider).await, [1]);
}

#[tokio::test]
async fn inserts_that_datafusion_would_get_wrong_are_refused() {
    let table = table([1]);
    let error = planned(&table.provider(), values(&[batch([2])]), InsertOp::Replace).await.unwrap_err();
    assert_eq!(kind(&error), ErrorKind::Unsupported, "{error}");
    let schema = StructType::from_arrow(&batch([]).schema()).unwrap();
    let fields = schema.fields().iter().cloned();
    let fields = fields.map(|field| if field.name == "name" { field.with_default("'none'") } else { field });
    let schema = StructType::try_new(fields.collect()).unwrap();
    let mut request = WriteRequest::new(schema, SaveMode::ErrorIfExists);
    request.configuration = [("delta.feature.allowColumnDefaults".to_owned(), "supported".to_owned())].into();
    let defaults = Table::empty();
    defaults.write(request, &batch([1]));
    let error = planned(&defaults.provider(), values(&[batch([2])]), InsertOp::Append).await.unwrap_err();
    assert_eq!(kind(&error), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("'name'"), "{error}");
}
