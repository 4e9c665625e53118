package io.deltalog.spark;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Counts how many rows precede the searched rows in the new files (RowSearch). Returns a 64-bit
 * number for each searched row: how many of the rows that this task reads are between the previous
 * searched row of the same file (inclusive) and the searched row.
 */
public class RowCountTask extends AbstractFunction1<Iterator<InternalRow>, byte[]>
    implements Serializable {
  private final CurvePlaces places;
  private final OrderedColumn[] columns;

  /**
   * For each task that writes a new file, the positions of its searched rows on the curve, in
   * order; null if it has none.
   */
  private final byte[][][] asked;

  /** For each of these tasks, the number of its first searched row. */
  private final int[] firsts;

  private final int count;

  /** For each file, whether its rows may precede a searched row. */
  private final boolean[] counted;

  /** Takes rows whose last columns are the number of the file and their position there. */
  public RowCountTask(
      CurvePlaces places,
      OrderedColumn[] columns,
      byte[][][] asked,
      int[] firsts,
      int count,
      boolean[] counted) {
    this.places = places;
    this.columns = columns;
    this.asked = asked;
    this.firsts = firsts;
    this.count = count;
    this.counted = counted;
  }

  @Override
  public byte[] apply(Iterator<InternalRow> read) {
    long[] before = new long[count];
    int[] cell = new int[columns.length];
    while (read.hasNext()) {
      InternalRow row = read.next();
      int width = row.numFields();
      int file = row.getInt(width - 2);
      if (!counted[file]) {
        continue;
      }
      byte[] place = places.place(row, columns, cell, file, row.getLong(width - 1));
      int task = places.task(file, place);
      if (asked[task] == null) {
        continue;
      }
      int found = Arrays.binarySearch(asked[task], place, Arrays::compareUnsigned);
      // The index of the first searched row that comes after this row.
      int next = found >= 0 ? found + 1 : -found - 1;
      if (next < asked[task].length) {
        before[firsts[task] + next]++;
      }
    }
    ByteBuffer bytes = ByteBuffer.allocate(8 * count);
    bytes.asLongBuffer().put(before);
    return bytes.array();
  }
}
