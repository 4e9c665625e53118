package io.deltalog.spark;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.Dataset;

/**
 * The job that reads the columns by which rows are ordered, counts the rows of files, and draws a
 * sample of each bin.
 */
public class SampleJob extends AnswerJob {
  /** The maximum number of rows to draw from a bin, unless it has many new files. */
  private static final long ROWS = 1 << 16;

  /** The approximate number of rows to draw from all bins together. */
  private static final long ROWS_OF_ALL = 1 << 18;

  /** The minimum number of rows to draw per new file. */
  private static final long ROWS_OF_A_FILE = 16;

  /** The maximum number of rows that a task draws from a bin whose number of rows is not known. */
  private static final int ROWS_OF_A_TASK = 1 << 13;

  private final Bins bins;
  private final OrderedColumn[] columns;
  private final long[] counts;
  private final BinSample[] samples;
  private final long[] limits;
  private final int[] most;

  /** Creates the job for rows whose last column is the number of the file. */
  public SampleJob(Dataset<Row> rows, Bins bins, OrderedColumn[] columns) {
    super(rows);
    this.bins = bins;
    this.columns = columns;
    counts = new long[bins.start(bins.count())];
    samples = new BinSample[bins.count()];
    limits = new long[samples.length];
    most = new int[samples.length];
    long all = 0;
    for (int bin = 0; bin < samples.length; bin++) {
      all += files(bin);
    }
    for (int bin = 0; bin < samples.length; bin++) {
      long wanted =
          Math.max(
              Math.min(ROWS, ROWS_OF_ALL * files(bin) / Math.max(all, 1)),
              ROWS_OF_A_FILE * files(bin));
      int quota = (int) Math.min(wanted, Integer.MAX_VALUE - 8);
      // The limit is set somewhat higher than needed, because the number of drawn rows is random.
      double share = bins.isExact(bin) ? 1.1 * wanted / bins.rows(bin) : 1;
      limits[bin] = share >= 1 ? Long.MAX_VALUE : (long) (share * Long.MAX_VALUE);
      most[bin] = bins.isExact(bin) ? quota : Math.min(quota, ROWS_OF_A_TASK);
      samples[bin] = new BinSample(limits[bin], quota);
    }
  }

  /** Returns the number of new files of a bin if it is ordered. */
  private int files(int bin) {
    return bins.isOrdered(bin) ? bins.firstTask(bin + 1) - bins.firstTask(bin) : 0;
  }

  public void run() {
    run(new SampleTask(bins, columns, limits, most));
  }

  /** Adds the counts and the sample of a task. */
  @Override
  protected void add(byte[] drawn) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(drawn));
    for (int files = in.readInt(); files > 0; files--) {
      int file = in.readInt();
      counts[file] += in.readLong();
    }
    for (int found = in.readInt(); found > 0; found--) {
      samples[in.readInt()].read(columns, in);
    }
  }

  /** Returns the number of rows of each file. */
  public long[] counts() {
    return counts;
  }

  /** Returns the rows that were drawn from each bin. */
  public List<List<SampledRow>> samples() {
    return Arrays.stream(samples).map(BinSample::rows).toList();
  }
}
