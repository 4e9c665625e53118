package io.deltalog.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.SplittableRandom;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Draws rows of the bins that are ordered, as bytes: bin, tie and values. Runs in tasks. */
public class SampleTask extends AbstractFunction1 implements Serializable {
  private final Bins bins;
  private final OrderedColumn[] columns;
  /** How likely a row of each bin is drawn. */
  private final double[] shares;

  /** Takes rows whose first column is the number of the file. */
  public SampleTask(Bins bins, OrderedColumn[] columns, double[] shares) {
    this.bins = bins;
    this.columns = columns;
    this.shares = shares;
  }

  public Object apply(Object rows) {
    SplittableRandom random = new SplittableRandom(TaskContext.getPartitionId());
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    Iterator each = (Iterator) rows;
    try {
      while (each.hasNext()) {
        InternalRow row = (InternalRow) each.next();
        int bin = bins.ofFile(row.getInt(0));
        if (random.nextDouble() >= shares[bin]) {
          continue;
        }
        out.writeInt(bin);
        out.writeInt(random.nextInt());
        for (int i = 0; i < columns.length; i++) {
          columns[i].write(columns[i].value(row), out);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }
}
