package io.deltalog.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Appends to each row the key of the task that writes it, and its position on the curve. Runs in
 * tasks.
 */
public class KeyedRows extends AbstractFunction1<Iterator<InternalRow>, Iterator<InternalRow>>
    implements Serializable {
  private final CurvePlaces places;
  private final OrderedColumn[] columns;
  private final int[] keys;
  private final int file;

  /**
   * Takes rows that contain the number of their file at the given index, followed by their position
   * there.
   */
  public KeyedRows(CurvePlaces places, OrderedColumn[] columns, int[] keys, int file) {
    this.places = places;
    this.columns = columns;
    this.keys = keys;
    this.file = file;
  }

  @Override
  public Iterator<InternalRow> apply(Iterator<InternalRow> rows) {
    JoinedRow joined = new JoinedRow();
    GenericInternalRow added = new GenericInternalRow(2);
    int[] cell = new int[columns.length];
    return rows.map(row -> keyed(row, joined, added, cell));
  }

  private InternalRow keyed(
      InternalRow row, JoinedRow joined, GenericInternalRow added, int[] cell) {
    int number = row.getInt(file);
    byte[] place = places.place(row, columns, cell, number, row.getLong(file + 1));
    added.update(0, Integer.valueOf(keys[places.task(number, place)]));
    added.update(1, place);
    return joined.apply(row, added);
  }
}
