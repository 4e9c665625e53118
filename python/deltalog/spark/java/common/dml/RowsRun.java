package io.deltalog.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;

/** A DELETE or an UPDATE that is being executed. */
public class RowsRun extends StatementRun {
  RowsRun(SparkSession session, LogicalPlan statement) {
    super(session, statement);
  }

  /** Returns the condition; null for an UPDATE of all rows. */
  private Expression condition() {
    return statement instanceof DeleteFromTable delete
        ? delete.condition()
        : StatementDescription.condition(statement);
  }

  /**
   * Returns, as JSON, the parts of the condition that can exclude files, and the condition of a
   * DELETE if it has the same meaning in deltalog and in Spark.
   */
  public String filters() {
    Expression condition = condition();
    Map<String, Object> filters = new HashMap<>();
    if (condition == null) {
      filters.put("stored", "");
    } else {
      filters.put("stored", FilterText.of(target().stored(condition)));
    }
    if (statement instanceof DeleteFromTable) {
      filters.put("exact", target().exact(condition));
    }
    return Json.text(filters);
  }

  /** Records the rows to delete. */
  public Object delete(String relation, String description) throws IOException {
    return write(() -> RowPlans.delete(scan(relation), condition()), description);
  }

  /**
   * Writes the rows to change with their new values. If `isWhole` is true, also writes the other
   * rows of the files.
   */
  public Object update(String relation, String description, boolean isWhole, boolean records)
      throws IOException {
    return write(() -> updated(scan(relation), isWhole, records), description);
  }

  private LogicalPlan updated(StatementScan scan, boolean isWhole, boolean records) {
    Expression[] values = scan.updated(((UpdateTable) statement).assignments());
    return isWhole
        ? RowPlans.rewrite(scan, values, condition(), records)
        : RowPlans.update(scan, values, condition(), records);
  }

  /**
   * Returns the numbers of the files that have rows to change, separated by commas; null if the
   * statement sees other values than the files have.
   *
   * @param tag the tag of the job
   */
  public String changedFiles(String relation, String tag) {
    StatementScan scan = scan(relation);
    if (!scan.showsStored()) {
      return null;
    }
    LogicalPlan found = RowPlans.delete(scan, condition());
    List<Integer> numbers = new ArrayList<>();
    JobTag.during(
        session.sparkContext(),
        tag,
        () -> {
          Row row = rows(found).agg(functions.collect_set(RowAction.FILE)).head();
          numbers.addAll(row.getList(0));
        });
    StringJoiner text = new StringJoiner(",");
    for (Integer number : numbers) {
      text.add(number.toString());
    }
    return text.toString();
  }
}
