package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;

/** Describes the rows of a write for Python, before the write begins (`write/request.py`). */
public class WriteDescription {
  /**
   * The class of the node that Spark puts on top of the plan of a stream's batch. Its package
   * differs between releases.
   */
  private static final String BATCH = "WriteToMicroBatchDataSourceV1";

  private WriteDescription() {}

  /** Returns the description as JSON. */
  public static String json(SparkSession session, Dataset<Row> rows) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    Map<String, Object> parts = new HashMap<>();
    parts.put("settings", SessionSettings.of(session));
    parts.put("schema", rows.schema().json());
    parts.put("nulls", nulls(plan));
    parts.put("sources", SourceVersions.of(plan));
    return Json.text(parts);
  }

  /** Returns the names of the columns that are a constant NULL. */
  private static List<String> nulls(LogicalPlan plan) {
    List<String> names = new ArrayList<>();
    boolean isBatch = plan.getClass().getSimpleName().equals(BATCH);
    LogicalPlan top = isBatch ? plan.children().head() : plan;
    if (top instanceof Project project) {
      for (NamedExpression column : Plans.each(project.projectList())) {
        if (isNull((Expression) column)) {
          names.add(column.name());
        }
      }
    }
    return names;
  }

  private static boolean isNull(Expression column) {
    Expression value = column;
    while (value instanceof Alias || value instanceof Cast) {
      value = value.children().head();
    }
    return value instanceof Literal literal && literal.value() == null;
  }
}
