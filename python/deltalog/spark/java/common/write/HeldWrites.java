package io.deltalog.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Prepares writes that may have other columns than their tables. If Spark does not know the table
 * yet, the rows of the write are held back (EvolvingWrites). Otherwise, the write is examined at
 * once.
 */
public class HeldWrites extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!(plan instanceof V2WriteCommand write) || write.query() instanceof EvolvingRows) {
      return plan;
    }
    return (Object) write.table() instanceof UnresolvedRelation
        ? EvolvingWrites.with(plan, Map.of("query", new EvolvingRows(write.query())))
        : new EvolvingWrites().apply(plan);
  }
}
