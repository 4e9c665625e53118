package io.deltalog.spark;

import java.io.IOException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.types.DataType;

/** The job that examines the keys of a MERGE's source, in one pass without a shuffle. */
public class KeyJob extends AnswerJob {
  private final DataType[] types;
  private final KeySummary summary;

  /** Creates the job for rows with the columns that KeySummary describes. */
  public KeyJob(Dataset<Row> rows) {
    super(rows);
    Attribute[] columns = Projection.attributes(rows);
    types = new DataType[columns.length - 1];
    for (int i = 0; i < types.length; i++) {
      types[i] = columns[1 + i].dataType();
    }
    summary = new KeySummary(types);
  }

  public KeySummary run() {
    run(new KeyTask(types));
    return summary;
  }

  @Override
  protected void add(byte[] answer) throws IOException {
    try {
      summary.add(KeySummary.of(answer));
    } catch (ClassNotFoundException e) {
      throw new IllegalStateException(e);
    }
  }
}
