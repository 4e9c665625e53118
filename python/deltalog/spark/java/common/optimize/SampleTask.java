package io.deltalog.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.runtime.AbstractFunction1;

/**
 * Draws rows from the ordered bins, and counts the rows of each file. Runs in tasks.
 *
 * <p>Each row gets a random number, and rows with small numbers are drawn. The samples of all tasks
 * together are therefore a sample of all rows.
 */
public class SampleTask extends AbstractFunction1<scala.collection.Iterator<InternalRow>, byte[]>
    implements Serializable {
  private final Bins bins;
  private final OrderedColumn[] columns;

  /** For each bin, the limit: rows with a number below it are drawn. */
  private final long[] limits;

  /** For each bin, the maximum number of rows that a task draws. */
  private final int[] most;

  /** Takes rows whose last column is the number of the file. */
  public SampleTask(Bins bins, OrderedColumn[] columns, long[] limits, int[] most) {
    this.bins = bins;
    this.columns = columns;
    this.limits = limits;
    this.most = most;
  }

  @Override
  public byte[] apply(scala.collection.Iterator<InternalRow> rows) {
    SplittableRandom random = new SplittableRandom(TaskContext.getPartitionId());
    Map<Integer, BinSample> drawn = new HashMap<>();
    Map<Integer, long[]> counts = new HashMap<>();
    int file = -1;
    long[] count = null;
    BinSample sample = null;
    while (rows.hasNext()) {
      InternalRow row = rows.next();
      int number = row.getInt(row.numFields() - 1);
      if (number != file) {
        file = number;
        count = counts.get(Integer.valueOf(file));
        if (count == null) {
          count = new long[1];
          counts.put(Integer.valueOf(file), count);
        }
        Integer bin = Integer.valueOf(bins.ofFile(file));
        sample = drawn.get(bin);
        if (sample == null && bins.isOrdered(bin.intValue())) {
          sample = new BinSample(limits[bin.intValue()], most[bin.intValue()]);
          drawn.put(bin, sample);
        }
      }
      count[0]++;
      long chance = random.nextLong() >>> 1;
      if (sample != null && chance < sample.limit()) {
        Object[] values = new Object[columns.length];
        for (int i = 0; i < values.length; i++) {
          values[i] = columns[i].value(row);
        }
        sample.add(new SampledRow(values, chance));
      }
    }
    try {
      return bytes(counts, drawn);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private byte[] bytes(Map<Integer, long[]> counts, Map<Integer, BinSample> drawn)
      throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeInt(counts.size());
    for (Map.Entry<Integer, long[]> entry : counts.entrySet()) {
      out.writeInt(entry.getKey());
      out.writeLong(entry.getValue()[0]);
    }
    out.writeInt(drawn.size());
    for (Map.Entry<Integer, BinSample> entry : drawn.entrySet()) {
      out.writeInt(entry.getKey());
      entry.getValue().write(columns, out);
    }
    return bytes.toByteArray();
  }
}
