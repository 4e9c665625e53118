package io.deltalog.spark;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import scala.Option;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;

/** The job that reads the columns by which rows are ordered, counts the rows of files, and draws some of each bin. */
public class SampleJob extends AbstractFunction0 {
  /** How many rows are drawn of a bin at most, unless it has many new files, and about how many of all bins. */
  private static final long ROWS = 1 << 16;
  private static final long ROWS_OF_ALL = 1 << 18;
  /** How many rows are drawn for each new file at least. */
  private static final long ROWS_OF_A_FILE = 16;

  /** How many rows a task draws of a bin at most, if the number of rows is not known. */
  private static final int ROWS_OF_A_TASK = 1 << 13;

  private final QueryExecution query;
  private final Bins bins;
  private final OrderedColumn[] columns;
  private final long[] counts;
  private final BinSample[] samples;
  private final long[] limits;
  private final int[] most;

  /** Creates it for rows whose last column is the number of the file. */
  public SampleJob(Dataset rows, Bins bins, OrderedColumn[] columns) {
    this.query = rows.queryExecution();
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
      long wanted = Math.max(Math.min(ROWS, ROWS_OF_ALL * files(bin) / Math.max(all, 1)), ROWS_OF_A_FILE * files(bin));
      most[bin] = (int) Math.min(wanted, Integer.MAX_VALUE - 8);
      // Some more than are wanted, because it is chance how many they are. The number of rows may be a guess.
      double share = bins.isExact(bin) ? 1.1 * wanted / bins.rows(bin) : 1;
      if (!bins.isExact(bin)) {
        most[bin] = Math.min(most[bin], ROWS_OF_A_TASK);
      }
      limits[bin] = share >= 1 ? Long.MAX_VALUE : (long) (share * Long.MAX_VALUE);
      samples[bin] = new BinSample(limits[bin], (int) Math.min(wanted, Integer.MAX_VALUE - 8));
    }
  }

  /** Returns the number of new files of a bin that is ordered. */
  private int files(int bin) {
    return bins.isOrdered(bin) ? bins.firstTask(bin + 1) - bins.firstTask(bin) : 0;
  }

  public void run() {
    SQLExecution$.MODULE$.withNewExecutionId(query, Option.apply("deltalog"), this);
  }

  public Object apply() {
    query.sparkSession().sparkContext().runJob(
        query.toRdd(), new SampleTask(bins, columns, limits, most), new SampleResults(this),
        ClassTag$.MODULE$.apply(byte[].class));
    return null;
  }

  /** Takes what a task has counted and drawn. */
  void add(byte[] drawn) {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(drawn));
    try {
      for (int files = in.readInt(); files > 0; files--) {
        int file = in.readInt();
        counts[file] += in.readLong();
      }
      for (int found = in.readInt(); found > 0; found--) {
        samples[in.readInt()].read(columns, in);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Returns the number of rows of each file. */
  public long[] counts() {
    return counts;
  }

  /** Returns the rows that were drawn of each bin. */
  public List[] samples() {
    List[] rows = new List[samples.length];
    for (int bin = 0; bin < rows.length; bin++) {
      rows[bin] = samples[bin].rows();
    }
    return rows;
  }
}
