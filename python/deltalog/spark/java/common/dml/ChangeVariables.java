package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/** Resolves variables in an UPDATE or DELETE of a deltalog table. */
public class ChangeVariables extends Rule<LogicalPlan> {
  private final SparkSession session;

  public ChangeVariables(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    boolean changesRows = plan instanceof UpdateTable || plan instanceof DeleteFromTable;
    if (!changesRows || plan.resolved()) {
      return plan;
    }
    LogicalPlan table = plan.children().head();
    if (!table.resolved() || StatementTarget.of(plan) == null) {
      return plan;
    }
    StatementVariables variables = new StatementVariables(session);
    return plan instanceof UpdateTable update
        ? variables.replaced(update)
        : variables.replaced((DeleteFromTable) plan);
  }
}
