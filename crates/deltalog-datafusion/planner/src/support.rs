//! Runs queries over tables and rows in memory.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::catalog::MemTable;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};

/// Returns a context with three partitions, which may be more than the machine has cores.
pub(crate) fn context() -> SessionContext {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3))
}

/// Registers `rows` as a table in memory, with strings as views.
pub(crate) fn in_memory(context: &SessionContext, name: &str, schema: SchemaRef, rows: &[RecordBatch]) {
    let cast = |batch: &RecordBatch| {
        let columns = batch.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| arrow::compute::cast(column, field.data_type()).unwrap());
        RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap()
    };
    let table = MemTable::try_new(Arc::clone(&schema), vec![rows.iter().map(cast).collect()]).unwrap();
    context.register_table(name, Arc::new(table)).unwrap();
}

pub(crate) async fn rows(context: &SessionContext, query: &str) -> Result<Vec<RecordBatch>> {
    context.sql(query).await?.collect().await
}

/// Returns the integers in the first column of a query's result, in ascending order.
pub(crate) async fn integers(context: &SessionContext, query: &str) -> Result<Vec<i64>> {
    let batches = rows(context, query).await?;
    let values = |batch: &RecordBatch| {
        batch.column(0).as_primitive::<Int64Type>().iter().flatten().collect::<Vec<_>>()
    };
    let mut found: Vec<i64> = batches.iter().flat_map(values).collect();
    found.sort_unstable();
    Ok(found)
}

/// Returns the physical plan of a query.
pub(crate) async fn plan(context: &SessionContext, query: &str) -> String {
    let plan = rows(context, &format!("EXPLAIN FORMAT INDENT {query}")).await.unwrap();
    datafusion::arrow::util::pretty::pretty_format_batches(&plan).unwrap().to_string()
}

/// Returns the error of deltalog that caused `error`.
pub(crate) fn cause(error: &datafusion::error::DataFusionError) -> &deltalog::Error {
    match error.find_root() {
        datafusion::error::DataFusionError::External(cause) => {
            cause.downcast_ref().expect("an error of deltalog")
        }
        other => panic!("not an error of deltalog: {other}"),
    }
}
