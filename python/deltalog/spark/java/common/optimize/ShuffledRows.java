package io.deltalog.spark;

import java.io.IOException;

/** Counts the rows that a task copies, by their old files. The rows may come in any order. */
public class ShuffledRows extends CopiedRows {
  private final int start;
  private final long[] rows;

  /**
   * Creates the counter for the files with numbers from `start` (inclusive) to `end` (exclusive).
   */
  public ShuffledRows(int start, int end) {
    super(start, end);
    this.start = start;
    this.rows = new long[end - start];
  }

  @Override
  public void note(int number, long position) {
    if (number < start || number - start >= rows.length) {
      throw new IllegalStateException(
          "an internal error of deltalog: a row of the file "
              + number
              + " came to a task of the files from "
              + start
              + " to "
              + (start + rows.length - 1)
              + ". Nothing was committed. A larger spark.deltalog.minSizeForExecutors leaves it to"
              + " the driver");
    }
    rows[number - start]++;
  }

  @Override
  public void reportTo(TaskReport report, int task) throws IOException {
    int[] files = new int[rows.length];
    long[] found = new long[rows.length];
    int count = 0;
    for (int i = 0; i < rows.length; i++) {
      if (rows[i] > 0) {
        files[count] = start + i;
        found[count++] = rows[i];
      }
    }
    report.addBin(task, files, found, count);
  }
}
