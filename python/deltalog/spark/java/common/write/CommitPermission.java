package io.deltalog.spark;

import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.spark.mapred.SparkHadoopMapRedUtil$;

/**
 * Asks the driver whether an attempt of a task may still commit, as Spark's own commit protocols
 * do.
 *
 * <p>An attempt must not commit if its job has failed, or if another attempt of the same task was
 * faster. Then it deletes its files, because the driver does not know them.
 */
public class CommitPermission extends OutputCommitter {

  /** Throws an exception if the attempt must not commit, so that Spark gives it up. */
  public static void request(TaskAttemptContext context) {
    TaskAttemptID attempt = context.getTaskAttemptID();
    SparkHadoopMapRedUtil$.MODULE$.commitTask(
        new CommitPermission(), context, attempt.getJobID().getId(), attempt.getTaskID().getId());
  }

  /** Returns true. Otherwise, Spark would not ask the driver. */
  @Override
  public boolean needsTaskCommit(TaskAttemptContext context) {
    return true;
  }

  @Override
  public void setupJob(JobContext context) {}

  @Override
  public void setupTask(TaskAttemptContext context) {}

  @Override
  public void commitTask(TaskAttemptContext context) {}

  @Override
  public void abortTask(TaskAttemptContext context) {}
}
