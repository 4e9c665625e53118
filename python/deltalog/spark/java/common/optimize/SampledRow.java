package io.deltalog.spark;

/**
 * A row of a sample: the values of the columns by which rows are ordered, and a random number. The
 * rows with the smallest numbers are the sample.
 */
public class SampledRow implements Comparable<SampledRow> {
  private final Object[] values;
  private final long number;

  public SampledRow(Object[] values, long number) {
    this.values = values;
    this.number = number;
  }

  public Object value(int column) {
    return values[column];
  }

  public long number() {
    return number;
  }

  /** Orders rows so that the one with the largest number comes first. */
  @Override
  public int compareTo(SampledRow other) {
    return Long.compare(other.number, number);
  }
}
