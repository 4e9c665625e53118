package io.deltalog.spark;

import java.util.Arrays;
import org.apache.parquet.internal.filter2.columnindex.RowRanges;

/** Positions of rows in a file, ascending. */
public class SelectedRows {
  private long[] rows = new long[1024];
  private int size;

  public void add(long row) {
    if (size == rows.length) {
      rows = Arrays.copyOf(rows, 2 * size);
    }
    rows[size++] = row;
  }

  /** Returns how many rows are selected among `length` rows that begin at `first`. */
  public int count(long first, long length) {
    return from(first + length) - from(first);
  }

  /**
   * Returns the selected rows as ranges of positions in a row group of `length` rows that begins at
   * `first`.
   */
  public RowRanges ranges(long first, long length) {
    int begin = from(first);
    RowRuns runs = new RowRuns(Arrays.copyOfRange(rows, begin, from(first + length)), first);
    return RowRanges.create(length, runs.all(), runs);
  }

  private int from(long row) {
    int at = Arrays.binarySearch(rows, 0, size, row);
    return at < 0 ? -1 - at : at;
  }
}
