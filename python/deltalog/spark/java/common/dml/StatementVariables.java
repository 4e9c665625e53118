package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.ResolveReferencesInUpdate;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function2;
import scala.Product;
import scala.collection.immutable.Seq;

/**
 * Variables of the session and of scripts in the clauses of UPDATE and MERGE. Spark resolves them
 * in conditions only, and takes every name in an assigned value for a column. A column goes before
 * a variable of the same name, as everywhere in Spark.
 */
public class StatementVariables {
  private static final String[] ACTIONS = {
    "matchedActions", "notMatchedActions", "notMatchedBySourceActions"
  };

  private final ResolveReferencesInUpdate spark;
  private final Function2 resolver;

  public StatementVariables(SparkSession session) {
    this.spark = new ResolveReferencesInUpdate(session.sessionState().catalogManager());
    this.resolver = session.sessionState().conf().resolver();
  }

  /** Returns whether a name in the clauses of a MERGE may be a variable. */
  boolean areIn(MergeIntoTable merge) {
    Product parts = (Product) merge;
    for (String name : ACTIONS) {
      List actions = Plans.list((Seq) CaseClass.field(parts, name));
      for (Object action : actions) {
        if (replaced((Expression) action, List.of()) != action) {
          return true;
        }
      }
    }
    return false;
  }

  /** Returns a MERGE of resolved tables with variables in place of names that no table has. */
  MergeIntoTable replaced(MergeIntoTable merge) {
    LogicalPlan target = merge.targetTable();
    LogicalPlan source = merge.sourceTable();
    List seen = List.of(List.of(target, source), List.of(source), List.of(target));
    Map changes = new HashMap();
    for (int i = 0; i < ACTIONS.length; i++) {
      Seq actions = (Seq) CaseClass.field((Product) merge, ACTIONS[i]);
      changes.put(ACTIONS[i], replaced(actions, (List) seen.get(i)));
    }
    return (MergeIntoTable) EvolvingWrites.with(merge, changes);
  }

  /** Does the same for an UPDATE. */
  UpdateTable replaced(UpdateTable update) {
    Seq assignments = replaced(update.assignments(), List.of(update.table()));
    return (UpdateTable) EvolvingWrites.with(update, Map.of("assignments", assignments));
  }

  private Seq replaced(Seq expressions, List tables) {
    List made = new ArrayList();
    for (Object each : Plans.list(expressions)) {
      made.add(replaced((Expression) each, tables));
    }
    return Plans.seq(made);
  }

  private Expression replaced(Expression expression, List tables) {
    if (expression instanceof Assignment assignment) {
      Expression value = replaced(assignment.value(), tables);
      return value == assignment.value() ? assignment : new Assignment(assignment.key(), value);
    }
    if (expression instanceof UnresolvedAttribute name) {
      return isColumn(name, tables) ? name : spark.resolveVariables(name);
    }
    List children = Plans.list(expression.children());
    boolean isSame = true;
    for (int i = 0; i < children.size(); i++) {
      Expression child = (Expression) children.get(i);
      children.set(i, replaced(child, tables));
      isSame = isSame && children.get(i) == child;
    }
    return isSame ? expression : expression.withNewChildren(Plans.seq(children));
  }

  private boolean isColumn(UnresolvedAttribute name, List tables) {
    for (Object table : tables) {
      if (((LogicalPlan) table).resolve(name.nameParts(), resolver).isDefined()) {
        return true;
      }
    }
    return false;
  }
}
