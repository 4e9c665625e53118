package io.deltalog.spark;

import org.apache.spark.sql.execution.datasources.WriteJobStatsTracker;
import org.apache.spark.sql.execution.datasources.WriteTaskStats;
import org.apache.spark.sql.execution.datasources.WriteTaskStatsTracker;
import scala.collection.immutable.Seq;

/**
 * Creates the trackers through which the commit protocol of a task learns the values of partitions.
 */
public class PartitionTracker implements WriteJobStatsTracker {
  private final TableCommitProtocol protocol;

  public PartitionTracker(TableCommitProtocol protocol) {
    this.protocol = protocol;
  }

  @Override
  public WriteTaskStatsTracker newTaskInstance() {
    return new TaskTracker(protocol);
  }

  @Override
  public void processStats(Seq<WriteTaskStats> stats, long commitMilliseconds) {}
}
