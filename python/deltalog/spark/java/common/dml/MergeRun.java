package io.deltalog.spark;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;

/**
 * A MERGE that is being executed, in these steps: evaluating the source, resolving the clauses,
 * changing rows, and inserting rows.
 */
public class MergeRun extends StatementRun {
  private final MergeIntoTable merge;
  private MergeSource source;
  private List<Expression> filters;
  private MergePlans plans;

  /** The job that has joined the table with the source; null if no join was necessary. */
  private FileJob joined;

  /** The rows of the source that have not matched. */
  private Dataset<Row> unmatched;

  MergeRun(SparkSession session, MergeIntoTable merge) {
    super(session, merge);
    this.merge = merge;
  }

  /**
   * Evaluates the source. Returns, as JSON, the number of its rows and conditions that are true for
   * all rows of the target that can match.
   *
   * @param tag the tag of the jobs
   */
  public String measure(String tag) {
    source = new MergeSource(session, merge);
    JobTag.during(session.sparkContext(), tag, source::measure);
    boolean readsAll = !merge.notMatchedBySourceActions().isEmpty();
    filters = readsAll ? List.of() : source.filters();
    return Json.text(Map.of("count", source.count(), "filters", FilterText.of(Plans.seq(filters))));
  }

  /** Returns the id of the RDD of the source; -1 if there is none. */
  public int sourceId() {
    return source == null ? -1 : source.id();
  }

  /** Releases the cached rows of the source. */
  public void release() {
    if (source != null) {
      source.release();
    }
  }

  /**
   * Fits the values of all clauses to the columns of the table.
   *
   * @param computed the JSON of the names of columns, in lower case, that are computed where an
   *     INSERT clause leaves them out
   * @param matchesOnce whether a row of the target must not match several rows of the source
   */
  public void resolve(String relation, String computed, boolean matchesOnce) {
    plans = new MergePlans(scan(relation), merge, matchesOnce);
    plans.resolve(Json.list(computed));
  }

  /**
   * Executes the clauses for rows of the target. The source is broadcast if it has at most
   * `broadcast` bytes.
   */
  public Object change(String description, boolean records, long broadcast) throws IOException {
    boolean isSmall = source.size() <= broadcast;
    Object reports =
        write(() -> plans.changed(source.plan(), filters, isSmall, records), description);
    joined = job();
    return reports;
  }

  /**
   * Inserts rows of the source that have not matched.
   *
   * @param clauses the JSON of the numbers of the clauses
   */
  public Object insert(String clauses, String description) throws IOException {
    List<Integer> numbers = Json.list(clauses);
    if (unmatched == null) {
      unmatched = joined == null ? source.rows() : source.unmatched(joined.matches());
    }
    LogicalPlan rows = unmatched.queryExecution().analyzed();
    return write(() -> plans.inserted(rows, numbers), description);
  }
}
