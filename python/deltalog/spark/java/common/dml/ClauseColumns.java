package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function2;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Resolves the columns that the clauses of a MERGE refer to, in its two resolved tables. Spark's
 * analyzer would list all columns again for each name, so the time would grow with the square of
 * the number of columns. Names that are not plain columns of one table are left to the analyzer,
 * which also raises all errors.
 */
public class ClauseColumns {
  private static final int FEW = 20;

  private final MergeIntoTable merge;
  private final Function2<String, String, Object> resolver;

  public ClauseColumns(SparkSession session, MergeIntoTable merge) {
    this.merge = merge;
    this.resolver = session.sessionState().conf().resolver();
  }

  /** Returns whether the clauses of a MERGE may refer to many columns. */
  static boolean areMany(MergeIntoTable merge) {
    int assignments = 0;
    for (Seq<MergeAction> actions :
        List.of(
            merge.matchedActions(), merge.notMatchedActions(), merge.notMatchedBySourceActions())) {
      for (MergeAction action : Plans.list(actions)) {
        if (action instanceof UpdateStarAction || action instanceof InsertStarAction) {
          return true;
        }
        assignments += ((Expression) action).children().size();
      }
    }
    return assignments > FEW;
  }

  /** Returns the MERGE with names and stars replaced by resolved columns. */
  MergeIntoTable found() {
    Map<String, Object> changes = new HashMap<>();
    changes.put("matchedActions", actions(merge.matchedActions(), null));
    changes.put("notMatchedActions", actions(merge.notMatchedActions(), merge.sourceTable()));
    changes.put(
        "notMatchedBySourceActions",
        actions(merge.notMatchedBySourceActions(), merge.targetTable()));
    return EvolvingWrites.with(merge, changes);
  }

  /** Resolves the values of actions in the columns of `seen`, or of both tables if it is null. */
  private Seq<MergeAction> actions(Seq<MergeAction> actions, LogicalPlan seen) {
    List<MergeAction> found = new ArrayList<>();
    for (MergeAction action : Plans.list(actions)) {
      found.add(action(action, seen));
    }
    return Plans.seq(found);
  }

  private MergeAction action(MergeAction action, LogicalPlan seen) {
    if (action instanceof UpdateStarAction || action instanceof InsertStarAction) {
      Class<? extends MergeAction> type =
          action instanceof UpdateStarAction ? UpdateAction.class : InsertAction.class;
      Seq<Assignment> assignments = all();
      return assignments == null ? action : created(type, action, assignments);
    }
    if (action instanceof UpdateAction update) {
      return created(UpdateAction.class, action, named(update.assignments(), seen));
    }
    return action instanceof InsertAction insert
        ? created(InsertAction.class, action, named(insert.assignments(), seen))
        : action;
  }

  private static MergeAction created(
      Class<? extends MergeAction> type, MergeAction action, Seq<Assignment> assignments) {
    try {
      return (MergeAction) CaseClass.create(type, action.condition(), assignments);
    } catch (Exception e) {
      throw new IllegalStateException("deltalog cannot use this version of Spark's MERGE: " + e, e);
    }
  }

  /**
   * Returns assignments for all columns of the target from the source's columns with the same
   * names; null if the source lacks one.
   */
  private Seq<Assignment> all() {
    List<Assignment> made = new ArrayList<>();
    for (Attribute column : Plans.list(merge.targetTable().output())) {
      Expression name = new UnresolvedAttribute(Plans.seq(List.of(column.name())));
      Expression value = found(name, merge.sourceTable());
      if (value == name) {
        return null;
      }
      made.add(new Assignment(column, value));
    }
    return Plans.seq(made);
  }

  private Seq<Assignment> named(Seq<Assignment> assignments, LogicalPlan seen) {
    List<Assignment> made = new ArrayList<>();
    for (Assignment assignment : Plans.list(assignments)) {
      Expression value = assignment.value();
      made.add(
          new Assignment(
              found(assignment.key(), merge.targetTable()),
              seen == null ? value : found(value, seen)));
    }
    return Plans.seq(made);
  }

  /** Returns the column that a name refers to; returns other expressions unchanged. */
  private Expression found(Expression name, LogicalPlan table) {
    if (!(name instanceof UnresolvedAttribute unresolved)) {
      return name;
    }
    try {
      Option<NamedExpression> column = table.resolve(unresolved.nameParts(), resolver);
      return column.isDefined() && column.get() instanceof Attribute attribute ? attribute : name;
    } catch (Exception e) {
      if (e instanceof AnalysisException) {
        // The name is ambiguous, or refers to a field that a column does not have. Spark raises the
        // error again.
        return name;
      }
      throw e;
    }
  }
}
