package io.deltalog.spark;

import java.nio.ByteBuffer;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.Dataset;

/** The job that counts how many rows precede the searched rows (RowCountTask). */
public class RowCountJob extends AnswerJob {
  private final long[] sums;

  public RowCountJob(Dataset<Row> rows, int count) {
    super(rows);
    sums = new long[count];
  }

  /** Returns the sums of the counts of all tasks. */
  public long[] sums(RowCountTask task) {
    run(task);
    return sums;
  }

  @Override
  protected void add(byte[] answer) {
    ByteBuffer counts = ByteBuffer.wrap(answer);
    for (int i = 0; i < sums.length; i++) {
      sums[i] += counts.getLong();
    }
  }
}
