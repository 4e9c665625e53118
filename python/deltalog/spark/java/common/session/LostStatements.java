package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedHint;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Refuses statements that change rows if their group of classes cannot be used. It does so as soon
 * as the table is known, before Spark finds other errors. Without CarriedStatements, Spark would
 * ignore the hint of a client of Spark Connect, and return rows of the table.
 */
public class LostStatements extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    boolean isCarried =
        plan instanceof UnresolvedHint hint && CarriedStatements.HINT.equals(hint.name());
    if (isCarried || StatementTarget.isStatement(plan)) {
      FeatureGroup.STATEMENTS.require();
    }
    return plan;
  }
}
