//! The scan of a table that DataFusion executes.
//!
//! Each partition is a group of files. A separate thread reads them, while DataFusion processes earlier batches.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, Statistics, internal_datafusion_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, StatisticsArgs,
};
use deltalog::{Predicate, Snapshot};
use futures::StreamExt;

use crate::blocking;
use crate::error::external;
use crate::planning::Planned;
use crate::shown::Shown;

/// A batch of the scan has as many rows as this number of DataFusion's batches, because each batch is passed to another
/// thread and, in Python, also to another binary. With batches of only 8,192 rows, a scan of two columns took at least
/// a fifth longer.
const BATCHES_AT_ONCE: usize = 8;

/// A scan of a table.
#[derive(Debug)]
pub(crate) struct ScanExec {
    planned: Planned,
    /// The maximum number of rows that are needed from each partition.
    limit: Option<usize>,
    /// The version that the provider reads. An INSERT uses it to recognize a scan of its own table.
    shown: Arc<Shown>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ScanExec {
    pub(crate) fn new(planned: Planned, limit: Option<usize>, shown: Arc<Shown>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(planned.schema()),
            Partitioning::UnknownPartitioning(planned.groups.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        Self { planned, limit, shown, properties: Arc::new(properties), metrics }
    }

    /// If this is a scan of the provider with `shown`, returns the version and the condition that it reads.
    pub(crate) fn reads(&self, shown: &Arc<Shown>) -> Option<(&Snapshot, Option<&Predicate>)> {
        Arc::ptr_eq(&self.shown, shown).then_some((&self.planned.snapshot, self.planned.predicate.as_ref()))
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Planned { snapshot, scan, predicate, groups, .. } = &self.planned;
        let files: usize = groups.iter().map(Vec::len).sum();
        let schema = scan.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let (url, version) = (snapshot.storage().url(), snapshot.version());
        write!(
            f,
            "DeltaScanExec: table={url}, version={version}, files={files}, columns=[{}]",
            columns.join(", ")
        )?;
        if let Some(predicate) = predicate {
            write!(f, ", predicate={predicate}")?;
        }
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "DeltaScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        if args.partition().is_some() && self.planned.groups.len() > 1 {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema())));
        }
        let statistics = self.planned.statistics.clone();
        let is_cut =
            self.limit.is_some_and(|limit| statistics.num_rows.get_value().is_none_or(|rows| *rows > limit));
        Ok(Arc::new(if is_cut {
            statistics.with_fetch(self.limit, 0, self.planned.groups.len())?.to_inexact()
        } else {
            statistics
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(files) = self.planned.groups.get(partition).cloned() else {
            return Err(internal_datafusion_err!("the scan has no partition {partition}"));
        };
        let rows = context.session_config().batch_size().saturating_mul(BATCHES_AT_ONCE);
        let scan = self.planned.scan.clone().with_threads(self.planned.threads).with_batch_rows(rows);
        let limit = self.limit;
        let batches = blocking::stream("scan", move || {
            let batches = scan.read(files.into_iter().map(Ok)).map(|batch| batch.map_err(external));
            first_rows(batches, limit)
        })?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let counted = batches.inspect(move |batch| {
            if let Ok(batch) = batch {
                metrics.record_output(batch.num_rows());
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), counted)))
    }
}

/// Returns batches that contain only the first `limit` rows.
fn first_rows(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    limit: Option<usize>,
) -> impl Iterator<Item = Result<RecordBatch>> {
    let mut left = limit.unwrap_or(usize::MAX);
    let mut batches = batches;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let batch = batches.next()?;
        Some(batch.map(|batch| {
            let kept = batch.num_rows().min(left);
            left -= kept;
            batch.slice(0, kept)
        }))
    })
}
