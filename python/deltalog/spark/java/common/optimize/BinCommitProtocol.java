package io.deltalog.spark;

import java.io.IOException;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.types.StructType;

/**
 * The commit protocol of a job in which each task writes a bin, or a section of an ordered bin, to
 * one file, and reports how many rows it has copied from each old file.
 */
public class BinCommitProtocol extends TableCommitProtocol {
  private final Bins bins;
  private transient CopiedRows copied;

  public BinCommitProtocol(String root, Bins bins) {
    super(root, false, false);
    this.bins = bins;
  }

  @Override
  public void setupTask(TaskAttemptContext context) {
    super.setupTask(context);
    int bin = bins.ofTask(task(context));
    int start = bins.start(bin);
    int end = bins.start(bin + 1);
    copied = bins.isOrdered(bin) ? new ShuffledRows(start, end) : new CopiedRows(start, end);
  }

  /**
   * Returns the writer for the rows of a bin. It ignores changes, because no changes are recorded
   * for copied rows.
   */
  @Override
  protected OutputWriter marked(
      OutputWriter file, ChangeWriter changes, StructType columns, int given) {
    int width = columns.length();
    return new BinWriter(file, copied, new LeadingColumns(columns, width, given), width);
  }

  @Override
  protected String directory(int task, String named) {
    return bins.directory(bins.ofTask(task));
  }

  @Override
  protected String[] partitionValues(int task, String directory) {
    return bins.values(bins.ofTask(task));
  }

  @Override
  protected void addTo(TaskReport added, int task) throws IOException {
    copied.reportTo(added, task);
  }
}
