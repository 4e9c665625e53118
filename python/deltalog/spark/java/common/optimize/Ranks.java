package io.deltalog.spark;

import java.io.Serializable;
import java.util.Arrays;

/**
 * Ranks values within their column, based on a sample, as in the core's `optimize::ranks`: the rank
 * is the number of boundaries below a value, plus half of the boundaries that are equal to it.
 */
public class Ranks implements Serializable {
  /**
   * The values at which ranks change, in order: Long, Double, byte[] or BigInteger objects. NULL is
   * null, and comes first. The array itself is null if numbers has the boundaries.
   */
  private final Object[] boundaries;

  /**
   * The boundaries if all of them are Longs; otherwise null. This is the most common case, and
   * needs no objects.
   */
  private final long[] numbers;

  /** The rank of a value above all boundaries. */
  private final int ranges;

  /** Takes the sampled values of a column, and the number of bits of a rank. */
  public Ranks(Object[] sample, int bits) {
    Object[] sorted = sample.clone();
    Arrays.sort(sorted, OrderedColumn::compare);
    ranges = 1 << bits;
    // A small sample has fewer boundaries, so some ranks are not used.
    Object[] found = new Object[Math.min(sorted.length, ranges - 1)];
    boolean areNumbers = true;
    for (int i = 0; i < found.length; i++) {
      found[i] = sorted[(int) ((long) (i + 1) * sorted.length / (found.length + 1))];
      areNumbers &= found[i] instanceof Long;
    }
    boundaries = areNumbers ? null : found;
    numbers = areNumbers ? new long[found.length] : null;
    for (int i = 0; areNumbers && i < found.length; i++) {
      numbers[i] = (Long) found[i];
    }
  }

  /** Returns the rank of a value. */
  public int of(Object value) {
    int below = below(value, false);
    int rank = below + (below(value, true) - below) / 2;
    int boundaries = count();
    return boundaries == ranges - 1 ? rank : (int) ((long) rank * ranges / (boundaries + 1));
  }

  /**
   * Returns the number of boundaries that are less than a value or, if orEqual is true, not greater
   * than it.
   */
  private int below(Object value, boolean orEqual) {
    int low = 0;
    int high = count();
    while (low < high) {
      int middle = (low + high) >>> 1;
      int order =
          numbers == null
              ? OrderedColumn.compare(boundaries[middle], value)
              : compare(numbers[middle], value);
      if (order < 0 || (orEqual && order == 0)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  private int count() {
    return numbers == null ? boundaries.length : numbers.length;
  }

  private static int compare(long boundary, Object value) {
    return value == null ? 1 : Long.compare(boundary, (Long) value);
  }
}
