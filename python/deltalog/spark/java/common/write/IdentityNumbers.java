package io.deltalog.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;

/**
 * Computes the values of an identity column in the tasks of a write: row k of partition p, of n
 * partitions, has the value first + (p + k * n) * step. (PROTOCOL.md, "Identity Columns".)
 *
 * <p>No two rows of a write have the same value. An attempt that repeats a task gives the same
 * values, and the files of only one attempt are committed.
 */
public class IdentityNumbers implements UDF2<Integer, Long, Long> {
  private final String column;
  private final long first;
  private final long step;

  private IdentityNumbers(String column, long first, long step) {
    this.column = column;
    this.first = first;
    this.step = step;
  }

  /**
   * Returns the column with the values. A plan must have it in a single projection, directly below
   * the write.
   */
  public static Column of(String column, long first, long step) {
    UDF2<Integer, Long, Long> numbers = new IdentityNumbers(column, first, step);
    UserDefinedFunction function =
        functions.udf(numbers, DataTypes.LongType).asNonNullable().asNondeterministic();
    return function.apply(functions.spark_partition_id(), functions.monotonically_increasing_id());
  }

  /**
   * Returns the value of a row. The arguments are the number of its partition, and its position:
   * that number times 2^33, plus the number of the row in the partition.
   */
  @Override
  public Long call(Integer partition, Long position) {
    long index = partition;
    long row = position - (index << 33);
    // The driver evaluates a few constant rows itself, as one partition.
    TaskContext task = TaskContext.get();
    long partitions = task == null ? 1 : task.numPartitions();
    if (index >= partitions) {
      throw new IllegalStateException(
          "partition " + index + " of " + partitions + " does not exist");
    }
    try {
      long steps = Math.addExact(index, Math.multiplyExact(row, partitions));
      return Math.addExact(first, Math.multiplyExact(steps, step));
    } catch (ArithmeticException overflow) {
      throw new IllegalArgumentException(
          "the table refuses a row: the identity column '"
              + column
              + "' has no further values: they would not fit a 64-bit integer");
    }
  }
}
