package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/**
 * The clauses of a MERGE that have the same kind, in order. They have consecutive numbers, which
 * begin with a given number.
 */
public class MergeClauses {
  private final int first;
  private final List<Expression> conditions = new ArrayList<>();

  /** The new values of all columns, or null for a clause that deletes. */
  private final List<Expression[]> values = new ArrayList<>();

  private boolean writes;

  /**
   * Reads the resolved actions for the columns of the table. The columns in computed, in lower
   * case, are computed if an INSERT does not assign them.
   */
  public MergeClauses(
      Seq<MergeAction> actions,
      Attribute[] columns,
      int first,
      Set<String> computed,
      AssignedValues made) {
    this.first = first;
    for (MergeAction action : Plans.each(actions)) {
      conditions.add(action.condition().isDefined() ? action.condition().get() : null);
      Expression[] assigned = null;
      if (action instanceof UpdateAction updateAction) {
        assigned = made.updated(columns, updateAction.assignments());
      } else if (action instanceof InsertAction insertAction) {
        Seq<Assignment> assignments = insertAction.assignments();
        assigned = made.inserted(optional(columns, computed, assignments), assignments);
      }
      values.add(assigned);
      writes = writes || assigned != null;
    }
  }

  /** Returns the columns. Columns that are computed later may be NULL until then. */
  private static Attribute[] optional(
      Attribute[] columns, Set<String> computed, Seq<Assignment> assignments) {
    Set<String> missing = new HashSet<>(computed);
    List<String> assigned = Plans.assigned(assignments);
    for (String each : assigned) {
      missing.remove(each.toLowerCase(Locale.ROOT));
    }
    Attribute[] optional = columns.clone();
    for (int i = 0; i < columns.length; i++) {
      if (missing.contains(columns[i].name().toLowerCase(Locale.ROOT))) {
        optional[i] = columns[i].withNullability(true);
      }
    }
    return optional;
  }

  public boolean isEmpty() {
    return conditions.isEmpty();
  }

  public int size() {
    return conditions.size();
  }

  /** Returns whether any clause writes rows. */
  public boolean writes() {
    return writes;
  }

  /** Returns the number of the first clause whose condition is true, or 0. */
  public Expression number() {
    List<Tuple2<Expression, Expression>> branches = new ArrayList<>();
    for (int i = 0; i < conditions.size(); i++) {
      Expression condition = conditions.get(i);
      Expression holds = condition == null ? Literal$.MODULE$.TrueLiteral() : condition;
      branches.add(Plans.branch(holds, Plans.integer(first + i)));
    }
    return Plans.choose(branches, Plans.integer(0));
  }

  /**
   * Adds, for each clause that writes rows and changes the column, a branch with the column's new
   * value.
   */
  public void addValues(
      List<Tuple2<Expression, Expression>> branches, int column, Attribute old, Attribute number) {
    for (int i = 0; i < values.size(); i++) {
      Expression[] assigned = values.get(i);
      if (assigned != null && !assigned[column].semanticEquals(old)) {
        branches.add(Plans.branch(is(number, i), assigned[column]));
      }
    }
  }

  /**
   * Adds, for each clause, a branch with the action for a row, combined with additional bits. The
   * action for a row to write includes the number of the clause.
   */
  public void addActions(
      List<Tuple2<Expression, Expression>> branches, Attribute number, int more) {
    for (int i = 0; i < values.size(); i++) {
      int writes = RowAction.REMOVE | RowAction.WRITE | RowAction.ofClause(first + i);
      int bits = values.get(i) == null ? RowAction.REMOVE : writes;
      branches.add(Plans.branch(is(number, i), Plans.integer(bits | more)));
    }
  }

  private Expression is(Attribute number, int clause) {
    return new org.apache.spark.sql.catalyst.expressions.EqualTo(
        number, Plans.integer(first + clause));
  }
}
