package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.collection.immutable.Seq;

/**
 * The plans for DELETE, for UPDATE and for copying rows. Each row in their results contains the
 * action for it (RowAction).
 */
public class RowPlans {
  private RowPlans() {}

  /** Returns the rows to delete, without the table's columns. */
  public static LogicalPlan delete(StatementScan scan, Expression condition) {
    List<NamedExpression> columns = new ArrayList<>();
    addMarkers(columns, Plans.integer(RowAction.REMOVE), scan);
    return new Project(Plans.seq(columns), new Filter(condition, scan.plan()));
  }

  /**
   * Returns the rows to change with their new values, one for each column. A null condition is true
   * for all rows. If changes are recorded, each row is also returned with its old values.
   */
  public static LogicalPlan update(
      StatementScan scan, Expression[] values, Expression condition, boolean records) {
    List<NamedExpression> columns = new ArrayList<>();
    for (int i = 0; i < values.length; i++) {
      columns.add(Plans.alias(values[i], scan.columns()[i].name()));
    }
    addTracking(columns, scan, true);
    addMarkers(columns, Plans.integer(RowAction.REMOVE | RowAction.WRITE), scan);
    LogicalPlan rows = condition == null ? scan.plan() : new Filter(condition, scan.plan());
    return records ? withBefore(columns, scan, rows) : new Project(Plans.seq(columns), rows);
  }

  /**
   * Returns all rows of the scan. Rows for which the condition is true are changed as in update;
   * the other rows are unchanged.
   */
  public static LogicalPlan rewrite(
      StatementScan scan, Expression[] values, Expression condition, boolean records) {
    Alias evaluated = Plans.alias(condition, "__deltalog_is_changed");
    Attribute isChanged = evaluated.toAttribute();
    List<NamedExpression> all = new ArrayList<>(Plans.list(scan.plan().output()));
    all.add(evaluated);
    Attribute[] old = scan.columns();
    List<NamedExpression> columns = new ArrayList<>();
    for (int i = 0; i < old.length; i++) {
      Expression value =
          values[i].semanticEquals(old[i]) ? old[i] : new If(isChanged, values[i], old[i]);
      columns.add(Plans.alias(value, old[i].name()));
    }
    Attribute[] tracking = scan.tracking();
    if (tracking.length > 0) {
      columns.add(tracking[0]);
      Expression version = new If(isChanged, Plans.nothing(tracking[1].dataType()), tracking[1]);
      columns.add(Plans.alias(version, tracking[1].name()));
    }
    Expression changed = Plans.integer(RowAction.REMOVE | RowAction.WRITE);
    addMarkers(
        columns, new If(isChanged, changed, Plans.integer(RowAction.WRITE | RowAction.COPY)), scan);
    LogicalPlan rows = new Project(Plans.seq(all), scan.plan());
    return records ? withBefore(columns, scan, rows) : new Project(Plans.seq(columns), rows);
  }

  /** Returns all rows of the scan unchanged. Rows of files with negative numbers are removed. */
  public static LogicalPlan copy(StatementScan scan) {
    List<NamedExpression> columns = new ArrayList<>();
    Attribute[] table = scan.storedColumns();
    for (Attribute each : table) {
      columns.add(each);
    }
    addTracking(columns, scan, false);
    Expression isGone = new LessThan(scan.file(), Plans.integer(0));
    Expression copied = Plans.integer(RowAction.WRITE | RowAction.COPY);
    addMarkers(columns, new If(isGone, Plans.integer(RowAction.GONE), copied), scan);
    return new Project(Plans.seq(columns), scan.stored());
  }

  /**
   * Returns the rows with the given columns. For the change data feed, each changed row also occurs
   * with its old values. The columns are the table's, the columns of row tracking, and the markers.
   * Both rows come from one evaluation, so no value is computed twice.
   */
  static LogicalPlan withBefore(
      List<NamedExpression> columns, StatementScan scan, LogicalPlan rows) {
    Attribute[] old = scan.columns();
    List<NamedExpression> all = new ArrayList<>(columns);
    all.addAll(Arrays.asList(old));
    LogicalPlan both = new Project(Plans.seq(all), rows);
    List<Attribute> given = Plans.list(both.output()).subList(0, columns.size());
    int operation = old.length + scan.tracking().length;
    List<Expression> before = new ArrayList<>();
    List<Attribute> output = new ArrayList<>();
    for (int i = 0; i < given.size(); i++) {
      Attribute column = given.get(i);
      Expression value = column;
      if (i < old.length) {
        value = old[i];
      } else if (i < operation) {
        value = Plans.nothing(column.dataType());
      } else if (i == operation) {
        Expression change = Plans.integer(RowAction.REMOVE | RowAction.WRITE);
        Expression isChanged = new EqualTo(new BitwiseAnd(column, change), change);
        value = new If(isChanged, Plans.integer(RowAction.BEFORE), Plans.integer(0));
      }
      before.add(value);
      output.add(Plans.columnOf(column, value));
    }
    Seq<Seq<Expression>> projections = Plans.seq(List.of(Plans.seq(given), Plans.seq(before)));
    LogicalPlan expanded = new Expand(projections, Plans.seq(output), both);
    Expression isNothing = new EqualTo(output.get(operation), Plans.integer(0));
    return new Filter(new Not(isNothing), expanded);
  }

  /**
   * Adds the columns of row tracking: a changed row keeps its id, and gets the version of the
   * commit. (PROTOCOL, "Row Tracking".)
   */
  static void addTracking(List<NamedExpression> columns, StatementScan scan, boolean isChanged) {
    Attribute[] tracking = scan.tracking();
    if (tracking.length > 0) {
      columns.add(tracking[0]);
      columns.add(
          isChanged
              ? Plans.alias(Plans.nothing(tracking[1].dataType()), tracking[1].name())
              : tracking[1]);
    }
  }

  static void addMarkers(List<NamedExpression> columns, Expression operation, StatementScan scan) {
    columns.add(Plans.alias(operation, RowAction.OPERATION));
    columns.add(scan.file());
    columns.add(scan.row());
  }
}
