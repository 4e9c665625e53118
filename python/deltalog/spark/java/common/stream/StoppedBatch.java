package io.deltalog.spark;

import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.channels.ClosedByInterruptException;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkException;
import org.apache.spark.unsafe.Platform;

/**
 * Failures of a batch because its query is being stopped: Spark cancels the jobs of the query and
 * interrupts its thread. It only knows them by their classes and messages, which Python wraps.
 */
final class StoppedBatch {
  private static final String JOB_GROUP = "spark.jobGroup.id";

  /** A chain of causes may lead back to its beginning. */
  private static final int DEEPEST = 20;

  private StoppedBatch() {}

  /** Throws what has stopped a batch, or returns its failure if it was not stopped. */
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
