package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;

/** Resolves variables in an UPDATE or DELETE of a deltalog table. */
public class ChangeVariables extends Rule {
  private final SparkSession session;

  public ChangeVariables(SparkSession session) {
    this.session = session;
  }

  @Override
  public TreeNode apply(TreeNode plan) {
    boolean changesRows = plan instanceof UpdateTable || plan instanceof DeleteFromTable;
    if (!changesRows || ((LogicalPlan) plan).resolved()) {
      return plan;
    }
    LogicalPlan table = (LogicalPlan) plan.children().head();
    if (!table.resolved() || StatementTarget.of((LogicalPlan) plan) == null) {
      return plan;
    }
    StatementVariables variables = new StatementVariables(session);
    return plan instanceof UpdateTable update
        ? variables.replaced(update)
        : variables.replaced((DeleteFromTable) plan);
  }
}
