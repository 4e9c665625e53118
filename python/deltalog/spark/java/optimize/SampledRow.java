package io.deltalog.spark;

/** A row of a sample: the values of the columns by which rows are ordered, and a random tie. */
public class SampledRow {
  private final Object[] values;
  private final int tie;

  public SampledRow(Object[] values, int tie) {
    this.values = values;
    this.tie = tie;
  }

  public Object value(int column) {
    return values[column];
  }

  public int tie() {
    return tie;
  }
}
