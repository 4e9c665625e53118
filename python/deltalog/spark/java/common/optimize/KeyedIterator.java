package io.deltalog.spark;

import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;

/** The rows of a task with their keys (KeyedRows). */
public class KeyedIterator implements Iterator {
  private final KeyedRows keys;
  private final scala.collection.Iterator rows;
  private final JoinedRow joined = new JoinedRow();
  private final GenericInternalRow added = new GenericInternalRow(2);
  private final int[] cell;

  public KeyedIterator(KeyedRows keys, scala.collection.Iterator rows) {
    this.keys = keys;
    this.rows = rows;
    this.cell = new int[keys.dimensions()];
  }

  @Override
  public boolean hasNext() {
    return rows.hasNext();
  }

  @Override
  public Object next() {
    return keys.keyed((InternalRow) rows.next(), joined, added, cell);
  }

  @Override
  public void remove() {
    throw new UnsupportedOperationException();
  }
}
