package io.deltalog.spark;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import scala.Option;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;

/** The job that reads the columns by which rows are ordered, and draws some rows of each bin. */
public class SampleJob extends AbstractFunction0 {
  /** How many rows are drawn of a bin: so many, but at least some for each new file, and of all bins not many more. */
  private static final long ROWS = 1 << 16;
  private static final long ROWS_OF_ALL = 1 << 18;
  private static final long ROWS_OF_A_FILE = 64;

  private final QueryExecution query;
  private final Bins bins;
  private final OrderedColumn[] columns;
  private final List[] samples;

  /** Creates it for rows whose first column is the number of the file. */
  public SampleJob(Dataset rows, Bins bins, OrderedColumn[] columns) {
    this.query = rows.queryExecution();
    this.bins = bins;
    this.columns = columns;
    samples = new List[bins.count()];
    for (int i = 0; i < samples.length; i++) {
      samples[i] = new ArrayList();
    }
  }

  /** Returns the rows that were drawn of each bin. */
  public List[] run() {
    SQLExecution$.MODULE$.withNewExecutionId(query, Option.apply("deltalog"), this);
    return samples;
  }

  public Object apply() {
    query.sparkSession().sparkContext().runJob(
        query.toRdd(), new SampleTask(bins, columns, shares()), new SampleResults(this),
        ClassTag$.MODULE$.apply(byte[].class));
    return null;
  }

  private double[] shares() {
    int ordered = 0;
    for (int bin = 0; bin < samples.length; bin++) {
      ordered += bins.isOrdered(bin) ? 1 : 0;
    }
    double[] shares = new double[samples.length];
    for (int bin = 0; bin < samples.length; bin++) {
      long files = bins.firstTask(bin + 1) - bins.firstTask(bin);
      long most = Math.max(Math.min(ROWS, ROWS_OF_ALL / Math.max(ordered, 1)), ROWS_OF_A_FILE * files);
      shares[bin] = bins.isOrdered(bin) ? (double) most / bins.rows(bin) : 0;
    }
    return shares;
  }

  /** Takes what a task has drawn. */
  void add(byte[] drawn) {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(drawn));
    try {
      while (in.available() > 0) {
        int bin = in.readInt();
        int tie = in.readInt();
        Object[] values = new Object[columns.length];
        for (int i = 0; i < values.length; i++) {
          values[i] = columns[i].read(in);
        }
        samples[bin].add(new SampledRow(values, tie));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
