package io.deltalog.spark;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;

/** Determines where the rows of a batch's bins are on the curve, and which task writes them. */
public class CurvePlaces implements Serializable {
  private final Bins bins;
  private final CurveGrid grid;

  /** The ranks of each column in each bin; null for bins that keep their order. */
  private final Ranks[][] ranks;

  /** For each bin, the positions on the curve at which the next task begins. */
  private final byte[][][] splits;

  /** Takes samples of the rows of each bin (SampledRow). */
  public CurvePlaces(Bins bins, CurveGrid grid, int columns, List<List<SampledRow>> samples) {
    this.bins = bins;
    this.grid = grid;
    ranks = new Ranks[samples.size()][];
    splits = new byte[samples.size()][][];
    for (int bin = 0; bin < samples.size(); bin++) {
      if (!bins.isOrdered(bin)) {
        continue;
      }
      int count = samples.get(bin).size();
      ranks[bin] = new Ranks[columns];
      for (int i = 0; i < columns; i++) {
        Object[] values = new Object[count];
        for (int row = 0; row < count; row++) {
          values[row] = samples.get(bin).get(row).value(i);
        }
        ranks[bin][i] = new Ranks(values, grid.bits());
      }
      byte[][] places = new byte[count][];
      for (int row = 0; row < count; row++) {
        SampledRow sampled = samples.get(bin).get(row);
        int[] cell = new int[columns];
        for (int i = 0; i < columns; i++) {
          cell[i] = ranks[bin][i].of(sampled.value(i));
        }
        places[row] = grid.place(cell, mixed(sampled.number()));
      }
      Arrays.sort(places, Arrays::compareUnsigned);
      int tasks = bins.firstTask(bin + 1) - bins.firstTask(bin);
      splits[bin] = new byte[count == 0 ? 0 : tasks - 1][];
      for (int i = 0; i < splits[bin].length; i++) {
        splits[bin][i] = places[(int) ((long) (i + 1) * count / tasks)];
      }
    }
  }

  /**
   * Returns the position of a row in its bin. The number of its old file and its position there
   * distinguish it from other rows in the same cell.
   */
  public byte[] place(
      InternalRow row, OrderedColumn[] columns, int[] cell, int file, long position) {
    Ranks[] of = ranks[bins.ofFile(file)];
    if (of == null) {
      return java.nio.ByteBuffer.allocate(12).putInt(file).putLong(position).array();
    }
    for (int i = 0; i < columns.length; i++) {
      cell[i] = of[i].of(columns[i].value(row));
    }
    return grid.place(cell, tie(file, position));
  }

  /**
   * Returns the number of the task that writes a row of this file at this position on the curve.
   */
  public int task(int file, byte[] place) {
    int bin = bins.ofFile(file);
    int first = bins.firstTask(bin);
    if (splits[bin] == null) {
      return first;
    }
    int found = Arrays.binarySearch(splits[bin], place, Arrays::compareUnsigned);
    return first + (found >= 0 ? found + 1 : -found - 1);
  }

  /**
   * Mixes file and position into a number that looks random, is unique to the row, and is the same
   * if a task is repeated.
   */
  private static long tie(int file, long position) {
    return mixed((long) file << 40 ^ position);
  }

  /** The mixing function of SplitMix64, which maps different numbers to different numbers. */
  private static long mixed(long number) {
    long mixed = number * 0x9E3779B97F4A7C15L;
    mixed = (mixed ^ mixed >>> 30) * 0xBF58476D1CE4E5B9L;
    mixed = (mixed ^ mixed >>> 27) * 0x94D049BB133111EBL;
    return mixed ^ mixed >>> 31;
  }
}
