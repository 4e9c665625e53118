package io.deltalog.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;

/** The source of a MERGE, evaluated once and cached. Callers must call release at the end. */
class MergeSource {
  private final SparkSession session;
  private final MergeIntoTable merge;
  private final KeptRows kept;
  private List<MergeKey> keys;
  private KeySummary summary;
  private long stored;

  MergeSource(SparkSession session, MergeIntoTable merge) {
    this.session = session;
    this.merge = merge;
    Column[] columns = {
      functions.col("*"), functions.monotonically_increasing_id().alias("__deltalog_source")
    };
    Dataset<Row> given = Dataset.ofRows(session, merge.sourceTable());
    this.kept = new KeptRows(given.select(Plans.seq(Arrays.asList(columns))));
  }

  /** Evaluates the rows, counts them and finds their keys. Call this method first. */
  void measure() {
    // All rows are cached before the job that reads the keys. If that job cached them itself, Spark
    // might compute lost rows again while it runs, and the job would not see the new values.
    kept.evaluate();
    stored = kept.bytes();
    keys = MergePlans.keys(merge);
    summary = new KeyJob(Dataset.ofRows(session, MergePlans.sourceKeys(merge, plan(), keys))).run();
  }

  int id() {
    return kept.id();
  }

  /** Returns a plan that reads the rows. */
  LogicalPlan plan() {
    return kept.plan();
  }

  Dataset<Row> rows() {
    return Dataset.ofRows(session, plan());
  }

  /** Returns the rows without a match. */
  Dataset<Row> unmatched(SourceMatches matches) {
    return rows().where(matches.excludes(MergePlans.sourceNumber(plan())));
  }

  long count() {
    return summary.count();
  }

  /** Returns conditions that are true for all rows of the target that can match. */
  List<Expression> filters() {
    List<Expression> filters = MergePlans.targetFilters(merge);
    for (int i = 0; i < keys.size(); i++) {
      filters.add(keys.get(i).filter(summary, i));
    }
    return filters;
  }

  /** Returns the approximate size of the rows in bytes. */
  long size() {
    return stored < 0 ? count() * rows().schema().defaultSize() : stored;
  }

  /** Releases the cached rows. */
  void release() {
    kept.release();
  }
}
