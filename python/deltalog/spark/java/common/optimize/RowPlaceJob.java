package io.deltalog.spark;

import java.nio.ByteBuffer;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.Dataset;

/** The job that finds the positions of the searched rows on the curve (RowPlaceTask). */
public class RowPlaceJob extends AnswerJob {
  private final byte[][] places;

  public RowPlaceJob(Dataset<Row> rows, int count) {
    super(rows);
    places = new byte[count][];
  }

  /** Returns the positions of the rows, by their numbers; null for rows that were not read. */
  public byte[][] places(RowPlaceTask task) {
    run(task);
    return places;
  }

  @Override
  protected void add(byte[] answer) {
    ByteBuffer found = ByteBuffer.wrap(answer);
    while (found.hasRemaining()) {
      int row = found.getInt();
      places[row] = new byte[found.getInt()];
      found.get(places[row]);
    }
  }
}
