package io.deltalog.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.BoxedUnit;

/**
 * A job that reads rows without a shuffle. Each task returns an answer as bytes, and only the
 * answers are sent to the driver.
 */
public abstract class AnswerJob {
  private final QueryExecution query;

  protected AnswerJob(Dataset<Row> rows) {
    this.query = rows.queryExecution();
  }

  /** Takes the answer of a task. Spark calls this for one task at a time. */
  protected abstract void add(byte[] answer) throws IOException;

  /**
   * Runs a job that calls a function with the rows of each partition; the function returns the
   * task's answer.
   */
  protected void run(Function1<Iterator<InternalRow>, byte[]> task) {
    SQLExecution$.MODULE$.withNewExecutionId(query, Option.apply("deltalog"), () -> answered(task));
  }

  private BoxedUnit answered(Function1<Iterator<InternalRow>, byte[]> task) {
    query
        .sparkSession()
        .sparkContext()
        .runJob(
            query.toRdd(),
            task,
            (partition, answer) -> taken(answer),
            ClassTag$.MODULE$.apply(byte[].class));
    return BoxedUnit.UNIT;
  }

  private BoxedUnit taken(byte[] answer) {
    try {
      add(answer);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return BoxedUnit.UNIT;
  }
}
