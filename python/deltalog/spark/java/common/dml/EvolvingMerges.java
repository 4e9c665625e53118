package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Hides the clauses of some MERGE statements (EvolvingMerge) before Spark's analyzer resolves
 * anything. These are MERGE WITH SCHEMA EVOLUTION, any MERGE if the session requests schema
 * evolution, a MERGE whose clauses assign many columns, and one with a name that may be a variable.
 */
public class EvolvingMerges extends Rule<LogicalPlan> {
  private final SparkSession session;

  public EvolvingMerges(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!(plan instanceof MergeIntoTable merge)) {
      return plan;
    }

    boolean isHidden =
        MergeEvolution.isAsked(merge)
            || ClauseColumns.areMany(merge)
            || new StatementVariables(session).areIn(merge);
    if (!isHidden || EvolvedTarget.in(merge.targetTable()) != null) {
      return plan;
    }
    return new EvolvingMerge(merge.targetTable(), merge.sourceTable(), merge);
  }
}
