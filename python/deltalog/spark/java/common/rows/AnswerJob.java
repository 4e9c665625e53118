package io.deltalog.spark;

import java.io.IOException;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import scala.Function1;
import scala.Option;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;

/**
 * A job that reads rows without a shuffle, where each task answers with bytes: only these travel to
 * the driver.
 */
public abstract class AnswerJob extends AbstractFunction0 {
  private final QueryExecution query;
  private Function1 task;

  protected AnswerJob(Dataset rows) {
    this.query = rows.queryExecution();
  }

  /** Takes the answer of a task. Spark calls it for one task at a time. */
  protected abstract void add(byte[] answer) throws IOException;

  /** Calls a function with the rows of each partition, which returns the answer. */
  protected void run(Function1 task) {
    this.task = task;
    SQLExecution$.MODULE$.withNewExecutionId(query, Option.apply("deltalog"), this);
  }

  @Override
  public Object apply() {
    query
        .sparkSession()
        .sparkContext()
        .runJob(query.toRdd(), task, new TaskAnswers(this), ClassTag$.MODULE$.apply(byte[].class));
    return null;
  }
}
