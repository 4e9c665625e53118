package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedHint;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Refuses DELETE, UPDATE and MERGE on deltalog tables if this build of Spark lacks something that
 * they need (FeatureGroup.STATEMENTS). A statement is refused as soon as its table is resolved,
 * before Spark reports other errors. This rule also refuses the hints by which a Spark Connect
 * client sends statements (CarriedStatements). Spark would otherwise ignore such a hint and return
 * the table's rows.
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
