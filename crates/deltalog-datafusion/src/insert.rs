//! INSERT INTO and INSERT OVERWRITE, as DataFusion executes them.
//!
//! ```text
//!   input, all partitions ──(channel of a few batches)──► thread: writer ── end of the input ──► commit
//! ```
//!
//! - The end of the input is signaled explicitly. If the input fails, or the query is dropped, the writer does not
//!   receive this signal: it then deletes its files and commits nothing.
//! - All partitions of the input are read, regardless of how the optimizer has divided them. (Through DataFusion's
//!   interface for other binaries, a plan cannot ask for a single partition.)
//! - The task that polls the INSERT also polls all partitions of its input. If the input belongs to another binary, it
//!   may start tasks, and needs a thread of that binary's runtime. A task of our own runtime has no such thread.
//! - If the statement reads rows from the table itself, the transaction is told which rows. It then conflicts with
//!   other writers that change them.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_datafusion_err, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::dml::InsertOp;
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use deltalog::{
    Environment, Error, ErrorKind, Operation, PendingWrite, Predicate, RowRules, RowsRead, SaveMode,
    Snapshot, WriteRequest,
};
use futures::channel::mpsc;
use futures::executor::block_on;
use futures::{SinkExt, StreamExt};

use crate::blocking;
use crate::error::external;
use crate::scan::ScanExec;
use crate::shown::Shown;

/// The maximum number of batches that wait for the writer.
const WAITING_BATCHES: usize = 2;

/// A message to the writer.
enum Message {
    Rows(RecordBatch),
    /// All rows have been sent.
    End,
}

/// An INSERT into a table.
#[derive(Debug)]
pub(crate) struct InsertExec {
    shown: Arc<Shown>,
    /// The version of the table that the provider showed when the statement was planned.
    base: Snapshot,
    mode: SaveMode,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InsertExec {
    /// Plans an INSERT of the rows of `input`.
    ///
    /// # Errors
    /// Returns `Unsupported` for REPLACE, and for a table whose columns have default or identity values.
    pub(crate) fn new(
        shown: Arc<Shown>,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> deltalog::Result<Self> {
        let base = shown.snapshot()?;
        let unsupported = |message: String, hint: &str| {
            Err(Error::new(ErrorKind::Unsupported, message).in_table(base.storage().url()).with_hint(hint))
        };
        let mode = match operation {
            InsertOp::Append => SaveMode::Append,
            InsertOp::Overwrite => SaveMode::Overwrite,
            InsertOp::Replace => {
                return unsupported(
                    "a Delta table has no keys, which REPLACE needs".to_owned(),
                    "use INSERT",
                );
            }
        };
        let rules = RowRules::of(base.protocol(), base.metadata(), base.schema())?;
        let defaults = rules.defaults.iter().map(|default| default.name.clone());
        let identities = rules.identity_columns().into_iter().map(|(name, _)| name);
        if let Some(name) = defaults.chain(identities).next() {
            return unsupported(
                format!(
                    "column '{name}' has a default or identity value, for which DataFusion would insert NULL"
                ),
                "write to the table with deltalog",
            );
        }
        let properties = properties();
        Ok(Self { shown, base, mode, input, properties: Arc::new(properties) })
    }

    /// Returns the version on which the write is based, and the rows of the table that the input reads.
    fn reads(&self) -> (Snapshot, RowsRead) {
        let mut base = self.base.clone();
        let mut conditions: Option<Vec<Predicate>> = Some(Vec::new());
        let mut is_read = false;
        let mut plans = vec![&self.input];
        while let Some(plan) = plans.pop() {
            plans.extend(plan.children());
            let Some(scan) = plan.downcast_ref::<ScanExec>() else { continue };
            let Some((snapshot, predicate)) = scan.reads(&self.shown) else { continue };
            if !is_read || snapshot.version() < base.version() {
                base = snapshot.clone();
            }
            is_read = true;
            match (predicate, &mut conditions) {
                (Some(predicate), Some(conditions)) => conditions.push(predicate.clone()),
                _ => conditions = None,
            }
        }
        let oldest = if self.mode == SaveMode::Overwrite && self.base.version() < base.version() {
            self.base.clone()
        } else {
            base
        };
        match (is_read, conditions) {
            (false, _) => (oldest, RowsRead::Nothing),
            (true, Some(conditions)) => (oldest, RowsRead::Matching(conditions)),
            (true, None) => (oldest, RowsRead::All),
        }
    }

    fn rows(&self, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let count = self.input.output_partitioning().partition_count();
        let partitions: Vec<_> = (0..count)
            .map(|partition| self.input.execute(partition, Arc::clone(&context)))
            .collect::<Result<_>>()?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.input.schema(),
            futures::stream::select_all(partitions),
        )))
    }
}

