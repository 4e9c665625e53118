package io.deltalog.spark;

import java.io.IOException;
import org.apache.hadoop.mapreduce.TaskAttemptContext;

/** The commit protocol of a job in which each task writes a bin to one file, and reports the rows of each old one. */
public class BinCommitProtocol extends TableCommitProtocol {
  private final Bins bins;
  private transient CopiedRows copied;

  public BinCommitProtocol(String root, Bins bins) {
    super(root, false, false);
    this.bins = bins;
  }

  public void setupTask(TaskAttemptContext context) {
    super.setupTask(context);
    int bin = task(context);
    copied = new CopiedRows(bins.start(bin), bins.start(bin + 1));
  }

  /** Returns the rows that this attempt copies. */
  public CopiedRows copied() {
    return copied;
  }

  protected String directory(int task, String named) {
    return bins.directory(task);
  }

  protected String[] partitionValues(int task, String directory) {
    return bins.values(task);
  }

  protected void addTo(TaskReport added, int task) throws IOException {
    copied.reportTo(added, task);
  }
}
