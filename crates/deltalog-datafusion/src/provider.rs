//! The table that DataFusion uses for planning.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_expr::dml::InsertOp;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_session::{Session, TableProvider};
use deltalog::{Predicate, Snapshot};

use crate::blocking;
use crate::condition::Condition;
use crate::error::external;
use crate::insert::InsertExec;
use crate::planning::{Planned, rows};
use crate::scan::ScanExec;
use crate::shown::Shown;

/// A Delta table in DataFusion.
///
/// - The provider keeps the version of its snapshot, so that all queries see the same rows. After an INSERT through
///   the provider, queries see the version that the INSERT committed, or a later one. That version includes the
///   earlier commits of other writers.
/// - Strings and bytes are views (`Utf8View`, `BinaryView`), except for the keys of maps.
/// - The scan evaluates filters that it can decide exactly. DataFusion evaluates filters of floating-point numbers
///   again, because it orders NaN and zeros by their signs.
/// - `INSERT INTO` appends to the newest version. `INSERT OVERWRITE` replaces the rows of the version that
///   queries see, and fails if another writer has changed the table since. An INSERT that reads the table itself
///   fails if another writer has changed the rows that it has read. An INSERT with a scalar subquery counts as reading
///   all rows. If the query fails, nothing is committed, and the written files are deleted. If it has no rows and
///   replaces none, nothing is committed either.
/// - An INSERT into a table whose columns have default or identity values is refused, because DataFusion passes NULL
///   for columns that the statement leaves out.
#[derive(Debug)]
pub struct DeltaTableProvider {
    shown: Arc<Shown>,
    schema: SchemaRef,
}

impl DeltaTableProvider {
    /// Creates a provider of the rows of `snapshot`.
    ///
    /// # Errors
    /// `CorruptLog` if the schema of the table cannot be read.
    pub fn new(snapshot: &Snapshot) -> deltalog::Result<Self> {
        let schema = rows(snapshot)?.schema();
        Ok(Self { shown: Arc::new(Shown::new(snapshot)), schema })
    }

    /// Returns the version of the table that queries of this provider read.
    ///
    /// # Errors
    /// After an INSERT, returns errors of reading the log, and `SchemaMismatch` if another writer has changed the
    /// schema.
    pub fn snapshot(&self) -> deltalog::Result<Snapshot> {
        self.shown.snapshot()
    }

    fn condition(&self, filter: &Expr) -> Option<Condition> {
        Condition::of(filter, self.shown.schema())
    }
}

#[async_trait]
impl TableProvider for DeltaTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.condition(filter) {
            Some(Condition { is_exact: true, .. }) => TableProviderFilterPushDown::Exact,
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let condition = |filter: &Expr| {
            self.condition(filter)
                .ok_or_else(|| internal_datafusion_err!("the table does not support the filter {filter}"))
        };
        let conditions = filters.iter().map(condition).collect::<Result<Vec<_>>>()?;
        // If a condition is not exact, DataFusion removes more rows, and the limit must not be applied before that.
        let limit = limit.filter(|_| conditions.iter().all(|condition| condition.is_exact));
        let predicate = conditions.into_iter().map(|condition| condition.predicate).reduce(Predicate::and);
        let name = |index: &usize| self.schema.fields().get(*index).map(|field| field.name().clone());
        let columns = match projection {
            Some(indices) => Some(indices.iter().map(name).collect::<Option<Vec<_>>>().ok_or_else(|| {
                internal_datafusion_err!("the table has no column at one of the positions {indices:?}")
            })?),
            None => None,
        };
        let target = state.config().target_partitions();
        let shown = Arc::clone(&self.shown);
        let plan = move || {
            let snapshot = shown.snapshot()?;
            let planned = Planned::new(snapshot, columns.as_deref(), predicate, target)?;
            Ok(ScanExec::new(planned, limit, shown))
        };
        Ok(Arc::new(blocking::call("plan", move || plan().map_err(external)).await?))
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let shown = Arc::clone(&self.shown);
        let plan = move || InsertExec::new(shown, input, operation);
        Ok(Arc::new(blocking::call("plan", plan).await?))
    }
}