fn properties() -> PlanProperties {
    let count = Field::new("count", DataType::UInt64, false);
    PlanProperties::new(
        EquivalenceProperties::new(Arc::new(Schema::new(vec![count]))),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Final,
        Boundedness::Bounded,
    )
}

impl DisplayAs for InsertExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeltaInsertExec: table={}, mode={}", self.base.storage().url(), self.mode.name())
    }
}

impl ExecutionPlan for InsertExec {
    fn name(&self) -> &'static str {
        "DeltaInsertExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children)
            .map_err(|children| internal_datafusion_err!("an INSERT has {} inputs", children.len()))?;
        Ok(Arc::new(Self {
            shown: Arc::clone(&self.shown),
            base: self.base.clone(),
            mode: self.mode,
            input,
            properties: Arc::clone(&self.properties),
        }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("an INSERT has no partition {partition}");
        }
        let rows = self.rows(context)?;
        let (base, reads) = self.reads();
        let (mode, shown, schema) = (self.mode, Arc::clone(&self.shown), self.schema());
        let count_schema = Arc::clone(&schema);
        let inserted = async move {
            let count = inserted(rows, base, reads, mode, shown).await?;
            Ok(RecordBatch::try_new(count_schema, vec![Arc::new(UInt64Array::from(vec![count]))])?)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(inserted))))
    }
}

/// Writes `rows`, commits them, and returns the number of rows.
async fn inserted(
    mut rows: SendableRecordBatchStream,
    base: Snapshot,
    reads: RowsRead,
    mode: SaveMode,
    shown: Arc<Shown>,
) -> Result<u64> {
    let (mut messages, received) = mpsc::channel(WAITING_BATCHES);
    let written =
        blocking::call("insert", move || written(received, &base, reads, mode, &shown).map_err(external));
    let sent = async move {
        while let Some(batch) = rows.next().await {
            if messages.send(Message::Rows(batch?)).await.is_err() {
                // The receiver is gone because the writer has failed. The writer returns the error.
                return Ok(());
            }
        }
        // If this fails, the writer has failed and returns the error.
        let _ = messages.send(Message::End).await;
        Ok(())
    };
    let (sent, written) = futures::join!(sent, written);
    // If the input failed, the writer has committed nothing, and the input's error is the cause.
    match sent {
        Ok(()) => written,
        Err(error) => Err(error),
    }
}

fn written(
    mut messages: mpsc::Receiver<Message>,
    base: &Snapshot,
    reads: RowsRead,
    mode: SaveMode,
    shown: &Shown,
) -> deltalog::Result<u64> {
    let mut request = WriteRequest::new(base.schema().clone(), mode);
    request.reads = reads;
    let begun = PendingWrite::begin_on(base, request, &Environment::system())?;
    let Some(write) = begun else {
        return Err(
            Error::new(ErrorKind::TableAlreadyExists, "the table exists").in_table(base.storage().url())
        );
    };
    let mut writer = write.writer()?;
    let mut count = 0;
    loop {
        match block_on(messages.next()) {
            Some(Message::Rows(batch)) => {
                count += batch.num_rows() as u64;
                // If this fails, the writer is dropped, which deletes its files.
                writer.write(&batch)?;
            }
            Some(Message::End) => break,
            None => {
                return Err(Error::new(ErrorKind::Interrupted, "the rows to insert have ended early")
                    .in_table(base.storage().url()));
            }
        }
    }
    let operation = Operation::new("WRITE")
        .parameter("mode", mode.name())
        .parameter("partitionBy", serde_json::Value::from(write.partition_columns()).to_string());
    let committed = write.commit_or_fail(writer.finish()?, operation)?;
    shown.committed(committed.version);
    Ok(count)
}
