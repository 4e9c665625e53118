//! INSERT INTO and INSERT OVERWRITE, as DataFusion executes them.
//!
//! ```text
//!   input, all partitions ──(channel of a few batches)──► thread: writer ── end of the input ──► commit
//! ```
//!
//! - The end of the input is signaled explicitly. If the input fails, or the query is dropped, the writer does not
//!   receive this signal: it then deletes its files and commits nothing.
//! - The INSERT asks the optimizer for an input with a single partition. The optimizer then merges the partitions of
//!   the input, and executes each of them in its own task. DataFusion's interface for other binaries does not transmit
//!   this request, so the INSERT reads all partitions that its input has.
//! - The task that polls the INSERT also polls all partitions of its input. An input that belongs to another binary may
//!   start tasks when it is polled, which requires a thread of that binary's runtime. A task of this binary's runtime
//!   does not run on such a thread.
//! - If the statement reads rows from the table itself, the transaction records which rows it reads, and conflicts with
//!   other writers that change them. The rows are determined before the input is optimized, because the optimizer
//!   removes a scan if it can compute `count(*)`, `min` or `max` from the scan's statistics.

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
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties,
};
use deltalog::{
    Environment, Error, ErrorKind, Operation, PendingWrite, RowRules, RowsRead, SaveMode, Snapshot,
    WriteRequest,
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
    /// The version of the table on which the write is based.
    base: Snapshot,
    /// The rows of the table from which the input is computed.
    reads: RowsRead,
    mode: SaveMode,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InsertExec {
    /// Plans an INSERT of the rows of `input`, which has not been optimized yet.
    ///
    /// # Errors
    /// Returns `Unsupported` for REPLACE, and for a table whose columns have default or identity values.
    pub(crate) fn new(shown: Arc<Shown>, input: Arc<dyn ExecutionPlan>, operation: InsertOp) -> Result<Self> {
        let base = shown.snapshot().map_err(external)?;
        let unsupported = |message: String, hint: &str| {
            let error = Error::new(ErrorKind::Unsupported, message).in_table(base.storage().url());
            Err(external(error.with_hint(hint)))
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
        let rules = RowRules::of(base.protocol(), base.metadata(), base.schema()).map_err(external)?;
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
        let (base, reads) = reads(&shown, &input, base, mode)?;
        Ok(Self { shown, base, reads, mode, input, properties: Arc::new(properties()) })
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

/// Returns the version on which a write of `input` is based, and the rows of the table from which `input` is computed.
/// `base` is the version that the provider shows.
///
/// DataFusion executes scalar subqueries before the statement, and `input` does not contain their plans. If there is
/// such a subquery, all rows of the table count as read.
fn reads(
    shown: &Arc<Shown>,
    input: &Arc<dyn ExecutionPlan>,
    base: Snapshot,
    mode: SaveMode,
) -> Result<(Snapshot, RowsRead)> {
    let (mut oldest, mut is_read, mut all) = (base.clone(), false, false);
    let mut conditions = Vec::new();
    let mut plans = vec![input];
    while let Some(plan) = plans.pop() {
        plans.extend(plan.children());
        all |= has_scalar_subquery(&**plan)?;
        let Some(scan) = plan.downcast_ref::<ScanExec>() else { continue };
        let Some((snapshot, predicate)) = scan.reads(shown) else { continue };
        if !is_read || snapshot.version() < oldest.version() {
            oldest = snapshot.clone();
        }
        is_read = true;
        match predicate {
            Some(predicate) => conditions.push(predicate.clone()),
            None => all = true,
        }
    }
    if mode == SaveMode::Overwrite && base.version() < oldest.version() {
        oldest = base;
    }
    let reads = match (all, is_read) {
        (true, _) => RowsRead::All,
        (false, true) => RowsRead::Matching(conditions),
        (false, false) => RowsRead::Nothing,
    };
    Ok((oldest, reads))
}

/// Returns whether an expression of `plan` contains the result of a scalar subquery. The expression may belong to
/// another binary, so that only its text tells what it is.
fn has_scalar_subquery(plan: &dyn ExecutionPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(&mut |expr| {
        let mut parts = vec![Arc::clone(expr)];
        while let Some(part) = parts.pop() {
            let children = part.children();
            found |= children.is_empty() && part.to_string().starts_with("scalar_subquery(");
            parts.extend(children.into_iter().map(Arc::clone));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
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

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
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
            reads: self.reads.clone(),
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
        let (base, reads) = (self.base.clone(), self.reads.clone());
        let (mode, shown, schema) = (self.mode, Arc::clone(&self.shown), self.schema());
        let count_schema = Arc::clone(&schema);
        let inserted = async move {
            let count = inserted(rows, base, reads, mode, shown).await?;
            Ok(RecordBatch::try_new(count_schema, vec![Arc::new(UInt64Array::from(vec![count]))])?)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(inserted))))
    }
}

/// Writes `rows`, commits them, and returns the number of rows. Commits nothing if nothing would change.
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
    if let Some(committed) = write.commit_if_changed(writer.finish()?, operation)? {
        shown.committed(committed.version);
    }
    Ok(count)
}
