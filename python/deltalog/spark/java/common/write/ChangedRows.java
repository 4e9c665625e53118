package io.deltalog.spark;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.roaringbitmap.RoaringBitmap;

/**
 * Collects the rows that one attempt of a task removes, matches and counts, for the attempt's
 * report.
 */
public class ChangedRows {
  private final boolean matchesOnce;

  /**
   * The positions of removed rows. Each key combines the number of a file and the upper half of a
   * position; the bitmap has the lower halves.
   */
  private final Map<Long, RoaringBitmap> removed = new HashMap<>();

  /**
   * Rows that match a row of the source but are not removed, with keys and bitmaps as in `removed`.
   * Only used if a row may match only once.
   */
  private final Map<Long, RoaringBitmap> staying = new HashMap<>();

  /**
   * Rows of the source that have matched, with keys and bitmaps as in `removed`. The number of a
   * partition of the source takes the place of the file's number.
   */
  private final Map<Long, RoaringBitmap> matched = new HashMap<>();

  private final long[] counts = new long[6];
  private long lastKey = -1;
  private BlockOfRows last;

  /**
   * Creates an empty collection. If matchesOnce is true, a row of the table that matches several
   * rows of the source is an error, as in most kinds of MERGE.
   */
  public ChangedRows(boolean matchesOnce) {
    this.matchesOnce = matchesOnce;
  }

  private static long key(int file, long row) {
    return ((long) file << 32) | (row >>> 32);
  }

  private static RoaringBitmap bitmap(Map<Long, RoaringBitmap> of, long key) {
    return of.computeIfAbsent(key, unknown -> new RoaringBitmap());
  }

  /**
   * Records the action for a row; see RowAction. Returns whether the row is removed for the first
   * time.
   */
  public boolean note(int operation, int file, long row) {
    boolean writes = (operation & RowAction.WRITE) != 0;
    if ((operation & RowAction.REMOVE) == 0) {
      if (matchesOnce && (operation & RowAction.MATCHED) != 0) {
        noteStaying(key(file, row), row);
      }
      if (writes) {
        counts[(operation & RowAction.COPY) != 0 ? 5 : 4]++;
      }
      return false;
    }
    // A scan returns the rows file by file, so the key rarely changes.
    long key = key(file, row);
    if (key != lastKey) {
      settle();
      last = new BlockOfRows(bitmap(removed, key));
      lastKey = key;
    }
    boolean isNew = last.add((int) row);
    if (matchesOnce && (!isNew || contains(staying, key, row))) {
      throw violation();
    }
    if (isNew || writes) {
      counts[writes ? 0 : 1]++;
      if ((operation & RowAction.BY_SOURCE) != 0) {
        counts[writes ? 2 : 3]++;
      }
    }
    return isNew;
  }

  private void noteStaying(long key, long row) {
    boolean isRemoved = key == lastKey ? last.contains((int) row) : contains(removed, key, row);
    if (isRemoved || !bitmap(staying, key).checkedAdd((int) row)) {
      throw violation();
    }
  }

  private static boolean contains(Map<Long, RoaringBitmap> rows, long key, long row) {
    RoaringBitmap known = rows.isEmpty() ? null : rows.get(Long.valueOf(key));
    return known != null && known.contains((int) row);
  }

  private void settle() {
    if (last != null) {
      last.settle();
    }
  }

  private static RuntimeException violation() {
    // Python's dml/cardinality.py searches for this message.
    return new IllegalStateException(
        "[MERGE_CARDINALITY_VIOLATION] several rows of the source match one row of the table");
  }

  /** Records that a row of the source has matched, by its monotonically increasing id. */
  public void match(long source) {
    long row = source & 0x1ffffffffL;
    bitmap(matched, key((int) (source >>> 33), row)).add((int) row);
  }

  /** Adds everything to the report of the task. */
  public void reportTo(TaskReport report) throws IOException {
    settle();
    for (Map.Entry<Long, RoaringBitmap> entry : removed.entrySet()) {
      report.addRemoved(entry.getKey(), optimized(entry.getValue()));
    }
    for (Map.Entry<Long, RoaringBitmap> entry : staying.entrySet()) {
      report.addStaying(entry.getKey(), optimized(entry.getValue()));
    }
    for (Map.Entry<Long, RoaringBitmap> entry : matched.entrySet()) {
      report.addMatched(entry.getKey(), optimized(entry.getValue()));
    }
    report.addCounts(counts);
  }

  private static RoaringBitmap optimized(RoaringBitmap bitmap) {
    bitmap.runOptimize();
    return bitmap;
  }
}
