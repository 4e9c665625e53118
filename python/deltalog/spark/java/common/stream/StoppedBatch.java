package io.deltalog.spark;

import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.channels.ClosedByInterruptException;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkException;
import org.apache.spark.unsafe.Platform;

/**
 * Recognizes batches that failed because their query is being stopped: Spark cancels the jobs of
 * the query and interrupts its thread. Spark recognizes such failures by their class and message,
 * but Python wraps them in other exceptions, so they are unwrapped here.
 */
final class StoppedBatch {
  private static final String JOB_GROUP = "spark.jobGroup.id";

  /** The maximum number of causes that are examined. A chain of causes may be circular. */
  private static final int DEEPEST = 20;

  private StoppedBatch() {}

  /**
   * Throws the exception by which Spark recognizes that a batch was stopped. Returns `failure` if
   * it has another reason.
   */
  static RuntimeException thrown(RuntimeException failure, SparkContext context) {
    String group = context.getLocalProperty(JOB_GROUP);
    Throwable cause = failure;
    for (int i = 0; i < DEEPEST && cause != null; i++) {
      if (isStop(cause, group)) {
        Platform.throwException(cause);
      }
      cause = cause.getCause();
    }
    if (Thread.interrupted()) {
      InterruptedException stop = new InterruptedException(failure.getMessage());
      stop.initCause(failure);
      Platform.throwException(stop);
    }
    return failure;
  }

  private static boolean isStop(Throwable cause, String group) {
    if (cause instanceof SparkException && cause.getCause() == null && group != null) {
      String message = String.valueOf(cause.getMessage());
      return message.contains("cancelled") && message.contains(group);
    }
    return cause instanceof InterruptedException
        || cause instanceof ClosedByInterruptException
        || (cause instanceof InterruptedIOException && !(cause instanceof SocketTimeoutException));
  }
}
