//! Creates plans that read tables.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::TaskContext;
use datafusion_expr::Expr;
use datafusion_physical_plan::{ExecutionPlan, collect};
use datafusion_session::TableProvider;
use deltalog_datafusion::DeltaTableProvider;

use crate::session::Planner;

/// Plans a scan.
pub(crate) async fn scan(
    provider: &DeltaTableProvider,
    projection: Option<&[usize]>,
    filters: &[Expr],
    limit: Option<usize>,
) -> Arc<dyn ExecutionPlan> {
    let projection = projection.map(<[usize]>::to_vec);
    provider.scan(&Planner::new(), projection.as_ref(), filters, limit).await.unwrap()
}

pub(crate) async fn rows(plan: Arc<dyn ExecutionPlan>) -> Result<Vec<RecordBatch>> {
    collect(plan, Arc::new(TaskContext::default())).await
}

/// Returns the integers in the first column of batches, in ascending order.
pub(crate) fn integers(batches: &[RecordBatch]) -> Vec<i64> {
    let values = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    let mut found: Vec<i64> = batches.iter().flat_map(values).collect();
    found.sort_unstable();
    found
}

/// Returns the values of the first column of a table, in ascending order.
pub(crate) async fn ids(provider: &DeltaTableProvider) -> Vec<i64> {
    integers(&rows(scan(provider, Some(&[0]), &[], None).await).await.unwrap())
}

/// Returns the kind of the deltalog error that caused `error`.
pub(crate) fn kind(error: &DataFusionError) -> deltalog::ErrorKind {
    match error.find_root() {
        DataFusionError::External(cause) => {
            cause.downcast_ref::<deltalog::Error>().expect("an error of deltalog").kind()
        }
        other => panic!("not an error of deltalog: {other}"),
    }
}
