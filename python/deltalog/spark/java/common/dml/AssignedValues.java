package io.deltalog.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.AssignmentUtils$;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * The values that assignments give to the columns of a table. StoredCast casts values that Spark
 * would refuse for their column; then all values are cast and checked like values that Spark
 * stores.
 */
public class AssignedValues {
  private final String table;

  /** Takes the name of the table for error messages. */
  public AssignedValues(String table) {
    this.table = table;
  }

  /**
   * Returns the value of each column, in order: the assigned value, or the old value of a column
   * without an assignment.
   */
  public Expression[] updated(Attribute[] columns, Seq<Assignment> assignments) {
    return aligned("alignUpdateAssignments", columns, assignments);
  }

  /**
   * Returns the value of each column of a new row, in order: the assigned value, or the default
   * value of a column without an assignment.
   */
  public Expression[] inserted(Attribute[] columns, Seq<Assignment> assignments) {
    return aligned("alignInsertAssignments", columns, assignments);
  }

  /**
   * Raises Spark's error if a statement assigns several values to a column or to a part of it.
   * Without this check, the error would be missing if no row changes, because no values are
   * computed then.
   */
  static void checkDistinct(LogicalPlan statement, String table) {
    AssignedValues values = new AssignedValues(table);
    if (statement instanceof UpdateTable update) {
      values.checkDistinct("alignUpdateAssignments", update.assignments());
    } else if (statement instanceof MergeIntoTable merge) {
      List<MergeAction> actions = Plans.list(merge.matchedActions());
      actions.addAll(Plans.list(merge.notMatchedActions()));
      actions.addAll(Plans.list(merge.notMatchedBySourceActions()));
      for (MergeAction action : actions) {
        if (action instanceof UpdateAction update) {
          values.checkDistinct("alignUpdateAssignments", update.assignments());
        } else if (action instanceof InsertAction insert) {
          values.checkDistinct("alignInsertAssignments", insert.assignments());
        }
      }
    }
  }

  private void checkDistinct(String name, Seq<Assignment> assignments) {
    Map<Attribute, List<Assignment>> byColumn = new HashMap<>();
    for (Assignment assignment : Plans.each(assignments)) {
      for (Attribute column : Plans.list(assignment.key().references().toSeq())) {
        byColumn.computeIfAbsent(column, key -> new ArrayList<>()).add(assignment);
      }
    }
    byColumn.forEach(
        (column, own) -> {
          if (own.size() > 1) {
            aligned(name, new Attribute[] {column}, Plans.seq(own));
          }
        });
  }

  /**
   * Aligns each column by itself, with its own assignments, because Spark searches all assignments
   * for each column that it aligns. If that fails, all columns are aligned together, so that the
   * error shows everything that is wrong.
   */
  private Expression[] aligned(String name, Attribute[] columns, Seq<Assignment> assignments) {
    Method align = method(name);
    Seq<Assignment> given = given(assignments);
    Map<ExprId, List<Assignment>> byColumn = byColumn(columns, given);
    try {
      if (byColumn != null) {
        Expression[] values = new Expression[columns.length];
        for (int i = 0; i < columns.length; i++) {
          Seq<Assignment> own = Plans.seq(byColumn.get(columns[i].exprId()));
          values[i] = aligned(align, List.of(columns[i]), own)[0];
        }
        return values;
      }
    } catch (InvocationTargetException e) {
      // Aligning all columns together fails as well.
    }
    try {
      return aligned(align, Arrays.asList(columns), given);
    } catch (InvocationTargetException e) {
      Platform.throwException(named(e.getCause()));
      throw new AssertionError(e);
    }
  }

  /**
   * Returns the assignments of each column, by the id of the column; null if something other than a
   * column is assigned.
   */
  private static Map<ExprId, List<Assignment>> byColumn(
      Attribute[] columns, Seq<Assignment> assignments) {
    Map<ExprId, List<Assignment>> found = new HashMap<>();
    for (Attribute column : columns) {
      found.put(column.exprId(), new ArrayList<>());
    }
    for (Assignment each : Plans.list(assignments)) {
      List<Attribute> assigned = Plans.list(each.key().references().toSeq());
      List<Assignment> own = assigned.size() == 1 ? found.get(assigned.get(0).exprId()) : null;
      if (own == null) {
        return null;
      }
      own.add(each);
    }
    return found;
  }

  private static Method method(String name) {
    for (Method method : AssignmentUtils$.MODULE$.getClass().getMethods()) {
      if (method.getName().equals(name)) {
        return method;
      }
    }
    throw new IllegalStateException(
        "deltalog cannot use this version of Spark, which has no " + name);
  }

  private static Expression[] aligned(
      Method align, List<Attribute> columns, Seq<Assignment> assignments)
      throws InvocationTargetException {
    // Later releases of Spark have added parameters to this method. All of them are booleans; false
    // is passed for each.
    Object[] arguments = new Object[align.getParameterCount()];
    Arrays.fill(arguments, false);
    arguments[0] = Plans.seq(columns);
    arguments[1] = assignments;
    try {
      return values(Unchecked.cast(align.invoke(AssignmentUtils$.MODULE$, arguments)));
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(
          "deltalog cannot use this version of Spark's assignments: " + e, e);
    }
  }

  /** Returns an error that names the table, because Spark's own error does not. */
  private Throwable named(Throwable error) {
    if (!(error instanceof AnalysisException analysis)
        || !"``".equals(analysis.getMessageParameters().get("tableName"))) {
      return error;
    }
    Map<String, String> parameters = new HashMap<>(analysis.getMessageParameters());
    parameters.put("tableName", "`" + table.replace("`", "") + "`");
    return new AnalysisException(
        analysis.getCondition(), TableOptions.scala(parameters), Option.apply(error));
  }

  /**
   * Returns the assignments as the user has written them, without the analyzer's casts but with
   * StoredCast's. Spark's analyzer has cast their values to the types of the columns, but has
   * matched the fields of structs by position. It has also added checks for NULL that do not name
   * the column. The alignment, which comes next, matches fields by name and applies the rules for
   * storing values.
   */
  private static Seq<Assignment> given(Seq<Assignment> assignments) {
    StoredCast casts = new StoredCast(SQLConf.get(), true);
    List<Assignment> made = new ArrayList<>();
    for (Assignment assignment : Plans.each(assignments)) {
      Expression value = written(EvolvedValue.fitted(assignment.value()));
      made.add(new Assignment(assignment.key(), casts.of(value, assignment.key().dataType())));
    }
    return Plans.seq(made);
  }

  private static Expression written(Expression value) {
    Expression inner = value;
    if (inner instanceof StaticInvoke check
        && check.functionName().endsWith("TypeWriteSideCheck")) {
      inner = check.arguments().head();
    }
    boolean isCast =
        inner instanceof Cast && inner.getTagValue(Cast$.MODULE$.BY_TABLE_INSERTION()).isDefined();
    if (isCast) {
      inner = ((Cast) inner).child();
    }
    if (inner instanceof AssertNotNull check && check.walkedTypePath().isEmpty()) {
      return check.child();
    }
    return isCast ? inner : value;
  }

  private static Expression[] values(Seq<Assignment> assignments) {
    Expression[] values = new Expression[assignments.size()];
    Iterator<Assignment> each = assignments.iterator();
    for (int i = 0; i < values.length; i++) {
      values[i] = each.next().value();
    }
    return values;
  }
}
