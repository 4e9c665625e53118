package io.deltalog.spark;

import java.io.IOException;

/**
 * The rows that a task copies, counted by their old files. They must come file by file, and in
 * their order within each file, because the position of a row in the new file is computed from its
 * position in the old file.
 */
public class CopiedRows {
  private final int end;
  private final int[] files;
  private final long[] rows;
  private int count;
  private int file;
  private long row = -1;

  /**
   * Creates the counter for the files with numbers from `start` (inclusive) to `end` (exclusive).
   */
  public CopiedRows(int start, int end) {
    this.end = end;
    this.files = new int[end - start];
    this.rows = new long[end - start];
    this.file = start - 1;
  }

  /** Counts a row of a file, given its position there. */
  public void note(int number, long position) {
    if (number != file) {
      if (number < file || number >= end) {
        throw unordered(number, position);
      }
      file = number;
      row = -1;
      files[count++] = number;
    }
    if (position <= row) {
      throw unordered(number, position);
    }
    row = position;
    rows[count - 1]++;
  }

  private IllegalStateException unordered(int number, long position) {
    return new IllegalStateException(
        "deltalog cannot use the scans of this version of Spark: row "
            + position
            + " of the file "
            + number
            + " came after row "
            + row
            + " of the file "
            + file);
  }

  public void reportTo(TaskReport report, int task) throws IOException {
    report.addBin(task, files, rows, count);
  }
}
