package io.deltalog.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Finds the positions of the searched rows on the curve (RowSearch). Returns, as bytes, the number
 * and the position on the curve of each searched row that it reads.
 */
public class RowPlaceTask extends AbstractFunction1<Iterator<InternalRow>, byte[]>
    implements Serializable {
  private final CurvePlaces places;
  private final OrderedColumn[] columns;

  /** For each file, the positions of its searched rows, in order; null if it has none. */
  private final long[][] rows;

  /** For each file, the number of its first searched row. */
  private final int[] firsts;

  /** Takes rows whose last columns are the number of the file and their position there. */
  public RowPlaceTask(CurvePlaces places, OrderedColumn[] columns, long[][] rows, int[] firsts) {
    this.places = places;
    this.columns = columns;
    this.rows = rows;
    this.firsts = firsts;
  }

  @Override
  public byte[] apply(Iterator<InternalRow> read) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    int[] cell = new int[columns.length];
    try {
      while (read.hasNext()) {
        InternalRow row = read.next();
        int width = row.numFields();
        int file = row.getInt(width - 2);
        long position = row.getLong(width - 1);
        int found = rows[file] == null ? -1 : Arrays.binarySearch(rows[file], position);
        if (found >= 0) {
          byte[] place = places.place(row, columns, cell, file, position);
          out.writeInt(firsts[file] + found);
          out.writeInt(place.length);
          out.write(place);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }
}
