package io.deltalog.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import scala.Function1;
import scala.Option;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;

/** A job that reads rows, and of which each task answers with bytes. */
public class RowJob extends AbstractFunction0 {
  private final QueryExecution query;
  private final Function1 task;
  private List answers;
  private long[] sums;

  public RowJob(Dataset rows, Function1 task) {
    this.query = rows.queryExecution();
    this.task = task;
  }

  /** Returns the answers of all tasks. */
  public List answers() {
    answers = new ArrayList();
    SQLExecution$.MODULE$.withNewExecutionId(query, Option.apply("deltalog"), this);
    return answers;
  }

  /** Returns the sums of the answers of all tasks, which are so many 64-bit numbers. */
  public long[] sums(int count) {
    sums = new long[count];
    SQLExecution$.MODULE$.withNewExecutionId(query, Option.apply("deltalog"), this);
    return sums;
  }

  public Object apply() {
    query.sparkSession().sparkContext().runJob(
        query.toRdd(), task, new RowAnswers(this), ClassTag$.MODULE$.apply(byte[].class));
    return null;
  }

  /** Takes the answer of a task. */
  void add(byte[] answer) {
    if (sums == null) {
      answers.add(answer);
      return;
    }
    ByteBuffer numbers = ByteBuffer.wrap(answer);
    for (int i = 0; i < sums.length; i++) {
      sums[i] += numbers.getLong();
    }
  }
}
