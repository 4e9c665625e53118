package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The description of a resolved DELETE, UPDATE or MERGE, which Python needs before executing it
 * (`dml/description.py`).
 */
public class StatementDescription {
  private StatementDescription() {}

  /**
   * Returns the description of a statement as JSON. The current time must already be a constant in
   * the statement.
   */
  public static String json(SparkSession session, LogicalPlan statement) {
    Map<String, Object> parts = new HashMap<>();
    parts.put("settings", SessionSettings.of(session));
    parts.put("hasSubquery", Boolean.valueOf(StatementTarget.hasSubquery(statement)));
    addText(parts, statement);
    addTarget(parts, statement);
    addSources(parts, statement);
    return Json.text(parts);
  }

  /** Returns the condition of a DELETE or UPDATE; null if it applies to all rows. */
  public static Expression condition(LogicalPlan statement) {
    Expression condition;
    if (statement instanceof UpdateTable updateTable) {
      condition = given(updateTable.condition());
    } else {
      condition = ((DeleteFromTable) statement).condition();
    }
    return condition == null || FilterText.readable(condition).equals("true") ? null : condition;
  }

  private static Expression given(Option<Expression> condition) {
    return condition.isDefined() ? condition.get() : null;
  }

  private static String readable(Expression condition) {
    return condition == null ? null : FilterText.readable(condition);
  }

  private static String qualified(Expression condition) {
    return condition == null ? null : FilterText.qualified(condition);
  }

  /** Adds the statement's name, its condition and its clauses. */
  private static void addText(Map<String, Object> parts, LogicalPlan statement) {
    if (!(statement instanceof MergeIntoTable merge)) {
      parts.put("name", statement instanceof UpdateTable ? "UPDATE" : "DELETE");
      parts.put("predicate", readable(condition(statement)));
      if (statement instanceof UpdateTable update) {
        parts.put("assigned", Plans.assigned(update.assignments()));
      }
      return;
    }

    parts.put("name", "MERGE");
    parts.put("withSchemaEvolution", Boolean.valueOf(merge.withSchemaEvolution()));
    parts.put("predicate", FilterText.qualified(merge.mergeCondition()));
    parts.put("matched", clauses(merge.matchedActions()));
    parts.put("notMatched", clauses(merge.notMatchedActions()));
    parts.put("notMatchedBySource", clauses(merge.notMatchedBySourceActions()));
  }

  /** Returns the condition, the action and the assigned columns of each clause. */
  private static List<Object[]> clauses(Seq<MergeAction> actions) {
    List<Object[]> all = new ArrayList<>();
    for (MergeAction action : Plans.list(actions)) {
      String done = "delete";
      List<String> assigned = List.of();
      if (action instanceof UpdateAction update) {
        done = "update";
        assigned = Plans.assigned(update.assignments());
      } else if (action instanceof InsertAction insert) {
        done = "insert";
        assigned = Plans.assigned(insert.assignments());
      }
      all.add(new Object[] {qualified(given(action.condition())), done, assigned});
    }
    return all;
  }

  private static void addTarget(Map<String, Object> parts, LogicalPlan statement) {
    StatementTarget target = StatementTarget.of(statement);
    boolean isTable = target != null && target.isTable();
    parts.put("isTable", Boolean.valueOf(isTable));
    if (isTable) {
      parts.put(
          "options", scala.jdk.javaapi.CollectionConverters.asJava(target.relation().options()));
      parts.put("evolved", target.evolved() == null ? null : target.evolved().data());
    }
  }

  /**
   * Adds the planners of all tables that the statement reads and, in another list, the planners of
   * the tables that its source reads.
   */
  private static void addSources(Map<String, Object> parts, LogicalPlan statement) {
    Set<Object> others = new LinkedHashSet<>();
    List<LogicalPlan> children = Plans.list(statement.children());
    for (int i = 1; i < children.size(); i++) {
      others.addAll(SourceVersions.of(children.get(i)));
    }
    parts.put("sources", SourceVersions.of(statement));
    parts.put("otherSources", new ArrayList<>(others));
  }
}
