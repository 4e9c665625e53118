package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DataTypes;
import scala.Function0;
import scala.Option;

/**
 * Shuffles rows before they are written, so that the tasks of the write have about the same amount
 * of data, and only a few tasks have rows of the same partition of the table (`write/balance.py`).
 *
 * <p>This uses Spark's own REBALANCE. Rows are divided into parts by the values of the partition
 * columns; Spark then combines small parts and divides large ones, by the sizes that the map tasks
 * have written. Without partition columns all rows form one part, which is divided between map
 * tasks: the rows of a map task stay together and in order. The rows that one map task has written
 * for one partition are not divided.
 *
 * <p>All rows of a partition are in one part, unless Spark divides the part. So the number of files
 * does not depend on the number of tasks. REBALANCE works only while adaptive execution is on.
 */
public class BalancedRows {
  private static final String DIVIDES =
      "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled";
  private static final String PARTS = "spark.sql.adaptive.coalescePartitions.initialPartitionNum";

  private BalancedRows() {}

  /** Returns the rows, shuffled by the columns with these names. */
  public static Dataset<Row> of(
      SparkSession session, Dataset<Row> rows, Map<String, ?> balance, List<String> names) {
    List<Expression> keys = new ArrayList<>();
    for (Attribute column : Projection.attributes(rows)) {
      if (names.contains(column.name())) {
        keys.add(column);
      }
    }
    if (keys.isEmpty()) {
      keys.add(new Literal(Integer.valueOf(0), DataTypes.IntegerType));
    }
    Object bytes = Long.valueOf(((Number) balance.get("bytes")).longValue());
    Object[] fields = {
      Plans.seq(keys), rows.queryExecution().analyzed(), Option.empty(), Option.apply(bytes)
    };
    try {
      LogicalPlan plan = (LogicalPlan) CaseClass.create(RebalancePartitions.class, fields);
      return Dataset.ofRows(session, plan);
    } catch (Exception e) {
      throw new IllegalStateException(
          "deltalog cannot rebalance rows in this version of Spark: " + e, e);
    }
  }

  /**
   * Calls a function with the settings that shuffled rows need, and with at least the given number
   * of parts. The settings apply only to this thread.
   */
  public static <T> T planned(Function0<T> work, int parts) {
    SQLConf conf = (SQLConf) (Object) SQLConf.get().clone();
    conf.setConfString(DIVIDES, "true");
    // RebalancePartitions accepts either the size of parts or their number.
    if (conf.numShufflePartitions() < parts) {
      conf.setConfString(PARTS, String.valueOf(parts));
    }
    return SQLConf$.MODULE$.withExistingConf(conf, work);
  }
}
