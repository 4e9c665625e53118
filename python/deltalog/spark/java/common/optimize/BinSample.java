package io.deltalog.spark;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;

/**
 * A sample of a bin: the rows with the smallest random numbers. All rows with numbers below a limit
 * are kept, and the limit is lowered if there are too many of them.
 */
public class BinSample {
  private final int most;
  private final PriorityQueue<SampledRow> rows = new PriorityQueue<>();
  private long limit;

  /**
   * Creates an empty sample of rows with numbers below a limit, which holds at most `most` rows.
   */
  public BinSample(long limit, int most) {
    this.limit = limit;
    this.most = most;
  }

  /** Returns the limit: rows with a number below it are added to the sample. */
  public long limit() {
    return limit;
  }

  /** Adds a row whose number is below the limit. */
  public void add(SampledRow row) {
    rows.add(row);
    if (rows.size() > most) {
      lower(rows.peek().number());
    }
  }

  private void lower(long to) {
    limit = Math.min(limit, to);
    while (!rows.isEmpty() && rows.peek().number() >= limit) {
      rows.poll();
    }
  }

  public void write(OrderedColumn[] columns, DataOutputStream out) throws IOException {
    out.writeLong(limit);
    out.writeInt(rows.size());
    for (SampledRow row : rows) {
      out.writeLong(row.number());
      for (int i = 0; i < columns.length; i++) {
        columns[i].write(row.value(i), out);
      }
    }
  }

  /** Adds another sample, which is read from its serialized form. */
  public void read(OrderedColumn[] columns, DataInputStream in) throws IOException {
    lower(in.readLong());
    int count = in.readInt();
    for (int row = 0; row < count; row++) {
      long number = in.readLong();
      Object[] values = new Object[columns.length];
      for (int i = 0; i < values.length; i++) {
        values[i] = columns[i].read(in);
      }
      if (number < limit) {
        add(new SampledRow(values, number));
      }
    }
  }

  public List<SampledRow> rows() {
    return new ArrayList<>(rows);
  }
}
