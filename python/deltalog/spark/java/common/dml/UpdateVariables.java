package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;

/** Resolves variables in the values that an UPDATE of a table of ours assigns. */
public class UpdateVariables extends Rule {
  private final SparkSession session;

  public UpdateVariables(SparkSession session) {
    this.session = session;
  }

  @Override
  public TreeNode apply(TreeNode plan) {
    boolean isOurs =
        plan instanceof UpdateTable update
            && !update.resolved()
            && update.table().resolved()
            && StatementTarget.of(update) != null;
    return isOurs ? new StatementVariables(session).replaced((UpdateTable) plan) : plan;
  }
}
