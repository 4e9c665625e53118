package io.deltalog.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.BoxedUnit;

/**
 * Replaces an EvolvingMerge with a MERGE. If it may add columns, the added columns follow the rules
 * of the JVM connector:
 *
 * <ul>
 *   <li>Columns and fields of the source that the table lacks are added if UPDATE SET *, INSERT *
 *       or an assignment assigns them. Types are widened if the core allows it. NOT MATCHED BY
 *       SOURCE adds nothing.
 *   <li>UPDATE SET * and INSERT * assign the columns of the source. In a struct that UPDATE SET *
 *       assigns, fields that the source lacks keep their values; in all other values they become
 *       NULL.
 *   <li>Conditions and values only see the previous columns of the table.
 * </ul>
 */
public class MergeEvolution extends Rule<LogicalPlan> {
  /** The tag of a MERGE that must not add columns, whatever the session's setting is. */
  private static final TreeNodeTag<BoxedUnit> KEEPS_SCHEMA =
      new TreeNodeTag<>("deltalog.keepsSchema");

  private final SparkSession session;

  public MergeEvolution(SparkSession session) {
    this.session = session;
  }

  /** Returns whether a MERGE may add columns. */
  static boolean isAsked(MergeIntoTable merge) {
    return merge.withSchemaEvolution()
        || (SchemaEvolution.isOfSession() && merge.getTagValue(KEEPS_SCHEMA).isEmpty());
  }

  /** Marks a MERGE so that it adds no columns, whatever the session's setting is. */
  static void keepSchema(MergeIntoTable merge) {
    merge.setTagValue(KEEPS_SCHEMA, BoxedUnit.UNIT);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!(plan instanceof EvolvingMerge merge)) {
      return plan;
    }

    LogicalPlan target = MergeTargets.strict(merge.target());
    if (!target.resolved() || !merge.source().resolved()) {
      return plan;
    }
    List<LogicalPlan> children = List.of(target, merge.source());
    MergeIntoTable statement =
        (MergeIntoTable) merge.statement().withNewChildren(Plans.seq(children));
    if (StatementTarget.of(statement) == null) {
      return statement;
    }
    boolean evolves = isAsked(statement);
    statement = new StatementVariables(session).replaced(statement);
    return evolves
        ? new EvolvedClauses(session, statement).statement()
        : new ClauseColumns(session, statement).found();
  }
}
