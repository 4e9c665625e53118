package io.deltalog.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.BasicWriteTaskStats;
import org.apache.spark.sql.execution.datasources.WriteTaskStats;
import org.apache.spark.sql.execution.datasources.WriteTaskStatsTracker;

/** Passes the values of each new partition to the commit protocol, which names the files. */
public class TaskTracker implements WriteTaskStatsTracker {
  private final TableCommitProtocol protocol;

  public TaskTracker(TableCommitProtocol protocol) {
    this.protocol = protocol;
  }

  @Override
  public void newPartition(InternalRow values) {
    protocol.announce(values);
  }

  @Override
  public void newFile(String path) {}

  @Override
  public void closeFile(String path) {}

  @Override
  public void newRow(String path, InternalRow row) {}

  /**
   * Returns an empty result, whose class is Spark's, so that every serializer that users may choose
   * can serialize it.
   */
  @Override
  public WriteTaskStats getFinalStats(long commitMilliseconds) {
    return new BasicWriteTaskStats(Plans.none(), 0, 0L, 0L);
  }
}
