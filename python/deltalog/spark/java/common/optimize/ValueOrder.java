package io.deltalog.spark;

import java.util.Comparator;

/** The order of the values of a column (OrderedColumn), and of places on a curve. */
public class ValueOrder implements Comparator {
  @Override
  public int compare(Object a, Object b) {
    return OrderedColumn.compare(a, b);
  }
}
