package io.deltalog.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.StructType;

/**
 * A DELETE, UPDATE or MERGE that is being executed. Python decides what to do (`dml/execute.py`),
 * and calls one method for each step.
 *
 * <p>Steps that write rows take the JSON of RelationDescription for the files that they read, and
 * the JSON of FileJob. They return the reports of the tasks.
 */
public class StatementRun {
  final SparkSession session;
  final LogicalPlan statement;
  private volatile FileJob job;

  StatementRun(SparkSession session, LogicalPlan statement) {
    this.session = session;
    this.statement = statement;
  }

  /** Returns the run of a resolved statement, in which the current time becomes a constant. */
  public static StatementRun of(SparkSession session, LogicalPlan statement) {
    LogicalPlan plan = Plans.atOneTime(statement);
    return plan instanceof MergeIntoTable merge
        ? new MergeRun(session, merge)
        : new RowsRun(session, plan);
  }

  /** Returns the JSON of StatementDescription. */
  public String description() {
    return StatementDescription.json(session, statement);
  }

  /** Copies the rows to keep from files that have rows to remove. */
  public Object copy(String relation, String description) throws IOException {
    return write(() -> RowPlans.copy(scan(relation)), description);
  }

  /** Returns the reports that tasks had already sent when a step failed. */
  public Object reports() throws IOException {
    FileJob failed = job;
    return failed == null ? new byte[0] : failed.reports();
  }

  /**
   * Returns a DataFrame with the single row of the result, given as numbers separated by spaces.
   */
  public Dataset<Row> answer(String numbers) {
    Object[] row = Arrays.stream(numbers.split(" ")).map(Long::valueOf).toArray();
    StructType columns = StatementCommand.columns(statement instanceof MergeIntoTable);
    return session.createDataFrame(List.of(RowFactory.create(row)), columns);
  }

  StatementTarget target() {
    return StatementTarget.of(statement);
  }

  StatementScan scan(String relation) {
    return new StatementScan(session, relation, target());
  }

  Dataset<Row> rows(LogicalPlan plan) {
    return Dataset.ofRows(session, plan);
  }

  /** Runs the job of a plan, which is created as part of the step. */
  Object write(Supplier<LogicalPlan> plan, String description) throws IOException {
    job = null; // A failure before the job has no reports.
    job = new FileJob(session, rows(plan.get()), description, null);
    return job.run();
  }

  /** Returns the job of the last step. */
  FileJob job() {
    return job;
  }
}
