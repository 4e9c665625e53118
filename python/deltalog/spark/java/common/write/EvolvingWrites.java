package io.deltalog.spark;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * Allows the columns of a write to differ from the columns of its table. The table in the plan is
 * then changed to accept any schema, so that deltalog, and not Spark's analyzer, checks the rows.
 * This applies to:
 *
 * <ul>
 *   <li>columns that the table does not have, if the options of the write, its statement or the
 *       session request that they are added;
 *   <li>structs that lack fields, if a DataFrame is written by name.
 * </ul>
 *
 * <p>A write through writeTo only names its table, and Spark compares the rows with the table as
 * soon as it has found it. EvolvingRows delays this until this rule has seen the table.
 */
public class EvolvingWrites extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof InsertIntoStatement insert) {
      LogicalPlan table = SchemaEvolution.isAsked(plan) ? accepting(insert.table()) : null;
      return table == null || table == insert.table() ? plan : with(plan, Map.of("table", table));
    }
    if (!(plan instanceof V2WriteCommand write)) {
      return plan;
    }
    Map<String, Object> changes = new HashMap<>();
    if (write.query() instanceof EvolvingRows held) {
      changes.put("query", held.child());
    }
    if ((Object) write.table() instanceof DataSourceV2Relation relation
        && (SchemaEvolution.isAsked(plan) || lacksFields(write, relation))) {
      LogicalPlan table = accepting(relation);
      if (table != relation) {
        changes.put("table", table);
      }
    }
    return changes.isEmpty() ? plan : with(plan, changes);
  }

  private static boolean lacksFields(V2WriteCommand write, DataSourceV2Relation table) {
    return write.isByName()
        && ((LogicalPlan) write).origin().sqlText().isEmpty()
        && ColumnFit.lacksFields(write.query(), table.table().schema());
  }

  /**
   * Returns the relation of a deltalog table, changed to accept any schema; other relations
   * unchanged.
   */
  private static LogicalPlan accepting(LogicalPlan plan) {
    if (!(plan instanceof DataSourceV2Relation relation)
        || !(relation.table() instanceof DeltalogTable table)
        || table.acceptsAnySchema()) {
      return plan;
    }
    return with(plan, Collections.singletonMap("table", table.accepting(true)));
  }

  static <P extends LogicalPlan> P with(P plan, Map<String, ?> changes) {
    try {
      return Unchecked.cast(CaseClass.with(plan, changes));
    } catch (Exception e) {
      throw new IllegalStateException(
          "deltalog cannot use this version of Spark's writes: " + e, e);
    }
  }
}
