package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.storage.RDDInfo;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Rows that are evaluated once and cached by the executors until they are released. If cached
 * blocks are lost, reading them fails; they are not computed again, because the result might
 * differ.
 *
 * <p>The plan hides the constraints of the rows from Spark, including which columns contain no
 * NULL. Otherwise, Spark would derive more constraints from pairs of expressions and compare each
 * with all others. The time for this grows with the third power of the number of columns.
 */
public class KeptRows {
  private final QueryExecution query;
  private final RDD<InternalRow> rows;
  private final LogicalPlan plan;

  public KeptRows(Dataset<Row> given) {
    LogicalPlan analyzed = given.queryExecution().analyzed();
    List<Attribute> columns = new ArrayList<>();
    Map<ExprId, ExprId> ids = new HashMap<>();
    for (Attribute each : Plans.list(analyzed.output())) {
      Attribute column = each.withNullability(true).newInstance();
      columns.add(column);
      ids.put(column.exprId(), each.exprId());
    }
    Seq<Seq<Expression>> values = Plans.seq(List.of(Plans.seq(Plans.list(analyzed.output()))));
    LogicalPlan unknown = new Expand(values, Plans.seq(columns), analyzed);
    // The rows are not evaluated here: if the evaluation failed in the constructor, its cached
    // blocks could not be released.
    query = Dataset.ofRows(given.sparkSession(), unknown).localCheckpoint(false).queryExecution();
    rows = ((LogicalRDD) query.analyzed()).rdd();
    plan = query.analyzed().transformAllExpressions(new Renumbering(ids));
  }

  /** Returns the id of the RDD of the rows. */
  public int id() {
    return rows.id();
  }

  /** Returns a plan that reads the rows. Its columns have the same ids as the given columns. */
  public LogicalPlan plan() {
    return plan;
  }

  /** Evaluates the rows. Call it before they are read. */
  public void evaluate() {
    SQLExecution$.MODULE$.withNewExecutionId(query, Option.apply("localCheckpoint"), rows::count);
  }

  /** Returns how many bytes the cached rows take; -1 if that is not known. */
  public long bytes() {
    for (RDDInfo stored : rows.sparkContext().getRDDStorageInfo()) {
      if (stored.id() == rows.id()) {
        return stored.memSize() + stored.diskSize();
      }
    }
    return -1;
  }

  /** Releases the cached rows, which can no longer be read. */
  public void release() {
    if (!rows.sparkContext().isStopped()) { // Otherwise, there are no executors.
      rows.unpersist(false);
    }
  }
}
