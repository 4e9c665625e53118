package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * For a MERGE that only inserts, removes the capability ACCEPT_ANY_SCHEMA from the target. Before
 * Spark 4.2, such a MERGE looks up the table like an INSERT (InsertColumns), and the analyzer does
 * not resolve clauses whose target has that capability.
 */
public class MergeTargets extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!(plan instanceof MergeIntoTable merge)) {
      return plan;
    }

    LogicalPlan target = strict(merge.targetTable());
    if (target == merge.targetTable()) {
      return plan;
    }
    List<LogicalPlan> children = new ArrayList<>();
    children.add(target);
    children.add(merge.sourceTable());
    return plan.withNewChildren(Plans.seq(children));
  }

  /**
   * Returns the target without the capability ACCEPT_ANY_SCHEMA, so that Spark's analyzer fits rows
   * to its columns.
   */
  public static LogicalPlan strict(LogicalPlan plan) {
    if (plan instanceof DataSourceV2Relation dataSourceV2Relation) {
      Object table = dataSourceV2Relation.table();
      if (!(table instanceof DeltalogTable deltalogTable) || !deltalogTable.acceptsAnySchema()) {
        return plan;
      }
      try {
        Object same = deltalogTable.accepting(false);
        return CaseClass.with(plan, Collections.singletonMap("table", same));
      } catch (Exception e) {
        throw new IllegalStateException(
            "deltalog cannot use this version of Spark's relations: " + e, e);
      }
    }
    if (plan.children().size() != 1) {
      return plan;
    }
    LogicalPlan child = plan.children().head();
    LogicalPlan made = strict(child);
    if (made == child) {
      return plan;
    }
    return plan.withNewChildren(Plans.seq(Collections.singletonList(made)));
  }
}
