package io.deltalog.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Holds back the rows of a write whose table is only named so far (EvolvingWrites), and looks at
 * once at one whose table is known.
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
