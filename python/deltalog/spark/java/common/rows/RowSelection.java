package io.deltalog.spark;

import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * Selects the rows of a data file that a scan returns: all rows except those in one vector, only
 * the rows in another vector (for change data), or a combination of both.
 */
public class RowSelection {
  private final DeletionVector only;
  private final DeletionVector without;

  /** Creates the selection; each vector may be null. */
  public RowSelection(DeletionVector only, DeletionVector without) {
    this.only = only;
    this.without = without;
  }

  /** Returns whether the scan shows the row. */
  public boolean shows(long row) {
    return (only == null || only.from(row) == row) && (without == null || without.from(row) != row);
  }

  /** Returns the last row of the vectors, or -1 if they are empty. */
  public long last() {
    return Math.max(only == null ? -1 : only.last(), without == null ? -1 : without.last());
  }

  /**
   * Writes the positions of the rows that the scan shows among the first count rows of a batch, and
   * returns their number.
   */
  public int select(ColumnVector rowIndexes, int count, int[] positions) {
    if (count == 0) {
      return 0;
    }
    long first = rowIndexes.getLong(0);
    boolean contiguous = rowIndexes.getLong(count - 1) - first == count - 1;
    if (contiguous && only == null) {
      return between(first, count, positions);
    }
    int shown = 0;
    for (int i = 0; i < count; i++) {
      if (shows(contiguous ? first + i : rowIndexes.getLong(i))) {
        positions[shown++] = i;
      }
    }
    return shown;
  }

  /** Selects among consecutive rows, like select, using the gaps between deleted rows. */
  private int between(long first, int count, int[] positions) {
    int shown = 0;
    int i = 0;
    while (i < count) {
      int end = (int) Math.min(count, without.from(first + i) - first);
      while (i < end) {
        positions[shown++] = i++;
      }
      i++;
    }
    return shown;
  }
}
