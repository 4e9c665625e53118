package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.ResolveReferencesInUpdate;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function2;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;

/**
 * Resolves variables of the session and of scripts in DELETE, UPDATE and MERGE. Spark resolves
 * names in assigned values only as columns, and Spark 4.0 does the same in conditions. A column
 * takes precedence over a variable of the same name, as everywhere in Spark.
 */
public class StatementVariables {
  private static final String[] ACTIONS = {
    "matchedActions", "notMatchedActions", "notMatchedBySourceActions"
  };

  private final ResolveReferencesInUpdate spark;
  private final Function2<String, String, Object> resolver;

  public StatementVariables(SparkSession session) {
    this.spark = new ResolveReferencesInUpdate(session.sessionState().catalogManager());
    this.resolver = session.sessionState().conf().resolver();
  }

  /** Returns whether a name in the clauses of a MERGE may be a variable. */
  boolean areIn(MergeIntoTable merge) {
    Product parts = (Product) merge;
    if (replaced(merge.mergeCondition(), List.of()) != merge.mergeCondition()) {
      return true;
    }
    for (String name : ACTIONS) {
      Seq<MergeAction> actions = Unchecked.cast(CaseClass.field(parts, name));
      for (MergeAction action : Plans.list(actions)) {
        if (replaced((Expression) action, List.of()) != action) {
          return true;
        }
      }
    }
    return false;
  }

  /**
   * Returns a MERGE of resolved tables in which names that neither table has are replaced by
   * variables.
   */
  MergeIntoTable replaced(MergeIntoTable merge) {
    LogicalPlan target = merge.targetTable();
    LogicalPlan source = merge.sourceTable();
    List<List<LogicalPlan>> seen =
        List.of(List.of(target, source), List.of(source), List.of(target));
    Map<String, Object> changes = new HashMap<>();
    for (int i = 0; i < ACTIONS.length; i++) {
      Seq<MergeAction> actions = Unchecked.cast(CaseClass.field((Product) merge, ACTIONS[i]));
      changes.put(ACTIONS[i], replaced(actions, seen.get(i)));
    }
    changes.put("mergeCondition", replaced(merge.mergeCondition(), List.of(target, source)));
    return EvolvingWrites.with(merge, changes);
  }

  /** Returns an UPDATE in which names that the table does not have are replaced by variables. */
  UpdateTable replaced(UpdateTable update) {
    Map<String, Object> changes = new HashMap<>();
    changes.put("assignments", replaced(update.assignments(), List.of(update.table())));
    if (update.condition().isDefined()) {
      Expression condition = update.condition().get();
      changes.put("condition", Option.apply(replaced(condition, List.of(update.table()))));
    }
    return EvolvingWrites.with(update, changes);
  }

  /** Returns a DELETE in which names that the table does not have are replaced by variables. */
  DeleteFromTable replaced(DeleteFromTable delete) {
    Expression condition = replaced(delete.condition(), List.of(delete.table()));
    return EvolvingWrites.with(delete, Map.of("condition", condition));
  }

  private Seq<Expression> replaced(
      Seq<? extends Expression> expressions, List<LogicalPlan> tables) {
    List<Expression> made = new ArrayList<>();
    for (Expression each : Plans.list(expressions)) {
      made.add(replaced(each, tables));
    }
    return Plans.seq(made);
  }

  private Expression replaced(Expression expression, List<LogicalPlan> tables) {
    if (expression instanceof Assignment assignment) {
      Expression value = replaced(assignment.value(), tables);
      return value == assignment.value() ? assignment : new Assignment(assignment.key(), value);
    }
    if (expression instanceof UnresolvedAttribute name) {
      return isColumn(name, tables) ? name : spark.resolveVariables(name);
    }
    List<Expression> children = Plans.list(expression.children());
    boolean isSame = true;
    for (int i = 0; i < children.size(); i++) {
      Expression child = children.get(i);
      children.set(i, replaced(child, tables));
      isSame = isSame && children.get(i) == child;
    }
    return isSame ? expression : expression.withNewChildren(Plans.seq(children));
  }

  private boolean isColumn(UnresolvedAttribute name, List<LogicalPlan> tables) {
    for (LogicalPlan table : tables) {
      try {
        if (table.resolve(name.nameParts(), resolver).isDefined()) {
          return true;
        }
      } catch (Exception e) {
        // The name is ambiguous, or refers to a field that a column of this table does not have, so
        // it is not a variable. Spark finds the column in the other table, or raises the error
        // again.
        return true;
      }
    }
    return false;
  }
}
