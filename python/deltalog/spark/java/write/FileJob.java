package io.deltalog.spark;

import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.command.DataWritingCommandExec;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * Spark's job that writes Parquet files to a directory, as DataFrameWriter.save runs it. It also returns the
 * metrics of the tasks whose output Spark accepted.
 */
public class FileJob {

  /** Writes the rows; returns the numbers of rows and of partitions that were written. */
  public long[] run(SparkSession session, Dataset data, Seq partitionColumns, Map options) throws Exception {
    Object[] fields = {
      session, TableParquetFormat.class.getName(), Nil$.MODULE$, Option.empty(), partitionColumns, Option.empty(),
      options
    };
    DataSource target = (DataSource) CaseClass.create(DataSource.class, fields);
    LogicalPlan command = target.planForWriting(SaveMode.Append, data.logicalPlan());
    CommandResult result = (CommandResult) Dataset.ofRows(session, command).queryExecution().commandExecuted();
    Map metrics = written(result.commandPhysicalPlan()).cmd().metrics();
    return new long[] {value(metrics, "numOutputRows"), value(metrics, "numParts")};
  }

  /** Returns the command, which adaptive execution wraps in other nodes. */
  private static DataWritingCommandExec written(SparkPlan plan) {
    if (plan instanceof AdaptiveSparkPlanExec) {
      return written(((AdaptiveSparkPlanExec) plan).executedPlan());
    }
    if (plan instanceof QueryStageExec) {
      return written(((QueryStageExec) plan).plan());
    }
    return (DataWritingCommandExec) plan;
  }

  private static long value(Map metrics, String name) {
    return ((Number) ((AccumulatorV2) metrics.apply(name)).value()).longValue();
  }
}
