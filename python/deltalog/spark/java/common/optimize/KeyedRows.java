package io.deltalog.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Appends to each row the key of the task that writes it, and its place on the curve. Runs in
 * tasks.
 */
public class KeyedRows extends AbstractFunction1 implements Serializable {
  private final CurvePlaces places;
  private final OrderedColumn[] columns;
  private final int[] keys;
  private final int file;

  /**
   * Takes rows with the number of the file at a position, followed by the position of the row
   * there.
   */
  public KeyedRows(CurvePlaces places, OrderedColumn[] columns, int[] keys, int file) {
    this.places = places;
    this.columns = columns;
    this.keys = keys;
    this.file = file;
  }

  @Override
  public Object apply(Object rows) {
    return CollectionConverters.asScala(new KeyedIterator(this, (Iterator) rows));
  }

  /** Returns a row with its keys. The next call changes the same object. */
  InternalRow keyed(InternalRow row, JoinedRow joined, GenericInternalRow added, int[] cell) {
    int number = row.getInt(file);
    byte[] place = places.place(row, columns, cell, number, row.getLong(file + 1));
    added.update(0, Integer.valueOf(keys[places.task(number, place)]));
    added.update(1, place);
    return joined.apply(row, added);
  }

  int dimensions() {
    return columns.length;
  }
}
