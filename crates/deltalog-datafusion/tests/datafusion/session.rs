//! The parts of a DataFusion session that a table uses, without the planner, which takes minutes to compile.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion_common::config::TableOptions;
use datafusion_common::{DFSchema, Result};
use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::runtime_env::RuntimeEnv;
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::registry::ExtensionTypeRegistryRef;
use datafusion_expr::{AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion_physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion_session::{CatalogProviderList, Session};

/// A session with three partitions, which may be more than the machine has cores. Tables do not use the methods that
/// are not implemented.
pub(crate) struct Planner(SessionConfig);

impl Planner {
    pub(crate) fn new() -> Self {
        Self(SessionConfig::new().with_target_partitions(3))
    }
}

#[async_trait]
impl Session for Planner {
    fn session_id(&self) -> &'static str {
        "test"
    }

    fn config(&self) -> &SessionConfig {
        &self.0
    }

    fn task_ctx(&self) -> Arc<TaskContext> {
        Arc::new(TaskContext::default())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn catalog_list(&self) -> Arc<dyn CatalogProviderList> {
        unimplemented!()
    }

    async fn create_physical_plan(&self, _: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        unimplemented!()
    }

    fn create_physical_expr(&self, _: Expr, _: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        unimplemented!()
    }

    fn scalar_functions(&self) -> &HashMap<String, Arc<ScalarUDF>> {
        unimplemented!()
    }

    fn higher_order_functions(&self) -> &HashMap<String, Arc<HigherOrderUDF>> {
        unimplemented!()
    }

    fn aggregate_functions(&self) -> &HashMap<String, Arc<AggregateUDF>> {
        unimplemented!()
    }

    fn window_functions(&self) -> &HashMap<String, Arc<WindowUDF>> {
        unimplemented!()
    }

    fn extension_type_registry(&self) -> &ExtensionTypeRegistryRef {
        unimplemented!()
    }

    fn runtime_env(&self) -> &Arc<RuntimeEnv> {
        unimplemented!()
    }

    fn execution_props(&self) -> &ExecutionProps {
        unimplemented!()
    }

    fn table_options(&self) -> &TableOptions {
        unimplemented!()
    }

    fn table_options_mut(&mut self) -> &mut TableOptions {
        unimplemented!()
    }
}
